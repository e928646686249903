import Foundation
import Testing

/// `tarn doctor` against servers that people complain about.
@Suite(.serialized, .enabled(if: Tarn.obstacleWithServer == nil, "\(Tarn.obstacleWithServer ?? "")"))
final class DoctorTests {
  private let place: TemporaryDirectory
  private let server: Nginx
  private let port: UInt16

  init() throws {
    place = try TemporaryDirectory()
    let (certificate, key) = (place.path + "/ca.pem", place.path + "/key.pem")
    let made = try Program(
      try #require(Program.find("openssl")),
      [
        "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
        "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate,
      ]
    ).wait()
    try #require(made.status == 0, "\(made)")
    port = try Loopback.freePort()
    server = try Nginx(
      locations: """
        listen 127.0.0.1:\(port) ssl;
        ssl_certificate \(certificate);
        ssl_certificate_key \(key);
        location /closed/ { return 401; }
        location /gone/ { return 404; }
        """)
    try Feeds.publish(["f1": "one\n"], in: server.files)
  }

  private func findings(_ feed: String, _ more: String = "") throws -> [[String: Any]] {
    try place.write(
      "[mirror.m]\nfeed = \"\(feed)\"\nfolder = \"\(place.path)/m\"\nevery = \"1h\"\n\(more)\n",
      to: "tarn.toml")
    let outcome = try Tarn.run(
      ["doctor", "--json"],
      environment: [
        "CONFIGURATION_DIRECTORY": place.path, "STATE_DIRECTORY": place.path + "/state",
        "RUNTIME_DIRECTORY": place.path + "/run",
      ], in: place.url)
    let report = try JSON.documents(outcome.output).first
    return report?["findings"] as? [[String: Any]] ?? []
  }

  private func of(_ check: String, _ findings: [[String: Any]]) -> [String] {
    findings.filter { $0["check"] as? String == check }.map { finding in
      "\(finding["level"] ?? ""): \(finding["message"] ?? ""); \(finding["mend"] ?? "")"
    }
  }

  @Test func aCertificateIsJudged() throws {
    let feed = "https://127.0.0.1:\(port)/SHA256SUMS"
    let found = of("tls", try findings(feed))
    #expect(
      found.count == 1 && found[0].hasPrefix("problem")
        && found[0].contains("openssl s_client -brief -connect 127.0.0.1:\(port)"), "\(found)")
    let trusted = try findings(feed, "cacert = \"\(place.path)/ca.pem\"")
    #expect(of("tls", trusted) == [] && of("feed", trusted).first?.hasPrefix("ok") == true, "\(trusted)")
  }

  @Test(arguments: [("closed/x", "password"), ("gone/x", "status 404"), ("SHA256SUMS", "answers")])
  func answersAreJudged(_ path: String, _ said: String) throws {
    let found = of("feed", try findings(server.url(path)))
    #expect(found.count == 1 && found[0].contains(said), "\(found)")
    #expect(found.first?.hasPrefix(path == "SHA256SUMS" ? "ok" : "problem") == true)
  }
}
