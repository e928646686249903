import TarnCore

/// JSON Feed 1.0 and 1.1: the attachments of the items. A window, like RSS.
struct JSONFeed: FeedFormat {
  var name: String { WindowFormat.json.rawValue }
  var kind: FeedKind { .window }

  func recognises(_ head: [UInt8]) -> Bool {
    var hasNumber = false
    return JSONReader.tells(head) { key, reader throws(FeedFailure) in
      let kind = try reader.kind()
      if key.elementsEqual("version".utf8), kind == .string || kind == .number {
        // What is not decided is left to the reader.
        var ahead = reader
        let version = try kind == .string ? ahead.string() : ahead.number()
        if Self.isVersion(version) { return true }
        hasNumber = ["1", "1.0", "1.1"].contains { version.elementsEqual($0.utf8) }
        return hasNumber ? nil : false
      }
      guard hasNumber, key.elementsEqual("items".utf8), try reader.kind() == .array else { return nil }
      return try Self.beginsWithItem(&reader)
    }
  }

  /// Returns whether the first element of a list has what only an item of a feed has.
  private static func beginsWithItem(_ reader: inout JSONReader) throws(FeedFailure) -> Bool {
    try reader.beginArray()
    guard try reader.nextElement(), try reader.kind() == .object else { return false }
    try reader.beginObject()
    while let key = try reader.nextKey() {
      if ["attachments", "content_html", "content_text"].contains(where: { key.elementsEqual($0.utf8) }) {
        return true
      }
      try reader.skip()
    }
    return false
  }

  func read(_ input: FeedInput, in context: FeedContext, sink: FeedSink) throws -> FeedEnd {
    var reader = JSONReader(input)
    var position = 0
    var hasFiles = false
    var end = FeedEnd(format: name, isComplete: false, incompleteReason: Window.reason)
    try reader.beginObject()
    while let key = try reader.nextKey() {
      if key.elementsEqual("title".utf8) {
        end.title = PlainText.line(PlainText.cleaned(try Self.text(&reader) ?? []))
        continue
      }
      if key.elementsEqual("next_url".utf8) {
        end.next = context.page(trimmed(try Self.text(&reader) ?? []), of: context.url)
        continue
      }
      guard key.elementsEqual("items".utf8), try reader.kind() == .array else {
        try reader.skip()
        continue
      }
      try reader.beginArray()
      while try reader.nextElement() {
        if try reader.kind() == .object {
          let item = try Self.item(&reader, position, context)
          for found in item.items(in: context) {
            hasFiles = true
            try sink(found)
          }
        } else {
          try reader.skip()
        }
        position += 1
      }
    }
    try reader.end()
    if !hasFiles { end.notice = .init(.withoutFiles, Window.withoutFiles(position)) }
    return end
  }

  private static func isVersion(_ text: [UInt8]) -> Bool {
    text.begins(with: "https://jsonfeed.org/version/") || text.begins(with: "http://jsonfeed.org/version/")
  }

  private static func item(
    _ reader: inout JSONReader, _ position: Int, _ context: FeedContext
  ) throws(FeedFailure) -> WindowItem {
    var item = WindowItem(position: position)
    try reader.beginObject()
    while let key = try reader.nextKey() {
      switch String(decoding: key, as: UTF8.self) {
      case "id":
        let id = trimmed(try text(&reader) ?? [])
        item.guid = id.isEmpty ? nil : id
      case "title":
        let title = PlainText.line(PlainText.cleaned(try text(&reader) ?? []))
        if !title.isEmpty { item.titles[0] = title }
      case "date_published": item.dates[0] = try text(&reader).flatMap { FeedDate.parse($0) }
      case "date_modified": item.dates[1] = try text(&reader).flatMap { FeedDate.parse($0) }
      case "attachments": try attachments(&reader, into: &item, context)
      default: try reader.skip()
      }
    }
    return item
  }

  /// Reads attachments. Those with the same title are one thing in several forms (JSON Feed 1.1, attachments): the first is taken.
  private static func attachments(
    _ reader: inout JSONReader, into item: inout WindowItem, _ context: FeedContext
  ) throws(FeedFailure) {
    var titles: Set<[UInt8]> = []
    // Some write one attachment without the list around it.
    guard try reader.kind() == .array else {
      return try take(&reader, into: &item, titles: &titles, context)
    }
    try reader.beginArray()
    while try reader.nextElement() { try take(&reader, into: &item, titles: &titles, context) }
  }

  private static func take(
    _ reader: inout JSONReader, into item: inout WindowItem, titles: inout Set<[UInt8]>,
    _ context: FeedContext
  ) throws(FeedFailure) {
    let kind = try reader.kind()
    guard kind == .object else {
      if kind != .literal { item.nameless += 1 }
      return try reader.skip()
    }
    let (file, title) = try attachment(&reader, context)
    guard let file else {
      item.nameless += 1
      return
    }
    guard item.admits(), title.isEmpty || titles.insert(title).inserted else { return }
    item.files.append(file)
  }

  private static func attachment(
    _ reader: inout JSONReader, _ context: FeedContext
  ) throws(FeedFailure) -> (file: WindowItem.File?, title: [UInt8]) {
    var url: [UInt8]?
    var type: [UInt8]?
    var length: [UInt8]?
    var title: [UInt8] = []
    try reader.beginObject()
    while let key = try reader.nextKey() {
      switch String(decoding: key, as: UTF8.self) {
      case "url": url = try text(&reader)
      case "mime_type": type = try text(&reader)
      case "size_in_bytes": length = try text(&reader)
      case "title": title = trimmed(try text(&reader) ?? [])
      default: try reader.skip()
      }
    }
    guard let reference = WindowValue.reference(url) else { return (nil, title) }
    let file = WindowItem.File(
      url: context.url.resolve(URLReference(reference)), shown: reference, length: WindowValue.length(length),
      mediaType: WindowValue.mediaType(type))
    return (file, title)
  }

  /// Reads a string, or a number as it is written; `nil` for anything else.
  private static func text(_ reader: inout JSONReader) throws(FeedFailure) -> [UInt8]? {
    switch try reader.kind() {
    case .string: return try reader.string()
    case .number: return try reader.number()
    default:
      try reader.skip()
      return nil
    }
  }
}
