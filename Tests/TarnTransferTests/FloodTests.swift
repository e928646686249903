import TarnCore
import TarnRuntime
import Testing

@testable import TarnTransfer

/// Servers that never stop sending what holds no content, beside one that is well, on one network thread.
@Suite(
  .serialized, .timeLimit(.minutes(5)),
  .enabled(if: ScriptedServer.isAvailable, "python3 or openssl is missing"))
struct FloodTests {
  let server: ScriptedServer

  init() throws {
    server = try ScriptedServer.shared.get()
  }

  private func downloader() throws -> CurlDownloader {
    try CurlDownloader(settings: .patient { $0.caFile = server.certificate })
  }

  /// Asks a server that is well again and again until the other transfer has ended.
  private func outcome(_ kind: String) throws -> DownloadOutcome? {
    let flood = try FloodServer([kind], certificate: server.certificate, key: server.key)
    let downloader = try downloader()
    let flooded = Collector()
    _ = downloader.start(DownloadRequest(url: flood.url(kind), limit: 1 << 20), to: flooded)
    repeat {
      let well = Collector()
      _ = downloader.start(DownloadRequest(url: "\(server.plain)/ok/well/90000/f", limit: 1 << 20), to: well)
      #expect(well.outcome()?.head?.status == 200)
    } while flooded.heard.withLock { $0.outcomes.isEmpty }
    let outcome = flooded.outcome()
    downloader.shutDown()
    return outcome
  }

  @Test(arguments: [
    "data", "thin", "priority", "window", "unknown", "unknown-before", "altsvc", "chunk-extension",
    "chunk-tiny",
  ]) func aFloodEndsAndOthersGoOn(kind: String) throws {
    let failure = try #require(try outcome(kind)?.failure)
    // By the limit of bytes without content, and by nothing else.
    #expect(failure.code == .flooded, "\(failure)")
    let limit = "\(Units.show(FloodGuard.mostWasted)) and more without any content"
    #expect(failure.message.contains(limit), "\(failure)")
    #expect(!failure.isTransient)
  }

  /// These have bounds in nghttp2, in libcurl or in the reader of heads.
  @Test(arguments: [
    "padding", "ping", "settings", "continuation", "hints", "trailers", "chunk-trailers", "hints-1",
    "blank-lines",
  ]) func otherFloodsEnd(kind: String) throws {
    let ended = try #require(try outcome(kind))
    let failure = try #require(ended.failure, "\(ended)")
    #expect(failure.code != .tooSlow, "\(failure)")
  }

  /// What is no end of a body is none over HTTP/2 either.
  @Test(arguments: ["close", "reset", "goaway", "bad-trailers"]) func aBodyThatBreaksOffIsNotWhole(
    kind: String
  ) throws {
    let ended = try #require(try outcome(kind))
    #expect(ended.failure?.isTransient == true, "\(ended)")
  }

  /// libcurl tries new connections, and gives up in the end. That is one of the failures that cut the streams of a host.
  @Test func aRefusedStreamFailsForNow() throws {
    let failure = try #require(try outcome("refused")?.failure)
    #expect(failure.code == .reset && failure.isTransient, "\(failure)")
  }

  /// The thread comes back by itself, and hears of the end: no need to wait for a bound.
  @Test func aFloodDoesNotKeepTheThreadFromEnding() throws {
    let flood = try FloodServer(["data"], certificate: server.certificate, key: server.key)
    let downloader = try downloader()
    let receivers = (0..<4).map { _ in Collector() }
    for receiver in receivers {
      _ = downloader.start(DownloadRequest(url: flood.url("data"), limit: 1 << 20), to: receiver)
    }
    #expect(receivers[0].head()?.status == 200)
    downloader.shutDown()
    #expect(receivers.allSatisfy { $0.outcome()?.failure != nil })
  }
}
