import Foundation
import Testing

/// A server that hands out its list, and asks by its answers for files to be left alone.
@Suite(.enabled(if: Tarn.obstacleWithServer == nil, "\(Tarn.obstacleWithServer ?? "")"))
final class AskedByFilesTests: AgentHouse {
  private let silent: SilentServer

  init() throws {
    let silent = try SilentServer()
    self.silent = silent
    try super.init(
      locations: """
        location = /busy { if (!-f $document_root/open) { return 503; } add_header Retry-After 300 always; }
        location = /a-hanging { proxy_pass http://127.0.0.1:\(silent.port); }
        """,
      files: ["busy": "busy\n"], options: "every = \"1min\"")
  }

  private func mirror() throws -> [String: Any] {
    let status = try #require(try JSON.documents(try tarn("status", "--json").output).first)
    return try #require((status["mirrors"] as? [[String: Any]])?.first)
  }

  @Test func whatItAsksForOutlivesTheAgent() throws {
    try start()
    #expect(try tarn("sync", "files").status == 3)
    let asked = try #require(try mirror()["askedUntil"] as? String)
    let text = try tarn("status", "files").output
    #expect(text.contains("asked to be left alone") && !text.contains("next: tarn sync"), "\(text)")
    agent?.signal(SIGKILL)
    _ = try agent?.wait()
    try start()
    let after = try mirror()
    // Both are RFC 3339 in UTC.
    #expect(after["askedUntil"] as? String == asked)
    #expect((after["nextRun"] as? String ?? "") >= asked)
    // A person may know better.
    try server.files.write("", to: "open")
    #expect(try tarn("sync", "files").status == 0)
    #expect(try mirror()["askedUntil"] is NSNull)
  }

  /// The list comes from another host, which asked for nothing: the next agent's pass asks for no file in vain.
  @Test func whatAnotherHostAsksForOutlivesTheAgent() throws {
    try Feeds.publish(["a-hanging": "hanging\n", "busy": "busy\n"], in: server.files)
    let urls = ["a-hanging", "busy"].map {
      server.url($0).replacingOccurrences(of: "127.0.0.1", with: "localhost")
    }
    try server.files.write(urls.map { $0 + "\n" }.joined(), to: "list.txt")
    try settings(
      """
      [mirror.files]
      feed = "\(server.url("list.txt"))"
      folder = "\(place.path)/files"
      every = "1min"

      """)
    try start()
    let record = place.path + "/state/agent"
    try waitUntil("it is kept") {
      (try? String(contentsOfFile: record, encoding: .utf8))?.contains("http://localhost:") == true
    }
    #expect(try mirror()["run"] is Int, "the pass is at work")
    agent?.signal(SIGKILL)
    _ = try agent?.wait()
    let asked = try server.requests().count { ["/busy", "/a-hanging"].contains($0.uri) }
    let next = try start()
    try waitUntil("the pass that was cut short goes on") {
      next.errorsSoFar.contains("not in sync")
    }
    #expect(next.errorsSoFar.contains("asked to be left alone"), "\(next.errorsSoFar)")
    #expect(try server.requests().count { ["/busy", "/a-hanging"].contains($0.uri) } == asked)
  }

  /// Another file, which was asked for first, is still on its way in a pass that nobody waits for.
  @Test(arguments: [SIGKILL, SIGTERM]) func whatItAsksForOutlivesAnAgentThatEndsInThePass(signal: Int32)
    throws
  {
    try Feeds.publish(["a-hanging": "hanging\n", "busy": "busy\n"], in: server.files)
    try start()
    try waitUntil("it has asked") { try self.mirror()["askedUntil"] is String }
    let before = try mirror()
    #expect(before["run"] is Int, "the pass is at work: \(before)")
    agent?.signal(signal)
    _ = try agent?.wait()
    try start()
    let after = try mirror()
    let asked = try #require(before["askedUntil"] as? String)
    #expect(
      after["askedUntil"] as? String == asked && (after["nextRun"] as? String ?? "") >= asked, "\(after)")
  }
}

/// A server of both, the feed and the files, that asks a repair to leave it alone.
@Suite(.serialized, .enabled(if: Tarn.obstacleWithServer == nil, "\(Tarn.obstacleWithServer ?? "")"))
final class AskedByFilesOfARepairTests: WatchedHouse {
  init() throws {
    try super.init(
      locations: """
        location = /busy { if (-f $document_root/shut) { return 503; } add_header Retry-After 300 always; }
        """,
      files: ["busy": "busy\n"], options: "every = \"1d\"")
  }

  private func requests() throws -> Int { try server.requests().count { $0.uri == "/busy" } }

  @Test func whatItAsksForOutlivesTheAgent() throws {
    try startInSync()
    try server.files.write("", to: "shut")
    let before = try requests()
    try place.remove("files/busy")
    try waitUntil("it is kept") {
      (place.text("state/agent") ?? "").contains("host=")
    }
    agent?.signal(SIGKILL)
    _ = try agent?.wait()
    #expect(try requests() == before + 1)
    let next = try start()
    try waitUntil("it is missed") {
      next.errorsSoFar.contains("asked to be left alone")
    }
    #expect(try requests() == before + 1)
  }
}
