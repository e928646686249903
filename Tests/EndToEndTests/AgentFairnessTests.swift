import Foundation
import Testing

/// Mirrors of one agent at one host.
@Suite(.serialized, .enabled(if: Tarn.obstacleWithServer == nil, "\(Tarn.obstacleWithServer ?? "")"))
final class AgentFairnessTests: AgentHouse {
  /// Behind some of the server's paths.
  private let silent: SilentServer
  private let held: HeldServer

  init() throws {
    let silent = try SilentServer()
    self.silent = silent
    let held = try HeldServer(.bodies)
    self.held = held
    try super.init(
      locations: """
        location /hanging/f { proxy_pass http://127.0.0.1:\(silent.port); }
        location /slow/f { \(held.location) }
        """,
      files: ["f1": "one\n", "f2": "two\n"])
    let list = (1...8).map { "\(String(repeating: "\($0)", count: 64))  f\($0)\n" }.joined()
    try server.files.write(list, to: "hanging/SHA256SUMS")
    try server.files.write(list, to: "slow/SHA256SUMS")
    for number in 1...8 {
      try server.files.write(String(repeating: "x", count: 2_000_000), to: "slow/f\(number)")
    }
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

  private func mirrors(_ isMeant: (String) -> Bool) throws -> [[String: Any]] {
    let mirrors = try status()["mirrors"] as? [[String: Any]] ?? []
    return mirrors.filter { isMeant($0["name"] as? String ?? "") }
  }

  /// Mirrors of the files that come slowly, and do not end.
  private func add(_ names: String...) throws {
    let tables = names.map { name in
      """
      [mirror.\(name)]
      feed = "\(server.url("slow/SHA256SUMS"))"
      folder = "\(place.path)/\(name)"

      """
    }
    try settings((place.text("tarn.toml") ?? "") + tables.joined())
  }

  /// It would hold all places of the host until its transfers end, which they do not.
  @Test func aMirrorWhoseTransfersHangKeepsNoOtherWaiting() throws {
    try add("slow")
    try start()
    #expect(try tarn("retry", "slow").status == 0)
    try waitUntil("it has what it may have") {
      (try self.status()["agent"] as? [String: Any])?["waiting"] as? Int ?? 0 > 0
    }
    let sync = try tarn("sync", "files")
    #expect(sync.status == 0 && place.text("files/f2") == "two\n", "\(sync)")
    let slow = try #require(mirrors { $0 == "slow" }.first)
    #expect(slow["state"] as? String == "transferring" && !(slow["lastFailure"] is String), "\(slow)")
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
    let since = Date()
    for name in ["hanging", "other"] { #expect(try tarn("retry", name).status == 0) }
    try waitUntil("they have all places") {
      let agent = try self.status()["agent"] as? [String: Any]
      return agent?["transfers"] as? Int == 3 && agent?["waiting"] as? Int ?? 0 > 0
    }
    let sync = try tarn("sync", "files")
    #expect(sync.status == 0 && place.text("files/f2") == "two\n", "\(sync)")
    // None of those that hang has failed by that. After half a minute they do so by themselves.
    let others = try mirrors { $0 != "files" }
    #expect(others.count == 2)
    let isEarly = Date().timeIntervalSince(since) < 25
    for mirror in others {
      let trouble = mirror["lastFailure"] as? String ?? ""
      let isFine = trouble.isEmpty || trouble.contains("another mirror waited for a connection")
      #expect(isFine && mirror["state"] as? String == "transferring" || !isEarly, "\(mirror)")
    }
  }

  /// All that a pass does waits for its feed: it stands behind no large files of others, which come slowly and do not hang.
  @Test func aFeedWaitsForNoFileOfOthers() throws {
    try add("slow", "slower")
    try start()
    #expect(try tarn("sync", "files").status == 0)
    for name in ["slow", "slower"] { #expect(try tarn("retry", name).status == 0) }
    try waitUntil("they have all places") {
      let agent = try self.status()["agent"] as? [String: Any]
      return agent?["transfers"] as? Int == 3 && agent?["waiting"] as? Int ?? 0 > 0
    }
    let sync = try tarn("sync", "files")
    #expect(sync.status == 0, "\(sync)")
    let slow = try mirrors { $0.hasPrefix("slow") }
    #expect(slow.count == 2)
    for mirror in slow {
      let problems = mirror["problems"] as? [[String: Any]] ?? []
      #expect(
        mirror["state"] as? String == "transferring" && problems.isEmpty, "a file came to its end: \(mirror)")
    }
  }
}
