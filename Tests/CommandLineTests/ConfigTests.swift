import Foundation
import TarnConfig
import Testing

/// `tarn config`, over settings in a directory of its own.
@Suite struct ConfigTests {
  private struct Place {
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent("tarn-\(UUID().uuidString)")
    var file: String { directory.path + "/tarn.toml" }

    init(_ files: [String: String]) throws {
      for (name, text) in files {
        let url = directory.appendingPathComponent(name)
        try FileManager.default.createDirectory(
          at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(text.utf8).write(to: url)
      }
    }

    /// - Parameter isNamed: by `--config`, instead of by the variable of a service.
    func run(_ arguments: [String], isNamed: Bool = true) throws -> TarnBinary.Result {
      try TarnBinary.run(
        ["config"] + arguments + (isNamed ? ["--config", file] : []),
        environment: isNamed ? [:] : ["CONFIGURATION_DIRECTORY": directory.path])
    }

    func remove() { try? FileManager.default.removeItem(at: directory) }
  }

  private static let unplanned = "; only on command, without every or schedule: a"

  private static func mirror(_ lines: String = "") -> String {
    "[mirror.a]\nfeed = \"https://example.org/SHA256SUMS\"\nfolder = \"/srv/a\"\n\(lines)\n"
  }

  private struct Report: Decodable {
    struct Problem: Decodable {
      struct Origin: Decodable {
        var text: String
        var line: Int?
        var column: Int?
      }
      var severity: String
      var code: String
      var origin: Origin
      var message: String
    }
    var schema: String
    var exitStatus: Int32
    var mirrors: [String]
    var problems: [Problem]
  }

  private func report(_ result: TarnBinary.Result) throws -> Report {
    try JSONDecoder().decode(Report.self, from: Data(result.output.utf8))
  }

  /// The rest of the file was not looked at.
  @Test(arguments: [(99, ": 99 errors:"), (2000, ": at least 100 errors:")])
  func howManyErrorsThereAreIsNoMoreThanIsKnown(count: Int, said: String) throws {
    let place = try Place(["tarn.toml": Self.mirror((0..<count).map { "k\($0) = 1\n" }.joined())])
    defer { place.remove() }
    let result = try place.run(["check"])
    #expect(result.status == 78 && result.messages.contains("tarn" + said), "\(result.messages.suffix(200))")
    let status = try TarnBinary.run(["status", "--json", "--config", place.file])
    let more = count < 100 ? "and 98 more errors" : "and at least 99 more errors"
    #expect(status.messages.contains(more), "\(status.messages)")
  }

  @Test func checkCountsTheMirrors() throws {
    let place = try Place([
      "tarn.toml": Self.mirror(), "conf.d/b.toml": "[mirror.b]\nfeed = \"/b\"\nfolder = \"/srv/b\"\n",
    ])
    defer { place.remove() }
    let one = try place.run(["check"])
    #expect(
      one.status == 0 && one.output == "\(place.file): 1 mirror\(Self.unplanned)\n" && one.messages == "")
    let both = try place.run(["check"], isNamed: false)
    #expect(both.status == 0 && both.messages == "")
    #expect(
      both.output == "\(place.file), \(place.directory.path)/conf.d/b.toml: 2 mirrors\(Self.unplanned), b\n")
    let quiet = try place.run(["check", "--quiet"])
    #expect(quiet.status == 0 && quiet.output == "" && quiet.messages == "")
    let json = try report(try place.run(["check", "--json"], isNamed: false))
    #expect(json.schema == "tarn-config/1" && json.exitStatus == 0 && json.problems.isEmpty)
    #expect(json.mirrors == ["a", "b"])
  }

  @Test func noFileIsNoError() throws {
    let place = try Place(["other": ""])
    defer { place.remove() }
    let result = try place.run(["check"], isNamed: false)
    #expect(result.status == 0 && result.messages == "")
    let directory = place.directory.path
    #expect(
      result.output.hasPrefix(
        "no settings found, so there is no mirror: looked for \(directory)/tarn.toml and \(directory)/conf.d/*.toml; "
          + "to add one: tarn add FEED FOLDER"),
      "\(result.output)")
  }

  @Test func aMirrorWithoutAScheduleIsNamed() throws {
    let place = try Place([
      "tarn.toml": Self.mirror()
        + Self.mirror("every = \"1h\"").replacing("a\"", with: "b\"").replacing("r.a", with: "r.b")
    ])
    defer { place.remove() }
    #expect(
      try place.run(["check"]).output
        == "\(place.file): 2 mirrors\(Self.unplanned)\n")
    let one = try place.run(["show", "b"]).output
    #expect(one.hasPrefix("[mirror.b]\n") && one.contains("every = \"1h\"  # \(place.file):8:9"), "\(one)")
    #expect(try place.run(["unset", "b", "delete"]).status == 64)
  }

  @Test func everyErrorHasItsPlace() throws {
    let place = try Place(["tarn.toml": Self.mirror("kepe = 20\nschedule = \"06:00 Europe/Berlon\"")])
    defer { place.remove() }
    for command in ["check", "show"] {
      let result = try place.run([command, "--quiet"])
      #expect(result.status == 78)
      #expect(
        result.messages == """
          \(place.file):4:1: error: [mirror.a] has no setting 'kepe'
            4 | kepe …
              | ^^^^
            write 'keep'
          \(place.file):5:12: error: 'schedule' takes a time as in systemd.time(7); at its character 7: the time zone \
          Europe/Berlon is not known
            5 | schedule = "06:00 Europe/Berlon"
              |            ^^^^^^^^^^^^^^^^^^^^^
            write for example schedule = "06:00 Europe/Berlin", or every = "1h"
          tarn: 2 errors: these settings are not taken

          """)
      #expect((command == "check") == result.output.isEmpty)
    }
  }

  /// A document for every kind of problem, but for what root is never refused.
  @Test(
    arguments: [
      (.syntax, "[mirror.a"), (.unknownTable, "[zebra]"), (.unknownSetting, "[agent]\nzebra = 1"),
      (.wrongType, "[limits]\npasses = \"2\""), (.outOfRange, "[limits]\npasses = 0"),
      (.badValue, mirror("every = \"soon\"")),
      (.badValue, mirror("rate = [{ at = \"12:00-00:00\", limit = \"1M\" }]")),
      (.badName, "[mirror.\"a/b\"]"), (.missing, "[mirror.a]\nfeed = \"/b\""),
      (.contradiction, mirror("every = \"1h\"\nschedule = \"06:00\"")),
      (.folderRefused, "[mirror.a]\nfeed = \"/b\"\nfolder = \"/\""),
      (.folderOverlap, mirror("[mirror.b]\nfeed = \"/b\"\nfolder = \"/srv/a/b\"")),
      (.urlWithPassword, "[mirror.a]\nfeed = \"https://ann:secret@example.org/\"\nfolder = \"/srv/a\""),
      (.secretMissing, mirror("cookies = \"/nowhere/cookies\"")),
      (.secretNotReadable, mirror("cookies = \"/usr\"")),
      (.secretExposed, mirror("cookies = \"/etc/passwd\"")),
      (.fileTooLong, String(repeating: "#", count: 1 << 20) + "\n"),
    ] as [(SettingsProblem.Code, String)])
  func eachKindEndsWith78(_ code: SettingsProblem.Code, _ text: String) throws {
    let place = try Place(["tarn.toml": text])
    defer { place.remove() }
    let result = try place.run(["check", "--json"])
    #expect(result.status == 78 && result.messages == "")
    let report = try report(result)
    #expect(report.exitStatus == 78 && report.mirrors.isEmpty)
    let problem = try #require(report.problems.first { $0.code == code.rawValue }, "\(report.problems)")
    #expect(problem.severity == "error" && problem.origin.text.hasPrefix(place.file + ":"))
    #expect((problem.origin.line ?? 0) >= 1 && (problem.origin.column ?? 0) >= 1)
    let plain = try place.run(["check"])
    #expect(plain.status == 78 && plain.output == "")
    #expect(plain.messages.contains("\(problem.origin.text): error: \(problem.message)\n"))
    #expect(!plain.messages.contains("secret@") && !result.output.contains("secret@"))
  }

  @Test func aFileThatIsNotThere() throws {
    let missing = try TarnBinary.run(["config", "check", "--json", "--config", "nowhere.toml"])
    #expect(missing.status == 78)
    #expect(try report(missing).problems.map(\.code) == ["config-file-missing"])
    let directory = try TarnBinary.run(["config", "check", "--json", "--config", "/usr"])
    #expect(directory.status == 78)
    #expect(try report(directory).problems.map(\.code) == ["config-file-not-readable"])
  }

  @Test func aSocketThatIsTooLongIsTheFlags() throws {
    let socket = "/" + String(repeating: "s", count: 107)
    let place = try Place(["tarn.toml": ""])
    defer { place.remove() }
    let result = try place.run(["check", "--socket", socket])
    #expect(result.status == 78)
    #expect(result.messages.hasPrefix("--socket: error: 'socket' is longer than"))
  }

  @Test func warningsAreNoErrors() throws {
    let place = try Place(["tarn.toml": Self.mirror("cookies = { credential = \"c\" }")])
    defer { place.remove() }
    let result = try place.run(["check"])
    #expect(result.status == 0 && result.output == "\(place.file): 1 mirror\(Self.unplanned)\n")
    #expect(result.messages.hasPrefix("\(place.file):4:11: warning: 'cookies' is a credential"))
    let quiet = try place.run(["check", "-q"])
    #expect(quiet.status == 0 && quiet.output == "" && quiet.messages == "")
  }

  @Test func showTellsOriginsAndRedacts() throws {
    let place = try Place([
      "tarn.toml": Self.mirror("keep = 20\nproxy = { credential = \"p\" }"),
      "conf.d/b.toml": "[mirror.a]\nkeep = 30\n",
    ])
    defer { place.remove() }
    let shown = try place.run(["show", "--socket", "/s"], isNamed: false)
    #expect(shown.status == 0)
    let extra = "\(place.directory.path)/conf.d/b.toml:2:8"
    for line in [
      "socket = \"/s\"  # --socket", "passes = 4  # standard", "[mirror.a]",
      "keep = 30  # \(extra), instead of 20 from \(place.file):4:8",
      "proxy = { credential = \"p\" }  # \(place.file):5:9",
    ] {
      #expect(shown.output.contains(line + "\n"), "\(shown.output)")
    }
    // It gives the same settings again.
    let again = try Place(["tarn.toml": shown.output])
    defer { again.remove() }
    #expect(try report(try again.run(["check", "--json"])).mirrors == ["a"])

    let json = try place.run(["show", "--json"], isNamed: false)
    #expect(json.status == 0 && json.output.contains("\"schema\" : \"tarn-config/1\""))
    #expect(json.output.contains("\"text\" : \"\(extra)\""))

    let secret = try Place([
      "tarn.toml":
        "[mirror.a]\nfeed = \"https://ann:hunter2@example.org/x\"\nproxy = \"http://bob:hunter2@p:1\"\n"
    ])
    defer { secret.remove() }
    for arguments in [["show"], ["show", "--json"], ["check"], ["check", "--json"], ["paths"]] {
      let result = try secret.run(arguments)
      #expect(!(result.output + result.messages).contains("hunter2"), "\(result)")
    }
    for value in ["\"http://ann:'hunter2@h/x\"", "'http://ann:\"hunter2@h/x'"] {
      let quoted = try Place(["tarn.toml": "[mirror.a]\nfolder = \"/srv/a\"\nfeed = \(value)\n"])
      defer { quoted.remove() }
      for arguments in [["show"], ["show", "--json"], ["check"], ["check", "--json"]] {
        let result = try quoted.run(arguments)
        #expect(result.status == 78 && !(result.output + result.messages).contains("hunter2"), "\(result)")
      }
    }
  }

  @Test func pathsAreListed() throws {
    let place = try Place(["tarn.toml": "", "conf.d/b.toml": "["])
    defer { place.remove() }
    let all = try place.run(["paths", "--socket", "/s"], isNamed: false)
    #expect(all.status == 0 && all.messages == "")
    let directory = place.directory.path
    for line in [
      "settings    \(place.file)", "settings    \(directory)/conf.d/b.toml (not taken)",
      "settings    \(directory)/conf.d/*.toml", "socket      \"/s\" (--socket)",
      "credentials none: $CREDENTIALS_DIRECTORY is not set",
    ] {
      #expect(all.output.contains(line + "\n"), "\(all.output)")
    }
    let missing = try TarnBinary.run(["config", "paths", "--json", "--config", "/nowhere.toml"])
    #expect(missing.status == 0)
    let document = try #require(
      try JSONSerialization.jsonObject(with: Data(missing.output.utf8)) as? [String: Any])
    #expect(document["schema"] as? String == "tarn-config/1")
    #expect(document["files"] as? [[String: String]] == [["path": "/nowhere.toml", "state": "missing"]])
  }

  @Test(arguments: ["--config", "--socket"]) func anEmptyPathIsWrongUsage(option: String) throws {
    #expect(try TarnBinary.run(["config", "check", option, ""]).status == 64)
  }
}
