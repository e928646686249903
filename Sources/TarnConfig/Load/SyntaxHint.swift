import TarnCore

/// Suggests how to correct a TOML syntax error, guessed from its line. toml++ itself describes the error.
struct SyntaxHint {
  /// The position of the error, clamped to the file.
  private let position: SettingPosition
  private let source: SettingsSource
  private let line: SyntaxLine
  /// True when the line sets again what is set above.
  private let isRedefinition: Bool

  static func problem(_ fault: TOMLDocument.Fault, in source: SettingsSource) -> SettingsProblem {
    let position = source.clamped(fault.position)
    let line = SyntaxLine(source.line(position.line))
    let hint = SyntaxHint(
      position: position, source: source, line: line,
      isRedefinition: setsAgain(position.line, of: source))
    let place = SettingPlace(source: source, position: position)
    guard line.isSecret else {
      return place.problem(.syntax, "this is not TOML: \(fault.message)", hint: hint.text)
    }
    // The message of toml++ may quote the value.
    var problem = place.problem(
      .syntax, "this is not TOML",
      hint: "write \(line.name) = { file = \"/path\" } or { credential = \"name\" }")
    problem.excerpt = SettingsProblem.Excerpt(
      line: source.line(position.line), column: min(position.column, line.valueColumn), showing: .nothing)
    return problem
  }

  /// Returns whether only both parts together are faulty: the lines above, and what begins in this line.
  private static func setsAgain(_ line: Int, of source: SettingsSource) -> Bool {
    fault(in: source.text(above: line)) == nil && fault(in: source.text(from: line))?.position.line != 1
  }

  private static func fault(in text: [UInt8]) -> TOMLDocument.Fault? {
    do throws(TOMLDocument.Fault) {
      _ = try TOMLDocument.parse(text)
      return nil
    } catch {
      return error
    }
  }

  private var text: String {
    let rest = line.rest(from: position.column)
    if rest.hasPrefix("//") || rest.hasPrefix(";") {
      return "a comment begins with #, and nothing but a comment may follow a value"
    }
    if line.text.hasPrefix("[") { return ofHeader }
    let name = Self.shown(line.name)
    guard let value = line.value else { return withoutEquals }
    if let first = firstPlace { return "\(name) stands in line \(first) already, and may appear only once" }
    if value.isEmpty { return "a value is missing: \(example)" }
    if value.unicodeScalars.contains(where: Quotes.isTypographic) {
      return "quotes are straight: write \(name) = \(Self.shown(Quotes.straight(value)))"
    }
    switch line.setting?.kind {
    case .boolean: return "write \(name) = true or \(name) = false"
    case .some where Self.isWord(value) && isOfText:
      return "a string needs quotes: \(name) = \(Self.quoted(value))"
    default:
      return "\(example); write each setting on a line of its own, with its quotes and brackets closed"
    }
  }

  private var example: String {
    line.setting.map { "write for example \($0.name) = \($0.example)" }
      ?? "a setting is a line such as keep = 20"
  }

  private var isOfText: Bool {
    if case .number? = line.setting?.kind { return false }
    return line.setting?.example.hasPrefix("\"") == true
  }

  private var withoutEquals: String {
    line.setting == nil
      ? "a setting is a line such as keep = 20, and a table begins with a line such as [mirror.podcasts]"
      : "= is missing: \(example)"
  }

  /// The line above that sets the same key in the same table.
  private var firstPlace: Int? {
    guard isRedefinition, let key = line.key else { return nil }
    for number in (1..<max(1, position.line)).reversed() {
      let other = SyntaxLine(source.line(number))
      if other.key == key { return number }
      if other.text.hasPrefix("[") { return nil }
    }
    return nil
  }

  /// The hint for a line that begins with `[`.
  private var ofHeader: String {
    let first = (1..<max(1, position.line)).first { SyntaxLine(source.line($0)).text == line.text }
    if isRedefinition, let first {
      return "this table begins in line \(first) already, and may appear only once"
    }
    return
      "a table begins with a line such as [mirror.podcasts], [limits] or [agent], with nothing behind it; "
      + "a name with other letters than a to z stands in quotes: [mirror.\"café\"]"
  }

  private static func isWord(_ value: String) -> Bool { !value.contains { "\"'[]{},".contains($0) } }

  /// Quotes a text, in single quotes when it has backslashes.
  private static func quoted(_ text: String) -> String {
    let quote = text.contains("\\") ? "'" : "\""
    return quote + shown(text) + quote
  }

  /// The text shortened, safe to print and without passwords, its backslashes unescaped.
  private static func shown(_ text: String) -> String {
    Redaction.short(text).replacing("\\\\", with: "\\")
  }
}
