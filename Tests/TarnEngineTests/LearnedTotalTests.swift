import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnEngine

/// Sizes that only the heads of answers tell, in what is shown of a running pass.
@Suite struct LearnedTotalTests {
  private let world = World()
  private static let text = String(repeating: "0123456789abcdef", count: 200)
  private static let size = UInt64(text.utf8.count)

  init() {
    world.policy.retries = 0
  }

  private func wantUnknown(_ name: String, _ text: String = text, etag: String? = nil) {
    var entry = world.serve(name, text, etag: etag)
    entry.size = nil
    world.add(entry)
  }

  /// Runs a pass.
  ///
  /// - Returns: how far it was when each answer began and, where it came to its end, ended; and at the pass's end.
  private func watch(
    _ server: @escaping @Sendable (DownloadRequest) -> FakeAnswer
  ) throws -> (during: [PassProgress.Snapshot], end: PassProgress.Snapshot) {
    let seen = Locked<[PassProgress.Snapshot]>([])
    let progress = Locked<PassProgress?>(nil)
    let downloader = HeadDownloader(try FakeDownloader(connections: 1, answer: server)) { _, _ in
      guard let snapshot = progress.withLock({ $0 })?.snapshot() else { return }
      seen.withLock { $0.append(snapshot) }
    }
    defer { downloader.shutDown() }
    let pass = world.pass(downloader)
    progress.withLock { $0 = pass.progress }
    _ = try pass.run(folder: world.folder)
    return (seen.withLock { $0 }, pass.progress.snapshot())
  }

  private func total(_ snapshot: PassProgress.Snapshot, _ name: String) -> UInt64? {
    snapshot.transfers.first { $0.path == name.path }?.total
  }

  @Test func theHeadTellsTheTotal() throws {
    wantUnknown("a")
    world.want("b", "12345")
    let (during, end) = try watch { request in
      FakeAnswer(body: request.url.hasSuffix("a") ? Self.text.bytes : "12345".bytes)
    }
    try #require(during.count == 4)
    // Before the head was taken, and when all bytes were.
    #expect(total(during[0], "a") == nil && during[0].unknownSizes == 1 && during[0].bytesTotal == 5)
    #expect(total(during[1], "a") == Self.size)
    #expect(during[1].unknownSizes == 0 && during[1].bytesTotal == Self.size + 5)
    #expect(during[1].transfers.first?.received == Self.size)
    // Between the transfer and the rename, too.
    #expect(during[2].bytesTotal == Self.size + 5)
    #expect(end.unknownSizes == 0 && end.bytesTotal == Self.size + 5 && end.bytesDone == Self.size + 5)
  }

  /// Of a file that a repair brings back the ledger knows how large it was.
  @Test func aRepairPlansWhatWasThere() throws {
    world.catalog = MemoryCatalog()
    world.settings = "settings"
    world.add(world.bareEntry("a"))
    world.server.put(World.host + "a", Self.text.bytes, etag: "\"1\"")
    world.want("b", "12345")
    #expect(try world.run().isInSync)
    for name in ["a", "b"] { world.folder.delete(name.path) }
    // It is longer now.
    let progress = Locked<PassProgress?>(nil)
    let seen = Locked<[UInt64]>([])
    let downloader = HeadDownloader(
      try FakeDownloader(connections: 1) { request in
        FakeAnswer(body: (request.url.hasSuffix("a") ? Self.text + Self.text : "12345").bytes)
      }
    ) { _, _ in
      guard let snapshot = progress.withLock({ $0 })?.snapshot() else { return }
      seen.withLock { $0.append(snapshot.bytesMissing) }
    }
    defer { downloader.shutDown() }
    let pass = world.pass(downloader)
    progress.withLock { $0 = pass.progress }
    let report = try pass.repair(["a", "b"].map { Region($0.path, .itself) }, folder: world.folder)
    #expect(report.report.counts.restored == 2)
    // Before any answer all is missing, and nothing afterwards, however large it is by now.
    #expect(seen.withLock { $0.first } == Self.size + 5)
    #expect(pass.progress.snapshot().bytesMissing == 0)
    // What is in place is as large as it is.
    let status = try StatusQuery(ledger: world.ledger).document(name: "m", folder: "/folder", holder: nil)
    #expect(status.bytes.current == 2 * Self.size + 5 && status.bytes.wanted == 2 * Self.size + 5)
    #expect(try world.repair([.everything]).report.counts.planned.all == 0)
  }

  @Test func whatWaitsForAPlaceComesLast() {
    let progress = PassProgress(clock: SystemClock())
    for (job, name) in [(1 as UInt64, "a"), (2, "b"), (3, "c")] {
      progress.begin(job, path: name.path, kept: 0, total: 5, source: "", isWaiting: true)
    }
    #expect(progress.snapshot().waiting == 3)
    progress.place(2)
    progress.place(2)
    #expect(progress.snapshot().transfers.map(\.path) == ["b".path, "a".path, "c".path])
    #expect(progress.snapshot().waiting == 2)
    for job in [1, 3] as [UInt64] { progress.place(job) }
    progress.end(2)
    #expect(progress.snapshot().transfers.map(\.path) == ["a".path, "c".path])
    #expect(progress.snapshot().waiting == 0)
  }

  /// What came and is not in place so far does not vanish from the sum, whether it is published next or asked for again.
  @Test func whatCameStaysCounted() {
    let progress = PassProgress(clock: SystemClock())
    progress.begin(1, path: "a".path, kept: 0, total: 10, source: "")
    progress.receive(1, bytes: 10)
    progress.end(1)
    #expect(progress.snapshot().bytesDone == 10)
    progress.begin(2, path: "b".path, kept: 0, total: 10, source: "")
    progress.receive(2, bytes: 4)
    progress.end(2)
    #expect(progress.snapshot().bytesDone == 14)
    progress.begin(2, path: "b".path, kept: 4, total: 10, source: "")
    progress.finish(1, bytes: 10)
    #expect(progress.snapshot().bytesDone == 14)
    progress.end(2)
    progress.forget(2)
    #expect(progress.snapshot().bytesDone == 10)
  }

  /// Those of a repair beside it are among them: what runs comes before what waits.
  @Test func whatGoesOnBesideIsInItsPlace() {
    let (progress, beside) = (PassProgress(clock: SystemClock()), PassProgress(clock: SystemClock()))
    for (progress, names) in [(progress, ["a", "b"]), (beside, ["c", "d"])] {
      for (job, name) in names.enumerated() {
        progress.begin(
          UInt64(job), path: name.path, kept: 0, total: 5, source: "", isWaiting: job == 1)
      }
    }
    let snapshot = progress.snapshot().beside(beside.snapshot())
    #expect(snapshot.transfers.map(\.path.printable) == ["a", "c", "b", "d"] && snapshot.waiting == 2)
    #expect(progress.waiting == 1 && beside.waiting == 1)
  }

  /// The ledger lists a few of those that wait, and counts the others.
  @Test func theLedgerListsAFewOfThem() throws {
    let progress = PassProgress(clock: SystemClock())
    for job in 0..<100 as Range<UInt64> {
      progress.begin(job, path: "f\(job)".path, kept: 0, total: 5, source: "", isWaiting: job > 2)
    }
    try world.ledger.apply(progress.snapshot().changes)
    let query = StatusQuery(ledger: world.ledger)
    let document = try query.document(name: "m", folder: "/f", holder: 7)
    #expect(document.transfers.count == 23 && document.transfers.count { $0.isWaiting } == 20)
    #expect(document.waitingTransfers == 97)
  }

  /// The whole file, not what is missing of it.
  @Test func aRangeTellsTheTotalOfTheFile() throws {
    wantUnknown("a", etag: "\"1\"")
    world.policy.retries = 1
    world.rushes = true
    let answers = Locked([
      Server.broken(Self.text, after: 1200, etag: "\"1\""), FakeAnswer(etag: "\"1\"", body: Self.text.bytes),
    ])
    let (during, end) = try watch { _ in answers.withLock { $0.removeFirst() } }
    // Two began, one came to its end.
    try #require(during.count == 3)
    let last = try #require(during.last)
    #expect(total(last, "a") == Self.size)
    #expect(last.transfers.first?.received == Self.size)
    #expect(last.bytesTotal == Self.size && end.bytesTotal == Self.size && end.bytesDone == Self.size)
  }

  /// Nobody tells it before the end.
  @Test func anAnswerWithoutLengthHasNoTotal() throws {
    wantUnknown("a")
    var answer = FakeAnswer(body: Self.text.bytes)
    answer.isFramed = false
    let (during, end) = try watch { [answer] _ in answer }
    try #require(during.count == 2)
    #expect(total(during[1], "a") == nil && during[1].unknownSizes == 1 && during[1].bytesTotal == 0)
    #expect(end.unknownSizes == 0 && end.bytesTotal == Self.size)
  }

  @Test func whatFailsIsNotWaitedFor() throws {
    wantUnknown("a")
    wantUnknown("b")
    let (_, end) = try watch { request in
      request.url.hasSuffix("a") ? FakeAnswer(status: 404) : Server.broken(Self.text, after: 1000)
    }
    #expect(end.failed == 2)
    #expect(end.unknownSizes == 0 && end.bytesTotal == 0 && end.bytesDone == 0)
  }

  @Test func whatTheFeedTellsIsCountedOnce() throws {
    world.want("a", Self.text)
    let (during, end) = try watch { _ in FakeAnswer(body: Self.text.bytes) }
    #expect(during.allSatisfy { $0.bytesTotal == Self.size && $0.unknownSizes == 0 })
    #expect(end.bytesTotal == Self.size && end.bytesDone == Self.size)
  }

  /// A status is of a pass with the transfers of repairs beside it, or of all repairs as if they were one.
  @Test func whatIsAtWorkTogetherIsShownTogether() {
    func progress(_ number: UInt64, files: Int) -> PassProgress.Snapshot {
      let progress = PassProgress(clock: ManualClock())
      progress.change {
        ($0.filesTotal, $0.bytesTotal, $0.bytesMissing, $0.unknownSizes) = (files, 10, 10, 1)
      }
      progress.begin(number, path: "runs-\(number)".path, kept: 0, total: nil, source: "s")
      progress.begin(
        number + 10, path: "waits-\(number)".path, kept: 0, total: nil, source: "s", isWaiting: true)
      return progress.snapshot()
    }
    let (first, second) = (progress(1, files: 3), progress(2, files: 4))
    let names = ["runs-1", "runs-2", "waits-1", "waits-2"]
    let (both, beside) = (first.adding(second), first.beside(second))
    #expect(both.transfers.map(\.path.printable) == names && both.waiting == 2)
    #expect((both.filesTotal, both.bytesTotal, both.bytesMissing, both.unknownSizes) == (7, 20, 20, 2))
    #expect(beside.transfers.map(\.path.printable) == names && beside.waiting == 2)
    #expect(
      (beside.filesTotal, beside.bytesTotal, beside.bytesMissing, beside.unknownSizes) == (3, 10, 10, 1))
  }
}
