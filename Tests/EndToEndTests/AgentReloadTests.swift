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
      #expect(outcome.errors.contains("put it back") && outcome.errors.contains("the old ones stay in force"))
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

  /// Nobody follows the folder any more; its record stays, with its options.
  @Test func whatBecomesOfAFolderThatWasTakenOutIsSaid() throws {
    func run(_ words: String...) throws -> Outcome {
      try Tarn.run(words, environment: directory, in: place.url)
    }
    #expect(try run("sync", "b").status == 0)
    // Its folder is no mirror yet.
    try place.write("", to: "etc/tarn.toml")
    let never = try reload()
    #expect(never.output.contains("removed: a") && !never.output.contains("tarn forget"), "\(never)")
    let text = try #require(place.text("etc/conf.d/b.toml"))
    try place.write(text.replacingOccurrences(of: "mirror.b", with: "mirror.c"), to: "etc/conf.d/b.toml")
    let renamed = try reload()
    #expect(renamed.output.contains("removed: b") && !renamed.output.contains("tarn forget"), "\(renamed)")
    #expect(try run("sync", "c").status == 0)
    try place.write("", to: "etc/conf.d/b.toml")
    // As long as the agent has it, it is the agent's.
    let early = try run("sync")
    #expect(!(early.output + early.errors).contains("left out"), "\(early)")
    let folder = place.path + "/b"
    let removed = try reload()
    let sentence =
      "\(folder) stays as it is: the settings no longer name it; to forget it: tarn forget \(folder); "
      + "to keep it as one made by hand: tarn sync \(folder)"
    #expect(removed.output.contains("removed: c\n\(sentence)\n"), "\(removed)")
    #expect(agent?.errorsSoFar.contains(sentence) == true)
    let all = try run("sync")
    #expect(all.status == 0 && all.errors.contains("\(folder) is left out: the settings no longer name it"))
    let check = try run("status", "--check")
    #expect(
      check.output == "nothing to check: 1 mirror left out, which the settings no longer name\n"
        && check.status == 0, "\(check)")
    #expect(try run("status").output.contains("next: tarn forget \(folder)"))
    #expect(try run("sync", folder).status == 0)
    #expect(try run("status", "--check").output.contains("1 mirror, last success"))
  }
}
