import TarnCore

/// The index of Maven Central and of repositories that use the same page: `<pre id="contents">`, then name, minute (UTC) and the
/// size in bytes.
struct MavenIndex: IndexDialect {
  var name: String { "Maven Central index" }

  func mark(in head: [UInt8]) -> IndexMark? {
    head.holds("<pre id=\"contents\">") && head.holds("<a href=\"../\">../</a>")
      ? .attribute("id", "contents") : nil
  }

  /// Reads `2005-09-21 03:35  733741`.
  func facts(_ row: IndexRow) -> IndexFacts {
    let words = row.wordsAfter
    var facts = IndexFacts(modified: FeedTime.minute(words), listing: IndexRow.line(words))
    if facts.modified != nil { facts.note(size: IndexSize.shown(words.dropFirst(2))) }
    return facts
  }
}

/// JFrog Artifactory: a head in a `<pre>` of its own, then the list in another. The time is the server's own.
struct ArtifactoryIndex: IndexDialect {
  var name: String { "Artifactory index" }
  /// Newer versions break the line after each link.
  var rowsAreLines: Bool { false }

  func mark(in head: [UInt8]) -> IndexMark? {
    guard head.holds("<h1>index of "), let start = head.place(of: "<pre>name "),
      let end = head[start...].place(of: "size</pre>"), head[start..<end].holds("last modified")
    else { return nil }
    var rest = head[end...].dropFirst("size</pre>".utf8.count)
    for tag in ["<hr/>", "<pre>"] {
      rest = rest.drop(while: isBlank)
      guard rest.begins(with: tag) else { return nil }
      rest = rest.dropFirst(tag.utf8.count)
    }
    return rest.drop(while: isBlank).begins(with: "<a href=\"../") ? .link("../") : nil
  }

  /// Reads `17-Jan-2019 19:40  1.26 MB`, `78 bytes`, and `->` before a file that is not cached.
  func facts(_ row: IndexRow) -> IndexFacts {
    let words = row.wordsAfter.drop { $0.elementsEqual("->".utf8) }
    var facts = IndexFacts(listing: IndexRow.line(words))
    facts.note(size: IndexSize.shown(words.dropFirst(2)))
    return facts
  }
}
