/// Options in the form of the command line, and in the form that programs read.
extension PassOptions {
  /// The options as shell words, in the order of the table: `--delete`, `--no-netrc`, `--exclude '*.tmp'`.
  package var words: [String] {
    Name.allCases.flatMap { name in (values[name] ?? []).map { Self.word(name, $0) } }
  }

  /// The values by the names of the options, without dashes.
  package var named: [String: [String]] {
    Dictionary(uniqueKeysWithValues: values.map { ($0.key.rawValue, $0.value) })
  }

  /// Reads the options and leaves out names that this Tarn does not know.
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
