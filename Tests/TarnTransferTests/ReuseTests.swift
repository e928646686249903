import Foundation
import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnTransfer

/// What a handle, or an origin, that was used before saves must not show in what is sent.
@Suite(
  .serialized, .timeLimit(.minutes(5)),
  .enabled(if: ScriptedServer.isAvailable, "python3 or openssl is missing"))
struct ReuseTests {
  let server: ScriptedServer

  init() throws {
    server = try ScriptedServer.shared.get()
  }

  /// One connection, so one handle for all of them.
  private func downloader(_ change: (inout NetworkSettings) -> Void = { _ in }) throws -> CurlDownloader {
    try CurlDownloader(
      settings: .patient {
        $0.connections = 1
        change(&$0)
      })
  }

  @discardableResult
  private func fetch(
    _ url: String, _ downloader: CurlDownloader, change: (inout DownloadRequest) -> Void = { _ in }
  ) -> Collector {
    var request = DownloadRequest(url: url, limit: 1 << 30)
    change(&request)
    let receiver = Collector()
    _ = downloader.start(request, to: receiver)
    _ = receiver.outcome()
    #expect(receiver.offences == [])
    return receiver
  }

  private func status(_ receiver: Collector) -> Int? { receiver.outcome()?.head?.status }

  @Test func aPlainRequestHasNothingOfTheOneBefore() throws {
    let downloader = try downloader()
    defer { downloader.shutDown() }
    let names = ["reuse-1", "reuse-2", "reuse-3", "reuse-4", "reuse-5"]
    fetch("\(server.plain)/ok/x/10/\(names[0])", downloader)
    fetch("\(server.plain)/ok/x/10/\(names[1])", downloader) {
      $0.ifNoneMatch = "\"old\""
      $0.ifModifiedSince = "Sun, 01 Jan 2023 00:00:00 GMT"
      $0.accept = "application/rss+xml"
      $0.encoding = .gzipAsked
    }
    fetch("\(server.plain)/ok/x/10/\(names[2])", downloader)
    fetch("\(server.plain)/ok/x/10/\(names[3])", downloader) {
      $0.offset = 4
      $0.ifRange = "\"old\""
    }
    let last = fetch("\(server.plain)/ok/x/10/\(names[4])", downloader)
    #expect(status(last) == 200 && last.bytes.count == 10)

    func value(_ name: String, of request: Int) -> String? {
      server.requests("/" + names[request]).first?.headers[name]
    }
    for plain in [0, 2, 4] {
      #expect(value("accept", of: plain) == "*/*")
      #expect(value("accept-encoding", of: plain) == "identity")
      for other in ["if-none-match", "if-modified-since", "range", "if-range"] {
        #expect(value(other, of: plain) == nil, "\(other) of \(plain)")
      }
    }
    #expect(value("if-none-match", of: 1) == "\"old\"" && value("accept-encoding", of: 1) == "gzip")
    #expect(value("range", of: 3) == "bytes=4-" && value("if-range", of: 3) == "\"old\"")
  }

  @Test func headersGoToTheirOriginOnly() throws {
    let downloader = try downloader {
      $0.headers = ["X-Canary: sings"]
      $0.credentialOrigin = server.plain
    }
    defer { downloader.shutDown() }
    // The second of each goes over the connection of the first, so its handle keeps what was set.
    for round in 1...4 {
      fetch("\(server.plain)/ok/x/10/reuse-own-\(round)", downloader)
      #expect(server.requests("/reuse-own-\(round)").map { $0.headers["x-canary"] } == ["sings"])
      if round % 2 == 1 { continue }
      for number in [round - 1, round] {
        fetch("\(server.other)/ok/x/10/reuse-other-\(number)", downloader)
        #expect(server.requests("/reuse-other-\(number)").map { $0.headers["x-canary"] } == [nil])
      }
    }
  }

  @Test func aFailureAndANewRateLeaveNothing() throws {
    let downloader = try downloader()
    defer { downloader.shutDown() }
    fetch("\(server.plain)/ok/x/10/reuse-before", downloader)
    let cut = fetch("\(server.plain)/truncate/x/5000/reuse-cut", downloader)
    guard case .failed(let failure) = cut.outcome(), failure.code == .truncated else {
      Issue.record("it was to be cut")
      return
    }
    let after = fetch("\(server.plain)/ok/x/10/reuse-after", downloader)
    #expect(status(after) == 200 && after.bytes.count == 10)
    downloader.setRate(1 << 30)
    let faster = fetch("\(server.plain)/ok/x/10/reuse-rate", downloader)
    #expect(status(faster) == 200 && faster.bytes.count == 10)
  }

  /// libcurl sends again what was lost with a connection that had been idle, up to five times, which it counts by the handle.
  @Test func lostConnectionsDoNotAddUp() throws {
    let downloader = try downloader()
    defer { downloader.shutDown() }
    fetch("\(server.plain)/ok/x/10/reuse-first", downloader)
    for number in 1...12 {
      let receiver = fetch("\(server.plain)/lost-once/x/10/reuse-lost-\(number)", downloader)
      #expect(status(receiver) == 200 && receiver.bytes.count == 10, "\(number): \(receiver.outcome())")
      #expect(server.requests("/reuse-lost-\(number)").count == 2)
    }
  }

  // MARK: URLs

  /// Whatever stands behind an origin that is known: read as without it.
  @Test func aKnownOriginChangesNoURL() throws {
    var random = Seeded(20_261_123)
    let pieces = [
      "a", "Z", "0", "-", "_", "~", "/", "//", ".", "..", "/.", "/..", "/../", "/./", "%2e", "%2E%2e", "%20",
      "%",
      "%zz", "?", "?q", "#", "#f", " ", "\t", "ä", "\u{1F40B}", "@", ":", ":80", "\\", "[", "]", "+", "&",
      "=",
    ]
    let heads = [
      "http://127.0.0.1:8080/", "http://example.org/", "HTTP://Example.ORG/", "https://example.org:443/",
      "http://user@example.org/", "http://example.org", "http://[::1]:80/", "ftp://example.org/", "file:///",
    ]
    var plain = 0
    for _ in 0..<20_000 {
      var urls = SourceURLs()
      let head = heads[Int(random.next() % UInt64(heads.count))]
      _ = try? urls.read(head + "first/file")
      let tail = (0..<Int(random.next() % 6)).map { _ in pieces[Int(random.next() % UInt64(pieces.count))] }
      let text = head + tail.joined()
      let (fresh, known) = (Result { try SourceURL(text) }, Result { try urls.read(text) })
      switch (fresh, known) {
      case (.success(let one), .success(let other)):
        #expect(
          one.text == other.text && one.origin == other.origin && one.filePath == other.filePath, "\(text)")
        plain += 1
      case (.failure(let one as SourceURL.Refusal), .failure(let other as SourceURL.Refusal)):
        #expect(one.reason == other.reason, "\(text)")
      default: Issue.record("\(text): \(fresh) and \(known)")
      }
    }
    #expect(plain > 1000)
  }
}
