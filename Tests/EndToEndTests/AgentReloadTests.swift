import Foundation
import Testing

/// `tarn reload` of settings that lie in a directory.
@Suite(.serialized, .enabled(if: Tarn.obstacleWithServer == nil, "\(Tarn.obstacleWithServer ?? "")"))
final class AgentReloadTests: AgentHouse {
  private var directory: [String: String] {
    home.merging(["CONFIGURATION_DIRECTORY": place.path + "/etc"]) { $1 }
  }

  init() throws {
    try super.init(files: ["f1": "one\n"])
    try write("tarn.toml", mirror: "a")
    try write("conf.d/b.toml", mirror: "b")
    let program = try Tarn.start(["agent"], environment: directory, in: place.url)
    agent = program
    try waitUntil("it answers") { program.errorsSoFar.contains("answers at") }
  }

  private func write(_ name: String, mirror: String) throws {
    try place.write(
      """
      [mirror.\(mirror)]
      feed = "\(server.url("SHA256SUMS"))"
      folder = "\(place.path)/\(mirror)"

      """, to: "etc/\(name)")
  }

  private func reload() throws -> Outcome { try Tarn.run(["reload"], environment: directory, in: place.url) }

  private func mirrors() throws -> [String] {
    let output = try Tarn.run(["status", "--json"], environment: directory, in: place.url).output
    let mirrors = try JSON.documents(output).first?["mirrors"] as? [[String: Any]] ?? []
    return mirrors.compactMap { $0["name"] as? String }.sorted()
  }

  /// As an editor or a package manager leaves them for a moment.
  @Test(arguments: ["tarn.toml", "conf.d", ""])
  func whatIsGoneEndsNothing(name: String) throws {
    let path = place.path + "/etc" + (name.isEmpty ? "" : "/\(name)")
    try FileManager.default.moveItem(atPath: path, toPath: place.path + "/aside")
    for _ in 0..<2 {
      let outcome = try reload()
      #expect(outcome.status == 78 && outcome.errors.contains("\(path)"), "\(outcome)")
      #expect(outcome.errors.contains("put it back") && outcome.errors.contains("the old ones go on"))
    }
    #expect(try mirrors() == ["a", "b"])
    #expect(agent?.errorsSoFar.contains("is not there any more") == true)
    try FileManager.default.moveItem(atPath: place.path + "/aside", toPath: path)
    #expect(try reload().output.contains("no mirror changed"))
  }

  @Test func anEmptyFileAndARemovedOneOfConfDAreMeant() throws {
    try place.write("", to: "etc/tarn.toml")
    #expect(try reload().output.contains("removed: a"))
    try place.remove("etc/conf.d/b.toml")
    let outcome = try reload()
    #expect(outcome.status == 0 && outcome.output.contains("removed: b"), "\(outcome)")
    #expect(try mirrors() == [])
  }
}
