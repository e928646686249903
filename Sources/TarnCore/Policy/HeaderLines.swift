/// The text of a header file: `Name: value` lines (RFC 9110 5); blank lines and `#` comments are left out.
package struct HeaderLines: Sendable, Equatable {
  /// The most bytes of such a file, since a request carries all of it.
  package static let limit = 1 << 20

  package let headers: [String]

  /// The number of the line that is none of these, from 1. Its text may be a secret.
  package struct Malformed: Error, Equatable {
    package let line: Int
  }

  /// - Throws: the first line that is not a header.
  package init(_ text: String) throws(Malformed) {
    var headers: [String] = []
    for (index, raw) in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).enumerated()
    {
      let line = raw.drop { $0 == " " }
      if line.isEmpty || line.hasPrefix("#") { continue }
      guard let colon = line.firstIndex(of: ":"), colon != line.startIndex,
        line[..<colon].utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }),
        line.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F })
      else { throw Malformed(line: index + 1) }
      headers.append(String(line))
    }
    self.headers = headers
  }

  /// Returns these lines, before them the others whose names they do not have.
  package static func merged(_ lines: [String], over others: [String]) -> [String] {
    let names = Set(lines.map(name(of:)))
    return others.filter { !names.contains(name(of: $0)) } + lines
  }

  /// Returns the name of a line in lower case.
  package static func name(of line: String) -> String { line.prefix { $0 != ":" }.lowercased() }
}
