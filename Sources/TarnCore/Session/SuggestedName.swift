/// The file name that a server suggests (RFC 6266), made safe: one segment of a path, not hidden.
package enum SuggestedName {
  private static let most = 200
  /// The name of a file that nothing names.
  package static let none = "unnamed"

  /// - Parameters:
  ///   - disposition: `Content-Disposition` as sent; `nil` where there is none.
  ///   - url: the URL after redirects.
  /// - Returns: the name that the server gives, else the last part of the URL, else `unnamed`.
  package static func name(disposition: String?, url: String) -> String {
    let said = disposition.flatMap(fileName)
    return said.flatMap(safe) ?? safe(lastPart(of: url)) ?? none
  }

  /// Returns the file name of the header. The parameter `filename*` takes precedence over `filename` (RFC 6266 4.3).
  private static func fileName(_ disposition: String) -> String? {
    let parameters = parameters(of: disposition)
    if let extended = parameters["filename*"], let name = decodeExtended(extended) { return name }
    return parameters["filename"]
  }

  /// Returns the parameters `; name=value` behind the type, with names in lower case. Values may be quoted strings (RFC 9110
  /// 5.6.4).
  private static func parameters(of text: String) -> [String: String] {
    var found: [String: String] = [:]
    var rest = text.unicodeScalars.drop { $0 != ";" }
    while rest.popFirst() != nil {
      rest = rest.drop { $0 == " " || $0 == "\t" }
      let name = String(rest.prefix { $0 != "=" && $0 != ";" }).lowercased()
      rest = rest.drop { $0 != "=" && $0 != ";" }
      guard rest.first == "=" else { continue }
      rest = rest.dropFirst().drop { $0 == " " || $0 == "\t" }
      var value = String.UnicodeScalarView()
      if rest.first == "\"" {
        rest = rest.dropFirst()
        while let next = rest.popFirst(), next != "\"" {
          if next == "\\", let escaped = rest.popFirst() { value.append(escaped) } else { value.append(next) }
        }
        rest = rest.drop { $0 != ";" }
      } else {
        value.append(contentsOf: rest.prefix { $0 != ";" })
        rest = rest.drop { $0 != ";" }
      }
      let key = name.trimmingBlanks
      if found[key] == nil { found[key] = String(value).trimmingBlanks }
    }
    return found
  }

  /// Decodes a value such as `UTF-8''a%20b` (RFC 8187 3.2).
  private static func decodeExtended(_ text: String) -> String? {
    let parts = text.split(separator: "'", maxSplits: 2, omittingEmptySubsequences: false)
    guard parts.count == 3 else { return nil }
    let bytes = Percent.decode(parts[2].utf8)
    switch parts[0].lowercased() {
    case "utf-8": return String(validating: bytes, as: UTF8.self)
    case "iso-8859-1": return String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
    default: return nil
    }
  }

  private static func lastPart(of url: String) -> String {
    let end = url.firstIndex { $0 == "?" || $0 == "#" } ?? url.endIndex
    let path = url[..<end].split(separator: "/", omittingEmptySubsequences: false).dropFirst(3)
    return String(decoding: Percent.decode((path.last ?? "").utf8), as: UTF8.self)
  }

  /// Returns the last segment without control characters, cut to 200 bytes with its ending kept.
  ///
  /// - Returns: nil where nothing is left.
  private static func safe(_ name: String) -> String? {
    let last =
      name.unicodeScalars.split(omittingEmptySubsequences: true) { $0 == "/" || $0 == "\\" }.last ?? []
    var scalars = String.UnicodeScalarView(
      // Leaves out control characters, and those that change the direction of text or break a line.
      last.filter {
        ![.control, .format, .lineSeparator, .paragraphSeparator].contains($0.properties.generalCategory)
      })
    // Only their owners create hidden files.
    while let first = scalars.first, first == "." || first == " " { scalars.removeFirst() }
    while let end = scalars.last, end == " " || end == "." { scalars.removeLast() }
    guard !scalars.isEmpty else { return nil }
    return shortened(String(scalars))
  }

  private static func shortened(_ name: String) -> String {
    guard name.utf8.count > most else { return name }
    let (stem, ending) = parts(of: name)
    var kept = Substring(stem)
    while kept.utf8.count + ending.utf8.count > most, !kept.isEmpty { kept.removeLast() }
    return kept + ending
  }

  /// Returns the name and its ending with the dot, at most 16 bytes. The ending of `a.tar.xz` is `.tar.xz`.
  private static func parts(of name: String) -> (String, String) {
    guard let dot = name.lastIndex(of: "."), dot > name.startIndex, name[dot...].utf8.count <= 16 else {
      return (name, "")
    }
    let stem = name[..<dot]
    let isArchive = stem.utf8.count > 4 && stem.lowercased().hasSuffix(".tar")
    let end = isArchive ? stem.index(dot, offsetBy: -4) : dot
    return (String(name[..<end]), String(name[end...]))
  }

  /// Reverses `numbered`: returns `a.txt` and 1 for `a (1).txt`, and `nil` for a name that it did not make.
  package static func withoutNumber(_ name: String) -> (leaf: String, number: Int)? {
    let (stem, ending) = parts(of: name)
    guard stem.hasSuffix(")"), let open = stem.lastIndex(of: "(") else { return nil }
    let digits = stem[open...].dropFirst().dropLast()
    guard let number = Int(digits), number > 0, stem[..<open].last == " " else { return nil }
    let leaf = String(stem[..<open].dropLast()) + ending
    guard numbered(leaf, number) == name else { return nil }
    return (leaf, number)
  }

  /// Returns a name beside one that is taken, such as `a (1).txt` for `a.txt`.
  package static func numbered(_ name: String, _ number: Int) -> String {
    let (stem, ending) = parts(of: name)
    let tail = " (\(number))\(ending)"
    var kept = Substring(stem)
    while kept.utf8.count + tail.utf8.count > most, !kept.isEmpty { kept.removeLast() }
    return kept + tail
  }
}

extension String {
  fileprivate var trimmingBlanks: String {
    let isBlank = { (scalar: Unicode.Scalar) in scalar == " " || scalar == "\t" }
    var scalars = unicodeScalars.drop(while: isBlank)
    while let last = scalars.last, isBlank(last) { scalars.removeLast() }
    return String(scalars)
  }
}
