import TarnCore

/// nginx's autoindex as XML: `<list>` with one line for each name, as a `directory`, a `file` or an `other`, with raw names.
///
/// It is read by line, as nginx writes it. Names are bytes there, and a name that is not UTF-8 makes it invalid XML.
struct IndexXML: FeedFormat {
  private static let kinds = ["directory", "file", "other"]

  var name: String { "nginx XML index" }
  var kind: FeedKind { .index }

  func recognises(_ head: [UInt8]) -> Bool {
    guard head.begins(with: "<?xml "), let end = head.place(of: "?>") else { return false }
    let root = head[end...].dropFirst(2).drop(while: isBlank)
    guard root.begins(with: "<list>") else { return false }
    let first = root.dropFirst("<list>".utf8.count).drop(while: isBlank)
    return first.begins(with: "</list>") || Self.kinds.contains { first.begins(with: "<\($0) mtime=\"") }
  }

  func read(_ input: FeedInput, in context: FeedContext, sink: FeedSink) throws -> FeedEnd {
    let place = IndexPlace(context)
    var element: [UInt8] = []
    var isClosed = false
    while let (line, _) = try input.readLine() {
      let text = trimmed(line)
      if element.isEmpty {
        if text.isEmpty || !isClosed && (text.begins(with: "<?xml ") || text.elementsEqual("<list>".utf8)) {
          continue
        }
        guard !isClosed else { throw Self.unknown(input.line) }
        isClosed = text.elementsEqual("</list>".utf8)
        if isClosed { continue }
        guard Self.kinds.contains(where: { text.begins(with: "<\($0) mtime=\"") }) else {
          throw Self.unknown(input.line)
        }
        element = text
      } else {
        // The name contains a line feed.
        element += [0x0A] + text
      }
      guard element.count <= FeedInput.maximumLine else { throw Self.unknown(input.line) }
      guard Self.kinds.contains(where: { element.suffix($0.utf8.count + 3).elementsEqual("</\($0)>".utf8) })
      else { continue }
      guard let row = NginxXMLRow(element, kinds: Self.kinds) else { throw Self.unknown(input.line) }
      try row.hand(on: place, sink: sink)
      element = []
    }
    guard isClosed, element.isEmpty else {
      throw FeedFailure.truncated("the index ends before its </list>", line: input.line)
    }
    return FeedEnd(format: name, isComplete: true)
  }

  private static func unknown(_ line: Int) -> FeedFailure {
    .malformed("this line does not belong to a list of nginx", line: line)
  }
}

/// An element of the list.
private struct NginxXMLRow {
  let kind: String
  let name: [UInt8]
  let time: [UInt8]
  let size: UInt64?

  /// - Returns: `nil` when it is not a complete element of one of these kinds.
  init?(_ element: [UInt8], kinds: [String]) {
    guard element.first == UInt8(ascii: "<"), let end = element.firstIndex(of: UInt8(ascii: ">")) else {
      return nil
    }
    let tag = HTMLTag(Array(element[1..<end]))
    let rest = element[(end + 1)...].dropLast(tag.element.utf8.count + 3)
    guard kinds.contains(tag.element), let time = tag.attribute("mtime"), !rest.contains(UInt8(ascii: "<")),
      element[rest.endIndex...].elementsEqual("</\(tag.element)>".utf8)
    else { return nil }
    kind = tag.element
    name = HTMLTag.decodeEntities(rest)
    self.time = time
    size = tag.attribute("size").flatMap { IndexSize.exact($0) }
  }

  func hand(on place: IndexPlace, sink: FeedSink) throws {
    guard kind != "other" else {
      return try sink(
        place.refusal(
          name, code: "type-not-supported", reason: "Tarn mirrors files only, not pipes or devices"))
    }
    guard kind == "directory" || size != nil else {
      return try sink(
        place.refusal(
          name, code: "size-malformed", reason: "the size is not a whole number from 0 to 2^63-1"))
    }
    let modified = FeedTime.rfc3339(time)
    let target = place.target(named: name, isDirectory: kind == "directory")
    try place.emit(target, sink: sink) { path in
      Entry(
        path: path, size: size, modified: modified, sources: [Source(url: target.url)],
        listing: modified == nil ? time : [])
    }
  }
}
