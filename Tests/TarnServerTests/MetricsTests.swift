import Foundation
import TarnControl
import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnServer

private let hasCurl = Program.exists("curl")

/// Metrics over the socket and over the network.
@Suite struct MetricsTests {
  // MARK: - The socket

  @Test func theSocketTellsThemInBothFormats() throws {
    let stage = try Stage()
    let client = stage.raw
    client.get("/metrics")
    let text = try #require(client.answer())
    #expect(text.status == 200 && text.fields["content-type"] == MetricsFormat.text.contentType)
    #expect(text.body.hasSuffix("tarn_mirror_repairs_total{mirror=\"m\"} 3\n"))
    client.get("/metrics", "Accept: application/openmetrics-text; version=1.0.0\r\n")
    let open = try #require(client.answer())
    #expect(open.fields["content-type"] == MetricsFormat.openMetrics.contentType)
    #expect(open.body.hasSuffix("# EOF\n") && open.fields["content-length"] == String(open.body.utf8.count))
    #expect(client.request("HEAD", "/metrics")?.status == 200)
    #expect(stage.agent.asked == ["metrics true", "metrics true", "metrics true"])
    #expect(client.request("POST", "/metrics")?.status == 405)
    #expect(client.request("GET", "/metrics?name=x")?.status == 400)
  }

  /// Its ids are those of the owner's programs.
  @Test func everyoneIsToldThoseOfMirrorsOnly() throws {
    let stage = try Stage()
    let answer = try #require(RawClient(stage.everyone).request("GET", "/metrics"))
    #expect(answer.status == 200 && stage.agent.asked == ["metrics false"])
  }

  // MARK: - The network

  private final class Network {
    let token = Locked("right-token")
    let stage: Stage
    let port: Int

    init() throws {
      let port = try MetricsTests.freePort()
      let token = token
      stage = try Stage(
        metrics: MetricsListener(host: "127.0.0.1", port: port) { () throws(ControlFailure) in
          let text = token.withLock { $0 }
          guard text != "unreadable" else {
            throw ControlFailure(.unavailable, code: "token-not-readable", "no")
          }
          return Array(text.utf8)
        })
      self.port = port
    }

    /// The status, the header that asks for a token, and the body.
    func ask(_ target: String = "/metrics", _ header: String? = nil) throws -> (
      status: String, challenge: String, body: String
    ) {
      let output = try Program.run(
        ["curl", "-s", "-g", "--max-time", "120", "-D", "-", "http://127.0.0.1:\(port)\(target)"]
          + (header.map { ["-H", $0] } ?? [])
      ).output
      let parts = output.components(separatedBy: "\r\n\r\n")
      let lines = parts[0].components(separatedBy: "\r\n")
      let challenge = lines.first { $0.lowercased().hasPrefix("www-authenticate: ") } ?? ""
      return (
        String(lines[0].split(separator: " ").dropFirst().first ?? ""), challenge,
        parts.dropFirst().joined(separator: "\r\n\r\n")
      )
    }
  }

  static func freePort() throws -> Int {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(descriptor) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let status = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, length) == 0 ? getsockname(descriptor, $0, &length) : -1
      }
    }
    try #require(status == 0)
    return Int(UInt16(bigEndian: address.sin_port))
  }

  @Test(.enabled(if: hasCurl, "curl is not installed")) func theNetworkWantsTheToken() throws {
    let network = try Network()
    for header in [
      nil, "Authorization: Bearer wrong-token", "Authorization: Bearer right-toke",
      "Authorization: Bearer right-token2", "Authorization: Basic right-token", "Authorization: Bearer",
      "Authorization: Bearer ", "Authorization: right-token", "X-Token: right-token",
    ] {
      let answer = try network.ask("/metrics", header)
      #expect(answer.status == "401", "\(header ?? "-")")
      #expect(answer.challenge.hasSuffix(": Bearer realm=\"tarn\""))
      #expect(!answer.body.contains("tarn_"))
    }
    #expect(network.stage.agent.asked == [])
    // Nothing else is there, not even the name of another route.
    for target in ["/", "/v1/status", "/v1/session/tasks", "/nothing"] {
      let answer = try network.ask(target, "Authorization: Bearer right-token")
      #expect(answer.status == "403" && answer.body.contains("GET /metrics"), "\(answer)")
      #expect(!answer.body.contains("/v1"), "\(answer)")
    }
    for scheme in ["Bearer", "bearer"] {
      let answer = try network.ask("/metrics", "Authorization: \(scheme) right-token")
      #expect(answer.status == "200" && answer.body.contains("tarn_build_info"))
    }
    #expect(network.stage.agent.asked == ["metrics true", "metrics true"])
  }

  @Test(.enabled(if: hasCurl, "curl is not installed")) func theNetworkTellsNothingElse() throws {
    let network = try Network()
    let right = "Authorization: Bearer right-token"
    for route in ControlRoute.allCases where route != .metrics && route.methods.contains("GET") {
      #expect(try network.ask(route.rawValue).status == "401", "\(route)")
      #expect(try network.ask(route.rawValue, right).status == "403", "\(route)")
    }
    #expect(try network.ask("/v1/reload", right).status == "403")
    #expect(try network.ask("/nothing").status == "401")
    #expect(network.stage.agent.asked == [])
  }

  @Test(.enabled(if: hasCurl, "curl is not installed")) func theTokenMayChangeAndMayBeMissing() throws {
    let network = try Network()
    network.token.withLock { $0 = "other" }
    #expect(try network.ask("/metrics", "Authorization: Bearer right-token").status == "401")
    #expect(try network.ask("/metrics", "Authorization: Bearer other").status == "200")
    for header in ["Authorization: Bearer ", "Authorization: Bearer x"] {
      network.token.withLock { $0 = "" }
      #expect(try network.ask("/metrics", header).status == "401")
    }
    network.token.withLock { $0 = "unreadable" }
    #expect(try network.ask("/metrics", "Authorization: Bearer x").status == "503")
  }

  @Test func anAddressThatSomebodyHasIsToldAndNothingIsLeft() throws {
    let network = try Network()
    let second = ControlServer(
      agent: FakeAgent(), sockets: [],
      metrics: MetricsListener(host: "127.0.0.1", port: network.port) { () throws(ControlFailure) in [] },
      version: "9.8")
    #expect(throws: ControlServerFailure.self) { try second.start() }
    do throws(ControlServerFailure) {
      try second.start()
    } catch {
      #expect(
        error.kind == .address(EADDRINUSE) && error.message.hasPrefix("127.0.0.1, port \(network.port): "))
    }
  }

  @Test func tokensAreTheSameOrNot() {
    let token = Array("abcd".utf8)
    #expect(BearerToken.isSame(token, token))
    for other in ["", "abc", "abcde", "abce", "bbcd", "ABCD"] {
      #expect(!BearerToken.isSame(Array(other.utf8), token), "\(other)")
    }
    #expect(!BearerToken.isSame([], []))
  }
}
