import TarnCore

/// nginx's autoindex: `<pre>` with the link to the parent directory first, then name, minute (UTC unless `autoindex_localtime`),
/// and the size in bytes unless `autoindex_exact_size` is off.
struct NginxIndex: IndexDialect {
  var name: String { "nginx index" }

  func mark(in head: [UInt8]) -> IndexMark? {
    head.holds("index of ") && head.holds("<hr><pre><a href=\"../\">../</a>") ? .link("../") : nil
  }

  func facts(_ row: IndexRow) -> IndexFacts {
    let found = FeedTime.index(trimmed(row.after))
    var facts = IndexFacts(modified: found?.time, listing: IndexRow.line(row.wordsAfter))
    facts.note(size: found.flatMap { IndexSize.shown(IndexRow.words($0.rest), .binary) })
    return facts
  }
}

/// nginx's fancyindex module: `<table id="list">`, then the size, rounded or not, and the time in any form.
struct FancyIndex: IndexDialect {
  var name: String { "nginx fancyindex" }
  /// The footer is the owner's.
  var endsTheDocument: Bool { false }

  /// Recognises its column heads, which escape their `&` only since 0.4.4.
  func mark(in head: [UInt8]) -> IndexMark? {
    let sorts = ["<a href=\"?c=n&amp;o=a\">", "<a href=\"?c=n&o=a\">"]
    let isListing = head.holds("<table id=\"list\"") && sorts.contains(where: head.holds)
    return isListing ? .attribute("id", "list") : nil
  }

  func facts(_ row: IndexRow) -> IndexFacts {
    var facts = IndexFacts(listing: IndexRow.line(row.wordsAfter))
    facts.note(size: IndexSize.shown(row.wordsAfter, .binary))
    return facts
  }
}
