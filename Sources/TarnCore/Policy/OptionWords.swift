/// Options as they are typed, and as programs read them.
extension PassOptions {
  /// `--delete`, `--no-netrc`, `--exclude '*.tmp'`: words of a shell, in the order of the table.
  package var words: [String] {
    Name.allCases.flatMap { name in (values[name] ?? []).map { Self.word(name, $0) } }
  }

  /// By their names without dashes.
  package var named: [String: [String]] {
    Dictionary(uniqueKeysWithValues: values.map { ($0.key.rawValue, $0.value) })
  }

  /// Names that this Tarn does not know are left out.
  package init(named: [String: [String]]) {
    self.init()
    for (text, texts) in named {
      if let name = Name(rawValue: text) { values[name] = texts }
    }
  }

  private static func word(_ name: Name, _ value: String) -> String {
    switch value {
    case "true" where !name.isList: "--\(name.rawValue)"
    case "false" where !name.isList: "--no-\(name.rawValue)"
    default: "--\(name.rawValue) \(ShellWord.quote(value))"
    }
  }
}
