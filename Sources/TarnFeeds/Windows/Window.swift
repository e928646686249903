import TarnCore

/// RSS 0.9x, 1.0 and 2.0, and Atom: the newest items of a podcast or a news site, with the files that they name.
///
/// It is a window: a file that is not in it is not gone. It is never complete, so it may be read with repairs.
struct Window: FeedFormat {
  var name: String { "RSS, Atom" }
  var kind: FeedKind { .window }

  /// Why a window is never complete, for people.
  static let reason =
    "the feed is a window: it shows the newest items only, and an item that leaves it is not gone"

  func recognises(_ head: [UInt8]) -> Bool {
    let charset = Charset(head: head, contentType: nil, hadByteOrderMark: false)
    guard case .named(let name, let unit) = charset, unit > 1 else { return WindowPlace(head) != nil }
    let body = head.dropFirst(charset.markLength(head))
    return WindowPlace.isWindow(Converter(from: name, unit: unit)?.convert(body, isEnd: false).output ?? [])
  }

  func read(_ input: FeedInput, in context: FeedContext, sink: FeedSink) throws -> FeedEnd {
    let lines = try WindowPlace(input.peek()).map { place throws(FeedFailure) in
      try input.drop(place.start)
      return place.lines
    }
    let source = try UTF8Source(input, contentType: context.document.contentType)
    let repaired = RepairedXML(source, behind: lines ?? 0)
    let events = try XMLEvents(repaired)
    var reading = WindowReading(context)
    var hasFiles = false
    while let event = try events.next() {
      try reading.read(event, endedItems: repaired.endedItems) { item in
        hasFiles = true
        try sink(item)
      }
    }
    let fault = events.fault
    guard let kind = reading.kind else {
      throw fault ?? FeedFailure.truncated("the XML has no root element")
    }
    if let fault, reading.items == 0 { throw fault }
    var end = FeedEnd(
      format: kind.rawValue, isComplete: false, incompleteReason: Self.reason(fault),
      refreshSeconds: reading.refreshSeconds)
    end.title = reading.title
    end.next = reading.next
    if !hasFiles { end.notice = .init(.withoutFiles, Self.withoutFiles(reading.items)) }
    if let fault {
      end.notice = .init(
        .readInPart,
        "the feed is broken: \(fault.message)\(Self.place(fault)); what it names before that is read")
    }
    return end
  }

  /// Returns the notice for a feed without any file to fetch.
  static func withoutFiles(_ items: Int) -> String {
    switch items {
    case 0: "the feed has no items"
    case 1: "the feed has 1 item, without a file"
    default: "the feed has \(items) items, none with a file"
    }
  }

  private static func reason(_ fault: FeedFailure?) -> String {
    guard let fault else { return reason }
    return "\(reason); and \(fault.message)\(place(fault)), so it was read as far as it makes sense"
  }

  private static func place(_ fault: FeedFailure) -> String { fault.line.map { " (line \($0))" } ?? "" }
}
