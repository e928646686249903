import Foundation
import Testing

/// What an agent has to know of the one before it, and of one beside it.
@Suite(.serialized, .enabled(if: Tarn.obstacleWithServer == nil, "\(Tarn.obstacleWithServer ?? "")"))
final class AgentRestartTests: AgentHouse {
  /// Behind some of the server's paths.
  private let held: HeldServer

  init() throws {
    let held = try HeldServer(.bodies)
    self.held = held
    try super.init(
      locations: """
        location = /SHA256SUMS { if (!-f $document_root/open) { return 503; } add_header Retry-After 600 always; }
        location = /soon { return 503; add_header Retry-After 90 always; }
        location = /rss { default_type application/rss+xml; }
        location /slow { \(held.location) }
        """,
      files: ["f1": "one\n", "slow": String(repeating: "0123456789abcdef", count: 120_000)])
  }

  private func mirror() throws -> [String: Any] {
    let status = try #require(try JSON.documents(try tarn("status", "--json").output).first)
    return try #require((status["mirrors"] as? [[String: Any]])?.first)
  }

  private func nextRun() throws -> Date? {
    (try mirror()["nextRun"] as? String).flatMap { ISO8601DateFormatter().date(from: $0) }
  }

  /// The order died with the agent that took it: it is given to the one that comes back.
  @Test func whoWaitsForAPassGetsItFromTheNextAgent() throws {
    try server.files.write("", to: "open")
    let mirrors = ["more", "other"].map {
      "\n[mirror.\($0)]\nfeed = \"\(server.url("SHA256SUMS"))\"\nfolder = \"\(place.path)/\($0)\"\nkeep-list = false\n"
    }
    try settings((place.text("tarn.toml") ?? "") + mirrors.joined() + "[limits]\npasses = 1\n")
    try start()
    let clients = try ["files", "more", "other"].map { name in
      let client = try begin("sync", name)
      try waitUntil("it is taken") { client.errorsSoFar.contains("the agent: ") }
      return client
    }
    #expect(clients.contains { $0.errorsSoFar.contains("waiting for a free slot") })
    agent?.signal(SIGKILL)
    _ = try agent?.wait()
    held.open()
    try start()
    for client in clients {
      let outcome = try client.wait(limit: 180)
      #expect(outcome.status == 0 && outcome.output.contains("in sync: 2 files"), "\(outcome)")
    }
  }

  /// No other agent comes: who waits hears of it, and what to do.
  @Test func whoWaitsForAPassHearsThatTheAgentHasEnded() throws {
    try server.files.write("", to: "open")
    try start()
    let client = try begin("sync", "files")
    try waitUntil("it is taken") { client.errorsSoFar.contains("the agent: ") }
    agent?.signal(SIGKILL)
    _ = try agent?.wait()
    let outcome = try client.wait()
    #expect(
      outcome.status == 69 && outcome.errors.contains("waiting for it to come back")
        && outcome.errors.contains("the agent ended while this command waited for its pass of files")
        && outcome.errors.contains("to go on without it: tarn sync files --config "), "\(outcome)")
  }

  /// The server's wish to be left alone, and a feed's to be read seldom.
  @Test(arguments: ["SHA256SUMS", "rss"]) func whatAServerAskedForHoldsAfterAKill(feed: String) throws {
    try server.files.write(
      """
      <?xml version="1.0"?><rss version="2.0"><channel><title>t</title><ttl>10</ttl>
      <item><title>f1</title><enclosure url="\(server.url("f1"))" length="4" type="audio/mpeg"/></item>
      </channel></rss>
      """, to: "rss")
    try settings(
      """
      [mirror.files]
      feed = "\(server.url(feed))"
      folder = "\(place.path)/files"
      retries = 0
      every = "1min"

      """)
    try start()
    #expect(try tarn("sync", "files").status == (feed == "rss" ? 0 : 66))
    try waitUntil("it is held") { (try self.nextRun() ?? .distantPast).timeIntervalSinceNow > 500 }
    let record = try Tarn.run(["status", "--json"] + config, environment: home, in: place.url)
    #expect(record.status == 0 || record.status == 3, "\(record)")
    try isSaid(feed)
    agent?.signal(SIGKILL)
    _ = try agent?.wait()
    try isSaid(feed)
    let asked = try server.requests {
      try start()
      let next = try nextRun() ?? .distantPast
      #expect(next.timeIntervalSinceNow > 500, "\(next)")
      // Somebody's wish goes before it.
      _ = try tarn("sync", "files")
    }
    #expect(asked.filter { $0.uri == "/\(feed)" }.count == 1, "\(asked)")
  }

  /// The pass waits for it itself.
  @Test(arguments: [SIGKILL, SIGTERM]) func whatAPassWaitsForHoldsAfterARestart(signal: Int32) throws {
    try settings(
      """
      [mirror.files]
      feed = "\(server.url("soon"))"
      folder = "\(place.path)/files"
      every = "1min"

      """)
    try start()
    let sync = try begin("sync", "files")
    // The agent's own pass may wait before the client has come.
    try waitUntil("it is asked") { sync.errorsSoFar.contains("the agent: ") }
    try waitUntil("it waits") { try self.mirror()["askedUntil"] is String }
    let until = try #require(try mirror()["askedUntil"] as? String)
    agent?.signal(signal)
    _ = try agent?.wait()
    _ = try sync.wait()
    #expect(try mirror()["askedUntil"] as? String == until)
    try start()
    let document = try mirror()
    #expect(
      document["askedUntil"] as? String == until && document["nextRun"] as? String == until, "\(document)")
  }

  /// It is the same folder and the same feed.
  @Test func aPauseOutlivesAnotherName() throws {
    held.open()
    try server.files.write("", to: "open")
    try start()
    #expect(try tarn("sync", "files").status == 0)
    #expect(try tarn("pause", "files").status == 0)
    let table = try #require(place.text("tarn.toml"))
    try settings(table.replacingOccurrences(of: "[mirror.files]", with: "[mirror.renamed]"))
    #expect(try tarn("reload").status == 0)
    #expect(try mirror()["name"] as? String == "renamed" && mirror()["state"] as? String == "paused")
    agent?.signal(SIGTERM)
    _ = try agent?.wait()
    try settings(table)
    try start()
    #expect(try mirror()["name"] as? String == "files" && mirror()["state"] as? String == "paused")
  }

  /// Until when, and no command against it, with an agent as without; of a feed that is well in the document only.
  private func isSaid(_ feed: String) throws {
    #expect(try mirror()["askedUntil"] is String)
    let status = try tarn("status", "files").output
    #expect(status.contains("asked to be left alone until 2") == (feed != "rss"), "\(status)")
    #expect(!status.contains("next: "), "\(status)")
  }

  /// With a socket of its own it would replace the first one's record.
  @Test func aSecondAgentOfTheSameStateIsRefused() throws {
    try start()
    let other = ["HOME": place.path + "/home", "STATE_DIRECTORY": place.path + "/state"]
    let second = try Tarn.run(
      ["agent", "--socket", place.path + "/other.sock"] + config, environment: other, in: place.url)
    #expect(second.status == 75 && second.errors.contains("another agent keeps its record"), "\(second)")
    #expect(second.errors.contains("another state directory"), "\(second)")
    // Root's agent looks at no user's directories.
    #expect(second.errors.contains("XDG_STATE_HOME") == (geteuid() != 0), "\(second)")
    // Nor do two answer at one socket: then it is that which has to be another one.
    var apart = home
    apart["STATE_DIRECTORY"] = place.path + "/state2"
    let third = try Tarn.run(["agent"] + config, environment: apart, in: place.url)
    #expect(third.status == 75 && third.errors.contains("another agent answers there"), "\(third)")
    #expect(third.errors.contains("in another directory: --socket"), "\(third)")
    let all = try tarn("pause", "all")
    #expect(all.status == 64 && all.errors.contains("--all"), "\(all)")
    agent?.signal(SIGTERM)
    let ended = try #require(try agent?.wait())
    #expect(ended.status == 0, "\(ended)")
    try start()
  }

  /// Another pass was asked for meanwhile: it is not begun, and who waits for it is not left waiting.
  @Test func aCancelledPassIsNotBegunAgain() throws {
    try server.files.write("", to: "open")
    try start()
    let first = try begin("sync", "files")
    try waitUntil("it transfers") { !((try self.mirror()["transfers"] as? [Any]) ?? []).isEmpty }
    let second = try begin("sync", "files")
    try waitUntil("it waits") { second.errorsSoFar.contains("waiting for the pass before it to end") }
    let cancelled = try tarn("cancel", "files")
    #expect(cancelled.status == 0 && cancelled.output.contains("meanwhile does not begin"), "\(cancelled)")
    for sync in [first, second] {
      let outcome = try sync.wait()
      let text = outcome.output + outcome.errors
      #expect(text.contains("stopped") && !text.contains("nothing to do"), "\(outcome)")
    }
    let mirror = try mirror()
    #expect(!(mirror["process"] is Int), "\(mirror)")
    #expect(try tarn("cancel", "files").output.contains("no pass of files is running"))
  }

  /// Also where nobody waits any more for the pass that was asked for.
  @Test func aPauseEndsWhatWasAskedForBeforeIt() throws {
    try server.files.write("", to: "open")
    let agent = try start()
    func transfers() throws -> Bool { !((try self.mirror()["transfers"] as? [Any]) ?? []).isEmpty }
    func begun() -> Int { agent.errorsSoFar.components(separatedBy: "files: a pass begins").count - 1 }
    let first = try begin("sync", "files")
    try waitUntil("it transfers") { try transfers() }
    let others = try (0..<2).map { _ in try begin("sync", "files") }
    for other in others {
      try waitUntil("it waits") { other.errorsSoFar.contains("waiting for the pass before it to end") }
    }
    others[0].signal(SIGKILL)
    let paused = try tarn("pause", "files")
    #expect(paused.status == 0 && paused.output.contains("paused until"), "\(paused)")
    for sync in [first, others[1]] {
      let outcome = try sync.wait()
      #expect((outcome.output + outcome.errors).contains("stopped"), "\(outcome)")
    }
    try waitUntil("it is paused") { try self.mirror()["state"] as? String == "paused" }
    #expect(try tarn("pause", "files").output == "files is paused already\n")
    #expect(begun() == 1)
    // A wish that comes later has its pass, which another pause ends.
    let later = try begin("sync", "files")
    try waitUntil("it transfers") { try transfers() }
    let again = try tarn("pause", "files")
    #expect(again.status == 0 && again.output.contains("is paused already; passes"), "\(again)")
    let outcome = try later.wait()
    #expect((outcome.output + outcome.errors).contains("stopped"), "\(outcome)")
    try waitUntil("it is paused again") { try self.mirror()["state"] as? String == "paused" }
    #expect(begun() == 2)
    #expect(try tarn("resume", "files").status == 0)
    try waitUntil("it goes on") { begun() == 3 }
  }

  /// The pass at work takes it up, as it does with `retry`, and asks for the rest only.
  @Test func whatIsResumedGoesOnInThePassAtWork() throws {
    try server.files.write("", to: "open")
    let long = String(repeating: "0123456789abcdef", count: 140_000)
    try Feeds.publish(["slow1": long, "slow2": long + "2"], in: server.files)
    try start()
    let sync = try begin("sync", "files")
    try waitUntil("both are transferred") {
      let transfers = try self.mirror()["transfers"] as? [[String: Any]] ?? []
      return transfers.count == 2 && transfers.allSatisfy { ($0["received"] as? Int ?? 0) > 0 }
    }
    #expect(try tarn("pause", "files:slow1").status == 0)
    let resumed = try tarn("resume", "files:slow1")
    #expect(resumed.status == 0 && resumed.output.contains("in the pass at work"), "\(resumed)")
    held.open()
    let outcome = try sync.wait()
    #expect(outcome.status == 0 && place.text("files/slow1") == long, "\(outcome)")
    let requests = try server.requests().filter { $0.uri == "/slow1" }
    #expect(requests.count == 2 && requests.last?.range.isEmpty == false, "\(requests)")
  }

  /// systemd shows the last of it.
  @Test func itIsEndingUntilItHasEnded() throws {
    try server.files.write("", to: "open")
    let peer = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue), 0)
    defer { close(peer) }
    var name = sockaddr_un()
    name.sun_family = sa_family_t(AF_UNIX)
    let path = place.path + "/notify"
    withUnsafeMutableBytes(of: &name.sun_path) { $0.copyBytes(from: path.utf8.prefix($0.count - 1)) }
    let isBound = withUnsafePointer(to: name) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(peer, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
      }
    }
    #expect(isBound)
    var messages: [String] = []
    func listen() {
      var buffer = [UInt8](repeating: 0, count: 4096)
      while true {
        let count = recv(peer, &buffer, buffer.count, 0)
        guard count >= 0 else { return }
        messages.append(String(decoding: buffer[..<count], as: UTF8.self))
      }
    }
    let program = try Tarn.start(
      ["agent"] + config, environment: home.merging(["NOTIFY_SOCKET": path]) { $1 }, in: place.url)
    agent = program
    try waitUntil("it is ready") {
      listen()
      return messages.contains { $0.hasPrefix("READY=1") } && program.errorsSoFar.contains("answers at")
    }
    _ = try begin("sync", "files")
    try waitUntil("it transfers") {
      listen()
      return !((try self.mirror()["transfers"] as? [Any]) ?? []).isEmpty
    }
    program.signal(SIGTERM)
    try waitUntil("it has ended") {
      listen()
      return !program.isRunning
    }
    listen()
    let last = messages.drop { !$0.hasPrefix("STOPPING=1") }
    #expect(messages.contains("STOPPING=1\nSTATUS=ending; what was fetched is kept"), "\(messages)")
    #expect(last.allSatisfy { !$0.contains("STATUS=") || $0.contains("ending") }, "\(last)")
  }
}
