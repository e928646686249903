import Foundation
import Testing

/// What the status says while a repair is at work.
@Suite(.serialized, .enabled(if: Tarn.obstacleWithServer == nil, "\(Tarn.obstacleWithServer ?? "")"))
final class RepairStatusTests: WatchedHouse {
  private static let long = String(repeating: "0123456789abcdef", count: 120_000)
  /// Has `slow.bin`, and the list.
  private let held: HeldServer

  init() throws {
    let held = try HeldServer(.bodies)
    self.held = held
    try super.init(
      locations: "location ~ ^/(slow.bin|SHA256SUMS)$ { \(held.location) }",
      files: ["f1": "one\n", "slow.bin": Self.long])
  }

  @Test func whatIsBroughtBackIsPending() throws {
    held.open()
    try startInSync()
    held.holdAgain()
    try place.remove("files/slow.bin")
    var seen: [String: Any] = [:]
    try waitUntil("it is transferred") {
      seen = try mirror()
      return (seen["transfers"] as? [[String: Any]] ?? []).contains { $0["path"] as? String == "slow.bin" }
    }
    let entries = try #require(seen["entries"] as? [String: Int])
    #expect(entries["pending"] == 1 && entries["current"] == 1 && entries["wanted"] == 2, "\(entries)")
    #expect(seen["runKind"] as? String == "repair")
    let bytes = try #require(seen["bytes"] as? [String: Int])
    #expect(bytes["pending"] == Self.long.utf8.count && bytes["current"] == 4, "\(bytes)")
    held.open()
    try waitUntil("it is back, and counted") {
      let entries = try mirror()["entries"] as? [String: Int]
      return place.text("files/slow.bin") == Self.long && entries?["pending"] == 0 && entries?["current"] == 2
    }
  }

  /// The pass never comes to count it.
  @Test func whatChangesBesideAPassThatFailsIsCounted() throws {
    held.open()
    try settings((place.text("tarn.toml") ?? "") + "local-changes = \"report\"\n")
    try startInSync()
    held.holdAgain()
    let pass = try begin("sync", "files")
    try held.wait()
    try place.write("mine\n", to: "files/f1")
    try waitUntil("the edit is known") { (try mirror()["entries"] as? [String: Int])?["conflict"] == 1 }
    #expect(try tarn("cancel", "files").status == 0)
    _ = try pass.wait()
    try waitUntil("it is counted") {
      let entries = try mirror()["entries"] as? [String: Int]
      return entries?["conflict"] == 1 && entries?["current"] == 1 && entries?["pending"] == 0
    }
  }
}
