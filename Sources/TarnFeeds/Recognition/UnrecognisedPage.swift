import TarnCore

/// A web page that is not a known directory index.
struct UnrecognisedPage {
  private let code: String
  private let base: URLReference
  private var title: [UInt8] = []
  private var hasPassword = false
  /// The first feed that the page's head names.
  private var feed: URLReference?
  private var links = 0
  private var linksBelow = 0

  private static let elements = [
    "html", "head", "title", "meta", "link", "script", "style", "body", "h1", "h2", "p", "pre", "ul", "ol",
    "table",
    "div", "a", "center", "font", "br", "hr",
  ]

  static func recognises(_ head: [UInt8]) -> Bool {
    if isFramed(head) { return true }
    return XMLRoot(head).map { elements.contains(String(decoding: lowercased($0.name.utf8), as: UTF8.self)) }
      ?? false
  }

  /// Recognises a whole page, not a part of one.
  private static func isFramed(_ head: [UInt8]) -> Bool {
    let text = lowercased(trimmed(head))
    return text.begins(with: "<!doctype html") || text.holds("<html")
  }

  /// A page of which `read` takes the tags.
  init(code: String = webPage, _ document: FeedDocument) {
    self.code = code
    base = URLReference(document.url)
  }

  init(_ head: [UInt8], _ document: FeedDocument) {
    self.init(code: Self.isFramed(head) ? Self.webPage : "feed-not-recognised", document)
    var scanner = HTMLScanner(FeedInput(Head(bytes: head)))
    var previous = ""
    do throws(FeedFailure) {
      while true {
        let (text, found) = try scanner.next()
        if ["title", "h1", "h2"].contains(previous) { title += lowercased(text) + [0x0A] }
        guard let found else { break }
        let tag = HTMLTag(found)
        read(tag)
        previous = tag.element
      }
    } catch {
      // The head may end in the middle of a tag; what came before is enough.
    }
  }

  mutating func read(_ tag: HTMLTag) {
    switch tag.element {
    case "a":
      guard let href = tag.attribute("href").map({ trimmed($0) }), let first = href.first else { return }
      let isElsewhere = first == UInt8(ascii: "#") || first == UInt8(ascii: "?")
      if !isElsewhere { count(base.resolve(URLReference(href))) }
    case "input":
      hasPassword =
        hasPassword || tag.attribute("type").map { lowercased($0).elementsEqual("password".utf8) } ?? false
    case "link": takeFeed(tag)
    default: break
    }
  }

  private mutating func count(_ url: URLReference) {
    // A link to a parent directory says nothing about the page.
    guard url.path.count > base.directory.count || !base.directory.starts(with: url.path) else { return }
    links += 1
    guard url.isSameOrigin(as: base), url.query == nil, url.path.starts(with: base.directory) else { return }
    let rest = url.path.dropFirst(base.directory.count)
    if !rest.isEmpty, !rest.dropLast().contains(0x2F) { linksBelow += 1 }
  }

  private mutating func takeFeed(_ tag: HTMLTag) {
    let types = [
      "application/rss+xml", "application/atom+xml", "application/feed+json", "application/rdf+xml",
    ]
    guard feed == nil, let rel = tag.attribute("rel"), let href = tag.attribute("href"),
      let type = tag.attribute("type").map({ lowercased(trimmed($0)) }),
      lowercased(rel).split(whereSeparator: isBlank).contains(where: { $0.elementsEqual("alternate".utf8) }),
      types.contains(where: { type.elementsEqual($0.utf8) })
    else { return }
    let url = base.resolve(URLReference(trimmed(href)))
    if url.isRemote { feed = url }
  }

  private var isIndex: Bool {
    ["index of", "directory listing", "directory index", "directory: /"].contains { title.holds($0) }
      || links >= 2 && 2 * linksBelow > links
  }

  var failure: FeedFailure {
    if let feed {
      return FeedFailure(
        code: code, message: "this is a web page, not a feed; it names its feed: \(feed.text)",
        hint: "give that address")
    }
    if hasPassword { return loginPage }
    if isIndex {
      let known = FeedParser.formats.filter(\.isListing).map(\.name).joined(separator: ", ")
      return FeedFailure(
        code: code,
        message: "this looks like a directory index, of a server that Tarn does not know; it knows: \(known)",
        hint: Self.links)
    }
    return FeedFailure(
      code: code, message: "this is a web page (a login page or an error page?), not a feed",
      hint: "give the feed's own URL"
        + (linksBelow > 0 ? "; or, where this page names the files: \(Self.links)" : "; nothing was changed"))
  }

  /// The refusal of a login page; `nil` for a listing, which may have a field to log in.
  var loginFailure: FeedFailure? { hasPassword && !isIndex ? loginPage : nil }

  private var loginPage: FeedFailure {
    FeedFailure(
      code: code, message: "this is a login page, not a feed",
      hint: "give what the server asks for with --header-file, --cookies or --netrc; nothing was changed")
  }

  private static let webPage = "feed-is-a-web-page"
  private static let links =
    "--format links (setting: format = \"links\") takes the links that lead below the page"
}

/// A source of bytes in memory.
private struct Head: ByteSource {
  let bytes: [UInt8]
  private var position = 0

  init(bytes: [UInt8]) {
    self.bytes = bytes
  }

  mutating func read(into buffer: UnsafeMutableRawBufferPointer) throws(FeedFailure) -> Int {
    let count = min(buffer.count, bytes.count - position)
    buffer.copyBytes(from: bytes[position..<(position + count)])
    position += count
    return count
  }
}
