import TarnCore

extension SyntaxHint {
  /// Inside of `{ }`.
  var inTable: Mend {
    let said = fault.message
    if said.contains("dangling comma") { return Mend("remove the comma before }") }
    if line.isEnd(position.column) {
      return Mend(
        "{ and } stand on one line, with all between them", message: "the line ends inside of { }")
    }
    if line.scalar(at: position.column) == "]" { return Mend("} is missing before ]") }
    if said.contains("expected comma") { return Mend("a comma is missing here, or } in front of it") }
    return Mend("inside of { } stand name = value, with commas between")
  }

  /// Inside of `[ ]`.
  var inList: Mend {
    if fault.message.contains("end-of-file") { return Mend("the list is not closed: ] is missing") }
    if fault.message.contains("saw comma") {
      return Mend("a value is missing between two commas: remove one of them")
    }
    let isBelow = !line.front(of: position.column).contains("[")
    guard isBelow, line.key != nil || line.text.hasPrefix("[") else {
      return Mend("a comma is missing here, or ] in front of it")
    }
    let first = (1..<max(1, position.line)).reversed().first {
      SyntaxLine(source.line($0)).value?.contains("[") == true
    }
    return Mend("the list that begins in line \(first ?? position.line) is not closed: ] is missing")
  }

  /// Inside of quotes.
  var inText: Mend {
    let isOpen = fault.message.contains("end-of-file") || line.isEnd(position.column)
    if isOpen {
      for quote in ["\"\"\"", "'''"] {
        let first = (1...position.line).reversed().first { source.line($0).contains(quote) }
        if let first { return Mend("the text that begins with \(quote) in line \(first) is not closed") }
      }
      return Mend(
        "the quote is not closed: it is missing at the end of the text",
        message: "the line ends inside of a string")
    }
    if line.text.contains("\\") {
      return Mend("in double quotes a backslash is written \\\\, in single quotes as it is")
    }
    return Mend("a control byte stands here: remove it, or write it as \\u and four digits")
  }

  /// A value that is none, or is broken in the middle.
  func ofValue(_ value: String) -> Mend {
    let name = Self.shown(line.name)
    func write(_ text: String) -> Mend { Mend("write \(name) = \(text)", isQuoting: true) }
    switch value.lowercased() {
    case "yes", "on", "true": return write("true")
    case "no", "false": return write("false")
    case "off": return Mend("write \(name) = \"off\" or \(name) = false")
    case "null", "nil", "none", "~": return Mend("leave the setting out instead")
    default: break
    }
    if value.unicodeScalars.contains(where: Quotes.isTypographic) {
      return Mend(
        "quotes are straight: write \(name) = \(Self.shown(Quotes.straight(value)))", isQuoting: true)
    }
    if value.hasPrefix("=") {
      return Mend(
        "one = is enough: \(name) = \(Self.toml(Self.trim(String(value.dropFirst()))))", isQuoting: true)
    }
    if fault.part == "boolean", let near = Spelling.nearest(value, ["true", "false"]) { return write(near) }
    if fault.message.contains("leading zero"), let number = Int64(value) {
      var mend = write(String(number))
      mend.column = line.valueColumn
      return mend
    }
    if let list = Self.list(value) {
      return Mend("write a list of texts: \(name) = \(Self.shown(list))", isQuoting: true)
    }
    if value.hasPrefix("{"), case .text? = line.setting?.kind { return quotes(value) }
    switch line.setting?.kind {
    case .boolean: return Mend("write \(name) = true or \(name) = false")
    case .number where Self.isPlain(value): return Mend(Self.example(line.setting))
    default: break
    }
    if Self.isPlain(value) || value.hasPrefix("~/") || value.hasPrefix("$") { return quotes(value) }
    if !"\"'[{".contains(value.prefix(1)), value.contains("\\") { return quotes(value) }
    return Mend(Self.example(line.setting))
  }

  private func quotes(_ value: String) -> Mend {
    Mend("a string stands in quotes: \(Self.shown(line.name)) = \(Self.quoted(value))", isQuoting: true)
  }

  /// `[*.iso]` and `("*.iso")` with brackets and quotes; nil for another thing.
  private static func list(_ value: String) -> String? {
    guard let first = value.first, first == "[" || first == "(", !value.contains("{") else { return nil }
    let inner = value.dropFirst().prefix { $0 != "]" && $0 != ")" }
    let parts = inner.split(separator: ",").map { trim(String($0)) }.filter { !$0.isEmpty }
    guard !parts.isEmpty, !parts.contains(where: { $0.contains("[") }) else { return nil }
    return "[" + parts.map { "\"'".contains($0.prefix(1)) ? $0 : quoted($0) }.joined(separator: ", ") + "]"
  }

  // MARK: - How it would be written

  /// `keep = 20`.
  static func line(_ setting: Setting?) -> String {
    setting.map { "\($0.name) = \($0.example)" } ?? "keep = 20"
  }

  static func example(_ setting: Setting?) -> String {
    setting.map { "write for example \($0.name) = \($0.example)" } ?? "a setting is a line such as keep = 20"
  }

  static let tableExample = "a table begins with a line such as [mirror.podcasts]"

  static func isPlain(_ value: String) -> Bool { !value.contains { "\"'[]{},\\".contains($0) } }

  /// What somebody wrote, as a value where it is one.
  static func toml(_ text: String) -> String {
    let isValue = "\"'[{".contains(text.prefix(1)) || Int64(text) != nil || text == "true" || text == "false"
    return isValue ? shown(text) : quoted(text)
  }

  /// In single quotes where it has backslashes.
  static func quoted(_ text: String) -> String {
    let quote = text.contains("\\") || text.contains("\"") ? "'" : "\""
    return quote + shown(text) + quote
  }

  /// Short, safe and without passwords, as it stands there.
  static func shown(_ text: String) -> String { Redaction.short(text).replacing("\\\\", with: "\\") }

  static func trim(_ text: String) -> String {
    let blanks: Set<Unicode.Scalar> = [" ", "\t", "\r"]
    let scalars = Array(text.unicodeScalars)
    let start = scalars.firstIndex { !blanks.contains($0) } ?? scalars.count
    let end = scalars.lastIndex { !blanks.contains($0) }.map { $0 + 1 } ?? start
    return String(String.UnicodeScalarView(scalars[start..<max(start, end)]))
  }

  // MARK: - Headers

  /// For a line that begins with `[`.
  var headerHint: String {
    var inner = line.text.drop { $0 == "[" }
    if let close = inner.firstIndex(of: "]") {
      let rest = inner[close...].drop { $0 == "]" }
      guard rest.isEmpty else { return "settings stand in lines of their own below it" }
      inner = inner[..<close]
    }
    let name = Quotes.stripped(String(inner))
    guard name.lowercased().hasPrefix("mirror") else {
      let near = Spelling.nearest(name, ["limits", "agent"])
      return near.map { "write [\($0)]" } ?? Self.tableExample
    }
    let mirror = Self.trim(String(name.dropFirst(6).drop { ". \t".contains($0) }))
    guard !mirror.isEmpty else { return "a name is missing: write [mirror.NAME]" }
    if MirrorSettings.isName(mirror) {
      let key = SettingValue.key(mirror)
      let why = key == mirror ? "" : "a name with other letters than a to z stands in quotes: "
      return why + "write [mirror.\(key)]"
    }
    let near = String(mirror.map { " \t/.:".contains($0) ? "-" : $0 }.drop { $0 == "-" })
    let example = MirrorSettings.isName(near) ? ": write for example [mirror.\(SettingValue.key(near))]" : ""
    return MirrorSettings.nameRule + example
  }
}
