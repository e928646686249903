import TarnCore

/// nginx's autoindex: `<pre>` with the link to the directory above first, then name, minute (UTC unless
/// `autoindex_localtime`), and the size in bytes unless `autoindex_exact_size` is off.
struct NginxIndex: IndexDialect {
  var name: String { "nginx index" }

  func mark(in head: [UInt8]) -> IndexMark? {
    head.holds("index of ") && head.holds("<hr><pre><a href=\"../\">../</a>") ? .link("../") : nil
  }

  func facts(_ row: IndexRow) -> IndexFacts {
    let found = FeedTime.index(trimmed(row.after))
    return IndexFacts(
      size: found.flatMap { IndexSize.exact(trimmed($0.rest)) }, modified: found?.time,
      listing: Array(row.wordsAfter.joined(separator: [0x20])))
  }
}

/// Sizes as indexes print them.
enum IndexSize {
  /// Whole bytes; nil for anything rounded.
  static func exact(_ text: some Collection<UInt8>) -> UInt64? {
    guard !text.isEmpty, text.allSatisfy(Percent.isDigit),
      let size = UInt64(String(decoding: text, as: UTF8.self)), size <= Int64.max
    else { return nil }
    return size
  }
}

/// nginx's fancyindex module: `<table id="list">`, the size mostly rounded and the time in any form.
struct FancyIndex: IndexDialect {
  var name: String { "nginx fancyindex" }
  /// Its footer is the owner's.
  var endsTheDocument: Bool { false }

  func mark(in head: [UInt8]) -> IndexMark? {
    head.holds("<table id=\"list\">") && head.holds("<a href=\"?c=n&amp;o=a\">")
      ? .attribute("id", "list") : nil
  }

  func facts(_ row: IndexRow) -> IndexFacts {
    IndexFacts(listing: Array(row.wordsAfter.joined(separator: [0x20])))
  }
}
