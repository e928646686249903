import Foundation
import Testing

/// Over HTTP/2 the transfers from a host are streams of one connection.
@Suite(.serialized, .enabled(if: Tarn.obstacleWithServer == nil, "\(Tarn.obstacleWithServer ?? "")"))
struct StreamTests {
  private static let count = 24

  /// Streams count as a quarter of a connection each, and no more of them run than connections are allowed in all.
  @Test(
    .enabled(if: Program.find("openssl") != nil, "openssl is not installed"),
    arguments: [(perHost: "6", total: "16", most: 16), ("2", "16", 8), ("1", "16", 1)])
  func manyShareAConnection(perHost: String, total: String, most: Int) throws {
    let place = try TemporaryDirectory()
    let (certificate, key) = (place.path + "/ca.pem", place.path + "/key.pem")
    let openssl = try #require(Program.find("openssl"))
    let made = try Program(
      openssl,
      [
        "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
        "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate,
      ]
    ).wait(limit: 60)
    #expect(made.status == 0, "\(made)")
    let port = try Loopback.freePort()
    // Each body takes about a second.
    let server = try Nginx(
      locations: """
        listen 127.0.0.1:\(port) ssl http2;
        ssl_certificate \(certificate);
        ssl_certificate_key \(key);
        location /slow/ { alias \(place.path)/files/; limit_rate 8k; }
        """)
    let names = (0..<(most == 1 ? 4 : Self.count)).map { "f\($0)" }
    for name in names { try place.write(String(repeating: name + "\n", count: 4000), to: "files/\(name)") }
    let urls = names.map { "https://127.0.0.1:\(port)/slow/\($0)\n" }
    let list = try place.write(urls.joined(), to: "list.txt")
    let outcome = try Tarn.sync(
      list.path, place.path + "/mirror", "--cacert", certificate, "--connections-per-host", perHost,
      "--connections", total)
    #expect(outcome.status == 0, "\(outcome)")
    for name in names { #expect(place.text("mirror/\(name)") == place.text("files/\(name)")) }
    let asked = try server.requests().filter { $0.uri.hasPrefix("/slow/") }
    #expect(asked.count == names.count && asked.allSatisfy { $0.spoken == "HTTP/2.0" }, "\(asked)")
    #expect(Set(asked.map(\.connection)).count == 1, "\(asked)")
    #expect(Self.mostAtOnce(asked) == most, "\(asked)")
  }

  private static func mostAtOnce(_ requests: [Nginx.Request]) -> Int {
    let spans = requests.compactMap { request -> ClosedRange<Double>? in
      guard let end = Double(request.ended), let took = Double(request.took) else { return nil }
      return (end - took)...end
    }
    // The log's times are of milliseconds: who ends and who begins then are not at once.
    return spans.map { span in
      spans.count { $0.lowerBound <= span.lowerBound + 0.005 && span.lowerBound + 0.005 < $0.upperBound }
    }.max() ?? 0
  }
}
