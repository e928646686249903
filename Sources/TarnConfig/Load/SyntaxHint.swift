import TarnCore

/// How to mend what TOML does not allow, told from the line that it stands on.
struct SyntaxHint {
  let fault: TOMLDocument.Fault
  /// Inside of the file.
  let position: SettingPosition
  let source: SettingsSource
  let line: SyntaxLine

  /// What to say.
  struct Mend {
    var hint: String
    /// Instead of toml++'s words.
    var message: String?
    /// Instead of toml++'s place, which is where it gave up.
    var column: Int?
    /// Whether the hint quotes the value, which may be a secret.
    var isQuoting = false

    init(_ hint: String, message: String? = nil, column: Int? = nil, isQuoting: Bool = false) {
      self.hint = hint
      self.message = message
      self.column = column
      self.isQuoting = isQuoting
    }
  }

  private init(_ fault: TOMLDocument.Fault, in source: SettingsSource) {
    self.fault = fault
    self.source = source
    position = source.clamped(fault.position)
    line = SyntaxLine(source.line(position.line))
  }

  static func problem(_ fault: TOMLDocument.Fault, in source: SettingsSource) -> SettingsProblem {
    let hint = SyntaxHint(fault, in: source)
    let mend = hint.mend()
    var position = hint.position
    position.column = mend.column ?? position.column
    var problem = SettingPlace(source: source, position: position).problem(
      .syntax, "this is not TOML: \(mend.message ?? fault.message)", hint: mend.hint)
    if hint.line.isSecret {
      problem.excerpt = SettingsProblem.Excerpt(
        line: source.line(position.line), column: min(position.column, hint.line.valueColumn),
        showing: .nothing)
      if mend.isQuoting || hint.line.value?.first != "{" {
        problem.hint = "write \(hint.line.name) = { file = \"/path\" } or { credential = \"name\" }"
      }
    }
    return problem
  }

  // MARK: - What is wrong

  private func mend() -> Mend {
    let said = fault.message
    if said.contains("cannot redefine existing") { return redefinition }
    if said.contains("too many parts") || said.contains("nested value depth") {
      return Mend("no setting is that deep")
    }
    if said.contains("utf-8") { return Mend("save the file as UTF-8") }
    let isHeader =
      line.text.hasPrefix("[") && fault.part != "array" && (line.key == nil || fault.part == "table header")
    if let scalar = line.scalar(at: position.column), Quotes.isTypographic(scalar) {
      let message = "\(scalar) is no quote in TOML"
      if isHeader { return Mend(headerHint, message: message) }
      return Mend(
        "quotes are straight: write \(Self.shown(line.name))"
          + (line.value.map { " = " + Self.shown(Quotes.straight($0)) } ?? ""),
        message: message, isQuoting: true)
    }
    if let scalar = line.scalar(at: position.column), scalar.value > 0x7F, Self.isInvisible(scalar) {
      let number = String(scalar.value, radix: 16, uppercase: true)
      return Mend("a blank of another kind stands here (U+\(number)): write an ordinary one, or none")
    }
    let rest = line.rest(from: position.column)
    if rest == ";" { return Mend("no ; at the end of a line") }
    if rest.hasPrefix("//") || rest.hasPrefix(";") { return Mend("a comment begins with #") }
    if isHeader { return Mend(headerHint) }
    return mendOfSetting()
  }

  private func mendOfSetting() -> Mend {
    let said = fault.message
    if said.contains("expected a comment or whitespace") { return behind }
    switch fault.part {
    case "inline table": return inTable
    case "array": return inList
    case "string", "unicode scalar sequence": return inText
    case "key-value pair" where said.hasPrefix("expected '='"): return aroundEquals
    default: break
    }
    if line.text.hasPrefix("{") { return Mend("settings are no JSON: \(Self.tableExample)") }
    guard let value = line.value else { return Mend(Self.example(line.setting)) }
    if line.name.isEmpty { return Mend("a name is missing in front of =") }
    if said.contains("not representable") {
      let isAlone = value.utf8.allSatisfy { !"[{,".utf8.contains($0) }
      return Mend(
        "write for example \(Self.line(line.setting))", message: "this number is larger than 64 bits hold",
        column: isAlone ? line.valueColumn : nil)
    }
    if value.isEmpty {
      return Mend(
        line.setting.map { "a value is missing: write for example \($0.name) = \($0.example)" }
          ?? "a value is missing: \(Self.shown(line.name)) = ...")
    }
    var mend = ofValue(value)
    if said.contains("could not determine") { mend.message = mend.message ?? "no value looks like this" }
    if Self.isPlain(value), ["boolean", "floating-point", "value"].contains(fault.part) {
      mend.message = mend.message ?? "no value looks like this"
      mend.column = mend.column ?? line.valueColumn
    }
    return mend
  }

  /// Copied from a page or a word processor.
  private static func isInvisible(_ scalar: Unicode.Scalar) -> Bool {
    scalar.properties.isWhitespace || scalar.properties.generalCategory == .format
  }

  /// Where the same stands for the first time.
  private var redefinition: Mend {
    let isHeader = line.text.hasPrefix("[")
    var first: Int?
    for number in (1..<max(1, position.line)).reversed() {
      let other = SyntaxLine(source.line(number))
      if isHeader ? other.text == line.text : other.key == line.key && line.key != nil {
        first = number
        break
      }
      if !isHeader, other.text.hasPrefix("[") { break }
    }
    let place = first.map { ", and this is in line \($0) already" } ?? ""
    return Mend("each stands once in a file\(place); a file in conf.d may replace a value")
  }

  /// Something stands behind a whole value.
  private var behind: Mend {
    let message = "nothing but a comment may follow the value"
    let rest = line.rest(from: position.column)
    let value = line.value(before: position.column)
    let name = Self.shown(line.name)
    let after = Self.trim(rest.hasPrefix(",") ? String(rest.dropFirst()) : rest)
    if SyntaxLine(after).key?.isEmpty == false {
      return Mend(
        "each setting stands on a line of its own: \(Self.shown(after))", message: message, isQuoting: true)
    }
    if rest.hasPrefix(","), value.first == "\"" || value.first == "'" {
      return Mend(
        "a list stands in brackets: \(name) = [\(Self.shown("\(value), \(after)"))]", message: message,
        isQuoting: true)
    }
    if value.first == "'", let whole = line.value {
      var text = whole.dropFirst()
      if text.last == "'" { text.removeLast() }
      if !text.contains("\""), !text.contains("\\") {
        return Mend(
          "a string with ' in it stands in double quotes: \(name) = \"\(Self.shown(String(text)))\"",
          message: message, isQuoting: true)
      }
    }
    if value.first == "\"", rest.contains("\"") {
      return Mend("inside of a string \" is written \\\"", message: message)
    }
    if let whole = line.value, Self.isPlain(whole), !whole.contains(",") {
      return Mend(
        "a string stands in quotes: \(name) = \(Self.quoted(whole))", message: message, isQuoting: true)
    }
    return Mend("remove it, or begin it with #", message: message)
  }

  /// A name without `=` behind it.
  private var aroundEquals: Mend {
    let isInside = line.front(of: position.column).contains("{")
    if isInside {
      if line.scalar(at: position.column) == ":" {
        return Mend("= stands between a name and its value, not :")
      }
      return line.value.map(ofValue) ?? Mend("inside of { } stand name = value, with commas between")
    }
    guard let key = line.key else { return withoutEquals }
    if line.scalar(at: position.column).map({ $0.value > 0x7F }) == true {
      let near = Spelling.nearest(key, Setting.all.map(\.name))
      return Mend(
        (near.map { "write \($0): " } ?? "") + "a name has letters from a to z, digits, - and _ only")
    }
    let words = key.split { " \t:".contains($0) }.filter { $0 != "-" }
    let joined = words.joined(separator: "-")
    let near = Spelling.nearest(joined, Setting.all.map(\.name))
    return Mend(
      near.map { "a name has no blanks: write \($0)" } ?? "a name has no blanks; \(Self.example(nil))")
  }

  private var withoutEquals: Mend {
    let front = line.front(of: position.column)
    guard !front.isEmpty, !front.contains(" "), !line.isEnd(position.column) else {
      return Mend(Self.example(nil))
    }
    let rest = line.rest(from: position.column)
    let value = Self.trim(rest.hasPrefix(":") ? String(rest.dropFirst()) : rest)
    guard !value.isEmpty else {
      return Mend(line.setting.map { "= is missing: \(Self.line($0))" } ?? Self.tableExample)
    }
    var text = Self.toml(value)
    if value.hasPrefix("{"), case .text? = line.setting?.kind { text = Self.quoted(value) }
    return Mend("= is missing: \(Self.shown(line.name)) = \(text)", isQuoting: true)
  }
}
