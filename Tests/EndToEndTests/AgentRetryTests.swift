import Foundation
import Testing

/// `tarn retry`, of mirrors and of single transfers.
@Suite(.serialized, .enabled(if: Tarn.obstacleWithServer == nil, "\(Tarn.obstacleWithServer ?? "")"))
final class AgentRetryTests: AgentHouse {
  /// Behind some of the server's paths.
  private let held: HeldServer

  init() throws {
    let held = try HeldServer(.bodies)
    self.held = held
    try super.init(
      locations: """
        location /slow { \(held.location) }
        location = /late { if (!-f $document_root/open) { return 503; } add_header Retry-After 119 always; }
        """,
      files: ["late": "late\n"])
  }

  private func mirror() throws -> [String: Any] {
    let status = try #require(try JSON.documents(try tarn("status", "--json").output).first)
    return try #require((status["mirrors"] as? [[String: Any]])?.first)
  }

  /// The server asked for nearly as long as a pass waits: without the command it would take two minutes.
  @Test(arguments: ["files", "files:late"]) func itWakesAPassThatWaits(target: String) throws {
    try start()
    let sync = try begin("sync", "files")
    try waitUntil("it waits") { (try self.mirror()["lastFailure"] as? String)?.contains("503") == true }
    #expect(sync.isRunning)
    try server.files.write("", to: "open")
    let retry = try tarn("retry", target)
    #expect(retry.status == 0, "\(retry)")
    let ended = try sync.wait(limit: 100)
    #expect(ended.status == 0 && place.text("files/late") == "late\n", "\(ended)")
  }

  /// In the pass at work, and without one in the next: the answer says which.
  @Test func whatWasCancelledOrFailedIsTriedAgain() throws {
    let long = String(repeating: "0123456789abcdef", count: 120_000)
    try Feeds.publish(["f1": "one\n", "slow1": long, "slow2": long + "2"], in: server.files)
    try start()
    let sync = try begin("sync", "files")
    try waitUntil("both are transferred") {
      (try self.mirror()["transfers"] as? [[String: Any]] ?? []).count == 2
    }
    #expect(try tarn("cancel", "files:slow1").status == 0)
    let again = try tarn("retry", "files:slow1")
    #expect(again.status == 0 && again.output.contains("in the pass at work"), "\(again)")
    held.open()
    let ended = try sync.wait()
    #expect(ended.status == 0 && place.text("files/slow1") == long, "\(ended)")
    #expect((try mirror()["problems"] as? [Any])?.isEmpty == true)

    try Feeds.publish(["f1": "one\n", "f2": "two\n"], in: server.files)
    try server.files.remove("f2")
    #expect(try tarn("sync", "files").status == 3)
    try server.files.write("two\n", to: "f2")
    let later = try tarn("retry", "files:f2")
    #expect(later.status == 0 && later.output.contains("in the next pass"), "\(later)")
    try waitUntil("it is there") { self.place.text("files/f2") == "two\n" }
    // What is in place, or unknown, is not tried.
    for path in ["f1", "nothing"] { #expect(try tarn("retry", "files:\(path)").status == 64) }
  }
}
