import Foundation
import TarnConfig
import TarnCore
import Testing

/// tarn.toml(5) has the settings that there are, and no others.
@Suite struct ManualSettingTests {
  private let page: ManualPage

  init() throws { page = try ManualPage.named("tarn.toml.5") }

  private static let sections: [(Setting.Scope, String)] = [
    (.mirror, "MIRRORS"), (.limits, "LIMITS"), (.agent, "AGENT"), (.hook, "HOOKS"),
  ]

  @Test func everySettingIsThere() {
    for (scope, section) in Self.sections {
      #expect(page.words(section) == Setting.all(in: scope).map(\.name).sorted(), "\(section)")
    }
    #expect(Self.sections.count == Setting.Scope.allCases.count)
  }

  /// The schema for editors has the same.
  @Test func everySettingOfTheSchemaIsThere() throws {
    let data = try Data(contentsOf: Documents.root.appendingPathComponent("config/tarn.schema.json"))
    let schema = try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
    let tables = try #require(schema["properties"] as? [String: [String: Any]])
    for (scope, section) in Self.sections {
      var table = try #require(tables[scope.rawValue])
      if [.hook, .mirror].contains(scope) {
        table = try #require(table["additionalProperties"] as? [String: Any])
      }
      let settings = try #require(table["properties"] as? [String: Any])
      #expect(page.words(section) == settings.keys.sorted(), "\(section)")
    }
  }

  @Test func everyStandardIsThere() throws {
    for (scope, section) in Self.sections {
      for setting in Setting.all(in: scope) {
        let item = try #require(page.items(section).first { $0.names.contains(setting.name) })
        guard let standard = setting.standard else { continue }
        let text = item.text.replacingOccurrences(of: " .Ql", with: "")
        #expect(text.contains("The default is \(standard)"), "\(setting.name): \(text)")
      }
    }
  }

  @Test func everyWordThatASettingTakesIsThere() throws {
    for (scope, section) in Self.sections {
      for setting in Setting.all(in: scope) {
        let item = try #require(page.items(section).first { $0.names.contains(setting.name) })
        switch setting.kind {
        case .choice(let words):
          for word in words { #expect(item.text.contains("\"\(word)\""), "\(setting.name): \(word)") }
        case .number(let range, let word):
          for bound in [range.lowerBound, range.upperBound] {
            #expect(item.text.contains(Units.grouped(bound)), "\(setting.name): \(bound)")
          }
          if let word { #expect(item.text.contains("\"\(word)\""), "\(setting.name): \(word)") }
        case .span(or: let word?): #expect(item.text.contains("\"\(word)\""), "\(setting.name): \(word)")
        case .limit, .rate: #expect(item.text.contains("\"off\""), "\(setting.name)")
        case .boolean: #expect(item.text.contains(".Ql true"), "\(setting.name)")
        default: break
        }
      }
    }
  }

  /// Files of examples are read without an error, but for what lies elsewhere.
  @Test func theExamplesAreSettings() throws {
    let place = FileManager.default.temporaryDirectory.appendingPathComponent("tarn-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: place) }
    let file = place.appendingPathComponent("tarn.toml")
    #expect(page.examples.count > 15)
    try (page.examples.joined(separator: "\n") + "\n").write(to: file, atomically: true, encoding: .utf8)
    let result = try TarnBinary.run(["config", "check", "--config", file.path])
    #expect(result.status == 0, "\(result.messages)\(result.output)")
  }

  /// Templates and patterns are described with the options of a pass.
  @Test func everyFieldOfATemplateIsThere() throws {
    let sync = try ManualPage.named("tarn-sync.1")
    #expect(sync.words("TEMPLATES") == NameTemplate.Field.allCases.map { "{\($0.rawValue)}" }.sorted())
    for word in FormatChoice.allCases.map(\.rawValue) + PassPolicy.LocalChanges.allCases.map(\.rawValue) {
      #expect(try ManualPage.text("tarn-sync.1").contains("\n.Cm \(word)"), "\(word)")
    }
  }
}
