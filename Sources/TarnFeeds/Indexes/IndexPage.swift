import TarnCore

/// A directory index in HTML. It is accepted only when complete: a cut page would look like deletions.
///
/// For all servers, names come only from `href`, and only the links of the list itself count: what surrounds it (a header, a
/// footer, a description) names no file.
struct IndexPage: FeedFormat {
  let dialect: any IndexDialect

  var name: String { dialect.name }
  var kind: FeedKind { .index }

  init(_ dialect: any IndexDialect) {
    self.dialect = dialect
  }

  func recognises(_ head: [UInt8]) -> Bool { mark(in: head) != nil }

  private func mark(in head: [UInt8]) -> IndexMark? {
    guard head.first(where: { !isBlank($0) }) == UInt8(ascii: "<") else { return nil }
    return dialect.mark(in: lowercased(head))
  }

  func read(_ input: FeedInput, in context: FeedContext, sink: FeedSink) throws -> FeedEnd {
    guard let mark = mark(in: try input.peek()) else { throw unknown }
    if case .otherwise(let reason) = mark {
      throw FeedFailure(
        code: "index-layout", message: "this is a \(name) in a form that Tarn does not read: \(reason)")
    }
    var scanner = HTMLScanner(input)
    var list = IndexList(mark: mark)
    var rows = IndexRows(dialect, context)
    var isClosed = false
    while true {
      let (text, found) = try scanner.next()
      if isClosed, text.contains(where: { !isBlank($0) }) { isClosed = false }
      guard let bytes = found else { break }
      let tag = HTMLTag(bytes)
      isClosed = tag.element == "/html"
      if tag.element == "base", !list.isOpen { rows.rebase(tag.attribute("href")) }
      let wasInside = list.isInside
      try list.read(tag, textBefore: text)
      rows.isPreformatted = list.isPreformatted
      if list.isInside, wasInside || list.beginsWithLink {
        try rows.read(tag, textBefore: wasInside ? text : [], sink: sink)
      } else if wasInside {
        try rows.finish(text, sink: sink)
      }
    }
    guard list.wasFound else { throw unknown }
    guard list.isOver, isClosed || !dialect.endsTheDocument else {
      throw FeedFailure.truncated("the index page ends before its list or its </html> does")
    }
    let reason = IndexPlace.doubt(of: context.url) ?? rows.doubt
    return FeedEnd(format: name, isComplete: reason == nil, incompleteReason: reason ?? "")
  }

  private var unknown: FeedFailure {
    FeedFailure(code: "feed-not-recognised", message: "the list of this directory index is not found")
  }
}

/// The marks of one server's pages, and the meaning of a row of their lists.
protocol IndexDialect: Sendable {
  /// The name as `tarn status` prints it.
  var name: String { get }
  /// True when the server's pages always end with `</html>`.
  var endsTheDocument: Bool { get }
  /// False when a row looks the same for a file and for a directory.
  var tellsDirectories: Bool { get }
  /// True when rows may hold links of the server's owner after the one that counts.
  var hasDescriptions: Bool { get }
  /// False when a row in preformatted text continues until the next link.
  var rowsAreLines: Bool { get }
  /// False when a link's address is the name with `%` codes, in which `&` and `:` mean themselves.
  var escapesLinks: Bool { get }
  /// Returns the mark that begins the list on this page; `nil` when the page is not this server's.
  ///
  /// - Parameter head: the first bytes of the page, in lower case.
  func mark(in head: [UInt8]) -> IndexMark?
  /// Reads what a tag says about its row.
  func read(_ tag: HTMLTag, into row: inout IndexRow)
  /// Returns the name of the file from the percent-decoded one.
  func fileName(_ name: [UInt8]) -> [UInt8]
  func facts(_ row: IndexRow) -> IndexFacts
  /// Returns true for the row of a directory; usually its link ends in a slash.
  func isDirectory(_ row: IndexRow) -> Bool
  /// Returns why a list of so many names may be incomplete.
  func doubt(names: Int) -> String?
}

extension IndexDialect {
  var endsTheDocument: Bool { true }
  var tellsDirectories: Bool { true }
  var hasDescriptions: Bool { false }
  var rowsAreLines: Bool { true }
  var escapesLinks: Bool { true }
  func read(_ tag: HTMLTag, into row: inout IndexRow) {}
  func fileName(_ name: [UInt8]) -> [UInt8] { name }
  func facts(_ row: IndexRow) -> IndexFacts { IndexFacts() }
  func isDirectory(_ row: IndexRow) -> Bool { row.isDirectory || row.target?.isDirectory == true }
  func doubt(names: Int) -> String? { nil }
}

/// The mark that begins the list of a page.
enum IndexMark: Equatable {
  /// A link with this beginning, which stands in the list.
  case link(String)
  /// An attribute of the list's start tag, in lower case.
  case attribute(String, String)
  /// The start tag of the list directly after this other tag.
  case behind(String, element: String)
  /// A column head `Name` without a link.
  case columnHead
  /// The page is this server's and is not read, for this reason.
  case otherwise(String)
}

/// The facts that a row gives about a file. A rounded size and a time of unknown zone are only text.
struct IndexFacts {
  var size: UInt64?
  var modified: Timestamp?
  var modifiedIsExact = false
  var listing: [UInt8] = []
  /// The sizes that this server shows in the same way; `nil` where `size` is known, or nothing is.
  var sizes: ClosedRange<UInt64>?

  /// Notes a size of a server that does not round bytes: it is exact where it is one number.
  mutating func note(size shown: IndexSize.Shown?) {
    guard let range = shown?.range else { return }
    if range.lowerBound == range.upperBound { size = range.lowerBound } else { sizes = range }
  }
}

/// Follows the elements that may be the list: `pre`, `table` and `ul`.
private struct IndexList {
  private static let kinds = ["pre", "table", "ul"]
  private static let maximumDepth = 64

  let mark: IndexMark
  private var open: [String] = []
  /// The depth of the list in `open`; `nil` before it is found and after its end.
  private var depth: Int?
  private(set) var wasFound = false
  private(set) var isPreformatted = false
  /// True when the tag that marked the list is a link of its first row.
  private(set) var beginsWithLink = false
  private var previous = ""

  init(mark: IndexMark) {
    self.mark = mark
  }

  var isOpen: Bool { !open.isEmpty }
  var isInside: Bool { depth != nil }
  var isOver: Bool { wasFound && depth == nil }

  mutating func read(_ tag: HTMLTag, textBefore text: [UInt8]) throws(FeedFailure) {
    beginsWithLink = false
    let isStart = Self.kinds.contains(tag.element)
    if isStart {
      open.append(tag.element)
      guard open.count <= Self.maximumDepth else {
        throw FeedFailure.malformed("the elements of the page nest deeper than \(Self.maximumDepth) levels")
      }
    }
    if !wasFound, let innermost = open.last,
      begins(at: tag, isStart: isStart, in: innermost, text: text)
    {
      wasFound = true
      depth = open.count
      beginsWithLink = tag.element == "a"
      isPreformatted = innermost == "pre"
    }
    if tag.element.hasPrefix("/"), let index = open.lastIndex(of: String(tag.element.dropFirst())) {
      open.removeSubrange(index...)
      if let depth, open.count < depth { self.depth = nil }
    }
    previous = tag.element
  }

  private func begins(at tag: HTMLTag, isStart: Bool, in innermost: String, text: [UInt8]) -> Bool {
    switch mark {
    case .link(let href):
      guard tag.element == "a", innermost != "ul", let found = tag.attribute("href") else { return false }
      return lowercased(found).begins(with: href)
    case .attribute(let name, let value):
      guard isStart, let found = tag.attribute(name) else { return false }
      return lowercased(found).elementsEqual(value.utf8)
    case .behind(let other, let element):
      return tag.element == element && previous == other && text.allSatisfy(isBlank)
    case .columnHead:
      let word = lowercased(trimmed(text))
      if innermost == "pre" {
        return tag.element == "hr" && (previous == "pre" || previous == "img") && word.begins(with: "name")
      }
      return innermost == "table" && tag.element == "/th" && previous == "th"
        && word.elementsEqual("name".utf8)
    case .otherwise: return false
    }
  }
}
