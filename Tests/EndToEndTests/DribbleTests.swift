import Foundation
import Testing

/// One file that comes at a byte per second holds up nothing else, whoever brings it.
@Suite(.serialized, .enabled(if: Tarn.obstacleWithServer == nil, "\(Tarn.obstacleWithServer ?? "")"))
final class DribbleTests: WatchedHouse {
  private static let names = (0..<500).map { "many/f\($0)" }

  init() throws {
    var files = ["slow": String(repeating: "slow ", count: 2000)]
    for name in Self.names { files[name] = "text of \(name)\n" }
    try super.init(
      locations: """
        location = /slow { if (-f $document_root/dribbles) { set $limit_rate 1; } }
        """, files: files)
  }

  private func deleteAll() throws {
    let bodies = try bodies {
      for name in Self.names { try place.remove("files/\(name)") }
      try waitUntil("all are back") {
        Self.names.allSatisfy { self.place.text("files/\($0)") == "text of \($0)\n" }
      }
    }
    let asked = bodies.filter { $0.hasPrefix("/many/") }
    #expect(Set(asked).count == 500 && asked.count == 500, "each was asked for once: \(asked.count)")
    #expect(!place.exists("files/slow"))
  }

  private func isComing() throws -> Bool {
    let transfers = try mirror()["transfers"] as? [[String: Any]] ?? []
    return transfers.contains { $0["path"] as? String == "slow" && $0["state"] as? String == "running" }
  }

  @Test func aPassThatWaitsForItHoldsUpNoRepair() throws {
    // What was not in place before is for a pass.
    let list = try #require(server.files.text("SHA256SUMS"))
    let others = list.split(separator: "\n").filter { !$0.hasSuffix("  slow") }
    try server.files.write(others.joined(separator: "\n") + "\n", to: "SHA256SUMS")
    try startInSync()
    try server.files.write("", to: "dribbles")
    try server.files.write(list, to: "SHA256SUMS")
    let sync = try begin("sync", "files")
    try waitUntil("it comes") { try self.isComing() }
    #expect(try mirror()["runKind"] as? String == "pass")
    try deleteAll()
    #expect(try isComing(), "the file is on its way still")
    #expect(try tarn("cancel", "files").status == 0)
    _ = try sync.wait()
  }

  @Test func aRepairThatWaitsForItHoldsUpNoOther() throws {
    try startInSync()
    try server.files.write("", to: "dribbles")
    try place.remove("files/slow")
    try waitUntil("it comes") { try self.isComing() }
    try deleteAll()
    #expect(try isComing(), "the file is on its way still")
    #expect(try mirror()["runKind"] as? String == "repair")
  }
}
