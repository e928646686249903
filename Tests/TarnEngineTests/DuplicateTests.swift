import Foundation
import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnEngine

/// Entries of the same contents whose sources fail: none waits long for another, and one that works serves all.
@Suite struct DuplicateTests {
  private static let long = String(repeating: "0123456789abcdef", count: 4096)
  private let world = World(hashing: QuickHashing())

  /// So many entries of one content, in the order of the list; all of their sources answer alike.
  private func wantDuplicates(_ count: Int, _ text: String, _ answer: FakeAnswer) {
    let digest = world.digest(text)
    for number in 0..<count {
      let name = String("\(1_000_000 + number)".dropFirst())
      world.server.answer(World.host + name, answer)
      world.items.append(
        .entry(
          Entry(
            path: name.path, size: UInt64(text.utf8.count), digests: [digest],
            sources: [Source(url: World.host + name)])))
    }
  }

  private var good: FakeAnswer { FakeAnswer(body: Self.long.bytes) }

  // MARK: Sources that fail

  /// What waits for a duplicate keeps nobody from beginning.
  @Test func othersDoNotWaitForDuplicatesThatFail() throws {
    world.rushes = true
    let count = Sanitizer.takesShare ? 400 : 1300
    wantDuplicates(count, Self.long, FakeAnswer(status: 503))
    world.want("z", "good")
    let report = try world.run()
    #expect(world.text("z") == "good")
    #expect(try #require(world.server.urls.firstIndex(of: World.host + "z")) < 100)
    #expect(report.counts.failed == count)
    #expect(Set(report.problems.map(\.code)) == ["http-503"])
    #expect(world.server.requests.count == count * (1 + world.policy.retries) + 1)
  }

  /// Four failures that follow one another let all of them ask.
  @Test func failuresWidenTheWay() {
    var duplicates = Duplicates()
    let jobs = (0..<4096).map { UInt64($0) }
    var asking: [UInt64] = []
    for job in jobs where duplicates.admit(job, contents, mostWaiting: 4096, mustBegin: false) == .first {
      asking.append(job)
    }
    #expect(asking == [0] && duplicates.waitingCount == 4095)
    var waves: [Int] = []
    while !asking.isEmpty {
      waves.append(asking.count)
      asking = asking.flatMap { duplicates.failed($0, contents) }
    }
    #expect(waves == [1, 8, 64, 512, 3511])
    #expect(duplicates.waitingCount == 0)
    // There is leave to spare for those that come later.
    #expect(duplicates.admit(5000, contents, mostWaiting: 4096, mustBegin: false) == .first)
  }

  /// Those that may ask end one by one, and so do those that they let ask; nobody waits for nobody.
  @Test func whatWaitsIsLetGo() {
    var duplicates = Duplicates()
    let jobs = (0..<100).map { UInt64($0) }
    for job in jobs { _ = duplicates.admit(job, contents, mostWaiting: 4096, mustBegin: false) }
    var asking: [UInt64] = [0]
    var ended = 0
    while let id = asking.popLast() {
      asking += duplicates.over(id, contents, isPlaced: false).ready
      ended += 1
    }
    #expect(ended == 100 && duplicates.waitingCount == 0)
    #expect(duplicates.admit(100, contents, mostWaiting: 4096, mustBegin: false) == .first)
    #expect(duplicates.admit(101, contents, mostWaiting: 4096, mustBegin: false) == .wait)
    #expect(duplicates.over(100, contents, isPlaced: true).ready == [101])
    #expect(duplicates.admit(102, contents, mostWaiting: 4096, mustBegin: false) == .placed)
  }

  private var contents: Duplicates.Contents? { Duplicates.Contents(world.entry("f", Self.long)) }

  /// The clock stands still: the first one is in its pause when a duplicate is placed, and does not sit it out.
  @Test func aPauseEndsOnceADuplicateIsPlaced() throws {
    wantDuplicates(1000, Self.long, good)
    world.server.answer(World.host + "000000", FakeAnswer(status: 503))
    let report = try world.run()
    #expect(report.isInSync)
    #expect(report.counts.inPlace == 1000)
    #expect(world.server.requests.count <= 1 + Duplicates.widening)
    #expect(Set(world.files.values) == [Self.long])
    #expect(world.partialNames.isEmpty)
  }

  /// Exchanges that run when a duplicate is placed are ended, and the bytes copied.
  @Test func anExchangeEndsOnceADuplicateIsPlaced() throws {
    wantDuplicates(20, Self.long, good)
    world.server.answer(World.host + "000000", FakeAnswer(status: 503))
    // Of those that the failure lets ask, the last begin first; the others are asked and never answer.
    for number in 1..<20 where !(6...8).contains(number) {
      let name = String("\(1_000_000 + number)".dropFirst())
      world.server.answer(World.host + name, FakeAnswer(hangs: true))
    }
    #expect(try world.run().isInSync)
    #expect(world.files.count == 20)
    #expect(world.partialNames.isEmpty)
  }

  /// Nor is a source asked after one that failed at the very moment when the duplicate was placed.
  @Test func noSourceIsAskedOnceADuplicateIsPlaced() throws {
    wantDuplicates(20, Self.long, FakeAnswer(hangs: true))
    world.server.answer(World.host + "000000", FakeAnswer(status: 503))
    // Whichever lane is ahead, one of these is among the four exchanges that run.
    for number in 6...8 { world.server.answer(World.host + "00000\(number)", good) }
    for (index, item) in world.items.enumerated() {
      guard case .entry(var entry) = item else { continue }
      let more = entry.sources[0].url + "-more"
      world.server.answer(more, index == 0 ? FakeAnswer(status: 503) : good)
      entry.sources.append(Source(url: more, priority: 2))
      world.items[index] = .entry(entry)
    }
    let downloader = FailingToCancel(try world.server.downloader())
    defer { downloader.shutDown() }
    #expect(try world.pass(downloader).run(folder: world.folder).isInSync)
    #expect(world.files.count == 20)
    #expect(world.server.urls.filter { $0.hasSuffix("-more") } == [World.host + "000000-more"])
  }

  /// Exchanges fail just before they can be cancelled.
  private final class FailingToCancel: Downloading {
    private let inner: any Downloading

    init(_ inner: any Downloading) { self.inner = inner }

    func start(_ request: DownloadRequest, to receiver: any DownloadReceiver) -> DownloadID {
      inner.start(request, to: Receiver(inner: receiver))
    }

    func resume(_ id: DownloadID) { inner.resume(id) }
    func cancel(_ id: DownloadID) { inner.cancel(id) }
    func prioritize(_ id: DownloadID) { inner.prioritize(id) }
    func rest(of url: String) -> Int64? { inner.rest(of: url) }
    func shutDown() { inner.shutDown() }

    private final class Receiver: DownloadReceiver {
      private let inner: any DownloadReceiver

      init(inner: any DownloadReceiver) { self.inner = inner }

      func begin(_ head: ResponseHead) -> HeadVerdict { inner.begin(head) }
      func receive(_ bytes: UnsafeRawBufferPointer) -> ByteVerdict { inner.receive(bytes) }
      func placed() { inner.placed() }
      func turnEnded() { inner.turnEnded() }
      func end(_ outcome: DownloadOutcome) {
        if case .failed(let failure) = outcome, failure.code == .cancelled {
          return inner.end(.failed(Server.lost))
        }
        inner.end(outcome)
      }
    }
  }

  /// Each source is told once, however often it was asked.
  @Test func aFailureTellsTheLastRound() throws {
    world.rushes = true
    let urls = ["one", "two"].map { World.host + $0 }
    for url in urls { world.server.answer(url, FakeAnswer(status: 503)) }
    world.add(world.entry("a", "text", sources: urls))
    let report = try world.run()
    #expect(world.server.requests.count == 2 * (1 + world.policy.retries))
    let message = try #require(report.problems.first?.message)
    #expect(message.components(separatedBy: World.host + "one").count == 2)
    #expect(message.components(separatedBy: World.host + "two").count == 2)
  }

  // MARK: Beyond what memory keeps

  @Test func moreDuplicatesThanMayWaitAreFetchedOnce() throws {
    world.mostHeldBack = 20
    wantDuplicates(1000, Self.long, good)
    let report = try world.run()
    #expect(report.isInSync)
    #expect(world.server.requests.count == 1)
    #expect(world.files.count == 1000)
  }

  /// The one that works comes last, in either phase.
  @Test(arguments: [(4300, 4096, false), (900, 100, false), (900, 100, true)])
  func anyNumberOfFailuresIsCopied(count: Int, bound: Int, isLater: Bool) throws {
    world.mostHeldBack = bound
    world.policy.retries = 0
    if isLater { world.policy.publishLast = PathPatterns(["/z"]) }
    wantDuplicates(count, "wanted", FakeAnswer(status: 404))
    for number in 0..<700 { world.items.append(.entry(world.serve("y\(1000 + number)", "text \(number)"))) }
    world.items.append(.entry(world.serve("z", "wanted")))
    let report = try world.run()
    #expect(report.isInSync)
    #expect(report.counts.copied == count)
    #expect(world.log.problems.isEmpty)
    #expect(try world.plan().actions.isEmpty)
  }

  @Test func anyNumberOfFailuresIsTold() throws {
    world.policy.retries = 0
    world.mostHeldBack = 100
    let count = 900
    wantDuplicates(count, "wanted", FakeAnswer(status: 404))
    let report = try world.run()
    #expect(report.counts.failed == count)
    #expect(world.log.problems.count == count)
    for problem in world.log.problems {
      let url = World.host + String(decoding: problem.name, as: UTF8.self)
      #expect(problem.code == "http-404" && problem.message.hasPrefix(url + ": "))
    }
    #expect(Set(world.log.problems.map { $0.message.split(separator: ": ").last }).count == 1)
    #expect(world.server.requests.count == count)
  }

  /// Going back to them takes long: `tarn status` is told meanwhile.
  @Test func thePassTellsHowFarItIsWhileItGoesBack() throws {
    world.rushes = true
    world.policy.retries = 0
    world.mostHeldBack = 0
    wantDuplicates(50, "wanted", FakeAnswer(status: 404))
    let applies = Locked<[Int]>([])
    let ledger = world.ledger
    world.log.onEvent { _, event in
      if case .problem = event { applies.withLock { $0.append(ledger.contents.applies) } }
    }
    try world.run()
    let counts = applies.withLock { $0 }
    #expect(counts.count == 50)
    #expect(zip(counts, counts.dropFirst()).allSatisfy { $0 < $1 })
  }

  /// A long plan is not read to its end once the pass is to stop.
  @Test func readingThePlanAgainEndsWithThePass() throws {
    let plan = LongPlan()
    var deferred = DeferredActions()
    deferred.postponed = [100_000]
    #expect(deferred.begin { plan })
    var pauses = 0
    while case .pause = try deferred.next() {
      pauses += 1
      if pauses == 3 { deferred.end() }
    }
    #expect(pauses == 3 && !deferred.isWalking)
    #expect(plan.position == 3 * 1024)
  }

  private final class LongPlan: ActionCursor {
    private(set) var position = 0

    func next() -> Action? {
      position += 1
      return position > 200_000 ? nil : Action(.fetch, path: "f\(position)".path)
    }
  }

  /// What had come of those that are copied in the end is not kept.
  @Test(arguments: [(4096, 1000), (0, 1000), (4096, 2_000_000), (0, 2_000_000)])
  func whatHadComeOfThemIsDropped(bound: Int, size: Int) throws {
    world.mostHeldBack = bound
    world.policy.retries = 0
    world.policy.publishLast = PathPatterns(["/z"])
    let text = String(repeating: "x", count: size)
    for number in 0..<5 {
      world.want("a\(number)", text)
      world.server.answer(World.host + "a\(number)", Server.broken(text, after: size / 2, etag: "\"1\""))
    }
    world.want("z", text)
    let report = try world.run()
    #expect(report.isInSync && report.counts.copied == 5)
    #expect(world.partialNames.isEmpty && world.ledger.contents.partials.isEmpty)
  }

  // MARK: Ends

  @Test func whatWaitsEndsWithThePass() throws {
    wantDuplicates(3000, Self.long, FakeAnswer(hangs: true))
    let world = StopBox(world)
    self.world.server.onRequest { _ in world.set() }
    let report = try self.world.run()
    #expect(report.wasStopped)
    #expect(report.counts.failed == 0 && self.world.log.problems.isEmpty)
    #expect(self.world.files.isEmpty)
  }

  /// A file that takes nearly all the space that there is comes after failures that took all of it.
  @Test func spaceIsGivenBack() throws {
    world.policy.retries = 0
    world.policy.reserve = .bytes(0)
    world.policy.publishLast = PathPatterns(["/z"])
    world.folder.setSpace(free: 30 * UInt64(Self.long.utf8.count))
    wantDuplicates(30, Self.long, FakeAnswer(status: 404))
    let large = String(repeating: Self.long, count: 29)
    world.items.append(.entry(world.serve("z", large)))
    let report = try world.run()
    #expect(Set(report.problems.map(\.code)) == ["http-404"])
    #expect(world.text("z") == large)
  }

  /// What waits holds no space: the first is over before the others need it.
  @Test func whatWaitsHoldsNoSpace() throws {
    world.policy.reserve = .bytes(0)
    world.folder.setSpace(free: 3 * UInt64(Self.long.utf8.count))
    wantDuplicates(30, Self.long, FakeAnswer(hangs: true))
    world.items.append(.entry(world.serve("z", Self.long + "z")))
    let world = StopBox(world)
    self.world.log.onEvent { _, event in if case .done = event { world.set() } }
    _ = try self.world.run()
    #expect(self.world.text("z") == Self.long + "z")
  }

  /// Any failures of any duplicates: the pass ends, and contents that were placed are in place everywhere.
  @Test(arguments: 1...(Sanitizer.takesShare ? 10 : 40)) func whatIsPlacedIsPlacedEverywhere(seed: UInt64)
    throws
  {
    let dice = SeededRandom(seed: seed)
    func roll(_ sides: UInt64) -> Int { Int(dice.next(below: sides)) }
    let world = World(seed: seed, hashing: QuickHashing())
    world.rushes = true
    world.policy.retries = roll(3)
    world.mostHeldBack = [0, 1, 5, 4096][roll(4)]
    if roll(2) == 0 { world.policy.publishLast = PathPatterns(["/f1*"]) }
    let texts = (0...roll(4)).map { String($0) + (roll(3) == 0 ? "" : Self.long) }
    for number in 0..<(1 + roll(120)) {
      let text = texts[roll(UInt64(texts.count))]
      let entry = world.serve("f\(number)", text)
      world.add(entry)
      let broken = [
        FakeAnswer(status: 404), FakeAnswer(status: 503),
        Server.broken(text, after: roll(70000), etag: "\"1\""),
        FakeAnswer(body: String(text.reversed()).bytes + [1]), FakeAnswer(body: text.bytes.reversed()),
      ]
      switch roll(4) {
      case 0: world.server.answer(World.host + "f\(number)", broken[roll(5)])
      case 1: world.server.script(World.host + "f\(number)", (0...roll(3)).map { _ in broken[roll(5)] })
      default: if roll(3) == 0 { world.server.answer(World.host + "f\(number)", broken[roll(5)]) }
      }
    }
    let report = try world.run()
    let placed = Set(world.files.values)
    let digests = Set(placed.map { world.digest($0) })
    for case .entry(let entry) in world.items {
      let isPlaced = entry.digests.contains(where: digests.contains)
      #expect((world.folder.contents(entry.path) != nil) == isPlaced)
    }
    #expect(placed.isSubset(of: texts))
    #expect(report.counts.failed + world.files.count == world.items.count)
  }
}
