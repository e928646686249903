import TarnCore

/// lighttpd's mod_dirlisting: a table with classes. The size is cut to one decimal and the time is the server's own.
struct LighttpdIndex: IndexDialect {
  var name: String { "lighttpd index" }
  /// `dir-listing.auto-layout` may omit the whole frame.
  var endsTheDocument: Bool { false }

  /// The media type may stand in a row that the owner made.
  var hasDescriptions: Bool { true }

  func mark(in head: [UInt8]) -> IndexMark? {
    let isListing =
      head.holds("<table summary=\"directory listing\"") && head.holds("index of /")
      && head.holds("<th class=\"n\">name</th>")
    return isListing ? .attribute("summary", "directory listing") : nil
  }

  /// Reads `2023-Nov-14 22:13:20 0.1K`, without the media type.
  func facts(_ row: IndexRow) -> IndexFacts {
    let words = row.wordsAfter.drop { $0.elementsEqual("/".utf8) }.prefix(3)
    return IndexFacts(
      listing: IndexRow.line(row.wordsAfter.prefix(3)),
      sizes: IndexSize.shown(words.dropFirst(2), .binary)?.range)
  }
}

/// h2o's file.dirlisting: only names. A directory differs from a file only by its redirect.
struct H2OIndex: IndexDialect {
  var name: String { "h2o index" }
  var endsTheDocument: Bool { false }
  var tellsDirectories: Bool { false }

  func mark(in head: [UInt8]) -> IndexMark? {
    let isListing =
      head.holds("<title>index of /") && head.holds("<ul>\n<li><a href=\"..\">parent directory</a>")
    return isListing && head.holds("<h2>index of /") ? .behind("/h2", element: "ul") : nil
  }

  func doubt(names: Int) -> String? {
    names == 0 ? nil : "h2o does not tell directories from files, so what is below them is not listed"
  }
}

/// The index of `python3 -m http.server`: only names.
struct PythonIndex: IndexDialect {
  var name: String { "Python http.server index" }

  func mark(in head: [UInt8]) -> IndexMark? {
    let isHeaded = head.holds("</h1>\n<hr>\n<ul>") || head.holds("</h2>\n<hr>\n<ul>")
    return isHeaded && head.holds("<title>directory listing for /") ? .behind("hr", element: "ul") : nil
  }

  /// Decodes bytes that are not UTF-8, which come as lone surrogates (PEP 383): U+DC80 to U+DCFF in three bytes each.
  func fileName(_ name: [UInt8]) -> [UInt8] {
    var result: [UInt8] = []
    var rest = name[...]
    while let byte = rest.first {
      if byte == 0xED, rest.count > 2, let low = Self.escaped(rest.dropFirst().prefix(2)) {
        result.append(low)
        rest = rest.dropFirst(3)
      } else {
        result.append(byte)
        rest = rest.dropFirst()
      }
    }
    return result
  }

  private static func escaped(_ pair: ArraySlice<UInt8>) -> UInt8? {
    guard let high = pair.first, let low = pair.last, high == 0xB2 || high == 0xB3, low & 0xC0 == 0x80 else {
      return nil
    }
    return high << 6 | low & 0x3F
  }
}

/// The directory browsing of Microsoft's IIS: lines of time, size or `<dir>`, then the link.
///
/// The size is in bytes. The time is in the server's language and zone, so it is only text.
struct IISIndex: IndexDialect {
  var name: String { "IIS index" }

  /// Recognises `<title>HOST - /PATH/</title></head><body><H1>HOST - /PATH/</H1><hr>` and a `<pre>`.
  func mark(in head: [UInt8]) -> IndexMark? {
    guard let start = head.place(of: "<title>"), let end = head[start...].place(of: "</title>") else {
      return nil
    }
    let title = head[(start + 7)..<end]
    guard title.holds(" - /"), title.last == 0x2F else { return nil }
    let rest = head[end...]
    let heading = Array("</title></head><body><h1>".utf8) + title + Array("</h1><hr>".utf8)
    guard rest.starts(with: heading) else { return nil }
    return rest.dropFirst(heading.count).drop(while: isBlank).begins(with: "<pre>")
      ? .behind("hr", element: "pre") : nil
  }

  func facts(_ row: IndexRow) -> IndexFacts {
    IndexFacts(size: Self.size(row.before), listing: Array(row.wordsBefore.joined(separator: [0x20])))
  }

  /// Reads the last word when it stands in a column of its own: the last word of a date may be a year.
  private static func size(_ text: [UInt8]) -> UInt64? {
    let text = trimmed(text)
    let digits = text.reversed().prefix { $0.isASCIIDigit }.count
    let gap = text.dropLast(digits).suffix(2)
    guard gap.count == 2, gap.allSatisfy(isBlank) || digits > 4 && gap.last == 0x20 else { return nil }
    return IndexSize.exact(text.suffix(digits))
  }
}

/// The page of product-delivery.mozilla.org: a table of kind, name, rounded size and time.
struct MozillaIndex: IndexDialect {
  var name: String { "Mozilla index" }

  func mark(in head: [UInt8]) -> IndexMark? {
    guard head.holds("<title>directory listing: /"), let start = head.place(of: "<th>type</th>") else {
      return nil
    }
    return head[start...].dropFirst("<th>type</th>".utf8.count).drop(while: isBlank).begins(
      with: "<th>name</th>")
      ? .columnHead : nil
  }

  /// Reads `3M 27-Oct-2015 17:38`.
  func facts(_ row: IndexRow) -> IndexFacts {
    IndexFacts(listing: IndexRow.line(row.wordsAfter), sizes: IndexSize.shown(row.wordsAfter)?.range)
  }
}

/// darkhttpd: the path as title and heading, then `<pre>` with the size in bytes. Newer versions show the server's own time, too.
struct DarkhttpdIndex: IndexDialect {
  var name: String { "darkhttpd index" }

  func mark(in head: [UInt8]) -> IndexMark? {
    guard let start = head.place(of: "<title>"), let end = head[start...].place(of: "</title>") else {
      return nil
    }
    let title = head[start..<end].dropFirst("<title>".utf8.count)
    guard title.first == 0x2F, title.last == 0x2F else { return nil }
    let heading = Array("<h1>".utf8) + title
    for (list, previous) in [("</h1>\n<pre>\n", "/h1"), ("</h1>\n<tt><pre>\n", "tt")] {
      guard let place = head[end...].place(of: list),
        head[end..<place].suffix(heading.count).elementsEqual(heading)
      else { continue }
      let first = head[place...].dropFirst(list.utf8.count)
      guard first.begins(with: "<a href=\"") || first.begins(with: "</pre>") else { continue }
      return .behind(previous, element: "pre")
    }
    return nil
  }

  /// Older versions put the slash only after the link.
  func isDirectory(_ row: IndexRow) -> Bool {
    row.target?.isDirectory == true || trimmed(row.after).first == 0x2F
  }

  /// Reads `2024-03-01 10:20  1202701165`, or the size alone.
  func facts(_ row: IndexRow) -> IndexFacts {
    let words = row.wordsAfter.drop { $0.elementsEqual("/".utf8) }
    return IndexFacts(size: words.last.flatMap { IndexSize.exact($0) }, listing: IndexRow.line(words))
  }
}

/// miniserve: a table that sorts by queries. Its relative time changes as time passes, so only the size is kept.
struct MiniserveIndex: IndexDialect {
  var name: String { "miniserve index" }
  /// Older versions omit `</html>`.
  var endsTheDocument: Bool { false }

  func mark(in head: [UInt8]) -> IndexMark? {
    let sort = "<a href=\"?sort=name&amp;order="
    return head.holds(sort) && head.holds("title=\"sort by name in ") ? .link("?sort=name") : nil
  }

  /// Reads the class of a link, since older versions omit the slash of a directory.
  func read(_ tag: HTMLTag, into row: inout IndexRow) {
    guard tag.element == "a", let kind = tag.attribute("class") else { return }
    if kind.elementsEqual("directory".utf8) { row.isDirectory = true }
  }

  /// Reads `2.3 GB 2022-05-01 12:00:00 +00:00`, and how long ago that was; older versions write the time without a year.
  func facts(_ row: IndexRow) -> IndexFacts {
    var rest = row.wordsAfter[...]
    var facts = IndexFacts()
    while !rest.isEmpty {
      // A day or a year is a number without a unit.
      if facts.listing.isEmpty, let shown = IndexSize.shown(rest), shown.count == 2 {
        facts.listing = IndexRow.line(rest.prefix(2))
        facts.note(size: shown)
      }
      let moment = IndexRow.line(rest.prefix(2)) + rest.dropFirst(2).prefix(1).joined()
      if let time = FeedTime.rfc3339(moment) {
        facts.modified = time
        facts.modifiedIsExact = true
      }
      rest = rest.dropFirst()
    }
    return facts
  }
}

/// webfs: lines as in `ls -l`, then the link, whose text and address are not escaped for HTML.
struct WebfsIndex: IndexDialect {
  var name: String { "webfs index" }
  /// The page has no frame.
  var endsTheDocument: Bool { false }
  var escapesLinks: Bool { false }

  func mark(in head: [UInt8]) -> IndexMark? {
    let columns = "<pre>\n<b>access      user      group     date             size  name</b>"
    return head.holds("<h1>listing:") && head.holds("<hr noshade size=1>\(columns)")
      ? .behind("hr", element: "pre") : nil
  }

  /// Reads the date and the size of `-rw-r--r--  root  root  Aug 27  2021    14 MB`.
  func facts(_ row: IndexRow) -> IndexFacts {
    let words = row.wordsBefore
    var facts = IndexFacts(listing: IndexRow.line(words.suffix(5)))
    facts.note(size: IndexSize.shown(words.suffix(2), .binary))
    return facts
  }
}
