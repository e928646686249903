import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnEngine

/// What the ledger answers: status, explain, verify.
@Suite struct QueryTests {
  private func filled(_ count: Int = 20) throws -> World {
    let world = World()
    for number in 0..<count { world.want("f\(number + 10)", "text \(number)") }
    try world.run()
    return world
  }

  private func status(_ world: World, holder: Int32? = nil, limit: Int = 20) throws -> StatusDocument {
    try StatusQuery(ledger: world.ledger).document(
      name: "m", folder: "/folder", holder: holder, problemLimit: limit)
  }

  private func explain(_ world: World, _ path: String, mirror: String = "m") throws -> Explanation {
    try ExplainQuery(ledger: world.ledger, folder: world.folder).explain(path.path, mirror: mirror)
  }

  private func verify(_ world: World, stop: StopFlag = StopFlag()) throws -> VerifyReport {
    try Verification(
      ledger: world.ledger, clock: world.clock, folder: world.folder,
      observer: world.log, progress: PassProgress(clock: world.clock), stop: stop
    ).run()
  }

  // MARK: Refused names

  @Test func aRefusedNameIsExplainedThoughItIsNoPath() throws {
    let world = World()
    world.items = [
      .refused(Refusal(name: "../x".bytes, code: "path-dot-segment", reason: "it leads out of the folder"))
    ]
    try world.run()
    let query = ExplainQuery(ledger: world.ledger, folder: world.folder)
    let answer = try #require(try query.explain(refused: "../x".bytes, mirror: "m"))
    #expect(answer.state == "refused" && answer.summary.contains("it leads out of the folder"))
    #expect(answer.hint?.hasPrefix("the publisher has to correct it") == true)
    #expect(answer.hint?.hasSuffix("to do without it: tarn sync --exclude /../x m") == true)
    #expect(try query.explain(refused: "..x".bytes, mirror: "m") == nil)
  }

  // MARK: Status

  @Test func aMirrorInSyncIsIdle() throws {
    let document = try status(filled(3))
    #expect(document.state == "idle")
    #expect(document.entries.wanted == 3)
    #expect(document.entries.current == 3)
    #expect(document.entries.pending == 0)
    #expect(document.bytes.wanted == 18)
    #expect(document.bytes.current == 18)
    #expect(document.bytes.pending == 0)
    #expect(document.format == "test list")
    #expect(document.lastSuccess != nil)
    #expect(document.lastFailure == nil)
    #expect(document.problems.isEmpty)
  }

  /// Rows of files that the feed dropped, or that are not as it wants them, are no part of what is current.
  @Test func onlyWhatTheFeedWantsCounts() throws {
    let world = try filled(3)
    world.unlist("f10")
    world.want("f11", "newer text")
    world.server.remove(World.host + "f11")
    try world.run()
    let document = try status(world)
    #expect(document.entries.current == 1)
    #expect(document.bytes.current == 6)
    #expect(document.bytes.wanted == 16)
    #expect(document.bytes.pending == 10)
  }

  /// Where the feed gives no sizes, those of the files that are in place are taken.
  @Test func sizesThatTheFeedDoesNotGive() throws {
    let world = World()
    for (name, text) in [("a", "12345"), ("b", "1234567")] {
      world.server.put(World.host + name, text.bytes)
      world.add(world.bareEntry(name, listing: text))
    }
    try world.run()
    #expect(try status(world).bytes.wanted == 12)
    #expect(try status(world).bytes.current == 12)
    #expect(try status(world).bytes.pending == 0)
    // Another version of one of them, and it is longer.
    world.server.put(World.host + "b", "123456789".bytes)
    world.add(world.bareEntry("b", listing: "new"))
    try world.run()
    #expect(try status(world).bytes.wanted == 14)
    #expect(try status(world).bytes.current == 14)
    try world.run()
    #expect(try status(world).bytes.wanted == 14)
    #expect(try status(world).bytes.current == 14)
  }

  /// What nobody can know is not told as nothing.
  @Test func unknownSizesAreSaid() throws {
    let world = World()
    for name in ["a", "b"] { world.add(world.bareEntry(name, listing: "one")) }
    try world.run()
    var document = try status(world)
    #expect(document.bytes.wanted == nil && document.bytes.pending == nil)
    #expect(document.bytes.current == 0 && document.bytes.unknownSizes == 2)
    world.server.put(World.host + "a", "12345".bytes)
    try world.run()
    document = try status(world)
    #expect(document.bytes.wanted == 5 && document.bytes.current == 5)
    #expect(document.bytes.pending == nil && document.bytes.unknownSizes == 1)
    // A file that was there, and was taken.
    world.folder.write("c".path, "123".bytes)
    var entry = world.entry("c", "123")
    entry.size = nil
    world.add(entry)
    try world.run()
    #expect(try status(world).bytes.wanted == 8)
    #expect(try status(world).bytes.current == 8)
    #expect(try status(world).bytes.unknownSizes == 1)
  }

  @Test func whatIsMissingIsPendingOrFailed() throws {
    let world = try filled(3)
    world.want("new", "new")
    world.server.remove(World.host + "new")
    world.want("foreign", "foreign")
    world.folder.write("foreign".path, "FOREIGN".bytes)
    world.items.append(.refused(Refusal(name: "../x".bytes, .dotSegment)))
    try world.run()
    let document = try status(world)
    #expect(document.state == "failing")
    #expect(document.entries.wanted == 6)
    #expect(document.entries.current == 3)
    #expect(document.entries.failed == 1)
    #expect(document.entries.conflict == 1)
    #expect(document.entries.refused == 1)
    // Each is counted once.
    #expect(document.entries.pending == 0)
    #expect(document.problems.count == 3)
    #expect(try status(world, limit: 1).moreProblems == 2)
  }

  @Test func theStateWords() throws {
    let world = try filled()
    world.feedFailure = FeedFailure(code: "feed-truncated", message: "cut")
    #expect(throws: PassFailure.self) { try world.run() }
    #expect(try status(world).state == "failing")
    #expect(try status(world).lastFailure?.contains("cut") == true)
    // What a person can do about it goes with it, also where no agent remembers it.
    #expect(try status(world).hint?.contains("try again later") == true)
    world.feedFailure = FeedFailure(code: "feed-not-recognised", message: "a list of feeds", hint: "give one")
    #expect(throws: PassFailure.self) { try world.run() }
    #expect(try status(world).hint == "give one")
    world.feedFailure = nil
    world.policy.deletes = true
    world.unlist("f29")
    try world.run()
    #expect(try status(world).hint == nil)
    #expect(try status(world, holder: 42).state == "deleting")
    for number in 0..<5 { world.unlist("f\(number + 10)") }
    try world.run()
    var document = try status(world)
    #expect(document.state == "held")
    #expect(document.held?.deletions == 5)
    #expect(document.entries.held == 5)
    document = try status(world, holder: 42)
    #expect(document.process == 42)
    // What is held is so before anything is carried out, and there was nothing else.
    #expect(document.state == "planning")
    try world.ledger.apply([.fact(.outcome, "running")])
    #expect(try status(world).state == "interrupted")
  }

  /// What the last pass left undone is done by the approval, or not.
  @Test func anApprovalEndsWhatWasHeld() throws {
    for trouble in ["", "other", "stop", "deletion"] {
      let world = try filled()
      let success = try status(world).lastSuccess
      world.clock.advance(.seconds(3600))
      world.policy.deletes = true
      for number in 0..<5 { world.unlist("f\(number + 10)") }
      if trouble == "other" {
        world.want("new", "new")
        world.server.remove(World.host + "new")
      }
      let report = try world.run()
      #expect(try status(world).state == "held")
      #expect(try status(world).lastSuccess == success)
      world.clock.advance(.seconds(3600))
      if trouble == "stop" {
        let stop = StopFlag()
        stop.set()
        #expect(try world.approval(stop: stop).run(plan: nil).wasStopped)
        #expect(try status(world).state == "held")
        continue
      }
      if trouble == "deletion" { for number in 1...5 { world.folder.fail(.remove, number: number) } }
      let approved = try world.approval.run(plan: nil)
      #expect(approved.problems.isEmpty == (trouble != "deletion"))
      #expect(try status(world).state == (trouble.isEmpty ? "idle" : "failing"), "\(trouble)")
      // In sync as of the feed that the pass read.
      #expect(try status(world).lastSuccess == (trouble.isEmpty ? report.ended.rfc3339 : success))
    }
  }

  @Test func aStoppedPassIsNoFailure() throws {
    let world = try filled(3)
    world.want("new", "new")
    let downloader = try world.server.downloader()
    defer { downloader.shutDown() }
    let pass = world.pass(downloader)
    world.log.onEvent { _, event in if case .planned = event { pass.stop.set() } }
    #expect(try pass.run(folder: world.folder).wasStopped)
    #expect(try status(world).state == "interrupted")
    #expect(try status(world).lastFailure == nil)
  }

  @Test func theTrashIsCounted() throws {
    let world = try filled(3)
    world.want("f10", "new")
    try world.run()
    let document = try status(world)
    #expect(document.trashFiles == 1)
    #expect(document.trashBytes == 6)
  }

  // MARK: Explain

  @Test func everyStateOfAPath() throws {
    let world = try filled()
    world.want("gone-wrong", "x")
    world.server.remove(World.host + "gone-wrong")
    world.folder.write("mine".path, "mine".bytes)
    world.policy.deletes = true
    world.unlist("f10")
    try world.run()
    world.folder.edit("f11".path, "edited".bytes)
    world.folder.delete("f12".path)
    #expect(try explain(world, "f13").state == "current")
    #expect(try explain(world, "f13").record?.verified == true)
    #expect(try explain(world, "f13").events.map(\.code) == ["fetched"])
    #expect(try explain(world, "f10").state == "gone")
    #expect(try explain(world, "f11").state == "changed")
    #expect(try explain(world, "f12").state == "missing")
    #expect(try explain(world, "mine").state == "foreign")
    #expect(try explain(world, "nowhere").state == "unknown")
    #expect(try explain(world, "gone-wrong").state == "failed")
    #expect(try explain(world, "gone-wrong").problem?.code == "http-404")
    for number in 4..<10 { world.unlist("f\(number + 10)") }
    let held = try #require(try world.run().held)
    #expect(try explain(world, "f14").state == "held")
    #expect(try explain(world, "f14").hint == "tarn approve m \(held.id)")
  }

  /// What is said to come next helps: another pass alone moves nothing out of the way and mends no feed.
  @Test func whatComesNextHelps() throws {
    let world = try filled(3)
    world.folder.write("mine".path, "mine".bytes)
    world.want("mine", "theirs")
    world.want("gone-wrong", "x")
    world.server.remove(World.host + "gone-wrong")
    world.items.append(.refused(Refusal(name: "bad".bytes, code: "no-usable-source", reason: "no source")))
    try world.run()
    #expect(try explain(world, "mine", mirror: "my iso").state == "conflict")
    #expect(try explain(world, "mine", mirror: "my iso").hint == "move it away, then: tarn sync 'my iso'")
    #expect(try explain(world, "bad").state == "refused")
    #expect(try explain(world, "bad").hint?.hasSuffix("tarn sync --exclude /bad m") == true)
    #expect(
      try explain(world, "gone-wrong", mirror: "my iso").hint
        == "tell the publisher, and once it is corrected: tarn sync 'my iso'; to do without it: "
        + "tarn sync --exclude /gone-wrong 'my iso'")
  }

  /// A new pattern takes the place of those that are remembered.
  @Test func theAdviceKeepsThePatternsThatHold() throws {
    let problem = Problem(
      name: "gone".bytes, kind: .failed, code: "http-404", message: "not found",
      seen: Timestamp(nanoseconds: 0))
    let excluded = ["*.bak", "/it's \\[1]"]
    #expect(
      ProblemAdvice(problem, mirror: "m", excluded: excluded).step.hasSuffix(
        "tarn sync --exclude '*.bak' --exclude '/it'\\''s \\[1]' --exclude /gone m"))
    #expect(
      ProblemAdvice(problem, mirror: "m", configured: "m", excluded: ["*.bak"]).step.hasSuffix(
        "exclude = [\"*.bak\", \"/gone\"] below [mirror.m] of the settings"))
    let odd = ["a\tb", "q\\[\tz", "a\\*\"", "nl\u{85}x", "it's\\?"]
    #expect(
      ProblemAdvice(problem, mirror: "m", configured: "m", excluded: odd).step.contains(
        #"exclude = ["a\U00000009b", "q\\[\U00000009z", 'a\*"', "nl\U00000085x", "it's\\?", "/gone"] below"#))
    let world = try filled(3)
    try world.choose([.exclude: ["*.bak"]])
    world.want("gone-wrong", "x")
    world.server.remove(World.host + "gone-wrong")
    try world.run()
    #expect(
      try explain(world, "gone-wrong").hint?.hasSuffix("--exclude '*.bak' --exclude /gone-wrong m") == true)
  }

  /// No pattern excludes it, and one that tried would be remembered.
  @Test(arguments: ["feed-truncated", "http-500", "content-mismatch"]) func nobodyIsToDoWithoutTheFeed(
    code: String
  ) {
    var problem = Problem(
      name: Array("https://e/feed.xml".utf8), kind: .failed, code: code, message: "m",
      seen: Timestamp(nanoseconds: 0))
    #expect(ProblemAdvice(problem, mirror: "m").step == "tarn sync m")
    problem.attempts = 2
    #expect(
      ProblemAdvice(problem, mirror: "m").step == "tell the publisher, and once it is corrected: tarn sync m")
  }

  /// Another pass alone may fail in the same way.
  @Test func whatFailsAgainAndAgainIsNotOnlyTriedAgain() throws {
    let world = try filled(3)
    world.policy.retries = 0
    world.want("a", "x")
    world.server.answer(World.host + "a", FakeAnswer(status: 500))
    try world.run()
    #expect(try explain(world, "a").hint == "tarn sync m")
    world.clock.advance(.seconds(1))
    #expect(try world.run().problems.map(\.attempts) == [2])
    #expect(
      try explain(world, "a").hint
        == "tarn sync m; it has failed so in 2 passes, and its server may need a repair; to do without it: "
        + "tarn sync --exclude /a m")
    let doubted = Problem(
      name: "a".bytes, kind: .failed, code: "content-mismatch", message: "a login page?",
      seen: Timestamp(nanoseconds: 0))
    let step = ProblemAdvice(doubted, mirror: "m").step
    #expect(step.hasPrefix("look at its address with a browser"))
    #expect(step.hasSuffix("to do without it: tarn sync --exclude /a m"))
  }

  /// A file where the feed has a directory by now: it is what is in the way, whether it may go or not.
  @Test func aFileThatIsInTheWay() throws {
    let world = try filled()
    world.folder.write("mine".path, "mine".bytes)
    for name in ["f10", "f11", "mine"] { world.want("\(name)/x", "new") }
    for name in ["f10", "f11"] { world.unlist(name) }
    try world.run()
    for name in ["f10", "mine"] {
      let answer = try explain(world, name)
      #expect(answer.state == "conflict", "\(name)")
      #expect(answer.summary == (try explain(world, "\(name)/x")).summary)
      #expect(answer.hint == "move it away, then: tarn sync m")
    }
    #expect(
      try explain(world, "f10").summary
        == "f10 is a file, and the feed now has a directory there; --delete lets the file go to the trash "
        + "[parent-not-a-directory]")
    #expect(try explain(world, "f12").state == "current")
    world.folder.delete("f11".path)
    #expect(try explain(world, "f11").state == "missing")
  }

  @Test func whatWaitsForAnApproval() throws {
    let world = try filled()
    world.policy.deletes = true
    for number in 10..<15 {
      world.unlist("f\(number)")
      world.want("f\(number)/x", "new")
    }
    let id = try #require(try world.run().held?.id)
    #expect(try explain(world, "f10").hint == "tarn approve m \(id)")
    #expect(try explain(world, "f10/x").state == "held")
    #expect(try explain(world, "f10/x").hint == "tarn approve m \(id)")
    _ = try world.approval.run(plan: id)
    #expect(try explain(world, "f10/x").hint == "tarn sync m")
  }

  // MARK: Verify

  @Test func aGoodMirrorIsVerified() throws {
    let world = try filled(3)
    let report = try verify(world)
    #expect(report.isGood)
    #expect(report.checked == 3)
    #expect(report.good == 3)
    #expect(report.bytes == 18)
    #expect(try status(world).verifiedAt != nil)
  }

  @Test func whatIsWrongIsTold() throws {
    let world = try filled(5)
    world.folder.delete("f10".path)
    world.folder.edit("f11".path, "edited".bytes)
    damage(world, "f12")
    world.folder.fail(.digest, number: 3)
    let report = try verify(world)
    #expect(!report.isGood)
    #expect(report.missing == ["f10".path])
    #expect(report.changed == ["f11".path])
    #expect(report.damaged == ["f12".path])
    #expect(report.problems.map(\.name) == ["f13".bytes])
    #expect(report.good == 1)
    let edited = "it was edited since Tarn placed it"
    #expect(world.log.problems.first { $0.code == "changed" }?.message == edited)
    #expect(try world.ledger.problem(name: "f11".bytes)?.message == edited)
    // One is missing, and one could not be read.
    #expect(report.checked == 3)
    #expect(Set(world.log.problems.map(\.code)) == ["missing", "changed", "damaged", "input-output-error"])
    #expect(try status(world).verifiedAt == nil)
  }

  @Test(arguments: [("keep", true), ("report", true), ("restore", false)])
  func aPolicyThatLeavesWhatIsMissingIsKnown(_ policy: String, _ leaves: Bool) throws {
    let world = try filled(2)
    try world.choose([.localChanges: [policy]])
    try world.run()
    #expect(try !verify(world).leavesLocalChanges)
    world.folder.delete("f10".path)
    #expect(try verify(world).leavesLocalChanges == leaves)
  }

  /// A file that could not be brought back is missing, but that is not why.
  @Test func whyWhatIsMissingWasNotFetchedIsKept() throws {
    let world = try filled(3)
    let seen = world.clock.time
    let known = Problem(name: "f10".bytes, kind: .failed, code: "http-404", message: "gone", seen: seen)
    try world.ledger.apply([.problem(known)])
    for name in ["f10", "f11"] { world.folder.delete(name.path) }
    for _ in 0..<2 {
      #expect(try Set(verify(world).missing) == ["f10".path, "f11".path])
      #expect(try world.ledger.problem(name: "f10".bytes) == known)
      #expect(try world.ledger.problem(name: "f11".bytes)?.code == "missing")
    }
  }

  @Test func whereNothingIsRecordedNothingIsVerified() throws {
    let world = World()
    world.want("a", "a")
    #expect(try verify(world).isBlank && !verify(world).isGood && !verify(world).knowsFeed)
    #expect(try status(world).verifiedAt == nil)
    world.server.remove(World.host + "a")
    try world.run()
    #expect(try verify(world).isBlank)
    // That nothing is wanted, a pass has found.
    world.unlist("a")
    try world.run()
    #expect(try verify(world).isGood)
  }

  /// As a disk does it: other bytes, and stat says nothing.
  private func damage(_ world: World, _ path: String) {
    world.folder.edit(path.path, "damage".bytes)
    guard let row = world.row(path), let present = try? world.folder.look(path.path) else { return }
    var damaged = row
    damaged.identity = present.identity
    try? world.ledger.apply([.row(damaged)])
  }

  @Test(arguments: PassPolicy.LocalChanges.allCases)
  func damageIsFetchedAgainWhateverThePolicy(_ policy: PassPolicy.LocalChanges) throws {
    let world = try filled(3)
    world.policy.localChanges = policy
    damage(world, "f11")
    #expect(try world.run().counts.current == 3)
    #expect(try verify(world).damaged == ["f11".path])
    let report = try world.run()
    #expect(report.counts.replaced == 1)
    #expect(world.text("f11") == "text 1")
    #expect(try verify(world).isGood)
  }

  /// Something was mounted over it, for example: no pass says that it is in place without having looked.
  @Test func whatCouldNotBeReadIsKnownUntilAPassHasLooked() throws {
    let world = try filled(3)
    world.settings = "settings"
    try world.run()
    world.folder.fail(.digest, with: FolderFailure(.otherFileSystem, "another file system"))
    #expect(try verify(world).problems.count == 1)
    #expect(try status(world).state == "failing")
    #expect(try status(world).problems.map(\.code) == ["other-file-system"])
    let scans = world.folder.count(.scan)
    #expect(try world.run().isInSync && world.folder.count(.scan) > scans)
    #expect(try status(world).state == "idle" && status(world).problems.isEmpty)
  }

  /// Nothing that is asked afterwards says that all is well, and a pass over an unchanged feed mends it.
  @Test func whatWasFoundIsKnownUntilItIsMended() throws {
    let world = try filled(4)
    world.settings = "settings"
    try world.run()
    damage(world, "f11")
    world.folder.delete("f12".path)
    _ = try verify(world)
    var document = try status(world)
    #expect(document.state == "failing")
    #expect(document.problems.map(\.code) == ["damaged", "missing"])
    #expect(document.entries.current == 2 && document.entries.failed == 2)
    #expect(try explain(world, "f11").state == "failed")
    #expect(try explain(world, "f11").hint == "tarn sync m")
    // Once more, and nothing is counted twice.
    _ = try verify(world)
    #expect(try status(world).entries.current == 2)
    let report = try world.run()
    #expect(report.counts.replaced == 1 && report.counts.restored == 1)
    document = try status(world)
    #expect(document.state == "idle" && document.problems.isEmpty && document.entries.current == 4)
  }

  /// A pass that looks at nothing would deny it.
  @Test func afterVerifyingFoundSomethingThePassLooks() throws {
    let world = try filled(4)
    let good = [LedgerChange.fact(.feedRecord, "record")]
    try world.ledger.apply(good)
    _ = try verify(world)
    #expect(try world.ledger.fact(.feedRecord) == "record")
    world.folder.edit("f11".path, "edited".bytes)
    #expect(try verify(world).changed == ["f11".path])
    #expect(try world.ledger.fact(.feedRecord) == nil)
    try world.ledger.apply(good)
    world.folder.delete("f11".path)
    #expect(try verify(world).missing == ["f11".path])
    #expect(try world.ledger.fact(.feedRecord) == nil)
  }

  /// What the user deleted by policy is no failure of the mirror's.
  @Test func whatThePolicyLeavesIsNoProblem() throws {
    let world = try filled(3)
    try world.choose([.localChanges: ["keep"]])
    try world.run()
    world.folder.delete("f12".path)
    #expect(try verify(world).missing == ["f12".path])
    #expect(try status(world).problems.isEmpty)
  }

  /// What a window once brought, a list restores by now: nothing says that it stays as the user left it.
  @Test func aMirrorThatFollowsAListNowIsNoWindow() throws {
    let world = World()
    world.end = FeedEnd(format: WindowFormat.rss.rawValue, isComplete: false, incompleteReason: "a window")
    let url = World.host + "a.mp3"
    world.server.put(url, "ID3 bytes".bytes, etag: nil)
    world.items = [.enclosure(Enclosure(title: "a".bytes, sources: [Source(url: url)]))]
    try world.run()
    #expect(Array(world.files.keys) == ["a.mp3"])
    world.folder.delete("a.mp3".path)
    #expect(try verify(world).leavesLocalChanges && status(world).problems.isEmpty)
    #expect(try explain(world, "a.mp3").summary.hasSuffix("--local-changes keep leaves it so"))
    world.end = FeedEnd(format: "test list", isComplete: true)
    world.items = []
    world.want("a.mp3", "ID3 bytes")
    try world.run()
    world.folder.delete("a.mp3".path)
    #expect(try explain(world, "a.mp3").hint == "tarn sync m")
    #expect(try !verify(world).leavesLocalChanges)
    #expect(try status(world).problems.map(\.code) == ["missing"])
    #expect(try world.run().counts.restored == 1)
  }

  @Test func verifyingTwiceStillSaysDamaged() throws {
    let world = try filled(3)
    damage(world, "f11")
    #expect(try verify(world).damaged == ["f11".path])
    #expect(try verify(world).damaged == ["f11".path])
  }

  @Test func verifyingCanBeStopped() throws {
    let world = try filled(3)
    let stop = StopFlag()
    stop.set()
    let report = try verify(world, stop: stop)
    #expect(report.wasStopped)
    #expect(!report.isGood)
  }
}
