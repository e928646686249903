import Foundation
import Testing

/// What is said of mirrors whose settings cannot be taken, without an agent that goes on with older ones.
@Suite(.enabled(if: Tarn.obstacle == nil, "\(Tarn.obstacle ?? "")"))
struct FaultySettingsTests {
  private let place: TemporaryDirectory
  private let good: String

  init() throws {
    place = try TemporaryDirectory()
    try place.write("", to: "home/.keep")
    let source = try TemporaryDirectory()
    try Feeds.publish(["f1": "one\n"], in: source)
    for name in ["f1", "SHA256SUMS"] { try place.write(source.text(name) ?? "", to: "source/\(name)") }
    good = """
      [mirror.files]
      feed = "\(place.path)/source/SHA256SUMS"
      folder = "\(place.path)/files"

      """
    try place.write(good, to: "tarn.toml")
    #expect(try tarn("sync", "files").status == 0)
  }

  private func tarn(_ arguments: String...) throws -> Outcome {
    let environment = [
      "HOME": place.path + "/home", "STATE_DIRECTORY": place.path + "/state",
      "RUNTIME_DIRECTORY": place.path + "/run",
    ]
    return try Tarn.run(
      arguments + ["--config", place.path + "/tarn.toml"], environment: environment, in: place.url)
  }

  /// Each with its place, an excerpt and a hint; and what the ledgers know.
  @Test func statusTellsTheErrorsAndWhatIsRecorded() throws {
    try place.write(good + "evry = \"1h\"\nkeep = -1\n\n[mirror.new]\nfeed = 7\n", to: "tarn.toml")
    let all = try tarn("status")
    #expect(all.status == 78 && all.output.contains("files") && all.output.contains("in sync"), "\(all)")
    for part in ["tarn.toml:4:1: ", "4 | evry", "write 'every'", ":5:8: ", ":8:8: ", "3 errors"] {
      #expect(all.errors.contains(part), "\(part): \(all.errors)")
    }
    // Who names a mirror that is there is answered.
    let named = try tarn("status", "files")
    #expect(named.status == 0 && named.output.contains("in sync"), "\(named)")
    #expect(named.errors.contains("tarn.toml:4:1: "))
    let json = try tarn("status", "--json")
    let document = try #require(try JSON.documents(json.output).first)
    #expect(json.status == 78 && (document["mirrors"] as? [[String: Any]])?.count == 1, "\(json)")
    #expect(try JSON.documents(json.errors).first?["exitStatus"] as? Int == 78)
    let check = try tarn("status", "--check")
    #expect(check.status == 3 && check.output.hasPrefix("unknown: the settings are not taken: "), "\(check)")
  }

  /// The journal is the ledger's; what is no mirror has none, and that is no empty one.
  @Test func eventsTellTheJournalOrWhyThereIsNone() throws {
    let unknown = try tarn("events", "nosuchthing")
    #expect(unknown.status == 73 && unknown.output.isEmpty, "\(unknown)")
    #expect(unknown.errors.contains("nosuchthing"), "\(unknown)")
    try place.write(good + "evry = \"1h\"\n\n[mirror.new]\nfeed = 7\n", to: "tarn.toml")
    func events(_ words: [String], state: String, in directory: URL) throws -> Outcome {
      try Tarn.run(
        ["events"] + words + ["--config", place.path + "/tarn.toml"],
        environment: [
          "HOME": place.path + "/home", "STATE_DIRECTORY": place.path + "/" + state,
          "RUNTIME_DIRECTORY": place.path + "/run",
        ], in: directory)
    }
    for words in [[], ["files"], [place.path + "/files"]] {
      let outcome = try events(words, state: "state", in: place.url)
      #expect(outcome.status == 0 && outcome.output.contains("fetched  f1"), "\(words): \(outcome)")
    }
    let faulty = try tarn("events", "nosuchthing")
    #expect(faulty.status == 73 && faulty.errors.contains("tarn.toml:4:1: "), "\(faulty)")
    // Nobody knows of any.
    let nothing = try events([], state: "other", in: URL(fileURLWithPath: "/"))
    #expect(nothing.output.contains("fetched  f1"), "by the settings: \(nothing)")
    try place.write("[mirror.files\n", to: "tarn.toml")
    let broken = try events([], state: "other", in: URL(fileURLWithPath: "/"))
    #expect(broken.status == 78 && broken.errors.contains("tarn.toml:1:"), "\(broken)")
  }

  private static let ofMirrors = [
    ["sync"], ["plan"], ["verify"], ["explain", "f1"], ["approve"], ["trash", "list"],
    ["trash", "restore", "x"],
    ["trash", "empty", "--yes"], ["forget"], ["schedule"],
  ]

  private func run(_ words: [String], mirror: String, config: String?) throws -> Outcome {
    let count = words[0] == "trash" ? 2 : 1
    let options = config.map { ["--config", $0] } ?? ["--socket", place.path + "/run/tarn.sock"]
    return try Tarn.run(
      words[..<count] + [mirror] + words[count...] + options,
      environment: [
        "HOME": place.path + "/home", "STATE_DIRECTORY": place.path + "/state",
        "RUNTIME_DIRECTORY": place.path + "/run", "CONFIGURATION_DIRECTORY": place.path,
      ], in: place.url)
  }

  /// What is named has to be there and good: without it another mirror would be meant.
  @Test(arguments: ["/nowhere/tarn.toml", "BAD", "WORSE"]) func aNamedFileIsNeverPassedOver(config: String)
    throws
  {
    try place.write(good + "evry = \"1h\"\n", to: "bad.toml")
    try place.write("[mirror.files\n", to: "worse.toml")
    let file = config.hasPrefix("/") ? config : "\(place.path)/\(config.lowercased()).toml"
    for words in Self.ofMirrors {
      for mirror in ["files", "./files", place.path + "/files"] {
        let outcome = try run(words, mirror: mirror, config: file)
        #expect(outcome.status == 78 && outcome.errors.contains(file), "\(words) \(mirror): \(outcome)")
      }
    }
    for words in [["sync"], ["sync", place.path + "/source/SHA256SUMS", "./other"]] {
      let outcome = try Tarn.run(
        words + ["--config", file], environment: ["HOME": place.path + "/home"], in: place.url)
      #expect(outcome.status == 78 && outcome.errors.contains(file), "\(words): \(outcome)")
    }
    #expect(!place.exists("other") && place.exists("files/.tarn/id"))
    guard config.hasPrefix("/") else { return }
    for words in [["pause", "files"], ["limit", "off"], ["reload"], ["events", "files"]] {
      let outcome = try Tarn.run(
        words + ["--config", file], environment: ["HOME": place.path + "/home"], in: place.url)
      #expect(outcome.status == 78 && outcome.errors.contains(file), "\(words): \(outcome)")
    }
  }

  /// Who waits for events of a mirror that never begins hears why.
  @Test func eventsSayThatTheSettingsAreNotTaken() throws {
    let new = "[mirror.new]\nfeed = \"/x\"\nfolder = \"\(place.path)/new\"\nevery = \"3s\"\n"
    try place.write(good + new, to: "tarn.toml")
    let none = try tarn("events", "new")
    #expect(
      none.status == 78 && none.output == "" && none.errors.contains("the settings are not taken"), "\(none)")
    let known = try tarn("events", "files")
    #expect(known.status == 0 && known.output.contains("f1"), "\(known)")
    #expect(known.errors.contains("the settings are not taken"), "\(known)")
  }

  /// A name of settings that are not taken is not the folder that happens to be called so.
  @Test func aNameIsNoFolderWhereTheSettingsHaveErrors() throws {
    let settings = good.replacing("/files\"", with: "/elsewhere\"")
    try place.write(settings + "evry = \"1h\"\n", to: "tarn.toml")
    for words in Self.ofMirrors {
      let outcome = try run(words, mirror: "files", config: nil)
      #expect(outcome.status == 78 && outcome.errors.contains("tarn.toml:4:1"), "\(words): \(outcome)")
    }
    #expect(place.exists("files/.tarn/id"))
    #expect(try run(["verify"], mirror: "./files", config: nil).status == 0)
  }

  /// Nothing can be read of them, but the list of this user's mirrors.
  @Test func whatIsNoTOMLIsToldToo() throws {
    try place.write("[mirror.files\n", to: "tarn.toml")
    let all = try tarn("status")
    #expect(all.status == 78 && all.output.contains("in sync"), "\(all)")
    #expect(all.errors.contains("tarn.toml:1:") && all.errors.contains("[mirror.files"), "\(all)")
    let unknown = try tarn("status", "nothing")
    #expect(unknown.status >= 64 && unknown.errors.contains("tarn.toml:1:"), "\(unknown)")
  }
}
