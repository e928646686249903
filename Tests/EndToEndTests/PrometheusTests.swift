import Foundation
import Testing

/// Debian's Prometheus asks an agent, and answers what it found.
@Suite(
  .serialized,
  .enabled(
    if: Tarn.obstacleWithServer == nil && Program.find("prometheus") != nil && Program.find("curl") != nil,
    "\(Tarn.obstacleWithServer ?? "prometheus or curl is not installed")"))
final class PrometheusTests: AgentHouse {
  private var prometheus: (program: Program, port: UInt16)?

  init() throws {
    let files = Dictionary(uniqueKeysWithValues: (0..<20).map { ("f\($0)", "\($0)\n") })
    try super.init(files: files, options: "every = \"1h\"\ndelete = true")
  }

  deinit {
    if let prometheus { Loopback.end(prometheus.program) }
  }

  /// The agent at one port, and a Prometheus at another one that asks it each second and has the rules.
  private func startBoth() throws {
    let port = try Loopback.freePort()
    let token = try place.write("the-right-token\n", to: "token")
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: token.path)
    try settings(
      (place.text("tarn.toml") ?? "")
        + "[agent]\nmetrics-listen = \"\(port)\"\nmetrics-token = \"\(token.path)\"\n")
    try start()
    let rules =
      Tool.directory.deletingLastPathComponent().deletingLastPathComponent().path
      + "/packaging/prometheus/tarn.rules.yml"
    let configuration = try place.write(
      """
      global: { scrape_interval: 1s, evaluation_interval: 1s }
      rule_files: ["\(rules)"]
      scrape_configs:
        - job_name: tarn
          authorization: { credentials_file: "\(token.path)" }
          static_configs: [{ targets: ["127.0.0.1:\(port)"] }]
      """, to: "prometheus.yml")
    let server = try #require(Program.find("prometheus"))
    let place = place
    let (program, own) = try Loopback.start("prometheus", in: place) { port in
      try Program(
        server,
        [
          "--config.file=\(configuration.path)", "--storage.tsdb.path=\(place.path)/tsdb",
          "--web.listen-address=127.0.0.1:\(port)",
        ])
    }
    prometheus = (program, own)
  }

  private func ask(_ path: String, _ query: String? = nil) throws -> [String: Any] {
    let port = try #require(prometheus?.port)
    let more = query.map { ["-G", "--data-urlencode", "query=\($0)"] } ?? []
    let outcome = try Program(
      try #require(Program.find("curl")),
      ["-sS", "--max-time", "120"] + more + ["http://127.0.0.1:\(port)/api/v1/\(path)"],
      environment: ["PATH": "/usr/bin:/bin"]
    ).wait()
    return try JSON.documents(outcome.output).first?["data"] as? [String: Any] ?? [:]
  }

  /// The value of the only series; nil where there is none, or there are several.
  private func value(_ query: String) throws -> Double? {
    let result = try ask("query", query)["result"] as? [[String: Any]] ?? []
    guard result.count == 1, let pair = result[0]["value"] as? [Any] else { return nil }
    return (pair.last as? String).flatMap(Double.init)
  }

  @Test func itsQueriesShowTheMirror() throws {
    try startBoth()
    #expect(try tarn("sync", "files").status == 0)
    let mirror = "{job=\"tarn\",mirror=\"files\"}"
    try waitUntil("it has asked after the pass") { try value("sum(tarn_mirror_files\(mirror))") == 20 }
    #expect(try value("up{job=\"tarn\"}") == 1)
    #expect(try value("tarn_mirror_interval_seconds\(mirror)") == 3600)
    #expect(try value("time() - tarn_mirror_last_success_timestamp_seconds\(mirror) < bool 3600") == 1)
    #expect(try value("tarn_mirror_state{mirror=\"files\",state=\"idle\"}") == 1)
    #expect(try value("tarn_mirror_passes_total{mirror=\"files\",result=\"succeeded\"}") ?? 0 >= 1)
    // It asked for OpenMetrics: only that has units.
    let metadata = try ask("metadata")["tarn_mirror_received_bytes"] as? [[String: String]]
    #expect(metadata?.first?["type"] == "counter" && metadata?.first?["unit"] == "bytes", "\(metadata ?? [])")
    let version = try Tarn.run(["--version"]).output.split(separator: " ").last ?? ""
    let builds = try ask("query", "tarn_build_info")["result"] as? [[String: Any]]
    let labels = builds?.first?["metric"] as? [String: String]
    #expect(version.hasPrefix(labels?["version"] ?? "-"), "\(version) \(labels ?? [:])")
  }

  @Test func itsRulesSeeHeldDeletions() throws {
    try startBoth()
    #expect(try tarn("sync", "files").status == 0)
    try Feeds.publish(["f0": "0\n"], in: server.files)
    #expect(try tarn("sync", "files").status == 3)
    try waitUntil("it knows since when") {
      try value("time() - tarn_mirror_held_since_timestamp_seconds{mirror=\"files\"} < bool 3600") == 1
    }
    #expect(try value("tarn_mirror_held_deletions{mirror=\"files\"}") == 19)
    // They have waited for less than an hour.
    try waitUntil("all rules were judged, and none holds") {
      let groups = try ask("rules")["groups"] as? [[String: Any]] ?? []
      let rules = groups.flatMap { $0["rules"] as? [[String: Any]] ?? [] }
      return rules.count == 5
        && rules.allSatisfy { $0["health"] as? String == "ok" && $0["state"] as? String == "inactive" }
    }
  }
}
