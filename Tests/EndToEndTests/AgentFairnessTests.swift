import Foundation
import Testing

/// Mirrors of one agent at one host.
@Suite(.serialized, .enabled(if: Tarn.obstacleWithServer == nil, "\(Tarn.obstacleWithServer ?? "")"))
final class AgentFairnessTests: AgentHouse {
  /// Behind some of the server's paths.
  private let silent: SilentServer

  init() throws {
    let silent = try SilentServer()
    self.silent = silent
    try super.init(
      locations: """
        location /hanging/f { proxy_pass http://127.0.0.1:\(silent.port); }
        location /slow/f { limit_rate 10k; }
        """,
      files: ["f1": "one\n", "f2": "two\n"])
    let list = (1...8).map { "\(String(repeating: "\($0)", count: 64))  f\($0)\n" }.joined()
    try server.files.write(list, to: "hanging/SHA256SUMS")
    try settings(
      """
      [limits]
      connections-per-host = 4

      [mirror.files]
      feed = "\(server.url("SHA256SUMS"))"
      folder = "\(place.path)/files"

      [mirror.hanging]
      feed = "\(server.url("hanging/SHA256SUMS"))"
      folder = "\(place.path)/hanging"

      """)
  }

  private func status() throws -> [String: Any] {
    try #require(try JSON.documents(try tarn("status", "--json").output).first)
  }

  /// It would hold all places of the host until its transfers time out.
  @Test func aMirrorWhoseTransfersHangKeepsNoOtherWaiting() throws {
    try start()
    #expect(try tarn("retry", "hanging").status == 0)
    try waitUntil("it has what it may have") {
      (try self.status()["agent"] as? [String: Any])?["waiting"] as? Int ?? 0 > 0
    }
    let sync = try tarn("sync", "files")
    #expect(sync.status == 0 && place.text("files/f2") == "two\n", "\(sync)")
    // None of those that hang has come to an end meanwhile.
    let mirrors = try status()["mirrors"] as? [[String: Any]] ?? []
    let hanging = try #require(mirrors.first { $0["name"] as? String == "hanging" })
    #expect(
      hanging["state"] as? String == "transferring" && !(hanging["lastFailure"] is String), "\(hanging)")
  }

  /// Two that hang have all places of the host for files of any size, the kept one as well; they would until their transfers are found too slow.
  @Test func neitherDoTwoKeepAThirdOne() throws {
    try settings(
      (place.text("tarn.toml") ?? "") + """
        [mirror.other]
        feed = "\(server.url("hanging/SHA256SUMS"))"
        folder = "\(place.path)/other"

        """)
    try start()
    for name in ["hanging", "other"] { #expect(try tarn("retry", name).status == 0) }
    try waitUntil("they have all places") {
      let agent = try self.status()["agent"] as? [String: Any]
      return agent?["transfers"] as? Int == 3 && agent?["waiting"] as? Int ?? 0 > 0
    }
    let sync = try tarn("sync", "files")
    #expect(sync.status == 0 && place.text("files/f2") == "two\n", "\(sync)")
    // None of those that hang has failed by that.
    let mirrors = try status()["mirrors"] as? [[String: Any]] ?? []
    for mirror in mirrors where mirror["name"] as? String != "files" {
      let trouble = mirror["lastFailure"] as? String ?? ""
      #expect(mirror["state"] as? String == "transferring", "\(mirror)")
      #expect(trouble.isEmpty || trouble.contains("another mirror waited for a connection"), "\(mirror)")
    }
  }

  /// All that a pass does waits for its feed: it stands behind no large files of others, which come slowly and do not hang.
  @Test func aFeedWaitsForNoFileOfOthers() throws {
    let list = (1...8).map { "\(String(repeating: "\($0)", count: 64))  f\($0)\n" }.joined()
    try server.files.write(list, to: "slow/SHA256SUMS")
    for number in 1...8 {
      try server.files.write(String(repeating: "x", count: 1_000_000), to: "slow/f\(number)")
    }
    let tables = ["slow", "slower"].map { name in
      """
      [mirror.\(name)]
      feed = "\(server.url("slow/SHA256SUMS"))"
      folder = "\(place.path)/\(name)"

      """
    }
    try settings((place.text("tarn.toml") ?? "") + tables.joined())
    try start()
    #expect(try tarn("sync", "files").status == 0)
    for name in ["slow", "slower"] { #expect(try tarn("retry", name).status == 0) }
    try waitUntil("they have all places") {
      let agent = try self.status()["agent"] as? [String: Any]
      return agent?["transfers"] as? Int == 3 && agent?["waiting"] as? Int ?? 0 > 0
    }
    let sync = try tarn("sync", "files")
    #expect(sync.status == 0, "\(sync)")
    let mirrors = try status()["mirrors"] as? [[String: Any]] ?? []
    for mirror in mirrors where (mirror["name"] as? String)?.hasPrefix("slow") == true {
      let problems = mirror["problems"] as? [[String: Any]] ?? []
      #expect(
        mirror["state"] as? String == "transferring" && problems.isEmpty, "a file came to its end: \(mirror)")
    }
  }
}
