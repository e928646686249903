import TarnCore

extension ValueReading {
  /// With the hint that mends the usual slip, where it is known.
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
      hint = "write it as a list: \(setting.name) = [\(Self.parted(text))]"
    case (let kind, .array(let nodes)) where nodes.count == 1 && !kind.isSecret && kind != .patterns:
      switch nodes[0].value {
      case .text(let text): hint = "write it without brackets: \(setting.name) = \(SettingValue.quote(text))"
      case .integer(let number): hint = "write it without brackets: \(setting.name) = \(number)"
      default: break
      }
    case (.rates, .table), (.rates, .text):
      hint = "write a list: \(setting.name) = \(setting.example)"
    default: break
    }
    return Refusal(.wrongType, "takes \(setting.kind.takes), and this is \(node.kindName)", hint: hint)
  }

  /// The members of a list that somebody wrote as one text.
  private static func parted(_ text: String) -> String {
    let parts = text.split(separator: ",").map { SyntaxHint.trim(String($0)) }.filter { !$0.isEmpty }
    return (parts.isEmpty ? [text] : parts).map(SettingValue.quote).joined(separator: ", ")
  }

  func rates(_ nodes: [SettingNode]) throws(Refusal) -> [SettingValue.Rate] {
    var rates: [SettingValue.Rate] = []
    for node in nodes { rates.append(try rate(node)) }
    return rates
  }

  private func rate(_ node: SettingNode) throws(Refusal) -> SettingValue.Rate {
    let example = "write for example { at = \"08:00-18:00\", limit = \"2MiB/s\" }"
    guard case .table(let members) = node.value else {
      throw Refusal(
        .wrongType, "takes a list of { at, limit }, and \(node.kindName) is in it", hint: example,
        position: node.position)
    }
    var texts: [String: String] = [:]
    for member in members {
      guard ["at", "limit"].contains(member.key) else {
        let near = Spelling.nearest(member.key, ["at", "limit"])
        throw Refusal(
          .unknownSetting, "knows no '\(Redaction.short(member.key))' in a window, only at and limit",
          hint: near.map { "write '\($0)'" } ?? example, position: member.keyPosition)
      }
      guard case .text(let text) = member.node.value else {
        throw Refusal(
          .wrongType, "takes a text for '\(member.key)', and this is \(member.node.kindName)", hint: example,
          position: member.node.position)
      }
      texts[member.key] = text
    }
    guard let at = texts["at"], let limit = texts["limit"] else {
      throw Refusal(
        .missing, "has a window without '\(texts["at"] == nil ? "at" : "limit")'", hint: example,
        position: node.position)
    }
    func position(_ key: String) -> SettingPosition? { members.first { $0.key == key }?.node.position }
    guard let bytes = Units.rate(limit) else {
      throw Refusal(
        .badValue, "takes \(SettingKind.rate.takes) for 'limit'", hint: example, position: position("limit"))
    }
    do throws(ScheduleTextError) {
      return SettingValue.Rate(row: try RateTimetable.Row(at, limit: bytes), at: at, limit: limit)
    } catch {
      throw Refusal(
        .badValue, "takes a span of the day for 'at'; \(error.place(in: at))",
        hint: "write for example at = \(SettingValue.quote(error.example))", position: position("at"))
    }
  }
}
