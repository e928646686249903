import TarnCore

/// The native manifest as one JSON document.
struct ManifestDocument: FeedFormat {
  var name: String { "manifest" }
  var kind: FeedKind { .list }

  func recognises(_ head: [UInt8]) -> Bool {
    JSONReader.tells(head) { key, reader throws(FeedFailure) in
      key.elementsEqual("manifest".utf8) ? try reader.kind() == .object : nil
    }
  }

  func read(_ input: FeedInput, in context: FeedContext, sink: FeedSink) throws -> FeedEnd {
    var reader = JSONReader(input)
    var header: ManifestHeader?
    var hasFiles = false
    var hasNext = false
    try reader.beginObject()
    while let key = try reader.nextKey() {
      switch String(decoding: key, as: UTF8.self) {
      case "manifest":
        guard header == nil else { throw reader.malformed("'manifest' is given twice") }
        header = try ManifestHeader(&reader)
      case "files":
        guard let header else { throw reader.malformed("'manifest' must come before 'files'") }
        guard !hasFiles else { throw reader.malformed("'files' is given twice") }
        hasFiles = true
        let bases = header.bases(in: context)
        try reader.beginArray()
        while try reader.nextElement() {
          var file = header.defaults
          try file.read(&reader)
          if let item = file.item(in: context, header, bases) { try sink(item) }
        }
      case "next":
        hasNext = try reader.kind() != .literal
        try reader.skip()
      default: try reader.skip()
      }
    }
    try reader.end()
    guard let header, hasFiles else { throw reader.malformed("'manifest' or 'files' is missing") }
    return header.end(
      format: name, incomplete: hasNext ? "the manifest goes on in 'next'; paging is not supported" : nil)
  }
}
