import Foundation
import Testing

@testable import TarnConfig

/// config/tarn.toml: all in comments; `#name = value` is a setting, `# text` is for readers.
@Suite struct ExampleTests {
  private struct Line {
    var header: String
    var text: String
    var name: String { String(text.prefix { $0 != " " && $0 != "=" }) }
  }

  private static func text() throws -> String {
    try String(contentsOf: SchemaTests.root.appendingPathComponent("config/tarn.toml"), encoding: .utf8)
  }

  /// The settings of the example, without their `#`, each with the header that it stands below.
  private static func lines() throws -> [Line] {
    var lines: [Line] = []
    var header = ""
    for line in try text().split(separator: "\n")
    where line.hasPrefix("#") && !line.hasPrefix("# ") && line != "#" {
      let setting = String(line.dropFirst())
      if setting.hasPrefix(":schema ") { continue }
      if setting.hasPrefix("[") {
        header = setting
      } else {
        lines.append(Line(header: header, text: setting))
      }
    }
    return lines
  }

  private static func load(_ text: String) -> LoadedSettings {
    var files = FakeFiles([Sample.main: text])
    for path in Sample.secrets + ["/etc/ssl/certs/example.pem"] {
      files.modes[path] = SettingsFileAttributes(isRegular: true, mode: 0o600, isReadable: true)
    }
    return Sample.load(files, purpose: .check)
  }

  @Test func asItIsItAsksForNothing() throws {
    let loaded = Self.load(try Self.text())
    #expect(loaded.problems == [] && loaded.settings == Sample.load("").settings)
    #expect(loaded.records.allSatisfy { $0.origin == .standard })
  }

  @Test func itHasEverySetting() throws {
    let lines = try Self.lines()
    for setting in Setting.all {
      let isNamed = [.hook, .mirror].contains(setting.scope)
      let header = isNamed ? "[\(setting.scope.rawValue)." : "[\(setting.scope.rawValue)]"
      #expect(
        lines.contains { $0.header.hasPrefix(header) && $0.name == setting.name },
        "no \(header) \(setting.name)")
    }
  }

  @Test func eachLineIsTakenWithoutItsMark() throws {
    let lines = try Self.lines()
    #expect(lines.count >= Setting.all.count)
    for line in lines {
      var text = line.header + "\n" + line.text + "\n"
      if line.header.hasPrefix("[hook.") {
        text = Sample.hook(line.text, of: line.name)
      } else if line.header.hasPrefix("[mirror.") {
        // What every mirror needs, from the same table.
        for needed in lines where needed.header == line.header && ["feed", "folder"].contains(needed.name) {
          if needed.name != line.name { text += needed.text + "\n" }
        }
      }
      // An address wants a token.
      if line.name == "metrics-listen" {
        text += lines.filter { $0.name == "metrics-token" }.map { $0.text + "\n" }.joined()
      }
      let loaded = Self.load(text)
      #expect(loaded.settings != nil, "\(line.text): \(loaded.problems.map(\.text))")
    }
  }

  /// All at once, but for `schedule` where `every` stands.
  @Test func togetherTheyAreTakenToo() throws {
    var text = ""
    var header = ""
    let lines = try Self.lines()
    for line in lines {
      if line.header != header {
        text += "\(line.header)\n"
        header = line.header
      }
      let isSecond = line.name == "schedule" && lines.contains { $0.header == header && $0.name == "every" }
      if !isSecond { text += line.text + "\n" }
    }
    let loaded = Self.load(text)
    #expect(loaded.settings?.mirrors.isEmpty == false, "\(loaded.problems.map(\.text))")
  }

  @Test func itNamesItsSchema() throws {
    let first = try Self.text().split(separator: "\n").first
    #expect(first == "#:schema ./tarn.schema.json")
    #expect(
      FileManager.default.fileExists(
        atPath: SchemaTests.root.appendingPathComponent("config/tarn.schema.json").path))
  }
}
