import TarnCore

/// The state while the items of RSS or Atom are read.
struct WindowReading {
  /// The length at which titles, IDs and times are cut.
  private static let maximumText = 16_384

  private enum Field {
    case title(rank: Int, Markup)
    case guid
    case date(rank: Int)
    case season(rank: Int), episode(rank: Int)
    case feedTitle(Markup)
    case ttl, updatePeriod, updateFrequency
    case hash(algorithm: [UInt8]?)
  }

  /// The markup of a title's text after XML is read.
  private enum Markup { case plain, html, entitiesInCDATA }

  private struct Capture {
    let field: Field
    let depth: Int
    var text: [UInt8] = []
    /// The CDATA section that is being read.
    var verbatim: [UInt8] = []

    mutating func append(_ bytes: [UInt8], isVerbatim: Bool) {
      let bytes = bytes.prefix(max(0, WindowReading.maximumText - text.count - verbatim.count))
      if isVerbatim {
        verbatim += bytes
      } else {
        endVerbatim()
        text += bytes
      }
    }

    /// Ends a CDATA section. RSS does not define the markup of texts: entities are decoded once, by XML or, in a CDATA section,
    /// here.
    mutating func endVerbatim() {
      switch field {
      case .title(_, .entitiesInCDATA), .feedTitle(.entitiesInCDATA): verbatim = PlainText.decoded(verbatim)
      default: break
      }
      text += verbatim
      verbatim = []
    }
  }

  private(set) var kind: WindowFormat?
  /// The number of items that were read to their end.
  private(set) var items = 0
  /// The number of end tags of items so far.
  private var ends = 0
  private let context: FeedContext
  private var rootNamespace = ""
  /// The title of the feed: one line without markup.
  private(set) var title: [UInt8] = []
  /// The address of the next page of a paged feed, or else of the previous archive (RFC 5005 3 and 4).
  var next: String? { nextPage ?? archive }
  private var nextPage: String?
  private var archive: String?
  /// The local names of the open elements.
  private var open: [String] = []
  private var bases: [(depth: Int, url: URLReference)] = []
  private var capture: Capture?
  private var current = WindowItemReading()
  private var refresh = RefreshRate()

  init(_ context: FeedContext) {
    self.context = context
  }

  var refreshSeconds: Int64? { refresh.seconds }

  private var depth: Int { open.count }
  private var base: URLReference { bases.last?.url ?? context.url }

  /// - Parameter endedItems: the least number of end tags of items that have been passed; an item beyond them was cut.
  mutating func read(_ event: XMLEvents.Event, endedItems: Int, sink: FeedSink) throws {
    switch event {
    case .start(let element):
      open.append(element.name)
      if let reference = element.base {
        bases.append((depth, base.resolve(URLReference(trimmed(reference)))))
      }
      try start(element, sink: sink)
    case .text(let bytes, let isVerbatim):
      capture?.append(bytes, isVerbatim: isVerbatim)
    case .end:
      finishCapture()
      if current.isOpen { current.end(at: depth) }
      if current.depth == depth {
        ends += 1
        if ends <= endedItems { try finishItem(sink: sink) } else { current = WindowItemReading() }
      }
      if bases.last?.depth == depth { bases.removeLast() }
      _ = open.popLast()
    }
  }

  private mutating func start(_ element: XMLEvents.Element, sink: FeedSink) throws {
    guard let kind else {
      rootNamespace = element.namespace
      kind = element.name == "feed" ? .atom : element.name == "rss" ? .rss : .rdf
      return
    }
    let names = WindowNames(
      namespace: element.namespace, prefix: element.prefix, root: rootNamespace, kind: kind)
    let isItem =
      kind == .atom ? names == .atom && element.name == "entry" : names == .rss && element.name == "item"
    if isItem {
      // An item inside another one: the end tag of the outer one was lost.
      if current.isOpen { try finishItem(sink: sink) }
      capture = nil
      current = WindowItemReading(position: items, depth: depth)
      if kind == .rdf, let about = element["about"] { current.item.guid = nonEmpty(trimmed(about)) }
      return
    }
    if current.isOpen {
      current.start(element, names, depth: depth, base: base)
      if capture == nil { begin(itemField(element, names, kind)) }
    } else if names == .atom, element.name == "link", isOfChannel {
      noteNext(element)
    } else if capture == nil {
      begin(channelField(element, names))
    }
  }

  private mutating func begin(_ field: Field?) {
    if let field { capture = Capture(field: field, depth: depth) }
  }

  private mutating func finishItem(sink: FeedSink) throws {
    items += 1
    for item in current.item.items(in: context) { try sink(item) }
    current = WindowItemReading()
    capture = nil
  }

  private func nonEmpty(_ bytes: [UInt8]) -> [UInt8]? { bytes.isEmpty ? nil : bytes }

  // MARK: Fields

  private var isOfChannel: Bool {
    let parent = open.dropLast().last
    return parent == "channel" || parent == "feed"
  }

  private mutating func noteNext(_ link: XMLEvents.Element) {
    guard let href = link["href"] else { return }
    switch String(decoding: lowercased(trimmed(link["rel"] ?? [])), as: UTF8.self) {
    case "next": nextPage = nextPage ?? context.page(trimmed(href), of: base)
    case "prev-archive": archive = archive ?? context.page(trimmed(href), of: base)
    default: break
    }
  }

  private func channelField(_ element: XMLEvents.Element, _ names: WindowNames) -> Field? {
    guard isOfChannel else { return nil }
    switch (names, element.name) {
    case (.rss, "title") where kind != .atom: return .feedTitle(.entitiesInCDATA)
    case (.atom, "title") where kind == .atom: return .feedTitle(element.isMarkup ? .html : .plain)
    case (.rss, "ttl"): return .ttl
    case (.syndication, "updatePeriod"): return .updatePeriod
    case (.syndication, "updateFrequency"): return .updateFrequency
    default: return nil
    }
  }

  private func itemField(_ element: XMLEvents.Element, _ names: WindowNames, _ kind: WindowFormat) -> Field? {
    let isChild = depth == current.depth + 1
    if names == .media {
      if element.name == "hash" { return .hash(algorithm: element["algo"]) }
      let isNear = isChild || (depth == current.depth + 2 && open.dropLast().last == "group")
      return element.name == "title" && isNear ? .title(rank: 3, element.isMarkup ? .html : .plain) : nil
    }
    guard isChild else { return nil }
    switch (names, element.name) {
    case (.rss, "title") where kind != .atom: return .title(rank: 0, .entitiesInCDATA)
    case (.rss, "guid") where kind != .atom: return .guid
    case (.rss, "pubDate") where kind != .atom: return .date(rank: 0)
    case (.atom, "title"): return .title(rank: kind == .atom ? 0 : 4, element.isMarkup ? .html : .plain)
    case (.atom, "id") where kind == .atom: return .guid
    case (.atom, "published"), (.atom, "issued"): return .date(rank: kind == .atom ? 0 : 2)
    case (.atom, "updated"), (.atom, "modified"): return .date(rank: 4)
    case (.atom, "created"): return .date(rank: 3)
    case (.itunes, "title"): return .title(rank: 1, .entitiesInCDATA)
    case (.dublinCore, "title"): return .title(rank: 2, .entitiesInCDATA)
    case (.dublinCore, "date"), (.dublinCore, "issued"), (.dublinCore, "created"): return .date(rank: 1)
    case (.dublinCore, "modified"): return .date(rank: 4)
    case (.itunes, "season"): return .season(rank: 0)
    case (.itunes, "episode"): return .episode(rank: 0)
    case (.podcast, "season"): return .season(rank: 1)
    case (.podcast, "episode"): return .episode(rank: 1)
    default: return nil
    }
  }

  private mutating func finishCapture() {
    guard var captured = capture, captured.depth == depth else { return }
    capture = nil
    captured.endVerbatim()
    let text = captured.text
    switch captured.field {
    case .title(let rank, let markup):
      let line = Self.line(text, markup)
      if !line.isEmpty, current.item.titles[rank] == nil { current.item.titles[rank] = line }
    case .feedTitle(let markup): if title.isEmpty { title = Self.line(text, markup) }
    case .season(let rank): current.item.seasons[rank] = WindowValue.number(text)
    case .episode(let rank): current.item.episodes[rank] = WindowValue.number(text)
    case .guid: current.item.guid = nonEmpty(trimmed(text)) ?? current.item.guid
    case .date(let rank):
      if current.item.dates[rank] == nil { current.item.dates[rank] = FeedDate.parse(text) }
    case .ttl: refresh.ttl = trimmed(text)
    case .updatePeriod: refresh.period = trimmed(text)
    case .updateFrequency: refresh.frequency = trimmed(text)
    case .hash(let algorithm): current.add(WindowValue.digest(text, algorithm: algorithm))
    }
  }
}

extension WindowReading {
  private static func line(_ text: [UInt8], _ markup: Markup) -> [UInt8] {
    PlainText.line(markup == .html ? PlainText.ofHTML(text) : PlainText.cleaned(text))
  }
}

extension XMLEvents.Element {
  /// True for a text declared as HTML with its markup escaped; in Atom 0.3 a type is a media type.
  fileprivate var isMarkup: Bool {
    let type = lowercased(trimmed(self["type"] ?? []))
    return type.elementsEqual("html".utf8) || type.elementsEqual("text/html".utf8)
  }
}

/// How often a feed wants to be read.
private struct RefreshRate {
  private static let longest: Int64 = 366 * 86_400

  /// The minutes between two readings (RSS 2.0).
  var ttl: [UInt8]?
  /// The period, such as `hourly`, and the number of readings in it (RSS 1.0 syndication module).
  var period: [UInt8]?
  var frequency: [UInt8]?

  var seconds: Int64? {
    if let minutes = number(ttl), minutes <= Self.longest / 60 { return minutes * 60 }
    guard let period else { return nil }
    let length: Int64
    switch String(decoding: lowercased(period), as: UTF8.self) {
    case "hourly": length = 3600
    case "daily": length = 86_400
    case "weekly": length = 7 * 86_400
    case "monthly": length = 30 * 86_400
    case "yearly": length = 365 * 86_400
    default: return nil
    }
    return max(length / (number(frequency) ?? 1), 1)
  }

  /// Reads a whole number of at least 1.
  private func number(_ text: [UInt8]?) -> Int64? {
    text.flatMap { Int64(String(decoding: $0, as: UTF8.self)) }.flatMap { $0 > 0 ? $0 : nil }
  }
}
