import Foundation
import TarnConfig
import TarnCore
import Testing

/// tarn-hooks(7) names all settings, events, keys and variables, and nothing else.
@Suite struct HookPageTests {
  private let text: String

  init() throws {
    text = try String(
      contentsOf: Documents.root.appendingPathComponent("packaging/man/tarn-hooks.7"), encoding: .utf8)
  }

  /// The lines below a heading.
  private func lines(_ heading: String) -> [String] {
    let lines = text.components(separatedBy: "\n")
    guard let start = lines.firstIndex(of: ".Sh \(heading)") else { return [] }
    return Array(lines[(start + 1)...].prefix { !$0.hasPrefix(".Sh ") })
  }

  /// The first words of a list's items with that macro.
  private func items(_ heading: String, _ macro: String) -> [String] {
    lines(heading).filter { $0.hasPrefix(".It \(macro) ") }.map {
      $0.dropFirst(5 + macro.count).split(separator: " ").first.map(String.init) ?? ""
    }
  }

  private func document() throws -> HookDocument {
    var document = HookDocument(
      id: "i", time: Timestamp(nanoseconds: 0), event: .failing, mirror: "m", feed: "f", folder: "d", run: 1,
      rid: "r", host: "h")
    (document.state, document.before) = (.failing, .good)
    (document.code, document.message, document.hint) = ("c", "m", "h")
    (document.exitStatus, document.hasReport, document.counts, document.bytes) = (3, true, [:], [:])
    document.setText()
    return document
  }

  @Test func everySettingIsThere() {
    #expect(items("SETTINGS", "Cm") == Setting.all(in: .hook).map(\.name))
  }

  @Test func everyEventIsThere() {
    #expect(Set(items("EVENTS", "Cm")) == Set(HookEvent.allCases.map(\.rawValue)))
    #expect(items("EVENTS", "Cm").prefix(3).sorted() == HookEvent.changes.map(\.rawValue).sorted())
  }

  @Test func everyKeyAndEveryVariableIsThere() throws {
    let document = try document()
    let json = try JSONSerialization.jsonObject(with: JSONEncoder().encode(document)) as? [String: Any]
    #expect(Set(items("THE DOCUMENT", "Li")) == Set(try #require(json).keys))
    let variables = lines("THE DOCUMENT").flatMap { line in
      line.matches(of: /Ta Ev (TARN_\w+)/).map { String($0.output.1) }
    }
    let known = document.environment.map { String($0.prefix { $0 != "=" }) }
    #expect(variables.count > 10 && Set(variables) == Set(known))
  }

  @Test func theNumbersAreThoseOfTheQueue() {
    #expect(text.contains("Up to 1,000 events wait") && HookQueue.most == 1000)
    #expect(text.contains("after 5 seconds at most") && HookQueue.backOff == BackOff(base: 5, most: 900))
    let standard = Setting.find("retries", in: .hook)?.standard ?? ""
    #expect(text.contains("the number of attempts after the first one.\nThe default is \(standard)."))
  }
}
