import Foundation
import Testing

/// An agent beside a pass of the command line's in the folder of one of its mirrors.
@Suite(.serialized, .enabled(if: Tarn.obstacleWithServer == nil, "\(Tarn.obstacleWithServer ?? "")"))
final class AgentBusyTests: AgentHouse {
  /// Has `slow.bin`.
  private let held: HeldServer

  init() throws {
    let held = try HeldServer(.bodies)
    self.held = held
    try super.init(
      locations: "location = /slow.bin { \(held.location) }",
      files: ["f1": "one\n", "slow.bin": String(repeating: "x", count: 2_000_000)])
  }

  private func mirror() throws -> [String: Any] {
    let document = try #require(try JSON.documents(try tarn("status", "--json").output).first)
    #expect(document["agent"] is [String: Any])
    return try #require((document["mirrors"] as? [[String: Any]])?.first)
  }

  /// Who works at it is no failure of the mirror, neither meanwhile nor afterwards.
  @Test func aPassOfAnotherProcessIsNoFailure() throws {
    let pass = try begin("sync", "files")
    try waitUntil("it transfers") {
      FileManager.default.fileExists(atPath: self.place.path + "/files/f1")
    }
    let agent = try start()
    try waitUntil("the agent has seen it") { agent.errorsSoFar.contains("another Tarn holds") }
    let asked = try tarn("sync", "files")
    #expect(asked.status == 75 && asked.errors.contains("process \(pass.pid)"), "\(asked)")
    // The agent's own pause is nothing to the other one.
    #expect(try tarn("pause", "files").status == 0)
    #expect(try mirror()["state"] as? String == "transferring")
    #expect(try tarn("resume", "files").status == 0)
    for _ in 0..<3 {
      let mirror = try mirror()
      #expect(mirror["process"] as? Int == Int(pass.pid), "\(mirror)")
      #expect(mirror["state"] as? String == "transferring", "\(mirror)")
      #expect(mirror["lastFailure"] is NSNull, "\(mirror)")
    }
    #expect(!agent.errorsSoFar.contains("a pass begins"), "\(agent.errorsSoFar)")
    held.open()
    #expect(try pass.wait().status == 0)
    let mirror = try mirror()
    // By now the agent may be in a pass of its own.
    #expect(mirror["lastFailure"] is NSNull && mirror["lastSuccess"] is String, "\(mirror)")
    try waitUntil("it is in sync") { try self.tarn("status", "files").output.contains("in sync") }
    let said = agent.errorsSoFar.components(separatedBy: "another Tarn holds").count - 1
    #expect(said == 1, "\(agent.errorsSoFar)")
    #expect(!agent.errorsSoFar.contains("warning"), "\(agent.errorsSoFar)")
  }
}
