import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnEngine

/// What `tarn explain` says of paths that are not simply in place or failed: it is so, and what is to be typed next helps.
@Suite struct ExplainTests {
  private static let large = String(repeating: "0123456789abcdef", count: 1 << 17)

  private func explain(_ world: World, _ path: String, holder: Int32? = nil) throws -> Explanation {
    try ExplainQuery(ledger: world.ledger, folder: world.folder, holder: holder).explain(
      path.path, mirror: "m")
  }

  /// Two addresses of a list end in the same name.
  @Test func aNameThatTwoHaveIsGivenToOne() throws {
    let world = World()
    world.items = [.entry(world.serve("b", "x")), .entry(world.entry("b", "y"))]
    #expect(try world.run().problems.map(\.code) == ["path-twice"])
    let hint = try explain(world, "b").hint
    #expect(hint?.contains("a line ' out=NAME' below it; to do without it: ") == true, "\(hint ?? "")")
  }

  /// `large` broke off after 1,500,000 bytes, and the pass was stopped there.
  private func interrupted(_ world: World = World()) throws -> World {
    world.policy.retries = 0
    world.want("large", Self.large)
    world.server.answer(World.host + "large", Server.broken(Self.large, after: 1_500_000, etag: "\"1\""))
    #expect(try world.run().counts.failed == 1)
    try world.ledger.apply([
      .dropProblem(name: "large".bytes), .fact(.outcome, "stopped"),
    ])
    return world
  }

  // MARK: Pending

  @Test func whatIsBeingFetchedIsPending() throws {
    let world = try interrupted()
    try world.ledger.apply([
      .fact(.outcome, "running"),
      .activity([
        Activity(path: "large".path, received: 1 << 20, total: 2 << 20, rate: 1, source: World.host)
      ]),
    ])
    let answer = try explain(world, "large", holder: 42)
    #expect(answer.state == "pending")
    #expect(
      answer.summary == "the feed lists it, and it is being fetched now: 1.0 MiB of 2.0 MiB so far")
    #expect(answer.hint == "tarn status m")
    // Whoever holds the folder after a kill is not the one that wrote of it.
    let later = try explain(world, "large")
    #expect(later.state == "pending" && !later.summary.contains("now"))
    #expect(later.hint == "tarn sync m")
  }

  @Test func whatWasInterruptedIsPending() throws {
    let world = try interrupted()
    let answer = try explain(world, "large")
    #expect(answer.state == "pending")
    #expect(
      answer.summary
        == "the feed lists it, and it is not fetched whole yet: 1.4 MiB of 2.0 MiB kept, and the next pass goes on with it"
    )
    #expect(answer.hint == "tarn sync m")
    try world.ledger.apply([.fact(.outcome, "running")])
    #expect(
      try explain(world, "large", holder: 42).summary.contains("the current pass has not reached it yet"))
    #expect(try explain(world, "large", holder: 42).hint == "tarn status m")
  }

  @Test func aNewerVersionIsPending() throws {
    let world = World()
    world.want("large", "small")
    try world.run()
    _ = try interrupted(world)
    let answer = try explain(world, "large")
    #expect(answer.state == "pending")
    #expect(
      answer.summary.hasPrefix("an earlier version is in place; the one of the feed is not fetched whole"))
    #expect(answer.record?.size == 5)
  }

  /// Nothing is recorded of a small file that nobody came to: all that can be said is that it may be wanted.
  @Test func whatAStoppedPassDidNotComeTo() throws {
    let world = World()
    for number in 0..<3 { world.want("f\(number)", "text \(number)") }
    #expect(try explain(world, "f0").summary == "no pass has read the feed so far")
    let downloader = try world.server.downloader()
    defer { downloader.shutDown() }
    let pass = world.pass(downloader)
    world.log.onEvent { _, event in if case .planned = event { pass.stop.set() } }
    #expect(try pass.run(folder: world.folder).wasStopped)
    let answer = try explain(world, "f0")
    #expect(answer.state == "unknown")
    #expect(
      answer.summary
        == "it is not there, and the last pass did not get to its end: if the feed lists it, it is among what is pending"
    )
    #expect(answer.hint == "tarn sync m")
    // A pass that cannot read the feed learns no more of it.
    world.feedFailure = FeedFailure(code: "feed-truncated", message: "cut")
    #expect(throws: PassFailure.self) { try world.run() }
    #expect(try explain(world, "f0").summary == answer.summary)
    try world.ledger.apply([.fact(.outcome, "running")])
    #expect(try explain(world, "f0", holder: 42).summary.contains("a pass is at work"))
    #expect(try explain(world, "f0", holder: 42).hint == "tarn status m")
    world.feedFailure = nil
    world.log.onEvent(nil)
    try world.run()
    #expect(
      try explain(world, "nowhere").summary
        == "neither the feed when it was last read nor the ledger knows it")
    #expect(try explain(world, "nowhere").hint == "tarn plan m")
  }

  @Test func anIncompleteListIsSaidToBeOne() throws {
    let world = World()
    world.want("f", "text")
    world.end.isComplete = false
    try world.run()
    #expect(
      try explain(world, "nowhere").summary
        == "the ledger does not know it, nor does the feed's list, which was not complete when it was last read"
    )
  }

  // MARK: In place

  /// Without `--delete` it stays, and nobody is to take it for what the feed has.
  @Test func aFileThatTheFeedMayHaveDroppedIsNotSimplyCurrent() throws {
    let world = World()
    for name in ["a", "b"] { world.want(name, name) }
    try world.run()
    #expect(try explain(world, "a").hint == nil)
    world.unlist("a")
    try world.run()
    let answer = try explain(world, "a")
    #expect(answer.state == "current")
    #expect(
      answer.summary.hasSuffix(
        "; the feed no longer lists 1 file of this mirror, and this may be one of them"))
    #expect(answer.hint == "tarn plan --delete m")
    // Nor does a pass see to what was done to it: nobody is to wait for that.
    world.folder.edit("a".path, "edited".bytes)
    #expect(try explain(world, "a").summary.hasSuffix("of this mirror, and this may be one of them"))
    world.folder.delete("a".path)
    #expect(try explain(world, "a").summary.hasSuffix("of this mirror, and this may be one of them"))
    world.want("a", "a")
    try world.run()
    #expect(try explain(world, "a").hint == nil)
    #expect(try !explain(world, "a").summary.contains("no longer"))
  }

  @Test func aDirectoryOfItsFilesIsNoForeignOne() throws {
    let world = World()
    for name in ["d/a", "d/e/b", "d-c"] { world.want(name, name) }
    try world.run()
    let answer = try explain(world, "d")
    #expect(answer.state == "current")
    #expect(answer.summary == "a directory, with 2 files below it that Tarn placed or adopted")
    #expect(try explain(world, "d/e").summary.hasPrefix("a directory, with 1 file below"))
    world.folder.write("mine/x".path, "x".bytes)
    #expect(try explain(world, "mine").state == "foreign")
  }

  @Test func aLimitThatMayHaveLeftAnEpisodeOutIsNamed() throws {
    let world = World()
    world.want("f", "text")
    world.end.isComplete = false
    try world.choose([.keep: ["5"], .maxAge: ["30d"]])
    try world.run()
    #expect(
      try explain(world, "nowhere").summary.hasSuffix(
        "did not list it when it was last read, or --keep 5 or --max-age 30d left it out"))
    try world.choose([.keep: ["all"], .maxAge: ["off"]])
    try world.run()
    #expect(try !explain(world, "nowhere").summary.contains("--"), "neither leaves anything out")
  }

  // MARK: Filters

  @Test func aPatternThatLeavesAPathOutIsNamed() throws {
    let world = World()
    for name in ["f10", "f20", "f21"] { world.want(name, name) }
    try world.run()
    world.folder.delete("f21".path)
    world.folder.write("f29".path, "mine".bytes)
    try world.choose([.exclude: ["*.tmp", "f2*"]])
    try world.run()
    let ends = [
      "f20": "and what Tarn placed before stays as it is: no pass looks after it",
      "f21": "so what Tarn placed before, and what is not there any more, is not fetched again",
      "f22": "whether the feed lists it or not",
      "f29": "and Tarn did not place the one that is in the folder: it stays as it is",
    ]
    for (path, end) in ends {
      let answer = try explain(world, path)
      #expect(answer.state == "excluded", "\(path)")
      #expect(answer.summary == "--exclude 'f2*' leaves it out, \(end)")
      #expect(answer.hint == nil)
    }
    #expect(try explain(world, "f10").state == "current")
  }

  /// Whether it is there or not, and however it is typed.
  @Test func anExcludedDirectoryIsNamed() throws {
    let world = World()
    for name in ["sub/a", "sub/b", "b"] { world.want(name, name) }
    try world.choose([.exclude: ["none/", "sub/"]])
    try world.run()
    let none = try explain(world, "none")
    #expect(none.state == "excluded")
    #expect(none.summary == "--exclude none/ leaves it out, whether the feed lists it or not")
    #expect(try explain(world, "sub").state == "excluded")
    try world.choose([:])
    try world.run()
    #expect(
      try explain(world, "sub").summary == "a directory, with 2 files below it that Tarn placed or adopted")
    try world.choose([.exclude: ["sub/"]])
    try world.run()
    let placed = try explain(world, "sub")
    #expect(placed.state == "excluded")
    #expect(
      placed.summary
        == "--exclude sub/ leaves it out, and what Tarn placed below it stays as it is: no pass looks after that"
    )
    // A file of that name is no directory.
    world.folder.write("none".path, "mine".bytes)
    #expect(try explain(world, "none").state == "foreign")
  }

  @Test func aMissingIncludeIsNamed() throws {
    let world = World()
    world.want("a.iso", "a")
    try world.choose([.include: ["*.iso", "!b*"]])
    try world.run()
    #expect(
      try explain(world, "a.txt").summary
        == "it is left out, because no --include names it: '*.iso', '!b*', whether the feed lists it or not")
    #expect(
      try explain(world, "b.iso").summary
        == "--include '!b*' leaves it out, whether the feed lists it or not")
    #expect(try explain(world, "c.iso").state == "unknown")
  }

  // MARK: Local changes

  @Test(arguments: ["keep", "report"])
  func aPolicyThatLeavesLocalChangesIsNamed(_ policy: String) throws {
    let world = World()
    for name in ["a", "b", "c"] { world.want(name, name) }
    try world.choose([.localChanges: [policy]])
    try world.run()
    world.folder.edit("a".path, "edited".bytes)
    world.folder.delete("b".path)
    let undo = "to undo all local changes, now and from then on: tarn sync --local-changes restore m"
    #expect(
      try explain(world, "a").summary
        == "Tarn placed it, it was changed since, and --local-changes \(policy) leaves it so")
    #expect(
      try explain(world, "b").summary
        == "Tarn placed it, it was deleted here, and --local-changes \(policy) leaves it so")
    for path in ["a", "b"] { #expect(try explain(world, path).hint == undo) }
    // The pass agrees: it does nothing, and nothing that it says changes what is to be typed.
    #expect(try world.run().counts.inPlace == 1)
    for path in ["a", "b"] { #expect(try explain(world, path).hint == undo) }
    try world.choose([.localChanges: ["restore"]])
    let report = try world.run()
    #expect(report.counts.replaced == 1 && report.counts.restored == 1)
    #expect(world.text("a") == "a" && world.text("b") == "b")
  }

  @Test(arguments: PassPolicy.LocalChanges.allCases)
  func aFileThatWasOnlyTouchedIsNotSaidToBeEdited(_ policy: PassPolicy.LocalChanges) throws {
    let world = World()
    world.want("a", "a")
    try world.choose([.localChanges: [policy.rawValue]])
    try world.run()
    world.folder.edit("a".path, "a".bytes)
    #expect(
      try explain(world, "a").summary
        == "Tarn placed it, and its time was changed since: the next pass looks whether its bytes were")
    #expect(try explain(world, "a").hint == "tarn sync m")
    try world.run()
    #expect(try explain(world, "a").state == "current")
  }

  @Test func whatTookThePlaceOfARecordedFile() throws {
    let world = World()
    for name in ["a", "b"] { world.want(name, name) }
    try world.choose([.localChanges: ["keep"]])
    try world.run()
    world.folder.delete("a".path)
    world.folder.makeLink("a".path)
    let hint = "to undo all local changes, now and from then on: tarn sync --local-changes restore m"
    #expect(try explain(world, "a").hint == hint)
    #expect(try world.run().counts.kept == 1)
    #expect(try explain(world, "a").state == "changed")
    try world.choose([.localChanges: ["report"]])
    #expect(try world.run().counts.conflict == 1)
    #expect(try explain(world, "a").state == "conflict")
    #expect(try explain(world, "a").hint == hint)
    try world.choose([.localChanges: ["restore"]])
    #expect(try world.run().counts.replaced == 1)
    #expect(try world.folder.trashed().count == 1)
    #expect(world.text("a") == "a")
  }

  @Test func whatVerifyFoundDamagedIsFetchedAgain() throws {
    let world = World()
    world.want("a", "a")
    try world.choose([.localChanges: ["keep"]])
    try world.run()
    var row = try #require(world.row("a"))
    row.isDoubtful = true
    try world.ledger.apply([.row(row)])
    #expect(try explain(world, "a").summary.hasPrefix("'tarn verify' found bytes that differ"))
    #expect(try explain(world, "a").hint == "tarn sync m")
  }
}
