import TarnCore
import TarnSchedule

extension ValueReading {
  /// Returns the refusal of a value with the wrong type. Its hint corrects the usual mistake where one is
  /// known.
  func wrongType(_ node: SettingNode, _ setting: Setting) -> Refusal {
    var hint = "write for example \(setting.name) = \(setting.example)"
    switch (setting.kind, node.value) {
    case (.boolean, .text(let text)):
      let words = ["true": "true", "yes": "true", "on": "true", "1": "true"]
      let others = ["false": "false", "no": "false", "off": "false", "0": "false"]
      if let word = words[text.lowercased()] ?? others[text.lowercased()] {
        hint = "write \(setting.name) = \(word), without quotes"
      }
    case (.boolean, .integer(let number)) where number == 0 || number == 1:
      hint = "write \(setting.name) = \(number == 1)"
    case (.number(let range, _), .text(let text)):
      if let number = Int64(text), range.contains(number) {
        hint = "write \(setting.name) = \(number), without quotes"
      }
    case (.span, .integer(let number)) where number > 0,
      (.interval, .integer(let number)) where Cadence.bounds.contains(number):
      hint = "write the unit, in quotes: \(setting.name) = \"\(number)s\" is \(number) seconds"
    case (.rate, .integer(let number)) where number > 0:
      hint = "write the unit, in quotes: \(setting.name) = \"\(number)B/s\" is \(number) bytes per second"
    case (.patterns, .text(let text)):
      let parts = Self.parted(text)
      let list = "\(setting.name) = [\(parts.map(TOMLText.quote).joined(separator: ", "))]"
      let fault = parts.lazy.compactMap { part in PathPatterns.fault(in: part).map { (part, $0) } }.first
      hint =
        fault.map { "it takes a list, and '\(Redaction.short($0))' is not a pattern: \($1)" }
        ?? "write it as a list: \(list)"
    case (.command, .text):
      hint = "no shell reads it: write each word separately: \(setting.name) = \(setting.example)"
    case (let kind, .array(let nodes)) where nodes.count == 1 && !kind.isSecret && kind != .patterns:
      switch nodes[0].value {
      case .text(let text):
        hint =
          "write it without brackets: \(setting.name) = \(TOMLText.quote(Redaction.value(text)))"
      case .integer(let number): hint = "write it without brackets: \(setting.name) = \(number)"
      default: break
      }
    case (.rates, .table), (.rates, .text):
      hint = "write a list: \(setting.name) = \(setting.example)"
    default: break
    }
    return Refusal(.wrongType, "takes \(setting.kind.takes), and this is \(node.kindName)", hint: hint)
  }

  /// The members of a list that was written as one text.
  private static func parted(_ text: String) -> [String] {
    let text = Redaction.value(text)
    let parts = text.split(separator: ",").map { SyntaxLine.trimmed(String($0)) }.filter { !$0.isEmpty }
    return parts.isEmpty ? [text] : parts
  }

  func rates(_ nodes: [SettingNode]) throws(Refusal) -> [SettingValue.Rate] {
    try each(nodes, rate)
  }

  private static let window = "write for example { at = \"08:00-18:00\", limit = \"2MiB/s\" }"

  private func rate(_ node: SettingNode) throws(Refusal) -> SettingValue.Rate {
    guard case .table(let members) = node.value else {
      throw Refusal(
        .wrongType, "takes a list of { at, limit }, and \(node.kindName) is in it", hint: Self.window,
        position: node.position)
    }
    let parts = try each(members, part)
    let span = parts.lazy.compactMap(\.at).first
    let limit = parts.lazy.compactMap(\.limit).first
    guard var row = span?.row, let span, let limit else {
      throw Refusal(
        .missing, "has a window without '\(span == nil ? "at" : "limit")'", hint: Self.window,
        position: node.position)
    }
    row.limit = limit.rate
    return SettingValue.Rate(row: row, at: span.text, limit: limit.text)
  }

  /// Reads one member of a window: `at` or `limit`.
  private func part(
    _ member: SettingNode.Member
  ) throws(Refusal) -> (at: (text: String, row: RateTimetable.Row)?, limit: (text: String, rate: UInt64?)?) {
    let position = member.node.position
    guard ["at", "limit"].contains(member.key) else {
      let near = Spelling.nearest(member.key, ["at", "limit"])
      throw Refusal(
        .unknownSetting, "knows no '\(Redaction.short(member.key))' in a window, only at and limit",
        hint: near.map { "write '\($0)'" } ?? Self.window, position: member.keyPosition)
    }
    guard case .text(let text) = member.node.value else {
      throw Refusal(
        .wrongType, "takes a string for '\(member.key)', and this is \(member.node.kindName)",
        hint: Self.window, position: position)
    }
    if member.key == "at" {
      do throws(ScheduleTextError) {
        return ((text, try RateTimetable.Row(text, limit: nil)), nil)
      } catch {
        throw Refusal(
          .badValue, "takes a span of the day for 'at'; \(error.place(in: text))",
          hint: "write for example at = \(TOMLText.quote(error.example))", position: position)
      }
    }
    guard let rate = Units.rate(text) else {
      throw Refusal(
        .badValue, "takes \(SettingKind.rate.takes) for 'limit'", hint: Self.window, position: position)
    }
    return (nil, (text, rate))
  }
}
