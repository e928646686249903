import TarnCore

/// Caddy's `file_server browse` and rclone's `serve http`, which uses the same page: sizes in bytes and times to the second stand
/// in attributes.
struct CaddyIndex: IndexDialect {
  /// The number of names from which a list may be cut. Caddy reads only so many names of a directory and silently omits the rest
  /// (`file_limit`, measured with 2.6.2). The few that it hides are counted as well, hence the margin.
  static let cutNames = 9_900

  var name: String { "Caddy index" }

  func mark(in head: [UInt8]) -> IndexMark? {
    guard head.holds("<div class=\"listing") || head.holds("<div class='listing") else { return nil }
    if head.holds("<table aria-describedby=\"summary\">"), head.holds("href=\"?sort=name") {
      return .attribute("aria-describedby", "summary")
    }
    // Caddy's other view has no table.
    guard head.holds("<div class='listing grid'>") else { return nil }
    return .otherwise("leave '?layout=grid' out of the URL")
  }

  func read(_ tag: HTMLTag, into row: inout IndexRow) {
    switch tag.element {
    case "td":
      if let size = tag.attribute("data-order") ?? tag.attribute("data-size") { row.size = size }
    case "time": row.time = tag.attribute("datetime").map { trimmed($0) }
    case "use", "svg":
      let mark = tag.attribute("xlink:href") ?? tag.attribute("class") ?? []
      if mark.holds("-shortcut") || mark.holds("-symlink") { row.isSymlink = true }
    default: break
    }
  }

  func facts(_ row: IndexRow) -> IndexFacts {
    var facts = IndexFacts(size: row.size.flatMap { IndexSize.exact($0) })
    let text = row.time ?? []
    let time = Self.time(text)
    // For a link Caddy gives the link's own time.
    if let time, !row.isSymlink {
      facts.modified = time
      facts.modifiedIsExact = true
    } else {
      facts.listing = text
    }
    return facts
  }

  func doubt(names: Int) -> String? { Self.doubt(names: names) }

  static func doubt(names: Int) -> String? {
    names < cutNames ? nil : "it lists \(names) names, and Caddy cuts its lists at 10,000"
  }

  /// Reads `2023-11-14T22:13:20Z`, or rclone's `2023-11-14 22:13:20.5 +0000 UTC`.
  static func time(_ text: [UInt8]) -> Timestamp? {
    let words = text.split(separator: 0x20)
    guard words.count > 2, words[2].count == 5 else { return FeedTime.rfc3339(text) }
    return FeedTime.rfc3339(
      words[0] + [0x54] + words[1] + words[2].prefix(3) + [0x3A] + words[2].suffix(2))
  }
}

/// Caddy's index as JSON (requested with `Accept: application/json`): `[{"name","size","url","mod_time","mode",
/// "is_dir","is_symlink"}]`. The URL counts, since the name has lost what is not UTF-8.
struct CaddyJSON: FeedFormat {
  var name: String { "Caddy JSON index" }
  var kind: FeedKind { .index }

  func recognises(_ head: [UInt8]) -> Bool {
    guard head.first(where: { !isBlank($0) }) == UInt8(ascii: "[") else { return false }
    var reader = JSONReader(head)
    do throws(FeedFailure) {
      try reader.beginArray()
      guard try reader.nextElement() else { return false }
      try reader.beginObject()
      for wanted in ["name", "size", "url", "mod_time"] {
        guard try reader.nextKey()?.elementsEqual(wanted.utf8) == true else { return false }
        try reader.skip()
      }
      return true
    } catch {
      return false
    }
  }

  /// Recognises an empty directory as well, which is `[]`, or `null` of older versions, and a line feed. That may be anything, so
  /// it counts only where a listing is expected.
  func recognisesBelow(_ head: [UInt8]) -> Bool {
    ["[]\n", "null\n"].contains { head.elementsEqual($0.utf8) } || recognises(head)
  }

  func read(_ input: FeedInput, in context: FeedContext, sink: FeedSink) throws -> FeedEnd {
    var reader = JSONReader(input)
    let place = IndexPlace(context)
    var names = 0
    var reason = IndexPlace.doubt(of: context.url)
    if try reader.kind() == .literal {
      try reader.skip()
      try reader.end()
      return FeedEnd(format: name, isComplete: reason == nil, incompleteReason: reason ?? "")
    }
    try reader.beginArray()
    while try reader.nextElement() {
      let row = try CaddyRow(&reader)
      names += 1
      if try !Self.emit(row, place, sink: sink), reason == nil {
        reason = "the list names files outside the directory"
      }
    }
    try reader.end()
    reason = reason ?? CaddyIndex.doubt(names: names)
    return FeedEnd(format: name, isComplete: reason == nil, incompleteReason: reason ?? "")
  }

  /// - Returns: false for a row that does not lead to a child of the directory.
  private static func emit(_ row: CaddyRow, _ place: IndexPlace, sink: FeedSink) throws -> Bool {
    guard let target = place.target(of: row.url), target.isDirectory == row.isDirectory else {
      try sink(
        place.refusal(row.name, code: "url-outside", reason: "its URL does not lead into this directory"))
      return false
    }
    guard !row.isSpecial else {
      try sink(
        place.refusal(
          target.name, code: "type-not-supported", reason: "Tarn mirrors files only, not pipes or devices"))
      return true
    }
    let time = row.isSymlink ? nil : CaddyIndex.time(row.time)
    try place.emit(target, sink: sink) { path in
      Entry(
        path: path, size: row.size, modified: time, modifiedIsExact: time != nil,
        sources: [Source(url: target.url)], listing: time == nil ? row.time : [])
    }
    return true
  }
}

/// An object of the list.
private struct CaddyRow {
  /// The bits of pipes, sockets, devices and irregular files in Go's `fs.FileMode`.
  private static let special: UInt64 = 1 << 26 | 1 << 25 | 1 << 24 | 1 << 21 | 1 << 19

  var name: [UInt8] = []
  var url: [UInt8]
  var size: UInt64?
  var time: [UInt8] = []
  var isDirectory = false
  var isSymlink = false
  var isSpecial = false

  init(_ reader: inout JSONReader) throws(FeedFailure) {
    var url: [UInt8]?
    try reader.beginObject()
    while let key = try reader.nextKey() {
      switch String(decoding: key, as: UTF8.self) {
      case "name": name = try reader.string()
      case "url": url = try reader.string()
      case "mod_time": time = try reader.string()
      case "size": size = IndexSize.exact(try reader.number())
      case "mode": isSpecial = IndexSize.exact(try reader.number()).map { $0 & Self.special != 0 } ?? false
      case "is_dir": isDirectory = try reader.literal() ?? false
      case "is_symlink": isSymlink = try reader.literal() ?? false
      default: try reader.skip()
      }
    }
    guard let url else { throw reader.malformed("an object of the list has no 'url'") }
    self.url = url
    if isDirectory { size = nil }
  }
}
