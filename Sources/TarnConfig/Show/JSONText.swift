/// A JSON value to be written, its members in the order given.
indirect enum JSONText: Sendable {
  case text(String)
  case number(Int64)
  case boolean(Bool)
  case list([JSONText])
  case object([(String, JSONText)])

  /// Indented by two blanks; short lists of scalars on one line.
  func written(indent: String = "") -> String {
    let inner = indent + "  "
    switch self {
    case .text(let text): return Self.quote(text)
    case .number(let number): return String(number)
    case .boolean(let value): return String(value)
    case .list(let values):
      if values.allSatisfy(\.isScalar) {
        return "[" + values.map { $0.written() }.joined(separator: ", ") + "]"
      }
      return "[\n" + values.map { inner + $0.written(indent: inner) }.joined(separator: ",\n")
        + "\n\(indent)]"
    case .object(let members):
      let lines = members.map { "\(inner)\(Self.quote($0.0)): \($0.1.written(indent: inner))" }
      return members.isEmpty ? "{}" : "{\n" + lines.joined(separator: ",\n") + "\n\(indent)}"
    }
  }

  private var isScalar: Bool {
    switch self {
    case .text, .number, .boolean: true
    case .list, .object: false
    }
  }

  private static func quote(_ text: String) -> String {
    var quoted = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"", "\\": quoted += "\\\(scalar)"
      case "\u{0}"..."\u{1F}":
        let digits = String(scalar.value, radix: 16)
        quoted += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      default: quoted.unicodeScalars.append(scalar)
      }
    }
    return quoted + "\""
  }
}
