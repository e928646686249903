import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnEngine

/// What happens when a part fails: the folder, the ledger, the stage, the one who says stop.
@Suite struct FailureTests {
  private static let codes: [FolderFailure.Code] = [
    .noSpace, .inputOutput, .tooManyFiles, .readOnly, .quota, .permission, .outOfMemory, .nameTooLong,
  ]
  private static let calls: [MemoryFolder.Call] = [
    .makePartial, .begin, .append, .seal, .makeDurable, .install,
  ]

  /// Of a running transfer: what finds no space then is tried again once the others are over.
  private static let spaces = [MemoryFolder.Call.makePartial, .begin, .append, .seal].flatMap { call in
    [FolderFailure.Code.noSpace, .quota].map { (call, $0) }
  }
  private static let others = calls.flatMap { call in codes.map { (call, $0) } }.filter { pair in
    !spaces.contains { $0 == pair }
  }

  private func world() -> World {
    let world = World()
    for name in ["a", "b/c", "d"] { world.want(name, "text of \(name)") }
    return world
  }

  // MARK: The folder

  @Test(arguments: others)
  func oneEntryFailsAndTheOthersGoOn(_ call: MemoryFolder.Call, _ code: FolderFailure.Code) throws {
    let world = world()
    world.folder.fail(call, with: FolderFailure(code, "as told"))
    let report = try world.run()
    #expect(report.counts.failed == 1)
    #expect(report.counts.fetched == 2)
    #expect(report.problems.map(\.code) == [code.rawValue])
    #expect(!report.isInSync)
    let name = try #require(report.problems.first?.name)
    #expect(world.folder.contents(RelativePath(trusted: name)) == nil)
    #expect(world.files.count == 2)
    let ledger = world.ledger.contents
    #expect(ledger.rows.count == 2)
    #expect(ledger.rows[RelativePath(trusted: name)] == nil)
    #expect(ledger.problems[name]?.code == code.rawValue)
    #expect(ledger.facts[.outcome] == "partial")
    #expect(ledger.intents.isEmpty)
    #expect(try world.run().isInSync)
    #expect(world.isConverged)
    #expect(world.ledger.contents.problems.isEmpty)
    #expect(world.partialNames.isEmpty)
  }

  @Test(arguments: spaces)
  func aLackOfSpaceThatIsOverIsNoFailure(_ call: MemoryFolder.Call, _ code: FolderFailure.Code) throws {
    let world = world()
    world.folder.fail(call, with: FolderFailure(code, "as told", errno: 28))
    #expect(try world.run().isInSync)
    #expect(world.isConverged)
    #expect(world.server.requests.count == 4)
    #expect(world.partialNames.isEmpty)
    #expect(world.log.problems.isEmpty)
    // It happened, though.
    let told = world.log.events.compactMap {
      if case .notice(code.rawValue, let text) = $0 { text } else { nil }
    }
    #expect(told.count == 1 && told.first?.contains("as told; tried again") == true)
  }

  @Test(arguments: spaces)
  func aLackOfSpaceThatStaysIsSaid(_ call: MemoryFolder.Call, _ code: FolderFailure.Code) throws {
    let world = world()
    for number in 1...40 {
      world.folder.fail(call, number: number, with: FolderFailure(code, "as told"))
    }
    let report = try world.run()
    #expect(report.problems.map(\.code) == [code.rawValue, code.rawValue, code.rawValue])
    #expect(Set(report.problems.map(\.name)).count == 3)
    #expect(world.server.requests.count <= 9)
    #expect(world.files.isEmpty && world.partialNames.isEmpty)
  }

  @Test(arguments: calls)
  func whatFailsForEverIsSaidEachTime(_ call: MemoryFolder.Call) throws {
    let world = world()
    for number in 1...40 {
      world.folder.fail(call, number: number, with: FolderFailure(.readOnly, "as told"))
    }
    for attempt in 1...2 {
      world.clock.advance(.seconds(1))
      let report = try world.run()
      #expect(report.counts.failed == 3)
      #expect(report.problems.map(\.code) == ["read-only", "read-only", "read-only"])
      #expect(world.ledger.contents.problems["a".bytes]?.attempts == attempt)
      #expect(world.files.isEmpty)
    }
  }

  @Test(arguments: [MemoryFolder.Call.begin, .append, .seal, .makeDurable, .install])
  func aFailedUpdateLeavesTheOldVersion(_ call: MemoryFolder.Call) throws {
    let world = world()
    try world.run()
    world.want("a", "new")
    world.folder.fail(call)
    let report = try world.run()
    #expect(report.problems.map(\.name) == ["a".bytes])
    #expect(world.text("a") == "text of a")
    #expect(world.trash.isEmpty)
    #expect(try world.run().isInSync)
    #expect(world.text("a") == "new")
    #expect(world.trash == ["text of a"])
  }

  @Test func aFileThatCannotBeReadIsReported() throws {
    let world = world()
    world.folder.write("a".path, "text of a".bytes)
    world.folder.fail(.digest)
    let report = try world.run()
    #expect(report.problems.map(\.code) == ["input-output-error"])
    #expect(report.problems.map(\.name) == ["a".bytes])
    #expect(report.counts.fetched == 2)
    #expect(try world.run().counts.adopted == 1)
  }

  @Test(arguments: [MemoryFolder.Call.space, .partials, .trashed])
  func aFolderThatFailsAsAWholeEndsThePass(_ call: MemoryFolder.Call) throws {
    let world = world()
    world.folder.fail(call)
    let failure = #expect(throws: PassFailure.self) { try world.run() }
    #expect(failure?.kind == .inputOutput)
    #expect(world.files.isEmpty)
    #expect(world.ledger.contents.facts[.outcome] == "failed")
    #expect(try world.run().isInSync)
  }

  /// Its first bytes fail to be written, and more of what may be a page comes after.
  @Test(arguments: [MemoryFolder.Call.makePartial, .append])
  func afterAFailedWriteNothingIsWritten(_ call: MemoryFolder.Call) throws {
    let world = World()
    world.policy.retries = 0
    world.add(world.bareEntry("a.iso"))
    let body = "ID3\u{4}\u{0}" + String(repeating: "sound ", count: 5000)
    var answer = FakeAnswer(etag: "\"1\"", body: body.bytes)
    let gate = AnswerGate()
    answer.pause = (1000, gate)
    world.server.answer(World.host + "a.iso", answer)
    world.folder.fail(call, with: FolderFailure(.permission, "as told"))
    let folder = world.folder
    world.server.onRequest { _ in
      _ = try? WorkerThread.start(name: "look") {
        _ = isSoInTime { folder.count(call) > 0 }
        gate.open()
      }
    }
    let report = try world.run()
    #expect(report.problems.map(\.code) == ["permission-denied"])
    #expect(world.files.isEmpty && world.server.requests.count == 1)
    world.server.onRequest(nil)
    #expect(try world.run().isInSync)
    #expect(world.text("a.iso") == body)
  }

  // MARK: The ledger

  /// Everything that a pass does: fetch, update, restore, replace, adopt, delete.
  private func busy() throws -> World {
    let world = World()
    for number in 0..<20 { world.want("f\(number + 10)", "text \(number)") }
    try world.run()
    world.policy.deletes = true
    world.want("f10", "new")
    world.folder.edit("f11".path, "mine".bytes)
    world.folder.delete("f12".path)
    world.folder.edit("f13".path, "text 3".bytes)
    world.unlist("f14")
    world.want("g", "fresh")
    world.want("h", "there")
    world.want("index.html", "index")
    world.folder.write("h".path, "there".bytes)
    world.folder.write("foreign".path, "foreign".bytes)
    return world
  }

  private func expectWhole(_ world: World) {
    #expect(world.text("f10") == "new")
    #expect(world.text("f11") == "text 1")
    #expect(world.text("f12") == "text 2")
    #expect(world.text("g") == "fresh")
    #expect(world.text("index.html") == "index")
    #expect(world.text("foreign") == "foreign")
    #expect(world.trash.contains("mine"))
    #expect(world.text("f14") == "text 4" || world.trash.contains("text 4"))
    #expect(world.partialNames.isEmpty)
    #expect(world.ledger.contents.intents.isEmpty)
  }

  @Test(arguments: 1...24, [LedgerFailure.Code.noSpace, .inputOutput])
  func aLedgerThatFailsOnceEndsThePass(_ number: Int, _ code: LedgerFailure.Code) throws {
    let world = try busy()
    let applies = world.ledger.contents.applies
    world.ledger.failApply(number, with: LedgerFailure(code, "as told"))
    do {
      // Only what is soon stale may fail unheard.
      let report = try world.run()
      #expect(report.isInSync)
    } catch let failure as PassFailure {
      #expect(failure.kind == .inputOutput)
      #expect(failure.code == code.rawValue)
    }
    // A pass that writes less often than that has nothing to fail.
    guard world.ledger.contents.applies >= applies + number else { return }
    #expect(world.text("foreign") == "foreign")
    #expect(world.text("f11") == "mine" || world.trash.contains("mine"))
    #expect(try world.run().isInSync)
    expectWhole(world)
    #expect(try world.plan().actions.isEmpty)
  }

  /// As after a crash: nothing is written from one moment on.
  @Test(arguments: 1...24)
  func aLedgerThatStaysAwayEndsThePass(_ number: Int) throws {
    let world = try busy()
    for later in number...(number + 60) { world.ledger.failApply(later) }
    let applies = world.ledger.contents.applies
    _ = try? world.run()
    let made = world.ledger.contents.applies - applies
    guard made >= number else { return }
    for _ in 0..<61 where world.ledger.contents.applies < applies + number + 60 {
      try? world.ledger.apply([.fact(.refresh, nil)])
    }
    #expect(
      world.text("f11") == "mine" || world.trash.contains("mine") || partialTexts(world).contains("mine"))
    #expect(try world.run().isInSync)
    expectWhole(world)
    #expect(try world.plan().actions.isEmpty)
  }

  private func partialTexts(_ world: World) -> [String] {
    world.partialNames.compactMap { world.folder.partialContents($0) }.map {
      String(decoding: $0, as: UTF8.self)
    }
  }

  @Test func aStageThatFailsEndsThePass() throws {
    let world = world()
    let downloader = try world.server.downloader()
    defer { downloader.shutDown() }
    let stage = MemoryStage()
    stage.failAdd(2)
    var ports = world.ports(downloader)
    ports.stage = stage
    let request = PassRequest(
      feed: world.location, folderName: "/folder", policy: world.policy)
    let pass = Pass(
      ports: ports, request: request, observer: world.log, progress: PassProgress(clock: world.clock),
      stop: StopFlag())
    let failure = #expect(throws: PassFailure.self) { try pass.run(folder: world.folder) }
    #expect(failure?.kind == .inputOutput)
    #expect(failure?.code == "no-space")
    #expect(world.files.isEmpty)
  }

  // MARK: Stopping

  @Test(arguments: 1...24, [true, false])
  func aStopAtAnyMomentEndsThePass(_ number: Int, isSorted: Bool) throws {
    let world = try busy()
    if !isSorted { world.items.reverse() }
    let pass = Locked<StopFlag?>(nil)
    world.log.onEvent { count, _ in if count == number { pass.withLock { $0 }?.set() } }
    let downloader = try world.server.downloader()
    defer { downloader.shutDown() }
    world.log.clear()
    let running = world.pass(downloader)
    pass.withLock { $0 = running.stop }
    do {
      let report = try running.run(folder: world.folder)
      #expect(report.wasStopped == running.stop.isSet)
      #expect(!report.wasStopped || !report.isInSync)
    } catch {
      #expect(error.kind == .stopped)
      #expect(world.ledger.contents.facts[.outcome] == "stopped")
    }
    world.log.onEvent(nil)
    #expect(try world.run().isInSync)
    expectWhole(world)
  }

  @Test func aStopEndsATransferThatHangs() throws {
    let world = World()
    world.want("a", "text")
    world.server.answer(World.host + "a", FakeAnswer(hangs: true))
    let downloader = try world.server.downloader()
    defer { downloader.shutDown() }
    let running = world.pass(downloader)
    world.server.onRequest { _ in running.stop.set() }
    let report = try running.run(folder: world.folder)
    #expect(report.wasStopped)
    #expect(report.problems.isEmpty)
  }

  @Test func aStopEndsAFeedThatHangs() throws {
    let world = World()
    world.location = .remote(url: "http://feed.example/list")
    world.server.answer("http://feed.example/list", FakeAnswer(hangs: true))
    let downloader = try world.server.downloader()
    defer { downloader.shutDown() }
    let running = world.pass(downloader)
    world.server.onRequest { _ in running.stop.set() }
    let failure = #expect(throws: PassFailure.self) { try running.run(folder: world.folder) }
    #expect(failure?.kind == .stopped)
  }

  /// Another pass alone would meet the same.
  @Test(arguments: [400, 401, 403, 404, 405, 407, 410, 429, 451, 500, 503])
  func whatHelpsAFeedThatIsRefusedIsSaid(_ status: Int) throws {
    let world = World()
    world.location = .remote(url: "http://feed.example/list")
    world.server.answer("http://feed.example/list", FakeAnswer(status: status))
    let failure = #expect(throws: PassFailure.self) { try world.run() }
    #expect(failure?.code == "http-\(status)" && failure?.hint != nil)
    #expect(try world.ledger.fact(.failureHint) == failure?.hint)
  }

  @Test(arguments: [
    DownloadFailure.Code.resolve, .connect, .timeout, .tooSlow, .reset, .truncated, .tooManyRedirects,
    .redirectRefused, .addressRefused, .hostResting,
  ])
  func whatHelpsAFeedThatDoesNotComeIsSaid(_ code: DownloadFailure.Code) throws {
    let world = World()
    world.location = .remote(url: "http://feed.example/list")
    world.server.answer(
      "http://feed.example/list",
      FakeAnswer(failure: (0, DownloadFailure(code, "it did not come", isTransient: false))))
    let failure = #expect(throws: PassFailure.self) { try world.run() }
    #expect(failure?.code == code.rawValue && failure?.hint != nil)
  }

  // MARK: The network's thread

  /// More bytes than are taken at once come before the exchange has an id: it is resumed all the same.
  @Test func aTransferThatPausesAtOnceIsResumed() throws {
    let hashing = HeldHashing()
    let world = World(hashing: hashing)
    let text = String(repeating: "0123456789abcdef", count: 50_000)
    world.want("a", text)
    let downloader = HastyDownloader(text.bytes, folder: world.folder, hashing: hashing)
    let report = try world.pass(downloader).run(folder: world.folder)
    #expect(report.isInSync)
    #expect(world.folder.contents("a".path)?.count == text.utf8.count)
    downloader.shutDown()
  }
}

/// Sends all that is taken, and has it written, before `start` returns.
private final class HastyDownloader: Downloading {
  private let body: [UInt8]
  private let folder: MemoryFolder
  private let hashing: HeldHashing
  private let resumed = LockedCondition(false)
  private let lanes: Lanes?

  init(_ body: [UInt8], folder: MemoryFolder, hashing: HeldHashing) {
    self.body = body
    self.folder = folder
    self.hashing = hashing
    lanes = try? Lanes(name: "hasty", count: 1)
  }

  func start(_ request: DownloadRequest, to receiver: any DownloadReceiver) -> DownloadID {
    var head = ResponseHead(status: 200, url: request.url)
    head.contentLength = UInt64(body.count)
    _ = receiver.begin(head)
    hashing.isHeld.change { $0 = true }
    let sent = send(from: 0, to: receiver)
    hashing.isHeld.change { $0 = false }
    // All of it at once: nothing could be written so far.
    _ = isSoInTime { folder.count(.append) > 0 }
    let (resumed, done) = (resumed, head)
    lanes?.submit(lane: 0) { [self] in
      var position = sent
      while position < body.count {
        // Long enough for any machine; only a transfer that is never resumed waits for it.
        let isResumed = resumed.wait(atMost: .seconds(120)) { isResumed in
          defer { isResumed = false }
          return isResumed ? true : nil
        }
        guard isResumed == true else {
          return receiver.end(.failed(DownloadFailure(.timeout, "never resumed", isTransient: false)))
        }
        position = send(from: position, to: receiver)
      }
      receiver.end(.complete(done))
    }
    return DownloadID(value: 1)
  }

  /// - Returns: how far it came.
  private func send(from start: Int, to receiver: any DownloadReceiver) -> Int {
    var position = start
    while position < body.count {
      let end = min(body.count, position + 100_000)
      guard body[position..<end].withUnsafeBytes(receiver.receive) == .taken else { break }
      position = end
    }
    return position
  }

  func resume(_ id: DownloadID) { resumed.change { $0 = true } }
  func cancel(_ id: DownloadID) {}
  func prioritize(_ id: DownloadID) {}
  func rest(of url: String) -> Int64? { nil }
  func shutDown() { lanes?.close() }
}

/// Nobody begins a digest, and so a file, while it is held.
private struct HeldHashing: Hashing {
  let isHeld = LockedCondition(false)

  func hasher(_ algorithm: DigestAlgorithm) -> any Hasher {
    isHeld.wait { $0 ? nil : () }
    return QuickHashing().hasher(algorithm)
  }
}
