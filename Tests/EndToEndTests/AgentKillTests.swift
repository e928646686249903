import Foundation
import Testing

/// An agent that is killed again and again in the middle of a pass.
@Suite(.serialized, .enabled(if: Tarn.obstacleWithServer == nil, "\(Tarn.obstacleWithServer ?? "")"))
final class AgentKillTests: AgentHouse {
  private static let count = 300
  /// Has all of them: no pass ends before the test lets it.
  private let held: HeldServer

  init() throws {
    let held = try HeldServer(.bodies)
    self.held = held
    let files = (0..<Self.count).map { ("f\($0)", String(repeating: "\($0) ", count: 120)) }
    try super.init(
      locations: "location ~ ^/f { \(held.location) }", files: Dictionary(uniqueKeysWithValues: files))
  }

  private var placed: Int {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: place.path + "/files")) ?? []
    return names.count { $0.hasPrefix("f") }
  }

  /// What was placed stays placed, nothing is fetched twice but what was on its way, and no event is missing.
  @Test func nothingIsLost() throws {
    for round in 1...6 {
      let program = try start()
      let before = placed
      let sync = try begin("sync", "files")
      // Some may be those of the agent before, whose connections have not ended yet.
      var answered = 0
      try waitUntil("the pass of round \(round) has placed some") {
        if answered < 35 { answered += held.letGo() }
        return placed >= before + 20
      }
      try held.wait()
      // One that finds no agent makes the pass itself.
      try waitUntil("the agent has its order") { sync.errorsSoFar.contains("the agent: ") }
      #expect(placed < Self.count, "the pass of round \(round) is at work")
      program.signal(SIGKILL)
      _ = try program.wait()
      _ = try sync.wait()
    }
    held.open()
    let program = try start()
    let sync = try begin("sync", "files").wait()
    #expect(sync.status == 0, "\(sync)")
    for number in 0..<Self.count {
      #expect(place.text("files/f\(number)") == String(repeating: "\(number) ", count: 120))
    }
    let events = try Tarn.run(
      ["events", "--json", "--newest", "1000", "files"] + config, environment: home, in: place.url)
    let documents = try JSON.documents(events.output)
    let numbers = documents.compactMap { $0["number"] as? Int }
    #expect(numbers == Array(1...max(1, numbers.count)), "\(numbers.count) events")
    let paths = documents.filter { ["fetched", "adopted", "published"].contains($0["code"] as? String) }
      .compactMap {
        $0["path"] as? String
      }
    #expect(Set(paths).count == Self.count)
    #expect(paths.count <= Self.count + 6, "a file that was placed was placed again")
    program.signal(SIGTERM)
    #expect(try program.wait().status == 0)
  }
}
