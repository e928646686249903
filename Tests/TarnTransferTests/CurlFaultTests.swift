import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnTransfer

/// What comes of each misbehaviour of the scripted server.
@Suite(
  .serialized, .timeLimit(.minutes(5)),
  .enabled(if: ScriptedServer.isAvailable, "python3 or openssl is missing"))
struct CurlFaultTests {
  let server: ScriptedServer

  init() throws {
    server = try ScriptedServer.shared.get()
  }

  private func fetch(
    _ behaviour: String, size: Int = 5000, _ settings: NetworkSettings? = nil,
    to receiver: Collector = Collector(), change: (inout DownloadRequest) -> Void = { _ in }
  ) throws -> (outcome: DownloadOutcome?, bytes: [UInt8]) {
    let downloader = try CurlDownloader(settings: settings ?? .patient())
    var request = DownloadRequest(url: "\(server.plain)/\(behaviour)/fault/\(size)/f", limit: 1 << 20)
    change(&request)
    _ = downloader.start(request, to: receiver)
    let outcome = receiver.outcome()
    downloader.shutDown()
    #expect(receiver.offences == [])
    return (outcome, receiver.bytes)
  }

  /// On a handle that was used before, too. A label of more than 63 letters is asked of no name server. A dot at the end makes it
  /// another name.
  @Test(arguments: ["", "."]) func aNameThatIsNotFoundStaysThat(end: String) throws {
    let downloader = try CurlDownloader(settings: NetworkSettings())
    let name = String(repeating: "x", count: 70) + ".invalid" + end
    let url = "http://\(name)/f"
    for _ in 0..<4 {
      let receiver = Collector()
      _ = downloader.start(DownloadRequest(url: url, limit: 1 << 20), to: receiver)
      guard case .failed(let failure) = receiver.outcome() else {
        Issue.record("no failure")
        continue
      }
      #expect(
        failure.code == .resolve && failure.message.contains("no address found for \(name):80"), "\(failure)")
    }
    downloader.shutDown()
  }

  struct Case: Sendable, CustomTestStringConvertible {
    var behaviour: String
    var code: DownloadFailure.Code
    var isTransient = true
    var testDescription: String { behaviour }
  }

  static let faults = [
    Case(behaviour: "truncate", code: .truncated), Case(behaviour: "length-longer", code: .truncated),
    Case(behaviour: "chunked-cut", code: .truncated), Case(behaviour: "reset-before-head", code: .reset),
    Case(behaviour: "reset-mid-body", code: .reset),
    Case(behaviour: "header-line-huge", code: .headersTooLarge, isTransient: false),
    Case(behaviour: "length-conflicting", code: .protocolError),
    Case(behaviour: "length-negative", code: .protocolError),
    Case(behaviour: "length-text", code: .protocolError),
    Case(behaviour: "length-and-chunked", code: .protocolError),
    Case(behaviour: "not-http", code: .protocolError),
    Case(behaviour: "status-line-bad", code: .protocolError),
    Case(behaviour: "header-flood", code: .headersTooLarge, isTransient: false),
    Case(behaviour: "header-huge", code: .headersTooLarge, isTransient: false),
    Case(behaviour: "early-hints-flood", code: .headersTooLarge, isTransient: false),
    Case(behaviour: "endless", code: .tooLarge, isTransient: false),
    Case(behaviour: "head-cut", code: .protocolError),
    Case(behaviour: "chunk-size-junk", code: .protocolError),
    Case(behaviour: "chunk-size-huge", code: .protocolError),
    Case(behaviour: "chunk-size-short", code: .protocolError),
  ]

  @Test(arguments: faults) func fails(fault: Case) throws {
    let (outcome, bytes) = try fetch(fault.behaviour)
    let failure = try #require(outcome?.failure)
    #expect(failure.code == fault.code, "\(failure.message)")
    #expect(failure.isTransient == fault.isTransient)
    #expect(bytes.count <= 1 << 20)
    #expect(
      bytes == Array(SeedStream.bytes(seed: "fault", size: 5000).prefix(bytes.count))
        || fault.code == .tooLarge)
  }

  /// Asked for all at once: none waits until a transfer that hangs is over.
  @Test(arguments: [false, true]) func aTransferThatHangsHoldsNoOther(isSecure: Bool) throws {
    let host = isSecure ? server.tls : server.plain
    let downloader = try CurlDownloader(
      settings: .patient {
        $0.connectionsPerHost = 16
        $0.caFile = server.certificate
      })
    let stalled = Collector()
    _ = downloader.start(DownloadRequest(url: "\(host)/body-stalls/hang/5000/f", limit: 1 << 20), to: stalled)
    let others = (0..<12).map { number in
      let receiver = Collector()
      let url = "\(host)/ok/beside\(number)/5000/f"
      _ = downloader.start(DownloadRequest(url: url, limit: 1 << 20), to: receiver)
      return receiver
    }
    for receiver in others { #expect(receiver.outcome()?.head?.status == 200) }
    downloader.shutDown()
  }

  @Test(arguments: [
    "ok", "ok-close", "chunked", "length-none", "early-hints", "length-shorter", "length-double",
    "encoding-none",
  ])
  func takesWhatIsRight(behaviour: String) throws {
    let (outcome, bytes) = try fetch(behaviour)
    #expect(outcome?.head?.status == 200)
    #expect(bytes == SeedStream.bytes(seed: "fault", size: behaviour == "length-shorter" ? 4990 : 5000))
  }

  static let ranges: [(String, Int, ContentRange?)] = [
    ("ok", 206, ContentRange(first: 100, last: 4999, total: 5000)),
    ("range-ignored", 200, nil),
    ("range-start", 206, ContentRange(first: 101, last: 4999, total: 5000)),
    ("range-end", 206, ContentRange(first: 100, last: 5000, total: 5001)),
    ("range-total", 206, ContentRange(first: 100, last: 4999, total: 5007)),
    ("range-unit", 206, nil), ("range-missing", 206, nil), ("range-multipart", 206, nil),
    ("range-refused", 416, ContentRange(first: nil, last: nil, total: 10)),
  ]

  /// The port reports what was said; whether it fits is the receiver's business.
  @Test(arguments: ranges) func reportsRanges(behaviour: String, status: Int, range: ContentRange?) throws {
    let (outcome, bytes) = try fetch(behaviour, to: Collector(.headOnly)) { $0.offset = 100 }
    let head = try #require(outcome?.head)
    #expect(head.status == status)
    #expect(head.contentRange == range)
    #expect(bytes == [])
  }

  @Test(arguments: [
    ("status-429-seconds", Int64(7)...7), ("status-429-forever", 604_800...604_800),
    ("status-503-date", 119...121), ("status-503-past", 0...0),
  ]) func readsRetryAfter(behaviour: String, seconds: ClosedRange<Int64>) throws {
    #expect(seconds.contains(try #require(try fetch(behaviour).outcome?.head?.retryAfter)))
  }

  @Test func junkRetryAfterIsNone() throws {
    #expect(try #require(try fetch("status-503-junk").outcome?.head).retryAfter == nil)
  }

  @Test func resumesAfterAReset() throws {
    let (first, part) = try fetch("reset-once", size: 6001)
    #expect(first?.failure?.code == .reset)
    let (second, rest) = try fetch("reset-once", size: 6001) {
      $0.offset = UInt64(part.count)
      $0.ifRange = "\"fault-6001-v1\""
    }
    #expect(second?.head?.status == (part.isEmpty ? 200 : 206))
    #expect(part + rest == SeedStream.bytes(seed: "fault", size: 6001))
  }

  // MARK: Patience

  @Test(arguments: ["head-never", "head-slow", "body-slow", "body-stalls"]) func slowServersAreLeft(
    behaviour: String
  ) throws {
    let failure = try #require(try fetch(behaviour, .patient { $0.lowSpeedTime = 1 }).outcome?.failure)
    #expect(failure.code == .tooSlow, "\(failure.message)")
    #expect(failure.isTransient)
  }

  @Test func theTotalCapHolds() throws {
    let (outcome, _) = try fetch("head-never") { $0.totalTimeout = 1 }
    #expect(outcome?.failure?.code == .timeout)
  }

  @Test func refusedConnectionIsToldInWords() throws {
    let downloader = try CurlDownloader(settings: .patient())
    let receiver = Collector()
    _ = downloader.start(DownloadRequest(url: "http://127.0.0.1:1/x", limit: 1), to: receiver)
    #expect(
      receiver.outcome()
        == .failed(
          DownloadFailure(.connect, "connection refused by 127.0.0.1:1", isTransient: true)))
  }

  @Test func aSlowHostHoldsNoOther() throws {
    let downloader = try CurlDownloader(
      settings: .patient {
        $0.connections = 8
        $0.connectionsPerHost = 2
      })
    let slow = (0..<20).map { _ in Collector() }
    for receiver in slow {
      _ = downloader.start(
        DownloadRequest(url: "\(server.plain)/head-never/x/1/slow", limit: 1), to: receiver)
    }
    for _ in 0..<5 {
      let receiver = Collector()
      _ = downloader.start(DownloadRequest(url: "\(server.other)/ok/x/1/quick", limit: 1), to: receiver)
      #expect(receiver.outcome()?.head?.status == 200)
    }
    downloader.shutDown()
    #expect(slow.allSatisfy { $0.outcome()?.failure?.code == .cancelled })
  }

  @Test func connectionsAreReused() throws {
    let downloader = try CurlDownloader(settings: .patient { $0.connections = 2 })
    for round in 0..<3 {
      let behaviour = ["ok", "status-404", "redirect"][round]
      let receiver = Collector(round == 1 ? .headOnly : .accept)
      _ = downloader.start(
        DownloadRequest(url: "\(server.plain)/\(behaviour)/x/900/reused", limit: 1000), to: receiver)
      #expect(receiver.outcome()?.head != nil)
    }
    #expect(Set(server.requests("/reused").map(\.connection)).count == 1)
  }

  // MARK: Rate

  /// 8 transfers of 64 KiB under 256 KiB/s: 2 s, whatever the number of transfers. No more comes than the time lets through but for
  /// a buffer, and all that it does.
  @Test func theRateHoldsOverAll() throws {
    let rate = 256 << 10
    let clock = ManualClock(monotonic: 1)
    let downloader = try CurlDownloader(settings: .patient { $0.rate = UInt64(rate) }, clock: clock)
    let receivers = (0..<8).map { _ in Collector() }
    func received() -> Int { receivers.reduce(0) { $0 + $1.heard.withLock { $0.bytes.count } } }
    for receiver in receivers {
      _ = downloader.start(
        DownloadRequest(url: "\(server.plain)/ok/rate/65536/rate", limit: 1 << 20), to: receiver)
    }
    // Its time begins with the client.
    try #require(isSoInTime { !server.requests("/rate").isEmpty })
    for tenths in 1...20 {
      clock.advance(.milliseconds(100))
      let due = rate * tenths / 10
      try #require(isSoInTime { received() >= due }, "\(received()) of \(due)")
      #expect(received() <= due + rate / 20)
    }
    for receiver in receivers {
      #expect(receiver.outcome()?.head?.status == 200)
      #expect(receiver.bytes.count == 65_536)
    }
  }

  /// A host that closes every connection is left alone after some tries. Six are made at once, and those lose their connections
  /// together.
  @Test func aHostThatNeverAnswersIsNotAskedForEachFile() throws {
    let downloader = try CurlDownloader(settings: .patient(), clock: ManualClock(monotonic: 1))
    let receivers = (0..<100).map { _ in Collector() }
    for receiver in receivers {
      _ = downloader.start(
        DownloadRequest(url: "\(server.plain)/reset-before-head/x/1/dead", limit: 1), to: receiver)
    }
    let codes = receivers.map { $0.outcome()?.failure?.code }
    #expect(codes.allSatisfy { $0 == .reset || $0 == .hostResting })
    #expect(codes.last == .hostResting && server.requests("/dead").count <= 30)
    let failure = receivers.last?.outcome()?.failure
    #expect(failure?.isTransient == true && (1...30).contains(failure?.retryAfter ?? 0))
    #expect(failure?.message.contains("connection lost") == true, "\(failure?.message ?? "")")
    let other = Collector()
    _ = downloader.start(DownloadRequest(url: "\(server.other)/ok/x/1/alive", limit: 1), to: other)
    #expect(other.outcome()?.head?.status == 200)
    downloader.shutDown()
  }

  /// It answers, whatever it says and however the bodies end.
  @Test(arguments: ["status-500", "truncate"]) func aHostThatAnswersIsAskedForAll(behaviour: String) throws {
    let downloader = try CurlDownloader(settings: .patient())
    let receivers = (0..<40).map { _ in Collector() }
    for receiver in receivers {
      _ = downloader.start(
        DownloadRequest(url: "\(server.plain)/\(behaviour)/x/5000/lively", limit: 5000), to: receiver)
    }
    #expect(receivers.allSatisfy { $0.outcome()?.failure?.code != .hostResting })
    downloader.shutDown()
  }

  /// Waiting requests cost no handles and no connections, and are ended in one go.
  @Test func aHundredThousandWait() throws {
    let downloader = try CurlDownloader(settings: .patient { $0.connections = 2 })
    let ended = LockedCondition(0)
    let receivers = (0..<100_000).map { _ in Collector(onEnd: { ended.change { $0 += 1 } }) }
    for receiver in receivers {
      _ = downloader.start(
        DownloadRequest(url: "\(server.plain)/head-never/x/1/crowd", limit: 1), to: receiver)
    }
    downloader.shutDown()
    #expect(ended.withLock { $0 } == 100_000)
    #expect(server.requests("/crowd").count <= 2)
  }
}
