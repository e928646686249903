import TarnCore

/// The default servlet of Apache Tomcat, in any language: a table of name, size with one decimal, and time (GMT).
struct TomcatIndex: IndexDialect {
  var name: String { "Tomcat index" }

  /// Recognises the column heads in large letters, which are ordinary cells, and header cells since version 10.
  func mark(in head: [UInt8]) -> IndexMark? {
    guard let start = head.place(of: "<table width=\"100%\" cellspacing=\"0\" cellpadding=\"5\"") else {
      return nil
    }
    var rest = head[start...]
    for tags in [
      ["<table "], ["<thead>", ""], ["<tr>"], ["<td align=\"left\"", "<th align=\"left\""],
      ["<font size=\"+1\""], ["<strong>"],
    ] {
      rest = rest.drop(while: isBlank)
      guard let tag = tags.first(where: rest.begins) else { return nil }
      if tag.isEmpty { continue }
      guard let end = rest.firstIndex(of: UInt8(ascii: ">")) else { return nil }
      rest = rest[(end + 1)...]
    }
    return .attribute("cellpadding", "5")
  }

  /// Reads `38.0 kb Mon, 05 May 2008 21:49:33 GMT`.
  func facts(_ row: IndexRow) -> IndexFacts {
    let words = row.wordsAfter
    let shown = IndexSize.shown(words, .binary)
    let time = FeedTime.http(IndexRow.line(words.dropFirst(shown?.count ?? 0)))
    // Its tenths of a KiB are 103 bytes each, so the ninth begins late.
    let sizes = shown.map { $0.range.lowerBound...min($0.range.upperBound, UInt64(Int64.max) - 8) + 8 }
    return IndexFacts(
      modified: time, modifiedIsExact: time != nil, listing: IndexRow.line(words), sizes: sizes)
  }
}

/// LiteSpeed's autoindex script, as preformatted text, as a table or as a plain list.
///
/// The sizes are of the room that a file takes on the disk, so they do not show its length.
struct LiteSpeedIndex: IndexDialect {
  var name: String { "LiteSpeed index" }

  func mark(in head: [UInt8]) -> IndexMark? {
    let isSorted = ["'?nd'", "'?na'", "\"?nd\"", "\"?na\""].contains { head.holds("href=\($0)") }
    if isSorted, head.holds("<table id=\"table-content\"") { return .attribute("id", "table-content") }
    if isSorted, head.holds("</h1><pre>") || head.holds("/_autoindex/") { return .link("?n") }
    let isPlain = head.holds("</h1><ul>\n") && head.holds("proudly served by litespeed web server")
    return isPlain ? .behind("/h1", element: "ul") : nil
  }

  /// Reads `19-Jul-2018 03:39  21836k`.
  func facts(_ row: IndexRow) -> IndexFacts {
    IndexFacts(listing: IndexRow.line(row.wordsAfter.prefix(3)))
  }
}
