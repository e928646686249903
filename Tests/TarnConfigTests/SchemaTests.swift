import Foundation
import TarnCore
import TarnSchedule
import Testing

@testable import TarnConfig

@Suite struct SchemaTests {
  static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  /// `TARN_RECORD=1` writes it anew.
  @Test func theFileIsTheSchema() throws {
    let url = Self.root.appendingPathComponent("config/tarn.schema.json")
    if ProcessInfo.processInfo.environment["TARN_RECORD"] == "1" {
      try SettingsSchema.json().write(to: url, atomically: true, encoding: .utf8)
    }
    let file = (try? String(contentsOf: url, encoding: .utf8)) ?? "(no such file)"
    #expect(file == SettingsSchema.json(), "other than config/tarn.schema.json: TARN_RECORD=1 writes it")
  }

  @Test func itIsJSONAndHasEverySetting() throws {
    let json = try JSONSerialization.jsonObject(with: Data(SettingsSchema.json().utf8)) as? [String: Any]
    let tables = try #require(json?["properties"] as? [String: [String: Any]])
    #expect(Set(tables.keys) == ["agent", "hook", "limits", "mirror"])
    for scope in Setting.Scope.allCases {
      let table = try #require(tables[scope.rawValue])
      let inner = [.hook, .mirror].contains(scope) ? table["additionalProperties"] as? [String: Any] : table
      let settings = try #require(inner?["properties"] as? [String: [String: Any]])
      #expect(Set(settings.keys) == Set(Setting.all(in: scope).map(\.name)))
      #expect(inner?["additionalProperties"] as? Bool == false)
      #expect(settings.values.allSatisfy { ($0["description"] as? String)?.isEmpty == false })
    }
  }

  private func matches(_ text: String, _ pattern: String) throws -> Bool {
    let expression = try NSRegularExpression(pattern: pattern)
    return expression.firstMatch(in: text, range: NSRange(text.startIndex..., in: text)) != nil
  }

  /// The patterns know no more and no less than `Units`, up to what overflows.
  @Test func thePatternsAreThoseOfTheUnits() throws {
    let numbers = ["", "0", "7", "1.5", ".5", "1.", ".", "1..2", "-1", "1e3"]
    let gaps = ["", " ", "  "]
    let sizes = [
      "", "b", "B", "k", "K", "KB", "kb", "KiB", "ki", "Mib", "m", "G", "gI", "T", "TB", "X", "KK", "iB",
      "Bi",
      "P",
    ]
    for number in numbers {
      for gap in gaps {
        for unit in sizes {
          let text = number + gap + unit
          #expect(try matches(text, "^(\(SettingsSchema.size))$") == (Units.bytes(text) != nil), "\(text)")
        }
      }
    }
    let spans = [
      "s", "sec", "second", "seconds", "m", "min", "mins", "h", "hr", "hours", "d", "w", "weeks", "y", "M",
      "",
    ]
    for number in ["", "0", "7", "1.5"] {
      for gap in gaps {
        for unit in spans {
          for rest in ["", " ", "1s", " 2 min", "x", " 3"] {
            let text = number + gap + unit + rest
            #expect(
              try matches(text, "^(\(SettingsSchema.span))$") == (Units.duration(text) != nil), "\(text)")
          }
        }
      }
    }
    for name in ["a", "é", "a-b", "-a", "", "a.b", "a/b", "a:b", "a b"] {
      #expect(try matches(name, SettingsSchema.namePattern) == MirrorSettings.isName(name), "\(name)")
    }
  }

  /// What the loader takes, an editor takes, too.
  @Test func thePatternOfASpanTakesWhatARowTakes() throws {
    var taken = 0
    for days in ["", "Mon ", "Mon..Fri  ", "monday-Fri,Sun ", "Sat,Sun, ", " ", "Sat..Mon ", "Mon"] {
      for span in [
        "08:00-18:00", "8:5-9:5", "008:00-24:00", "22:00-06:00", "8-18", "08:00", "08:00 - 18:00", "",
      ] {
        guard (try? RateTimetable.Row(days + span, limit: 1)) != nil else { continue }
        taken += 1
        #expect(try matches(days + span, "^(\(SettingsSchema.daySpan))$"), "\(days + span)")
      }
    }
    #expect(taken == 20)
    for text in ["8-18", "08:00", "08:00 - 18:00", "soon", ""] {
      #expect(try !matches(text, "^(\(SettingsSchema.daySpan))$"), "\(text)")
    }
  }

  @Test func jsonIsEscaped() throws {
    let text = "a\"\\\n\u{1}é/"
    let written = JSONValue.object([
      (text, .list([.text(text), .number(-1), .boolean(true)])), ("e", .object([])),
    ])
    .written()
    let read = try JSONSerialization.jsonObject(with: Data(written.utf8)) as? [String: Any]
    #expect((read?[text] as? [Any])?.first as? String == text)
    #expect((read?["e"] as? [String: Any])?.isEmpty == true)
  }
}
