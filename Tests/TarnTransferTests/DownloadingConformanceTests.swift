import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnTransfer

/// What every implementation of the port must do, held against the fake and against libcurl.
@Suite(
  .serialized, .timeLimit(.minutes(5)),
  .enabled(if: ScriptedServer.isAvailable, "python3 or openssl is missing"))
struct DownloadingConformanceTests {
  enum Subject: String, CaseIterable, CustomTestStringConvertible {
    case fake
    case curl
    var testDescription: String { rawValue }
  }

  @Test(arguments: Subject.allCases) func getsAWholeFile(subject: Subject) throws {
    let bench = try Bench(subject)
    let receiver = bench.get("ok", seed: "whole", size: 50_000)
    let head = try #require(receiver.outcome()?.head)
    #expect(head.status == 200)
    #expect(head.contentLength == 50_000)
    #expect(head.etag == "\"whole-50000-v1\"")
    #expect(receiver.bytes == SeedStream.bytes(seed: "whole", size: 50_000))
    #expect(receiver.heard.withLock { $0.heads } == [head])
    #expect(receiver.offences == [])
  }

  @Test(arguments: Subject.allCases) func anEmptyFileIsComplete(subject: Subject) throws {
    let receiver = try Bench(subject).get("ok", seed: "empty", size: 0)
    #expect(receiver.outcome()?.head?.status == 200)
    #expect(receiver.bytes == [])
  }

  @Test(arguments: Subject.allCases) func anErrorStatusIsAResult(subject: Subject) throws {
    let bench = try Bench(subject)
    let dropped = bench.get("status-404", seed: "a", size: 0, to: Collector(.headOnly))
    #expect(dropped.outcome()?.head?.status == 404)
    #expect(dropped.bytes == [])
    let taken = bench.get("status-404", seed: "a", size: 0)
    #expect(taken.outcome()?.head?.status == 404)
    #expect(taken.bytes == Array("not here".utf8))
  }

  @Test(arguments: Subject.allCases) func aBigBodyThatNobodyWantsIsNotDelivered(subject: Subject) throws {
    let receiver = try Bench(subject).get(
      "status-404-big", seed: "b", size: 100_000, to: Collector(.headOnly))
    #expect(receiver.outcome()?.head?.status == 404)
    #expect(receiver.bytes == [])
    #expect(receiver.offences == [])
  }

  @Test(arguments: Subject.allCases) func getsARange(subject: Subject) throws {
    let receiver = try Bench(subject).get("ok", seed: "range", size: 10_000) {
      $0.offset = 4_000
      $0.ifRange = "\"range-10000-v1\""
    }
    let head = try #require(receiver.outcome()?.head)
    #expect(head.status == 206)
    #expect(head.contentRange == ContentRange(first: 4_000, last: 9_999, total: 10_000))
    #expect(receiver.bytes == Array(SeedStream.bytes(seed: "range", size: 10_000)[4_000...]))
  }

  @Test(arguments: Subject.allCases) func anotherVersionComesWhole(subject: Subject) throws {
    let receiver = try Bench(subject).get("ok", seed: "changed", size: 3_000) {
      $0.offset = 1_000
      $0.ifRange = "\"old\""
    }
    #expect(receiver.outcome()?.head?.status == 200)
    #expect(receiver.bytes.count == 3_000)
  }

  @Test(arguments: Subject.allCases) func aRangePastTheEndIs416(subject: Subject) throws {
    let receiver = try Bench(subject).get("ok", seed: "past", size: 100) { $0.offset = 100 }
    let head = try #require(receiver.outcome()?.head)
    #expect(head.status == 416)
    #expect(head.contentRange == ContentRange(first: nil, last: nil, total: 100))
  }

  @Test(arguments: Subject.allCases) func anUnchangedFileIs304(subject: Subject) throws {
    let receiver = try Bench(subject).get("ok", seed: "same", size: 100) {
      $0.ifNoneMatch = "\"same-100-v1\""
    }
    #expect(receiver.outcome()?.head?.status == 304)
    #expect(receiver.bytes == [])
  }

  /// As a feed is asked for: both conditions, and gzip.
  @Test(arguments: Subject.allCases, [("same", 304), ("other", 200)])
  func aFeedIsAskedForByBothConditions(subject: Subject, tag: (name: String, status: Int)) throws {
    let receiver = try Bench(subject).get("ok", seed: "same", size: 100) {
      $0.ifNoneMatch = "\"\(tag.name)-100-v1\""
      // The tag decides where there is one.
      $0.ifModifiedSince = "Wed, 01 Jan 2025 00:00:00 GMT"
      $0.encoding = .gzipAsked
    }
    let head = try #require(receiver.outcome()?.head)
    #expect(head.status == tag.status)
    #expect(head.url.hasPrefix("http"))
    #expect(receiver.bytes.count == (tag.status == 304 ? 0 : 100))
  }

  @Test(arguments: Subject.allCases) func pausesUntilItIsResumed(subject: Subject) throws {
    let bench = try Bench(subject)
    // Every other call finds no room.
    let receiver = Collector { heard in heard.pauses * 20_000 <= heard.bytes.count ? .full : .taken }
    let id = bench.start("ok", seed: "pause", size: 60_000, to: receiver)
    var pauses = 0
    while receiver.heard.withLock({ $0.outcomes.isEmpty }) {
      let next = pauses + 1
      let isPaused = receiver.heard.wait(atMost: Collector.patience) { heard -> Bool? in
        if !heard.outcomes.isEmpty { return false }
        return heard.pauses >= next ? true : nil
      }
      guard isPaused == true else { break }
      pauses += 1
      bench.downloader.resume(id)
    }
    #expect(pauses >= 1)
    #expect(receiver.outcome()?.head?.status == 200)
    #expect(receiver.bytes == SeedStream.bytes(seed: "pause", size: 60_000))
    #expect(receiver.offences == [])
  }

  @Test(arguments: Subject.allCases) func aPausedExchangeHoldsNoOther(subject: Subject) throws {
    let bench = try Bench(subject)
    let held = Collector { _ in .full }
    let id = bench.start("ok", seed: "held", size: 5_000, to: held)
    #expect(held.paused(1))
    #expect(bench.get("ok", seed: "free", size: 5_000).outcome()?.head?.status == 200)
    bench.downloader.cancel(id)
    #expect(held.outcome()?.failure?.code == .cancelled)
    #expect(held.heard.withLock { $0.pauses } == 1)
  }

  @Test(arguments: Subject.allCases) func cancelEndsARunningExchange(subject: Subject) throws {
    let bench = try Bench(subject)
    let receiver = Collector()
    let id = bench.start("head-never", seed: "c", size: 10, to: receiver)
    bench.downloader.cancel(id)
    #expect(receiver.outcome()?.failure?.code == .cancelled)
    // Neither a second cancel nor a resume does anything now.
    bench.downloader.cancel(id)
    bench.downloader.resume(id)
    #expect(bench.get("ok", seed: "after", size: 10).outcome()?.head != nil)
    #expect(receiver.offences == [])
  }

  @Test(arguments: Subject.allCases) func cancelEndsAWaitingExchange(subject: Subject) throws {
    let bench = try Bench(subject, connections: 1)
    let running = Collector()
    let first = bench.start("head-never", seed: "w", size: 10, to: running)
    let waiting = Collector()
    let second = bench.start("ok", seed: "w", size: 10, to: waiting)
    let last = bench.get("ok", seed: "last", size: 10)
    bench.downloader.cancel(second)
    #expect(waiting.outcome()?.failure?.code == .cancelled)
    #expect(waiting.heard.withLock { $0.heads.isEmpty })
    bench.downloader.cancel(first)
    #expect(running.outcome()?.failure?.code == .cancelled)
    #expect(last.outcome()?.head?.status == 200)
  }

  @Test(arguments: Subject.allCases) func theLimitIsKept(subject: Subject) throws {
    let bench = try Bench(subject)
    let exact = bench.get("ok", seed: "limit", size: 3_000) { $0.limit = 3_000 }
    #expect(exact.outcome()?.head?.status == 200)
    let over = bench.get("ok", seed: "limit", size: 3_000) { $0.limit = 2_999 }
    let failure = try #require(over.outcome()?.failure)
    #expect(failure.code == .tooLarge)
    #expect(!failure.isTransient)
    #expect(over.bytes.count <= 2_999)
  }

  @Test(arguments: Subject.allCases) func theReceiverMayGiveUp(subject: Subject) throws {
    let receiver = try Bench(subject).get("ok", seed: "abort", size: 5_000, to: Collector { _ in .abort })
    #expect(receiver.outcome()?.failure?.code == .refusedByReceiver)
  }

  @Test(arguments: Subject.allCases) func aMalformedURLIsRefused(subject: Subject) throws {
    let bench = try Bench(subject)
    let receiver = Collector()
    _ = bench.downloader.start(DownloadRequest(url: "no url at all", limit: 1), to: receiver)
    #expect(receiver.outcome()?.failure?.code == .urlRefused)
  }

  @Test(arguments: Subject.allCases) func shutDownEndsAll(subject: Subject) throws {
    let bench = try Bench(subject, connections: 2)
    let receivers = (0..<10).map { _ in Collector() }
    for receiver in receivers { _ = bench.start("head-never", seed: "s", size: 10, to: receiver) }
    bench.downloader.shutDown()
    for receiver in receivers {
      // No waiting here: after shutDown all must have been heard.
      #expect(receiver.heard.withLock { $0.outcomes.first?.failure?.code } == .cancelled)
      #expect(receiver.offences == [])
    }
    let late = Collector()
    _ = bench.start("ok", seed: "late", size: 10, to: late)
    #expect(late.outcome()?.failure?.code == .cancelled)
    bench.downloader.shutDown()
  }

  @Test(arguments: Subject.allCases) func manyMoreThanTheLimits(subject: Subject) throws {
    let bench = try Bench(subject, connections: 4)
    let receivers = (0..<200).map { bench.get("ok", seed: "many-\($0 % 5)", size: 500) }
    for (index, receiver) in receivers.enumerated() {
      #expect(receiver.outcome()?.head?.status == 200)
      #expect(receiver.bytes == SeedStream.bytes(seed: "many-\(index % 5)", size: 500))
      #expect(receiver.offences == [])
    }
  }

  @Test(arguments: Subject.allCases) func oneConnectionKeepsTheOrder(subject: Subject) throws {
    let bench = try Bench(subject, connections: 1)
    let ended = Locked<[Int]>([])
    let receivers = (0..<30).map { number in Collector(onEnd: { ended.withLock { $0.append(number) } }) }
    for receiver in receivers { _ = bench.start("ok", seed: "order", size: 10, to: receiver) }
    for receiver in receivers { #expect(receiver.outcome()?.head != nil) }
    #expect(ended.withLock { $0 } == Array(0..<30))
  }
}

extension DownloadingConformanceTests {
  @Test(arguments: Subject.allCases) func whoIsPrioritizedIsNext(subject: Subject) throws {
    let bench = try Bench(subject, connections: 1)
    let isOpen = Locked(false)
    let held = Collector { _ in isOpen.withLock { $0 } ? .taken : .full }
    let first = bench.start("ok", seed: "held", size: 10, to: held)
    #expect(held.paused(1))
    let ended = Locked<[Int]>([])
    let receivers = (0..<10).map { number in Collector(onEnd: { ended.withLock { $0.append(number) } }) }
    let ids = receivers.map { bench.start("ok", seed: "next", size: 10, to: $0) }
    bench.downloader.prioritize(ids[7])
    bench.downloader.prioritize(first)
    isOpen.withLock { $0 = true }
    bench.downloader.resume(first)
    for receiver in receivers { #expect(receiver.outcome()?.head != nil) }
    #expect(ended.withLock { $0 } == [7, 0, 1, 2, 3, 4, 5, 6, 8, 9])
    #expect(held.outcome()?.head != nil)
    bench.downloader.prioritize(ids[7])
  }
}

/// One implementation with something to talk to.
struct Bench {
  let downloader: any Downloading
  private let origin: String

  init(_ subject: DownloadingConformanceTests.Subject, connections: Int = 4) throws {
    switch subject {
    case .fake:
      origin = "http://fake"
      downloader = try FakeDownloader(connections: connections, answer: Self.answer)
    case .curl:
      origin = try ScriptedServer.shared.get().plain
      downloader = try CurlDownloader(settings: .patient { $0.connections = connections })
    }
  }

  func start(_ behaviour: String, seed: String, size: Int, to receiver: Collector) -> DownloadID {
    receiver.owner.withLock { $0 = downloader }
    return downloader.start(
      DownloadRequest(url: "\(origin)/\(behaviour)/\(seed)/\(size)/file", limit: 1 << 30), to: receiver)
  }

  func get(
    _ behaviour: String, seed: String, size: Int, to receiver: Collector = Collector(),
    change: (inout DownloadRequest) -> Void = { _ in }
  ) -> Collector {
    var request = DownloadRequest(url: "\(origin)/\(behaviour)/\(seed)/\(size)/file", limit: 1 << 30)
    change(&request)
    receiver.owner.withLock { $0 = downloader }
    _ = downloader.start(request, to: receiver)
    return receiver
  }

  /// The fake's version of the behaviours that the suite uses.
  private static func answer(_ request: DownloadRequest) -> FakeAnswer {
    let parts = request.url.split(separator: "/").map(String.init)
    guard parts.count == 6, let size = Int(parts[4]) else { return FakeAnswer(status: 404) }
    let body = SeedStream.bytes(seed: parts[3], size: size)
    switch parts[2] {
    case "ok": return FakeAnswer(etag: "\"\(parts[3])-\(size)-v1\"", body: body)
    case "status-404": return FakeAnswer(status: 404, body: Array("not here".utf8))
    case "status-404-big": return FakeAnswer(status: 404, body: body)
    default: return FakeAnswer(hangs: true)
    }
  }
}
