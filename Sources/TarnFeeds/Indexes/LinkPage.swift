import TarnCore

/// Any web page, read for its links (`--format links`): those that lead below the page, as in wget's `-np`, lftp and rclone. A link
/// that ends in a slash is a directory with such a page again; any other is a file.
///
/// What a page omits cannot be known, so it is never complete.
struct LinkPage: FeedFormat {
  private static let elements = ["a", "area"]

  var name: String { "links of a web page" }
  var kind: FeedKind { .index }

  /// Recognises HTML, with or without its frame; a warning of PHP may precede it.
  func recognises(_ head: [UInt8]) -> Bool {
    let text = lowercased(head.drop(while: isBlank))
    // Feeds and JSON contain markup in their texts.
    guard let first = text.first, !Array("{[".utf8).contains(first) else { return false }
    if text.begins(with: "<?xml") { return text.holds("<html") }
    return ["<html", "<!doctype html", "<head", "<body", "<a "].contains(where: text.holds)
  }

  func read(_ input: FeedInput, in context: FeedContext, sink: FeedSink) throws -> FeedEnd {
    var scanner = HTMLScanner(input)
    var links = PageLinks(context)
    var page = UnrecognisedPage(context.document)
    while let bytes = try scanner.next().tag {
      let tag = HTMLTag(bytes)
      if tag.element == "base" { links.rebase(tag.attribute("href")) }
      page.read(tag)
      guard Self.elements.contains(tag.element), let href = tag.attribute("href") else { continue }
      try links.follow(href, sink: sink)
    }
    try links.handFiles(to: sink)
    if let failure = page.loginFailure { throw failure }
    if links.isEmpty, context.document.place == nil {
      throw FeedFailure(
        code: "feed-without-links",
        message: "no link of this page leads below it; give the URL of the directory, with a slash at its end"
      )
    }
    var end = FeedEnd(format: name, isComplete: false, incompleteReason: Self.reason)
    end.notice = links.notice
    return end
  }

  static let reason = "a web page need not have a link to each file"
}

/// The links of one page that were passed on, each once.
private struct PageLinks {
  private var place: IndexPlace
  private let page: String
  private var isBased = false
  private var known: Set<[UInt8]> = []
  /// The files, which are passed on at the end: a link without its slash may lead to a directory that another link names.
  private var files: [(name: [UInt8], target: IndexPlace.Target)] = []
  private var questions: Set<[UInt8]> = []

  init(_ context: FeedContext) {
    place = IndexPlace(context)
    var url = context.url
    url.query = nil
    page = url.text
  }

  var isEmpty: Bool { known.isEmpty }

  /// The notice about links with a query, which may ask for anything: the sort order of a page, or a file.
  var notice: FeedEnd.Notice? {
    guard let first = questions.min(by: { $0.lexicographicallyPrecedes($1) }) else { return nil }
    return .init(
      .linksLeftOut,
      "\(Units.count(questions.count, "link")) with a query, such as that to \(Printable.escape(first)), "
        + "\(questions.count == 1 ? "is" : "are") left out; a list of URLs can name them, with the files' names (aria2's out=)"
    )
  }

  /// Takes the base of a page; the first one counts (HTML 4.2.3).
  mutating func rebase(_ href: [UInt8]?) {
    guard let href, !isBased else { return }
    isBased = true
    place.rebase(href)
  }

  mutating func follow(_ href: [UInt8], sink: FeedSink) throws {
    let href = trimmed(href)
    guard let (target, hasQuery) = place.below(href), hasQuery || target.url != page else { return }
    let name = Array((target.directories + [target.name]).joined(separator: [0x2F]))
    guard !hasQuery else {
      questions.insert(name)
      return
    }
    guard known.insert(target.isDirectory ? name + [0x2F] : name).inserted else { return }
    guard target.isDirectory else { return files.append((name, target)) }
    try hand(target, to: sink)
  }

  /// Passes on the files, in the order of their links.
  mutating func handFiles(to sink: FeedSink) throws {
    for (name, target) in files where !known.contains(name + [0x2F]) { try hand(target, to: sink) }
    files = []
  }

  private func hand(_ target: IndexPlace.Target, to sink: FeedSink) throws {
    try place.emit(target, sink: sink) { path in
      Entry(path: path, sources: [Source(url: target.url)], mayBeDirectory: true)
    }
  }
}
