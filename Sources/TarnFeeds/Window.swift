import TarnCore

/// RSS 0.9x, 1.0 and 2.0, and Atom: the newest items of a podcast or a news site, with the files they name.
///
/// A window: what is not in it is not gone. It is never complete, so it may be read with faults mended.
struct Window: FeedFormat {
  var name: String { "RSS, Atom" }
  var isListing: Bool { false }

  enum Kind: String {
    case rss = "RSS"
    case rdf = "RSS 1.0"
    case atom = "Atom"
  }

  /// Why a window is never complete, for a person.
  static let reason =
    "the feed is a window: it shows the newest items only, and an item that leaves it is not gone"

  func recognises(_ head: [UInt8]) -> Bool {
    let charset = Charset(head: head, contentType: nil, hadByteOrderMark: false)
    var text = head
    if case .named(let name, let unit) = charset, unit > 1 {
      let body = head.dropFirst(charset.markLength(head))
      text = Converter(from: name, unit: unit)?.convert(body, isEnd: false).output ?? []
    }
    guard let root = XMLRoot(text) else { return false }
    switch root.name {
    case "rss": return true
    case "RDF":
      return text.holds("purl.org/rss/1.0/") || text.holds("my.netscape.com/rdf/simple/")
        || text.holds("purl.org/net/rss1.1")
    case "feed": return WindowNames.isAtom(root.namespace)
    default: return false
    }
  }

  func read(_ input: FeedInput, in context: FeedContext, sink: FeedSink) throws -> FeedEnd {
    let repaired = RepairedXML(try UTF8Source(input, contentType: context.document.contentType))
    let events = try XMLEvents(repaired)
    var reading = WindowReading(context)
    while let event = try events.next() {
      try reading.take(event, endedItems: repaired.endedItems, sink: sink)
    }
    let fault = events.fault
    guard let kind = reading.kind else {
      throw fault ?? FeedFailure.truncated("the XML has no root element")
    }
    if let fault, reading.items == 0 { throw fault }
    return FeedEnd(
      format: kind.rawValue, isComplete: false, incompleteReason: Self.reason(fault),
      refreshSeconds: reading.refreshSeconds)
  }

  private static func reason(_ fault: FeedFailure?) -> String {
    guard let fault else { return reason }
    let place = fault.line.map { " (line \($0))" } ?? ""
    return "\(reason); and \(fault.message)\(place), so it was read as far as it makes sense"
  }
}
