import TarnCore

/// Apache's mod_autoindex in all its forms: the plain list, and fancy in `<pre>` or in a table (with icons, icons that are links,
/// columns left out, sorted or not, HTML or XHTML).
///
/// Sizes are rounded and times are the server's own: both are only text. A page that the server makes each time (PHP, SSI) differs
/// in size from the file, so sizes in bytes are not exact either.
struct ApacheIndex: IndexDialect {
  var name: String { "Apache index" }
  /// The owner's footer may omit `</html>`; the list ends with its element.
  var endsTheDocument: Bool { false }
  var hasDescriptions: Bool { true }

  func mark(in head: [UInt8]) -> IndexMark? {
    // The links of the columns sort by name: no other server writes them this way.
    if head.holds("<a href=\"?c=n;o=") { return .link("?c=") }
    if head.holds("<table id=\"indexlist\">"), head.holds(" class=\"indexcolname\">") {
      return .attribute("id", "indexlist")
    }
    guard head.holds("<title>index of ") else { return nil }
    // The columns of 1.3, and of early releases of 2.0.
    for (link, order) in [("?n=", ""), ("?c=n&amp;o=", "?c="), ("?c=n&o=", "?c=")] {
      let columns = ["a", "d"].map { "<a href=\"\(link)\($0)\">name</a>" }
      if columns.contains(where: head.holds) { return .link(order.isEmpty ? link : order) }
    }
    guard head.holds("<title>index of /") else { return nil }
    if let heading = Self.behindHeading(head) {
      if heading.begins(with: "<ul>"), Self.isPlain(heading) { return .behind("/h1", element: "ul") }
      if heading.begins(with: "<pre>"), Self.hasColumnHead(heading.dropFirst(5)) { return .columnHead }
    }
    let columns = ["<th>name</th></tr>", "<th>name</th><th>", "<th class=\"indexcolname\">name</th>"]
    return columns.contains(where: head.holds) ? .columnHead : nil
  }

  /// Returns what follows `<h1>Index of /...</h1>`.
  private static func behindHeading(_ head: [UInt8]) -> ArraySlice<UInt8>? {
    guard let start = head.place(of: "<h1>index of /") ?? head.place(of: "<h1 id=\"indextitle\">index of /")
    else { return nil }
    guard let end = head[start...].place(of: "</h1>") else { return nil }
    return head[(end + 5)...].drop(while: isBlank)
  }

  /// Recognises the plain list, which puts a space before each name.
  private static func isPlain(_ list: ArraySlice<UInt8>) -> Bool {
    let first = list.dropFirst(4).drop(while: isBlank)
    if first.begins(with: "</ul>") { return true }
    guard first.begins(with: "<li><a href=\""), let end = first.firstIndex(of: UInt8(ascii: ">")) else {
      return false
    }
    guard let text = first[(end + 1)...].place(of: "\">") else { return false }
    return first[(text + 2)...].first == 0x20
  }

  /// Recognises `Name` without a link, after an icon or spaces.
  private static func hasColumnHead(_ text: ArraySlice<UInt8>) -> Bool {
    var text = text.drop(while: isBlank)
    if text.begins(with: "<img "), let end = text.firstIndex(of: UInt8(ascii: ">")) {
      text = text[(end + 1)...].drop(while: isBlank)
    }
    guard text.begins(with: "name "), let rule = text.place(of: "<hr") else { return false }
    return !text[..<rule].contains(UInt8(ascii: "<"))
  }

  /// Reads `2023-11-14 22:13 1.0K`, the date also as `14-Nov-2023`; what follows is a description.
  func facts(_ row: IndexRow) -> IndexFacts {
    let words = row.wordsAfter
    var kept: [[UInt8]] = []
    if words.count > 1, Self.isDate(words[0]), words[1].count == 5, words[1][2] == 0x3A {
      kept = Array(words[..<2])
    }
    var sizes: ClosedRange<UInt64>?
    if words.count > kept.count, Self.isSize(words[kept.count]) {
      sizes = IndexSize.shown([words[kept.count]], .binary)?.range
      kept.append(words[kept.count])
    }
    return IndexFacts(listing: IndexRow.line(kept), sizes: sizes)
  }

  private static func isDate(_ word: [UInt8]) -> Bool {
    let dashes = word.indices.filter { word[$0] == 0x2D }
    return word.count == 10 && dashes == [4, 7] || word.count == 11 && dashes == [2, 6]
  }

  private static func isSize(_ word: [UInt8]) -> Bool {
    let digits = Array("KMGTPE".utf8).contains(word.last ?? 0) ? word.dropLast() : word[...]
    return digits.contains(where: \.isASCIIDigit)
      && digits.allSatisfy { $0.isASCIIDigit || $0 == 0x2E }
  }
}
