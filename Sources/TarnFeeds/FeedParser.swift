package import TarnCore

/// Recognises a feed by its content and reads it.
package struct FeedParser: FeedParsing {
  static let maximumEntries = 20_000_000

  /// In the order in which they are asked: the ones with the surest marks first.
  static let formats: [any FeedFormat] = [
    Window(),
    JSONFeed(),
    ManifestLines(),
    ManifestDocument(),
    Metalink3(),
    Metalink(),
    IndexPage(NginxIndex()),
    IndexPage(ApacheIndex()),
    IndexPage(LighttpdIndex()),
    IndexPage(FancyIndex()),
    IndexPage(CaddyIndex()),
    IndexPage(PythonIndex()),
    IndexPage(IISIndex()),
    IndexPage(H2OIndex()),
    IndexJSON(),
    CaddyJSON(),
    HashdeepList(),
    MirrorList(),
    Aria2Input(),
    URLList(),
    ChecksumList(),
    SFVList(),
  ]

  private let hashing: any Hashing

  /// - Parameter hashing: makes the digest that the end line of a manifest is checked with.
  package init(hashing: any Hashing) {
    self.hashing = hashing
  }

  package func parse(
    _ source: any ByteSource, as document: FeedDocument, sink: (FeedItem) throws -> Void
  ) throws -> FeedEnd {
    let input = try Self.open(source)
    let format = try recognise(input, isBelow: document.place != nil)
    var count = 0
    var end = try format.read(input, in: FeedContext(document: document, hashing: hashing)) { item in
      count += 1
      guard count <= Self.maximumEntries else {
        throw FeedFailure(
          code: "feed-too-many-entries",
          message: "the feed names more than \(Self.maximumEntries) entries; split it into several mirrors")
      }
      try sink(item)
    }
    end.isIndex = format.isListing
    return end
  }

  /// The document's bytes, inflated when they are gzip, whatever the headers say; one layer only.
  static func open(_ source: any ByteSource) throws(FeedFailure) -> FeedInput {
    var input = FeedInput(source)
    if GzipSource.recognises(try input.peek()) {
      input = FeedInput(try GzipSource(input))
      guard !GzipSource.recognises(try input.peek()) else {
        throw FeedFailure.malformed("the feed is compressed twice")
      }
    }
    try input.skipByteOrderMark()
    return input
  }

  private func recognise(_ input: FeedInput, isBelow: Bool) throws(FeedFailure) -> any FeedFormat {
    let head = try input.peek()
    if input.isHeadWhole, head.allSatisfy(isBlank) {
      throw FeedFailure(
        code: "feed-empty", message: "the feed is empty; an empty document never empties a mirror")
    }
    for format in Self.formats {
      if isBelow ? format.isListing && format.recognisesBelow(head) : format.recognises(head) {
        return format
      }
    }
    let text = lowercased(trimmed(head))
    if text.begins(with: "<!doctype html") || text.begins(with: "<html") || text.holds("<html") {
      throw FeedFailure(
        code: "feed-is-a-web-page",
        message: "this is a web page (a login page?), not a feed; give the feed's own URL")
    }
    let names = Self.formats.map(\.name).joined(separator: ", ")
    throw FeedFailure(
      code: "feed-not-recognised", message: "this is no feed that Tarn reads; it reads: \(names)")
  }
}
