import TarnCore

/// How to mend what TOML does not allow, told from the line that it stands on.
enum SyntaxHint {
  static func problem(_ fault: TOMLDocument.Fault, in source: SettingsSource) -> SettingsProblem {
    let position = source.clamped(fault.position)
    return SettingPlace(source: source, position: position).problem(
      .syntax, "this is not TOML: \(fault.message)", hint: hint(fault, line: source.line(position.line)))
  }

  private static func hint(_ fault: TOMLDocument.Fault, line: String) -> String? {
    if fault.message.contains("cannot redefine existing") {
      return "each stands once in a file; a file in conf.d may replace a value"
    }
    if fault.message.contains("too many parts") || fault.message.contains("nested value depth") {
      return "no setting is that deep"
    }
    if fault.message.contains("utf-8") { return "save the file as UTF-8" }
    guard let equals = line.firstIndex(of: "=") else {
      let trimmed = String(line.drop { $0 == " " || $0 == "\t" })
      if trimmed.hasPrefix("[") { return "a table begins with a line such as [mirror.podcasts]" }
      return trimmed.isEmpty ? nil : "a setting is a line such as keep = 20"
    }
    let key = Redaction.short(trim(line[..<equals]))
    let value = trim(line[line.index(after: equals)...].prefix { $0 != "#" })
    guard let first = value.first else { return "a value is missing: \(key) = ..." }
    switch value.lowercased() {
    case "yes", "on", "true": return "write \(key) = true"
    case "no", "off", "false":
      return value.lowercased() == "off" ? "write \(key) = \"off\" or \(key) = false" : "write \(key) = false"
    default: break
    }
    if first == "\"" || first == "'" {
      let isOpen = !value.dropFirst().contains(first)
      if isOpen { return "the quote is not closed" }
      return value.contains("\\")
        ? "in double quotes a backslash is written \\\\, in single quotes as it is" : nil
    }
    if first == "[" || first == "{" { return nil }
    let isPlain = !value.contains { "\"'[]{},\\".contains($0) }
    return isPlain ? "a text stands in quotes: \(key) = \"\(Redaction.short(value))\"" : nil
  }

  private static func trim(_ text: some StringProtocol) -> String {
    let blanks: Set<Character> = [" ", "\t", "\r"]
    let start = text.drop { blanks.contains($0) }
    let end = start.reversed().drop { blanks.contains($0) }
    return String(end.reversed())
  }
}
