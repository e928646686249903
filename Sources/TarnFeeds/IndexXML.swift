import TarnCore

/// nginx's autoindex as XML: `<list>` with a `directory`, a `file` or an `other` for each name, raw.
struct IndexXML: FeedFormat {
  private static let kinds = ["directory", "file", "other"]

  var name: String { "nginx XML index" }
  var isListing: Bool { true }

  func recognises(_ head: [UInt8]) -> Bool {
    guard head.begins(with: "<?xml "), let end = head.place(of: "?>") else { return false }
    let root = head[end...].dropFirst(2).drop(while: isBlank)
    guard root.begins(with: "<list>") else { return false }
    let first = root.dropFirst("<list>".utf8.count).drop(while: isBlank)
    return first.begins(with: "</list>") || Self.kinds.contains { first.begins(with: "<\($0) mtime=\"") }
  }

  func read(_ input: FeedInput, in context: FeedContext, sink: FeedSink) throws -> FeedEnd {
    guard !(try input.peek()).holds("<!DOCTYPE") else { throw XMLReader.doctypeRefused }
    let reader = try XMLReader(input)
    let place = IndexPlace(context)
    var row: NginxXMLRow?
    while let node = try reader.next() {
      switch node {
      case .start(let name, _, let isEmpty):
        guard reader.depth > 0 else { continue }
        guard row == nil, Self.kinds.contains(name), !isEmpty else {
          throw reader.failure("this list holds another element than those of nginx")
        }
        row = NginxXMLRow(kind: name, time: reader.attribute("mtime"), size: reader.attribute("size"))
      case .text(let bytes): row?.name += bytes
      case .end:
        if let row { try row.hand(on: place, sink: sink) }
        row = nil
      }
    }
    return FeedEnd(format: name, isComplete: true)
  }
}

/// One element of the list.
private struct NginxXMLRow {
  let kind: String
  let time: [UInt8]?
  let size: [UInt8]?
  var name: [UInt8] = []

  func hand(on place: IndexPlace, sink: FeedSink) throws {
    guard kind != "other" else {
      return try sink(
        place.refusal(
          name, code: "type-not-supported", reason: "Tarn mirrors files only, not pipes or devices"))
    }
    let size = size.flatMap { IndexSize.exact($0) }
    guard kind == "directory" || size != nil else {
      return try sink(
        place.refusal(name, code: "size-malformed", reason: "the size is no whole number from 0 to 2^63-1"))
    }
    let modified = time.flatMap { FeedTime.rfc3339($0) }
    let target = place.target(named: name, isDirectory: kind == "directory")
    try place.take(target, sink: sink) { path in
      Entry(
        path: path, size: size, modified: modified, sources: [Source(url: target.url)],
        listing: modified == nil ? time ?? [] : [])
    }
  }
}
