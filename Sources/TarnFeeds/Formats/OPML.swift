package import TarnCore

/// OPML 1.0 and 2.0: the list of feeds that podcast and news programs export. It names feeds and no files, so it is not a feed
/// itself.
///
/// It is read as it is: with errors, names in capitals, and outlines of any depth.
package enum OPML {
  /// The most feeds; a longer list is not a person's.
  static let maximumFeeds = 100_000
  /// The most bytes of an address.
  static let maximumURL = 8192

  /// - Parameter url: the URL of the document, the base of relative addresses.
  /// - Throws: `FeedFailure` for a document that is not OPML, or what `source` throws.
  package static func read(
    _ source: any ByteSource, url: String, contentType: String?
  ) throws(FeedFailure) -> SubscriptionList {
    let input = try FeedParser.open(source)
    let head = try input.peek()
    // UTF-16 is accepted as well, recognised by its zeros: the reader finds out whether it is OPML.
    guard head.contains(0) || XMLRoot(head) != nil else {
      throw FeedFailure(code: "opml-not-recognised", message: "this is not XML, as OPML must be")
    }
    let repaired = RepairedXML(try UTF8Source(input, contentType: contentType))
    let events = try XMLEvents(repaired)
    var reading = OPMLReading(url)
    while let event = try events.next() {
      if case .start(let element) = event { try reading.read(element) }
    }
    // The address in a cut tag may be incomplete.
    if repaired.endsInTag { reading.dropLast() }
    var list = reading.list
    if let fault = events.fault {
      guard !list.feeds.isEmpty || !list.refused.isEmpty else { throw fault }
      list.fault = fault.message + (fault.line.map { " (line \($0))" } ?? "")
    }
    guard reading.isOPML else { throw FeedFailure.truncated("the XML has no root element") }
    return list
  }
}

private struct OPMLReading {
  private(set) var list = SubscriptionList()
  private(set) var isOPML = false
  /// The lengths of the list before the element that was read last.
  private var before = (feeds: 0, refused: 0)
  private let base: URLReference
  private var seen: Set<[UInt8]> = []

  init(_ url: String) {
    base = URLReference(url)
  }

  mutating func read(_ element: XMLEvents.Element) throws(FeedFailure) {
    if !isOPML {
      // The root had another name before OPML 1.0.
      guard element.name == "opml" || element.name == "outlinedocument" else {
        let name = Printable.escape(element.name)
        let isFeed = ["rss", "feed", "RDF"].contains(element.name)
        throw FeedFailure(
          code: "opml-not-recognised",
          message: "this is not OPML: its root is <\(name)>"
            + (isFeed ? "; it is a feed, and 'tarn sync' takes it" : ""))
      }
      isOPML = true
    }
    before = (list.feeds.count, list.refused.count)
    guard element.name == "outline", let outline = Outline(element) else { return }
    guard list.feeds.count + list.refused.count < OPML.maximumFeeds else {
      throw FeedFailure(
        code: "feed-too-many-entries", message: "the list names more than \(OPML.maximumFeeds) feeds")
    }
    switch outline {
    case .feed(let title, let url): add(title, url)
    case .feedWithoutAddress(let title): refuse(title, "its outline has no xmlUrl")
    case .list(let title, let url):
      refuse(
        title.isEmpty ? url : title, "it includes another list; give the address of that list to 'tarn feeds'"
      )
    }
  }

  /// Removes what the last element added.
  mutating func dropLast() {
    list.feeds.removeLast(list.feeds.count - before.feeds)
    list.refused.removeLast(list.refused.count - before.refused)
  }

  private mutating func add(_ title: [UInt8], _ text: [UInt8]) {
    let shown = title.isEmpty ? text : title
    guard text.count <= OPML.maximumURL else {
      return refuse(shown, "its address is longer than \(OPML.maximumURL) bytes")
    }
    let url = base.resolve(URLReference(Self.withoutFeedScheme(text)))
    guard seen.insert(url.bytes).inserted else { return }
    guard url.scheme != nil else { return refuse(shown, "its address is not a whole URL") }
    guard let obstacle = url.obstacle else {
      list.feeds.append(Subscription(title: title, url: url.text))
      return
    }
    // A text that may be a password is not shown.
    let host = (url.authority ?? []).drop { $0 != UInt8(ascii: "@") }
    refuse(title.isEmpty && !host.isEmpty ? Array(host) : shown, obstacle)
  }

  private mutating func refuse(_ shown: [UInt8], _ reason: String) {
    list.refused.append(Refusal(text: shown, code: "feed-not-usable", reason: reason))
  }

  /// Replaces schemes that programs register: `feed://host` and the like stand for http, and `feed:https://host` for the rest.
  private static func withoutFeedScheme(_ text: [UInt8]) -> [UInt8] {
    for scheme in ["feed:", "itpc:", "pcast:", "podcast:"] {
      guard lowercased(text.prefix(scheme.utf8.count)).elementsEqual(scheme.utf8) else { continue }
      let rest = Array(text.dropFirst(scheme.utf8.count))
      return rest.begins(with: "//") ? Array("http:".utf8) + rest : rest
    }
    return text
  }
}

/// What an outline stands for.
private enum Outline {
  case feed(title: [UInt8], url: [UInt8])
  /// It says that it is a feed, and has no address.
  case feedWithoutAddress(title: [UInt8])
  /// Another OPML document, which a program is to show in this place (OPML 2.0, `include`).
  case list(title: [UInt8], url: [UInt8])

  /// Reads an outline; `nil` for a folder, a link or a note.
  init?(_ element: XMLEvents.Element) {
    let titles = [element["title"], element["text"]].lazy.compactMap { $0 }
    let whole = titles.map { PlainText.line(PlainText.cleaned($0)) }.first { !$0.isEmpty } ?? []
    let title = Array(whole.prefix(OPML.maximumURL))
    let type = String(decoding: lowercased(trimmed(element["type"] ?? [])), as: UTF8.self)
    let isFeed = ["rss", "atom", "feed", "podcast"].contains(type)
    // Some programs write `url` where OPML has `xmlUrl`.
    let url = WindowValue.reference(element["url"])
    if let address = WindowValue.reference(element["xmlUrl"]) ?? (isFeed ? url : nil) {
      self = .feed(title: title, url: address)
    } else if isFeed || element["xmlUrl"] != nil {
      self = .feedWithoutAddress(title: title)
    } else if type == "include", let url {
      self = .list(title: title, url: url)
    } else {
      return nil
    }
  }
}
