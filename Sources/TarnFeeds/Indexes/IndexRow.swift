import TarnCore

/// A row of an index page: its link, and the text around it.
struct IndexRow {
  private static let maximumText = 1024

  fileprivate(set) var target: IndexPlace.Target?
  fileprivate var isInLink = false
  /// The text before and after the link, with a space between elements.
  private(set) var before: [UInt8] = []
  private(set) var after: [UInt8] = []
  /// The values that the dialect found in attributes.
  var size: [UInt8]?
  var time: [UInt8]?
  var isSymlink = false
  var isDirectory = false

  init(after text: [UInt8] = []) {
    after = text
  }

  fileprivate mutating func add(_ text: some Sequence<UInt8>) {
    guard !isInLink else { return }
    if target == nil {
      before = before.suffix(Self.maximumText) + text
    } else if after.count < Self.maximumText {
      after += text
    }
  }

  fileprivate mutating func forgetTextBehind() { after = [] }

  /// The words after the link, without blanks.
  var wordsAfter: [[UInt8]] { Self.words(after) }
  var wordsBefore: [[UInt8]] { Self.words(before) }

  static func words(_ text: some Collection<UInt8>) -> [[UInt8]] {
    text.split(whereSeparator: isBlank).map { Array($0) }.filter { !$0.elementsEqual("&nbsp;".utf8) }
  }

  static func line(_ words: some Collection<[UInt8]>) -> [UInt8] { Array(words.joined(separator: [0x20])) }
}

/// Splits the list into rows and passes on what their links name.
///
/// A row is a `tr` in a table, an `li` in a list, and a line in preformatted text (or what `br` or `hr` separates).
struct IndexRows {
  private let dialect: any IndexDialect
  private var place: IndexPlace
  private var row = IndexRow()
  /// The number of children passed on, and the number of links of the list that lead out of the directory.
  private var names = 0
  private var foreign = 0
  /// The number of links to files with a query, whose meaning is not known.
  private var questions = 0
  /// The number of links to what lies in a directory below.
  private var deeper = 0
  var isPreformatted = false

  init(_ dialect: any IndexDialect, _ context: FeedContext) {
    self.dialect = dialect
    place = IndexPlace(context)
  }

  /// Takes a `<base href>` (HTML 4.2.3): links are relative to it.
  mutating func rebase(_ href: [UInt8]?) {
    if let href { place.rebase(href) }
  }

  var doubt: String? {
    if names == 0, foreign > 0 {
      return "every link of the list leads out of the directory: it is served below another URL?"
    }
    if questions > 0 {
      let (have, they) = questions == 1 ? ("has", "it leads") : ("have", "they lead")
      return "\(Units.count(questions, "link")) of the list \(have) a query, so what \(they) to is not known"
    }
    if deeper > 0 {
      return
        "what lies deeper is left out: \(Units.count(deeper, "link")) of the list into directories below it"
    }
    return dialect.doubt(names: names)
  }

  /// Reads a tag inside the list and the text before it.
  mutating func read(_ tag: HTMLTag, textBefore text: [UInt8], sink: FeedSink) throws {
    try add(text, sink: sink)
    switch tag.element {
    case "tr", "li", "br", "hr": try flush(to: sink)
    case "a": try link(tag, sink: sink)
    case "/a":
      row.isInLink = false
      row.add([0x20])
    default:
      row.add([0x20])
      dialect.read(tag, into: &row)
    }
  }

  /// Reads the text before the end tag of the list.
  mutating func finish(_ text: [UInt8], sink: FeedSink) throws {
    try add(text, sink: sink)
    try flush(to: sink)
  }

  /// Adds text. In preformatted text a line feed outside a link ends the row.
  private mutating func add(_ text: [UInt8], sink: FeedSink) throws {
    guard isPreformatted, dialect.rowsAreLines, !row.isInLink, let first = text.firstIndex(of: 0x0A),
      let last = text.lastIndex(of: 0x0A)
    else { return row.add(text) }
    row.add(text[..<first])
    try flush(to: sink)
    row.add(text[(last + 1)...])
  }

  /// Returns the address of a link. A server that escapes nothing means a name, even with a colon in it.
  private func address(_ tag: HTMLTag) -> [UInt8]? {
    if dialect.escapesLinks { return tag.attribute("href") }
    let href = tag.attribute("href", isEscaped: false)
    return href.map { $0.first == 0x2F ? $0 : Array("./".utf8) + $0 }
  }

  private mutating func link(_ tag: HTMLTag, sink: FeedSink) throws {
    guard let href = address(tag) else {
      return dialect.read(tag, into: &row)
    }
    if row.isInLink { try flush(to: sink) }
    row.isInLink = true
    dialect.read(tag, into: &row)
    switch place.meaning(of: href) {
    case .here: break
    case .elsewhere: if row.target == nil { foreign += 1 }
    case .question: if row.target == nil { questions += 1 }
    case .deeper: if row.target == nil { deeper += 1 }
    case .misread(let name):
      guard row.target == nil else { return }
      names += 1
      try sink(
        place.refusal(
          name, code: "url-not-relative",
          reason: "its link reads as an address of another kind: the server should write './' before the name"
        ))
    case .child(let target):
      guard let known = row.target else { return row.target = target }
      // An icon links to the same file.
      if known.url == target.url { return row.forgetTextBehind() }
      if dialect.hasDescriptions { return }
      try flush(to: sink)
      row.target = target
      row.isInLink = true
    }
  }

  private mutating func flush(to sink: FeedSink) throws {
    let row = self.row
    self.row = IndexRow()
    guard var target = row.target else { return }
    names += 1
    if !target.isDirectory, dialect.isDirectory(row) { target = target.asDirectory }
    target.name = dialect.fileName(target.name)
    try place.emit(target, sink: sink) { path in
      let facts = dialect.facts(row)
      return Entry(
        path: path, size: facts.size, modified: facts.modified, modifiedIsExact: facts.modifiedIsExact,
        sources: [Source(url: target.url)], listing: facts.listing,
        mayBeDirectory: !dialect.tellsDirectories, hint: ContentHint(sizes: facts.sizes))
    }
  }
}
