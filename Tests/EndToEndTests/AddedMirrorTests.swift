import Foundation
import Testing

/// `tarn add`, `tarn remove` and `tarn init` beside an agent, and on a terminal.
@Suite(.serialized, .enabled(if: Tarn.obstacleWithServer == nil, "\(Tarn.obstacleWithServer ?? "")"))
final class AddedMirrorTests: AgentHouse {
  private var directory: [String: String] {
    home.merging(["CONFIGURATION_DIRECTORY": place.path + "/etc"]) { $1 }
  }

  init() throws {
    try super.init(files: ["f1": "one\n"])
    try place.write("# nothing yet\n", to: "etc/tarn.toml")
  }

  private func run(_ words: String...) throws -> Outcome {
    try Tarn.run(words, environment: directory, in: place.url)
  }

  private func text(_ name: String) -> String {
    (try? String(contentsOfFile: "\(place.path)/\(name)", encoding: .utf8)) ?? ""
  }

  private func mirrors() throws -> [String] {
    let mirrors = try JSON.documents(try run("status", "--json").output).first?["mirrors"] as? [[String: Any]]
    return (mirrors ?? []).compactMap { $0["name"] as? String }
  }

  @Test func theAgentTakesItUpAndDropsIt() throws {
    try startAgent()
    let added = try run("add", server.url("SHA256SUMS"), "m")
    #expect(added.status == 0 && added.output.contains("the agent has taken it up"), "\(added)")
    try waitUntil("it has synced") { text("m/f1") == "one\n" }
    #expect(try mirrors() == ["m"])
    let forget = try run("forget", "m")
    #expect(
      forget.status == 64 && forget.errors.contains("hint: tarn remove --forget m\n"), "\(forget)")
    let removed = try run("remove", "m")
    #expect(removed.status == 0, "\(removed)")
    // The folder is one that this user's Tarn knows, and no mirror of the settings.
    #expect(try !mirrors().contains("m"))
    #expect(text("m/f1") == "one\n")
  }

  /// Another file of settings is broken, so that the agent goes on with the mirror.
  @Test func aRemovalThatTheAgentDoesNotTakeIsNoSuccess() throws {
    try startAgent()
    #expect(try run("add", server.url("SHA256SUMS"), "m").status == 0)
    try place.write("evry = 3\n", to: "etc/conf.d/z.toml")
    let removed = try run("remove", "m")
    #expect(
      removed.status == 78 && removed.errors.contains("did not take the settings, and keeps the mirror"),
      "\(removed)")
    #expect(removed.output.contains("removed m from the settings"), "\(removed)")
  }

  private func startAgent() throws {
    let program = try Tarn.start(["agent"], environment: directory, in: place.url)
    agent = program
    try waitUntil("it answers") { program.errorsSoFar.contains("answers at") }
  }

  /// The agent knows the settings that it read last, and not those of its start.
  @Test(arguments: [true, false]) func theOldPlaceOfAMovedMirrorIsForgotten(isAddedBefore: Bool) throws {
    if !isAddedBefore { try startAgent() }
    #expect(try run("add", server.url("SHA256SUMS"), "m").status == 0)
    if isAddedBefore { try startAgent() }
    #expect(try run("sync", "m").status == 0)
    #expect(try run("pause", "m").status == 0)
    try place.write("", to: "disk/.keep")
    try FileManager.default.moveItem(atPath: place.path + "/m", toPath: place.path + "/disk/m")
    let settings = text("etc/conf.d/m.toml")
    let moved = settings.replacingOccurrences(of: "/m\"", with: "/disk/m\"")
    try #require(moved != settings)
    try place.write(moved, to: "etc/conf.d/m.toml")
    #expect(try run("reload").status == 0)
    // Before its next pass, and after it.
    #expect(try mirrors() == ["m"])
    #expect(try run("resume", "m").status == 0)
    #expect(try run("sync", "m").status == 0)
    let status = try run("status")
    #expect(try mirrors() == ["m"] && !status.output.contains("there is no folder"), "\(status)")
    let check = try run("status", "--check")
    #expect(check.status == 0, "\(check)")
    #expect(try run("sync").status == 0)
    #expect(!text("state/mirrors").contains("\(place.path)/m\n"))
  }

  /// Without an agent, too, it is 'tarn remove' that takes it out.
  @Test func forgetNamesTheCommandThatTakesItOut() throws {
    #expect(try run("add", server.url("SHA256SUMS"), "m").status == 0)
    let never = try run("forget", "m")
    #expect(never.status == 64 && never.errors.contains("hint: tarn remove m\n"), "\(never)")
    #expect(try run("sync", "m").status == 0)
    let forgotten = try run("forget", "m")
    #expect(
      forgotten.status == 0 && forgotten.errors.contains("the settings still name it: tarn remove m;"),
      "\(forgotten)")
  }

  /// Its folder is free once it has left the settings.
  @Test func aMirrorThatLeftTheSettingsIsInNobodysWay() throws {
    #expect(try run("add", server.url("SHA256SUMS"), "k").status == 0)
    try startAgent()
    #expect(try run("sync", "k").status == 0)
    #expect(try run("remove", "k", "--forget").status == 0)
    try FileManager.default.removeItem(atPath: place.path + "/k")
    #expect(try run("add", server.url("SHA256SUMS"), "k/sub").status == 0)
    let synced = try run("sync", "sub")
    #expect(synced.status == 0 && text("k/sub/f1") == "one\n", "\(synced)")
  }

  @Test func anAgentWithoutMirrorsTellsHowToAddOne() throws {
    try startAgent()
    let status = try run("status")
    #expect(
      status.output.hasSuffix("no other is known here; to add one: tarn add FEED FOLDER\n"), "\(status)")
  }

  @Test func aPassOfTheAgentsPrintsItsFilesToo() throws {
    let mirror = "[mirror.m]\nfeed = \"\(server.url("SHA256SUMS"))\"\nfolder = \"\(place.path)/m\"\n"
    try place.write(mirror + "every = \"1h\"\nwatch = false\n", to: "etc/tarn.toml")
    let program = try Tarn.start(["agent"], environment: directory, in: place.url)
    agent = program
    try waitUntil("it has synced") { text("m/f1") == "one\n" }
    try place.remove("m/f1")
    let synced = try run("sync", "-v", "m")
    #expect(synced.status == 0 && synced.output.contains("  restored  f1 (4 B)"), "\(synced)")
    // Nothing else is at work.
    let again = try run("retry", "m").output
    #expect(again.contains("a pass of m begins") && !again.contains("place"), "\(again)")
  }

  @Test func initAsksOnATerminal() throws {
    try place.remove("etc/tarn.toml")
    let terminal = try PseudoTerminal()
    let program = try Tarn.start(["init"], environment: directory, in: place.url, terminal: terminal.path)
    try waitUntil("it asks for the feed") { terminal.shown.contains("Feed to follow") }
    terminal.type("\(server.url("SHA256SUMS"))\n")
    try waitUntil("it asks for the folder") { terminal.shown.contains("Folder to keep") }
    terminal.type("m\n")
    try waitUntil("it asks how often") { terminal.shown.contains("How often") }
    terminal.type("soon\n")
    try waitUntil("it asks again") { terminal.shown.components(separatedBy: "How often").count == 3 }
    terminal.type("6h\n")
    try waitUntil("it asks for a rate") { terminal.shown.contains("Most bytes") }
    terminal.type("\n")
    #expect(try program.wait().status == 0)
    #expect(terminal.shown.contains("next: tarn agent"), "\(terminal.shown)")
    #expect(text("etc/conf.d/m.toml").contains("every = \"6h\""))
    #expect(try run("config", "check").status == 0)
  }
}
