import Glibc
import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnEngine

/// How much of a running download is called durable (I3).
@Suite struct CheckpointTests {
  private let folder = MemoryFolder()
  private let ledger = MemoryLedger()

  /// What the ledger calls durable after so many bytes of a download that has ten.
  private func durable(upTo length: UInt64) throws -> UInt64? {
    let partial = try folder.makePartial()
    _ = try partial.begin(keeping: 0, check: ContentCheck())
    try "ten bytes!".bytes.withUnsafeBytes { try partial.append($0) }
    try ledger.apply([
      .partial(
        PartialRow(
          path: "a".path, name: partial.name, url: "http://a.example/a", etag: nil, lastModified: nil,
          total: nil,
          digest: nil, fingerprint: [], durable: 0, bootID: "boot-1"))
    ])
    let checkpoints = Checkpoints()
    defer { checkpoints.close() }
    let mark = Checkpoints.Mark(partial, path: "a".path, durable: 0, ledger: ledger)
    // So far ahead that the writer waits for the sync.
    checkpoints.wrote(mark, upTo: length)
    checkpoints.forget(mark)
    return ledger.contents.partials["a".path]?.durable
  }

  @Test func whatWasSyncedIsDurable() throws {
    #expect(try durable(upTo: Checkpoints.mostLag + Checkpoints.step) == 10)
    #expect(folder.count(.sync) == 1)
  }

  /// A pass whose servers hang, and each of many repairs, does without these threads.
  @Test func threadsBeginWithTheirWork() throws {
    let partial = try folder.makePartial()
    _ = try partial.begin(keeping: 0, check: ContentCheck())
    let checkpoints = Checkpoints()
    defer { checkpoints.close() }
    let mark = Checkpoints.Mark(partial, path: "a".path, durable: 0, ledger: ledger)
    checkpoints.wrote(mark, upTo: Checkpoints.step - 1)
    #expect(!checkpoints.hasThread)
    checkpoints.wrote(mark, upTo: Checkpoints.step)
    checkpoints.forget(mark)
    #expect(checkpoints.hasThread)
    let publisher = PublishThread { _ in }
    #expect(!publisher.hasThreads)
    publisher.close()
  }

  @Test func aFewBytesAreNotSynced() throws {
    #expect(try durable(upTo: Checkpoints.step - 1) == 0)
    #expect(folder.count(.sync) == 0)
  }

  /// Else a fast network would be ever further ahead of a slow disk.
  @Test func theWriterWaitsForTheDisk() throws {
    let checkpoints = Checkpoints()
    defer { checkpoints.close() }
    for _ in 0..<20 {
      let partial = SlowPartial(writer: .current)
      let mark = Checkpoints.Mark(partial, path: "a".path, durable: 0, ledger: ledger)
      checkpoints.wrote(mark, upTo: Checkpoints.mostLag + Checkpoints.step)
      #expect(partial.isSynced)
      checkpoints.forget(mark)
    }
  }

  @Test func whatCouldNotBeSyncedIsNotDurable() throws {
    folder.fail(.sync)
    #expect(try durable(upTo: Checkpoints.mostLag + Checkpoints.step) == 0)
    #expect(folder.count(.sync) == 1)
  }

  /// Else a server that cuts every exchange short would leave all of a large file to a power cut.
  @Test(arguments: [false, true]) func whatAnEarlierExchangeLeftUnsyncedCounts(isOtherPass: Bool) throws {
    let world = World()
    world.rushes = true
    world.policy.retries = isOtherPass ? 0 : 3
    let bytes = [UInt8](repeating: 7, count: Int(Checkpoints.step) + (4 << 20))
    var answer = FakeAnswer(etag: "\"1\"", body: bytes)
    let url = World.host + "a"
    world.server.answer(url, answer)
    let failure = DownloadFailure(.reset, "it was cut", isTransient: true)
    answer.failure = (after: 20 << 20, failure)
    var rest = FakeAnswer(etag: "\"1\"", body: bytes)
    // What comes last comes once the checkpoint is made: that has a thread of its own.
    let gate = AnswerGate()
    rest.pause = (after: 14 << 20, gate)
    world.server.script(url, [answer, rest])
    world.ledger.beforeApply { changes in if Self.durable(changes) >= Checkpoints.step { gate.open() } }
    var entry = world.bareEntry("a")
    entry.size = UInt64(bytes.count)
    world.add(entry)
    if isOtherPass { #expect(try !world.run().isInSync) }
    #expect(try world.run().isInSync)
    #expect(world.server.requests.last?.offset == 20 << 20)
    #expect(Self.durable(world.ledger.contents.history.joined()) >= Checkpoints.step)
  }

  /// The most that the ledger is told of.
  private static func durable(_ changes: some Sequence<LedgerChange>) -> UInt64 {
    let told = changes.compactMap { change -> UInt64? in
      if case .durable(_, let bytes) = change { bytes } else { nil }
    }
    return told.max() ?? 0
  }

  /// For each file of some size the pass would wait for the disk before its first byte.
  @Test func theRowOfATransferWaitsForNoDisk() throws {
    let world = World()
    let text = String(repeating: "0123456789abcdef", count: 70_000)
    world.server.put(World.host + "a", text.bytes, etag: "\"1\"")
    world.add(world.entry("a", text))
    let durable = Locked(0)
    let isRow: @Sendable (LedgerChange) -> Bool = { if case .partial = $0 { true } else { false } }
    world.ledger.beforeApply { changes in durable.withLock { $0 += changes.count(where: isRow) } }
    #expect(try world.run().counts.fetched == 1)
    #expect(world.ledger.contents.history.joined().count(where: isRow) == 1)
    #expect(durable.withLock { $0 } == 0)
  }

  /// The older row of the same file may be durable: it would call bytes good that are written over, and of another version.
  @Test func aRowThatReplacesAnotherIsDurableBeforeTheFirstByte() throws {
    let world = World()
    let text = String(repeating: "0123456789abcdef", count: 70_000)
    world.server.put(World.host + "a", text.bytes, etag: "\"2\"")
    world.add(world.bareEntry("a"))
    world.folder.leavePartial("left", Array(text.bytes.reversed().prefix(300)))
    let old = PartialRow(
      path: "a".path, name: "left", url: World.host + "a", etag: "\"1\"", lastModified: nil,
      total: UInt64(text.utf8.count), digest: nil, fingerprint: world.bareEntry("a").fingerprint,
      durable: 100,
      bootID: world.bootID)
    try world.ledger.apply([.partial(old)])
    let rows = Locked<[PartialRow]>([])
    world.ledger.beforeApply { changes in
      for case .partial(let row) in changes { rows.withLock { $0.append(row) } }
    }
    #expect(try world.run().counts.fetched == 1)
    #expect(world.text("a") == text && world.server.requests.map(\.offset).first == 300)
    #expect(rows.withLock { $0.map(\.name) } == ["left"] && rows.withLock { $0.map(\.durable) } == [0])
  }

  /// What a boot adds to a file of the one before is there for the next process as what it has begun itself, and nothing is called
  /// durable that was not. Only where bytes are missing that the older row calls durable must that one not come back.
  @Test(arguments: [100, 400]) func afterABootWhatIsAddedIsKept(durable: UInt64) throws {
    let world = World()
    let text = String(repeating: "0123456789abcdef", count: 40)
    world.policy.retries = 0
    let entry = world.want("a", text, etag: "\"1\"")
    world.folder.leavePartial("left", text.bytes.prefix(300).map { $0 })
    let old = PartialRow(
      path: "a".path, name: "left", url: World.host + "a", etag: "\"1\"", lastModified: nil,
      total: UInt64(text.utf8.count), digest: entry.digest, fingerprint: entry.fingerprint, durable: durable,
      bootID: "boot-0")
    try world.ledger.apply([.partial(old)])
    let rows = Locked<[UInt64]>([])
    world.ledger.beforeApply { changes in
      for case .partial(let row) in changes { rows.withLock { $0.append(row.durable) } }
    }
    world.server.script(World.host + "a", [Server.broken(text, after: 200, etag: "\"1\"")])
    let report = try world.run()
    let kept = min(durable, 300)
    #expect(!report.isInSync && report.bytes.received > 0)
    #expect(world.server.requests.map(\.offset) == [kept])
    let row = try #require(world.ledger.contents.partials["a".path])
    #expect(row.bootID == "boot-1" && row.durable == kept)
    #expect(rows.withLock { $0 } == (kept < durable ? [kept] : []))
    #expect(try world.run().isInSync)
    #expect(world.server.requests.map(\.offset) == [kept + report.bytes.received])
    #expect(world.text("a") == text)
  }
}

/// A file on a disk that takes its time; nothing else is asked of it.
private final class SlowPartial: PartialFile {
  let name = "p"
  let length: UInt64 = 0
  private let writer: ThreadState
  private let synced = Locked(false)

  /// - Parameter writer: the disk takes its time until this thread waits for something.
  init(writer: ThreadState) { self.writer = writer }

  var isSynced: Bool { synced.withLock { $0 } }

  func sync() throws(FolderFailure) -> UInt64 {
    let waits = isSoInTime { writer.isAsleep }
    synced.withLock { $0 = waits }
    return 1
  }

  func begin(keeping keep: UInt64, check: ContentCheck) throws(FolderFailure) -> UInt64 { 0 }
  func append(_ bytes: UnsafeRawBufferPointer) throws(FolderFailure) {}
  func opening(most: Int) -> [UInt8] { [] }
  func seal(modified: Timestamp?) throws(FolderFailure) -> Sealed { throw FolderFailure(.other, "not asked") }
  func close() {}
  func discard() {}
}
