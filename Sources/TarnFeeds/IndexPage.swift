import TarnCore

/// nginx's autoindex page. It is taken only whole: a cut page would pass for deletions.
struct IndexPage: FeedFormat {
  var name: String { "nginx index" }
  var isListing: Bool { true }

  func recognises(_ head: [UInt8]) -> Bool {
    guard head.first(where: { !isBlank($0) }) == UInt8(ascii: "<") else { return false }
    let text = lowercased(head)
    return text.holds("<title>index of ") || text.holds("<h1>index of ")
  }

  func read(_ input: FeedInput, in context: FeedContext, sink: FeedSink) throws -> FeedEnd {
    var scanner = HTMLScanner(input)
    var links = IndexLinks(context)
    var isInside = false
    var sawList = false
    var isClosed = false
    while true {
      let (text, found) = try scanner.next()
      if isClosed, text.contains(where: { !isBlank($0) }) { isClosed = false }
      guard let tag = found else { break }
      let element = HTMLTag.name(tag)
      isClosed = element == "/html"
      if isInside { try links.take(tag, element, textBefore: text, sink: sink) }
      if element == "pre" { isInside = true }
      if element == "/pre" {
        isInside = false
        sawList = true
      }
    }
    guard isClosed, !isInside else {
      throw FeedFailure.truncated("the index page ends before its </pre> and </html>")
    }
    guard sawList else {
      throw FeedFailure(code: "feed-not-recognised", message: "this directory index is not one of nginx")
    }
    return FeedEnd(format: name, isComplete: true)
  }
}

/// The links inside the list, each with the text that follows it.
private struct IndexLinks {
  private let place: IndexPlace
  private var pending: IndexPlace.Target?
  private var isBehindLink = false
  private var text: [UInt8] = []

  init(_ context: FeedContext) {
    place = IndexPlace(context)
  }

  mutating func take(_ tag: [UInt8], _ element: String, textBefore: [UInt8], sink: FeedSink) throws {
    if isBehindLink { text += textBefore }
    let href = element == "a" ? HTMLTag.attribute("href", of: tag) : nil
    let next = href.flatMap { place.target(of: $0) }
    // An icon that links to the same file has no text behind it.
    let isIcon = next != nil && next?.url == pending?.url && text.allSatisfy(isBlank)
    if isBehindLink || element == "a" {
      if !isIcon { try flush(to: sink) }
      isBehindLink = false
      text = []
    }
    if element == "a" { pending = next }
    if element == "/a" { isBehindLink = pending != nil }
    if element == "/pre" { try flush(to: sink) }
  }

  private mutating func flush(to sink: FeedSink) throws {
    guard let target = pending else { return }
    pending = nil
    let words = text.split(whereSeparator: isBlank)
    let listing = Array(words.joined(separator: [0x20]))
    let found = FeedTime.index(trimmed(text))
    let size = found.flatMap { Self.exactSize(trimmed($0.rest)) }
    try place.take(target, sink: sink) { path in
      Entry(
        path: path, size: size, modified: found?.time, modifiedIsExact: false,
        sources: [Source(url: target.url)], listing: listing)
    }
  }

  private static func exactSize(_ text: [UInt8]) -> UInt64? {
    guard !text.isEmpty, text.allSatisfy(Percent.isDigit),
      let size = UInt64(String(decoding: text, as: UTF8.self)),
      size <= Int64.max
    else { return nil }
    return size
  }
}
