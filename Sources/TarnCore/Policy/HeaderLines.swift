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
}
