import TarnCore

/// nginx's autoindex as JSON: `[{"name","type","mtime","size"}]`, with raw names.
struct IndexJSON: FeedFormat {
  var name: String { "nginx JSON index" }
  var kind: FeedKind { .index }

  func recognises(_ head: [UInt8]) -> Bool {
    let text = trimmed(head)
    guard text.first == UInt8(ascii: "[") else { return false }
    // nginx breaks the line even in an empty list; a bare `[]` may be anything.
    if text.last == UInt8(ascii: "]"), text.dropFirst().dropLast().allSatisfy(isBlank) {
      return text.contains(0x0A)
    }
    var reader = JSONReader(text)
    do throws(FeedFailure) {
      try reader.beginArray()
      guard try reader.nextElement() else { return false }
      try reader.beginObject()
      guard try reader.nextKey()?.elementsEqual("name".utf8) == true else { return false }
      try reader.skip()
      return try reader.nextKey()?.elementsEqual("type".utf8) == true
    } catch {
      return false
    }
  }

  func read(_ input: FeedInput, in context: FeedContext, sink: FeedSink) throws -> FeedEnd {
    var reader = JSONReader(input)
    let place = IndexPlace(context)
    try reader.beginArray()
    while try reader.nextElement() { try Self.emit(NginxJSONRow(&reader), place, sink: sink) }
    try reader.end()
    return FeedEnd(format: name, isComplete: true)
  }

  private static func emit(_ row: NginxJSONRow, _ place: IndexPlace, sink: FeedSink) throws {
    guard row.type == "file" || row.type == "directory" else {
      return try sink(
        place.refusal(
          row.name, code: "type-not-supported",
          reason: "Tarn mirrors files only, not \(Printable.escape(row.type))"))
    }
    if row.isSizeBad {
      return try sink(
        place.refusal(
          row.name, code: "size-malformed", reason: "the size is not a whole number from 0 to 2^63-1"))
    }
    let target = place.target(named: row.name, isDirectory: row.type == "directory")
    try place.emit(target, sink: sink) { path in
      Entry(
        path: path, size: row.size, modified: row.time, sources: [Source(url: target.url)],
        listing: row.listing)
    }
  }
}

/// An object of the list.
private struct NginxJSONRow {
  var name: [UInt8]
  var type = ""
  var time: Timestamp?
  /// A time that could not be read, as printed.
  var listing: [UInt8] = []
  var size: UInt64?
  var isSizeBad = false

  init(_ reader: inout JSONReader) throws(FeedFailure) {
    var name: [UInt8]?
    try reader.beginObject()
    while let key = try reader.nextKey() {
      switch String(decoding: key, as: UTF8.self) {
      case "name": name = try reader.string()
      case "type": type = String(decoding: try reader.string(), as: UTF8.self)
      case "mtime":
        let text = try reader.string()
        time = FeedTime.http(text)
        if time == nil { listing = text }
      case "size":
        size = try reader.wholeNumber()
        isSizeBad = size.map { $0 > Int64.max } ?? true
      default: try reader.skip()
      }
    }
    guard let name else { throw reader.malformed("an object of the list has no 'name'") }
    self.name = name
  }
}
