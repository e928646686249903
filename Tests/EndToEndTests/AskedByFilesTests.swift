import Foundation
import Testing

/// A server that hands out its list, and asks by its answers for files to be left alone.
@Suite(.enabled(if: Tarn.obstacleWithServer == nil, "\(Tarn.obstacleWithServer ?? "")"))
final class AskedByFilesTests: AgentHouse {
  init() throws {
    try super.init(
      locations: """
        location = /busy { if (!-f $document_root/open) { return 503; } add_header Retry-After 300 always; }
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
    _ = try agent?.wait(limit: 20)
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
}
