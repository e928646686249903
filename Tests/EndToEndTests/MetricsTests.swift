import Foundation
import Testing

/// The metrics of a running agent: at its socket, over the network and in a file.
@Suite(
  .serialized,
  .enabled(
    if: Tarn.obstacleWithServer == nil && Program.find("curl") != nil,
    "\(Tarn.obstacleWithServer ?? "curl is not installed")"))
final class MetricsTests: AgentHouse {
  init() throws {
    try super.init(
      files: ["a.txt": "one\n", "dir/b.txt": "two and more\n"], options: "every = \"1h\"\ndelete = true")
  }

  /// With a token in a file of its own.
  private func listen(at port: UInt16) throws {
    let file = try place.write("the-right-token\n", to: "token")
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file.path)
    try settings(
      (place.text("tarn.toml") ?? "")
        + """
        [agent]
        metrics-listen = "127.0.0.1:\(port)"
        metrics-token = { file = "\(file.path)" }

        """)
  }

  private func curl(_ arguments: String...) throws -> Outcome {
    try Program(
      try #require(Program.find("curl")), ["-sS", "--max-time", "120"] + arguments,
      environment: ["PATH": "/usr/bin:/bin"]
    ).wait()
  }

  private func scrape(_ format: String = "text/plain") throws -> String {
    let socket = place.path + "/run/tarn.sock"
    let outcome = try curl("--unix-socket", socket, "-H", "Accept: \(format)", "http://tarn/metrics")
    #expect(outcome.status == 0, "\(outcome)")
    return outcome.output
  }

  /// Samples by their names and labels.
  private func samples(_ text: String) -> [String: Double] {
    let lines = text.split(separator: "\n").filter { !$0.hasPrefix("#") }
    return Dictionary(
      lines.compactMap { line in
        line.lastIndex(of: " ").flatMap { blank in
          Double(line[line.index(after: blank)...]).map { (String(line[..<blank]), $0) }
        }
      }, uniquingKeysWith: { first, _ in first })
  }

  private func value(_ name: String, _ labels: String = "") throws -> Double? {
    samples(try scrape())["tarn_mirror_\(name){mirror=\"files\"\(labels)}"]
  }

  /// A program reads the text, and has nothing to say against it.
  private func check(_ text: String, _ program: String, _ arguments: [String]) throws {
    let file = try place.write(text, to: "scraped")
    let command = ([program] + arguments).map { "'\($0)'" }.joined(separator: " ")
    let outcome = try Program("/bin/sh", ["-c", "\(command) < '\(file.path)'"]).wait()
    #expect(outcome.status == 0 && outcome.output == "" && outcome.errors == "", "\(outcome)")
  }

  @Test func theSocketTellsHowAMirrorIs() throws {
    try start()
    #expect(try tarn("sync", "files").status == 0)
    try waitUntil("nothing is at work") { try value("state", ",state=\"idle\"") == 1 }
    let found = samples(try scrape())
    let wanted: [(name: String, state: String, value: Double)] = [
      ("state", "idle", 1), ("state", "failing", 0), ("files", "current", 2), ("files", "failed", 0),
      ("bytes", "current", 17), ("bytes", "pending", 0),
    ]
    for (name, state, value) in wanted {
      #expect(found["tarn_mirror_\(name){mirror=\"files\",state=\"\(state)\"}"] == value, "\(name) \(state)")
    }
    #expect(found["tarn_mirror_passes_total{mirror=\"files\",result=\"succeeded\"}"] ?? 0 >= 1)
    #expect(found["tarn_mirror_interval_seconds{mirror=\"files\"}"] == 3600)
    #expect(found["tarn_mirror_watched{mirror=\"files\"}"] != nil)
    let now = Date().timeIntervalSince1970
    for name in ["last_success", "last_attempt", "last_change", "feed_changed"] {
      let time = try #require(found["tarn_mirror_\(name)_timestamp_seconds{mirror=\"files\"}"], "\(name)")
      #expect(abs(now - time) < 3600, "\(name)")
    }
    // The files, and the list that names them.
    #expect(found["tarn_mirror_received_bytes_total{mirror=\"files\"}"] ?? 0 > 17)
    #expect(found["tarn_mirror_folder_free_bytes{mirror=\"files\"}"] ?? 0 > 0)
    #expect(found["tarn_agent_start_timestamp_seconds"] ?? 0 > now - 3600)
    #expect(found.keys.contains { $0.hasPrefix("tarn_build_info{version=") })
  }

  /// It has no interval, for it is never in sync, and would be late for ever.
  @Test func aMirrorThatOnlyPlansIsNeverLate() throws {
    try settings((place.text("tarn.toml") ?? "") + "dry-run = true\n")
    try start()
    try waitUntil("the mirror is there") { try value("added_timestamp_seconds") != nil }
    #expect(try value("interval_seconds") == nil && value("last_success_timestamp_seconds") == nil)
  }

  /// Much may be free, and nothing of it for the mirror.
  @Test func theReserveIsNotThereToBeUsed() throws {
    try start()
    try waitUntil("the folder is there") { try value("folder_free_bytes") != nil }
    let before = try #require(try value("folder_free_bytes"))
    #expect(try value("folder_usable_bytes") ?? .infinity < before)
    try settings((place.text("tarn.toml") ?? "") + "reserve = \"900TiB\"\n")
    #expect(try tarn("reload").status == 0)
    #expect(try value("folder_free_bytes") ?? 0 > 0 && value("folder_usable_bytes") == 0)
  }

  /// The agent may be old, and a mirror of it new.
  @Test func aMirrorTellsWhenItWasTakenUp() throws {
    let other = "\n[mirror.other]\nfeed = \"\(server.url("SHA256SUMS"))\"\nfolder = \"\(place.path)/other\"\n"
    try start()
    try waitUntil("the mirror is known") { try value("added_timestamp_seconds") != nil }
    let first = try #require(try value("added_timestamp_seconds"))
    try settings((place.text("tarn.toml") ?? "") + other)
    #expect(try tarn("reload").status == 0)
    let name = "tarn_mirror_added_timestamp_seconds{mirror=\"other\"}"
    try waitUntil("the other one is known") { samples(try scrape())[name] != nil }
    let added = try #require(samples(try scrape())[name])
    #expect(try added > first && value("added_timestamp_seconds") == first)
    // What it did before says nothing about another folder.
    try settings((place.text("tarn.toml") ?? "").replacingOccurrences(of: "/other\"", with: "/moved\""))
    #expect(try tarn("reload").status == 0)
    try waitUntil("it begins anew") { samples(try scrape())[name] ?? 0 > added }
    #expect(try value("added_timestamp_seconds") == first)
  }

  @Test func whatGoesWrongIsCounted() throws {
    try start()
    #expect(try tarn("sync", "files").status == 0)
    try server.files.write("other\n", to: "a.txt")
    try Feeds.publish(["c.txt": "three\n"], in: server.files)
    try server.files.remove("c.txt")
    #expect(try tarn("sync", "files").status == 3)
    #expect(try value("errors_total", ",kind=\"file-failed\"") ?? 0 >= 1)
    #expect(try value("files", ",state=\"failed\"") == 1)
    try server.files.write("<html>\n", to: "SHA256SUMS")
    #expect(try tarn("sync", "files").status == 65)
    #expect(try value("errors_total", ",kind=\"feed-malformed\"") ?? 0 >= 1)
    try waitUntil("it fails") { try value("state", ",state=\"failing\"") == 1 }
    #expect(try value("passes_total", ",result=\"failed-permanent\"") ?? 0 >= 1)
  }

  @Test func heldDeletionsAreToldUntilTheyAreApproved() throws {
    let many = Dictionary(uniqueKeysWithValues: (0..<20).map { ("f\($0)", "\($0)\n") })
    try Feeds.publish(many, in: server.files)
    try start()
    #expect(try tarn("sync", "files").status == 0)
    try Feeds.publish(["f0": "0\n"], in: server.files)
    #expect(try tarn("sync", "files").status == 3)
    #expect(try value("held_deletions") == 19 && value("held_since_timestamp_seconds") ?? 0 > 1e9)
    try waitUntil("it is held") { try value("state", ",state=\"held\"") == 1 }
    #expect(try tarn("approve", "-y", "files").status == 0)
    try waitUntil("they are in the trash") { try value("trash_files") == 19 }
    #expect(try value("held_deletions") == 0 && value("held_since_timestamp_seconds") == nil)
  }

  @Test func sessionsAreTold() throws {
    try start()
    let out = place.path + "/out/"
    try FileManager.default.createDirectory(atPath: out, withIntermediateDirectories: true)
    let get = try tarn(
      "get", "--background", "--session", "maps", server.url("dir/b.txt"), "--to", out)
    #expect(get.status == 0, "\(get)")
    try waitUntil("it has come") {
      samples(try scrape())["tarn_session_tasks{session=\"maps\",state=\"finished\"}"] == 1
    }
    let found = samples(try scrape())
    #expect(found["tarn_session_received_bytes_total{session=\"maps\"}"] == 13)
    #expect(found["tarn_session_unacknowledged_events{session=\"maps\"}"] ?? 0 > 0)
    #expect(found["tarn_session_partial_bytes{session=\"maps\"}"] == 0)
  }

  /// With a mirror and a session, and names that have to be escaped.
  @Test(
    .enabled(
      if: Program.find("promtool") != nil
        && Tool.hasModule("prometheus_client.openmetrics.parser"),
      "prometheus and python3-prometheus-client are not installed"))
  func readersOfOthersTakeBothFormats() throws {
    try settings(
      (place.text("tarn.toml") ?? "")
        + "[mirror.\"q\\\"é\"]\nfeed = \"\(server.url("nothing?token=s3cr3t"))\"\nfolder = \"\(place.path)/q\"\n"
    )
    try start()
    #expect(try tarn("sync", "files").status == 0)
    #expect(try tarn("session", "open", "maps").status == 0)
    let (text, open) = (try scrape(), try scrape("application/openmetrics-text; version=1.0.0"))
    try check(text, try #require(Program.find("promtool")), ["check", "metrics"])
    for (module, text) in [("parser", text), ("openmetrics.parser", open)] {
      let script = """
        import sys
        from prometheus_client.\(module) import text_string_to_metric_families as parse
        families = list(parse(sys.stdin.read()))
        names = {s.labels["mirror"] for f in families for s in f.samples if "mirror" in s.labels}
        assert names == {"files", "q\\"é"}, names
        assert len({s.labels["session"] for f in families for s in f.samples if "session" in s.labels}) == 1
        assert len(families) > 25
        """
      try place.write(script, to: "parse.py")
      try check(text, Tool.systemPython, [place.path + "/parse.py"])
    }
    #expect(open.hasSuffix("\n# EOF\n"))
    for word in [place.path, "s3cr3t", "http", "127.0.0.1", "a.txt"] {
      #expect(!text.contains(word) && !open.contains(word), "\(word)")
    }
  }

  // MARK: - What it costs

  /// Reads of the agent so far, by the kernel's count (proc(5), /proc/PID/io).
  private func reads(_ agent: Program) -> Int {
    let text = (try? String(contentsOfFile: "/proc/\(agent.pid)/io", encoding: .utf8)) ?? ""
    let line = text.split(separator: "\n").first { $0.hasPrefix("syscr: ") }
    return line.flatMap { Int($0.dropFirst(7)) } ?? 0
  }

  /// Once they are at rest, and as soon as one of them is not.
  @Test func ledgersAreReadAgainOnlyWhenSomebodyWroteToThem() throws {
    for number in 0..<20 {
      try settings(
        (place.text("tarn.toml") ?? "")
          + "[mirror.m\(number)]\nfeed = \"\(server.url("SHA256SUMS"))\"\nfolder = \"\(place.path)/m\(number)\"\n"
      )
    }
    let agent = try start()
    #expect(try tarn("sync", "files").status == 0)
    for number in 0..<20 { #expect(try tarn("sync", "m\(number)").status == 0) }
    func cost() throws -> Int {
      let before = reads(agent)
      _ = try scrape()
      return reads(agent) - before
    }
    // One ledger takes more than ten reads.
    try waitUntil("a scrape reads no ledger") { try cost() < 60 }
    #expect(try value("last_attempt_timestamp_seconds") != nil)
    try Feeds.publish(["a.txt": "another one\n"], in: server.files)
    #expect(try tarn("sync", "m3").status == 0)
    let found = samples(try scrape())
    // 12 and 17 bytes, and the list.
    #expect(found["tarn_mirror_bytes{mirror=\"m3\",state=\"current\"}"] == 84)
    #expect(found["tarn_mirror_bytes{mirror=\"m4\",state=\"current\"}"] == 165)
  }

  // MARK: - The network

  @Test func theNetworkWantsTheToken() throws {
    let port = try Loopback.freePort()
    try listen(at: port)
    try start()
    let address = "http://127.0.0.1:\(port)/metrics"
    func ask(_ more: String...) throws -> String {
      try curl(
        "-o", place.path + "/answer", "-w", "%{http_code}", more.first ?? "-g", more.last ?? "-g", address
      )
      .output
    }
    #expect(try ask() == "401")
    #expect(try ask("-H", "Authorization: Bearer wrong") == "401")
    #expect(place.text("answer")?.contains("tarn_") == false)
    #expect(try ask("-H", "Authorization: Bearer the-right-token") == "200")
    #expect(place.text("answer")?.contains("tarn_mirror_state{mirror=\"files\"") == true)
    // A new one holds at once.
    try place.write("another-token\n", to: "token")
    #expect(try ask("-H", "Authorization: Bearer the-right-token") == "401")
    #expect(try ask("-H", "Authorization: Bearer another-token") == "200")
    chmod(place.path + "/token", 0o644)
    #expect(try ask("-H", "Authorization: Bearer another-token") == "503")
    #expect(agent?.errorsSoFar.contains("another-token") == false)
  }

  @Test func withoutATokenNobodyListens() throws {
    try settings((place.text("tarn.toml") ?? "") + "[agent]\nmetrics-listen = \"9754\"\n")
    let outcome = try tarn("agent")
    #expect(outcome.status == 78 && outcome.errors.contains("metrics-token"), "\(outcome)")
  }

  @Test func anAddressThatIsTakenIsTold() throws {
    try listen(at: server.port)
    let outcome = try tarn("agent")
    #expect(outcome.status == 78, "\(outcome)")
    #expect(outcome.errors.contains("agent.metrics-listen") && outcome.errors.contains("127.0.0.1"))
    #expect(!place.exists("run/tarn.sock"))
  }

  // MARK: - The text file

  @Test func theFileIsWrittenAndFollowsThePasses() throws {
    let file = "exported/tarn.prom"
    try FileManager.default.createDirectory(
      atPath: place.path + "/exported", withIntermediateDirectories: true)
    let before = place.text("tarn.toml") ?? ""
    try settings(before + "[agent]\nmetrics-file = \"\(place.path)/\(file)\"\n")
    let agent = try start()
    try waitUntil("the file is there") { place.exists(file) }
    #expect(try tarn("sync", "files").status == 0)
    try waitUntil("it has the pass") {
      samples(place.text(file) ?? "")["tarn_mirror_files{mirror=\"files\",state=\"current\"}"] == 2
    }
    let attributes = try FileManager.default.attributesOfItem(atPath: place.path + "/" + file)
    #expect(attributes[.posixPermissions] as? Int == 0o644)
    if let promtool = Program.find("promtool") {
      try check(place.text(file) ?? "", promtool, ["check", "metrics"])
    }
    // How all stands in the end.
    try Feeds.publish(["a.txt": "one\n"], in: server.files)
    #expect(try tarn("sync", "files").status == 0)
    agent.signal(SIGTERM)
    #expect(try agent.wait().status == 0)
    #expect(samples(place.text(file) ?? "")["tarn_mirror_files{mirror=\"files\",state=\"current\"}"] == 1)
    let left = try FileManager.default.contentsOfDirectory(atPath: place.path + "/exported")
    #expect(left == ["tarn.prom"])
  }

  @Test func aFileThatCannotBeWrittenIsTold() throws {
    let before = place.text("tarn.toml") ?? ""
    try settings(before + "[agent]\nmetrics-file = \"\(place.path)/gone/tarn.prom\"\n")
    let agent = try start()
    try waitUntil("it is told") { agent.errorsSoFar.contains("cannot write the metrics to") }
    let said = "cannot write the metrics to \(place.path)/gone/tarn.prom: no such file or directory"
    #expect(agent.errorsSoFar.contains(said))
    let status = try tarn("status")
    #expect(status.output.contains(said), "\(status)")
    let doctor = try tarn("doctor", "--offline")
    #expect(doctor.status == 3 && doctor.output.contains(said), "\(doctor)")
    #expect(try tarn("sync", "files").status == 0)
    #expect(!place.exists("gone"))
    // Another file is written at once, and nothing is told of the old one.
    try settings(before + "[agent]\nmetrics-file = \"\(place.path)/other/tarn.prom\"\n")
    #expect(try tarn("reload").status == 0)
    try waitUntil("the other one is told") { agent.errorsSoFar.contains("\(place.path)/other/tarn.prom") }
    #expect(try !tarn("status").output.contains(said))
    try settings(before)
    #expect(try tarn("reload").status == 0)
    #expect(try !tarn("status").output.contains("cannot write the metrics"))
  }
}
