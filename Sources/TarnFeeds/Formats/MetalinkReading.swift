import TarnCore

/// What an element of a Metalink document means. The places differ between the versions, the meanings do not.
enum MetalinkField {
  case file, size, hash, url, pieces, piece, timestamp
}

/// One version of Metalink.
protocol MetalinkVersion: FeedFormat {
  /// The meaning of an element by the names of the elements around it, from below the root to itself. Names
  /// of another namespace than the root's are empty, but for MirrorManager's, which begin with `mm0:`.
  static func field(_ names: [String]) -> MetalinkField?
  /// From 1, the best, to 999999.
  static func priority(of url: XMLReader) -> Int
  /// True for a URL that is the file and not, say, a torrent of it.
  static func isFile(_ url: XMLReader) -> Bool
  /// True for the root element of this version.
  static func isRoot(namespace: String, version: [UInt8]) -> Bool
}

extension MetalinkVersion {
  var kind: FeedKind { .list }

  func read(_ input: FeedInput, in context: FeedContext, sink: FeedSink) throws -> FeedEnd {
    // Before libxml2 sees it; one that stands further down is met by the reader.
    guard !(try input.peek()).holds("<!DOCTYPE") else { throw XMLReader.doctypeRefused }
    let reader = try XMLReader(input)
    guard let root = try reader.next() else { throw FeedFailure.truncated("the XML has no root element") }
    var reading = MetalinkReading<Self>(reader, context, namespace: try namespace(of: root, reader))
    while let node = try reader.next() { try reading.read(node, sink: sink) }
    return FeedEnd(format: name, isComplete: true)
  }

  private func namespace(of root: XMLReader.Node, _ reader: XMLReader) throws(FeedFailure) -> String {
    guard case .start("metalink", let namespace, _) = root else {
      throw reader.failure("the root of this XML is no 'metalink'", code: "feed-not-recognised")
    }
    guard Self.isRoot(namespace: namespace, version: reader.attribute("version") ?? []) else {
      throw reader.failure(
        "this is no \(name): the namespace is '\(Printable.escape(Array(namespace.utf8)))'",
        code: "feed-not-recognised")
    }
    return namespace
  }
}

/// How a document begins, which tells the versions apart before it is parsed.
enum MetalinkHead {
  /// The first tag of an XML document, from `<` to `>`; nil when there is none or it is no `metalink`.
  static func root(_ head: [UInt8]) -> ArraySlice<UInt8>? {
    var rest = head[...]
    while true {
      rest = rest.drop(while: isBlank)
      if rest.begins(with: "<?") {
        guard let end = end(of: "?>", in: rest) else { return nil }
        rest = rest[end...]
      } else if rest.begins(with: "<!--") {
        guard let end = end(of: "-->", in: rest) else { return nil }
        rest = rest[end...]
      } else {
        break
      }
    }
    guard rest.first == UInt8(ascii: "<") else { return nil }
    let tag = rest.prefix { $0 != UInt8(ascii: ">") }
    let name = tag.dropFirst().prefix { !isBlank($0) && $0 != UInt8(ascii: "/") }
    let local = name.split(separator: UInt8(ascii: ":")).last ?? []
    return local.elementsEqual("metalink".utf8) ? tag : nil
  }

  /// Where the text behind a mark begins.
  private static func end(of mark: String, in text: ArraySlice<UInt8>) -> Int? {
    let mark = Array(mark.utf8)
    guard let last = mark.last else { return nil }
    var rest = text
    while let index = rest.firstIndex(of: last) {
      if text[...index].suffix(mark.count).elementsEqual(mark) { return index + 1 }
      rest = rest[(index + 1)...]
    }
    return nil
  }
}

/// The state while the files are read.
private struct MetalinkReading<Version: MetalinkVersion> {
  private static var maximumText: Int { 65_536 }

  private let reader: XMLReader
  private let context: FeedContext
  private let namespace: String
  /// The names of the open elements below the root, and what each means.
  private var open: [String] = []
  private var fields: [MetalinkField?] = []
  private var file = MetalinkFile()
  private var text: [UInt8] = []
  /// What the start of the innermost element said of it.
  private var type: DigestAlgorithm?
  private var pieceIndex: Int?
  private var priority = 999_999
  private var isFile = true
  private var takesPieces = false

  init(_ reader: XMLReader, _ context: FeedContext, namespace: String) {
    self.reader = reader
    self.context = context
    self.namespace = namespace
  }

  mutating func read(_ node: XMLReader.Node, sink: FeedSink) throws {
    switch node {
    case .start(let name, let namespace, let isEmpty):
      open.append(shown(name, namespace))
      text = []
      let field = Version.field(open)
      fields.append(field)
      start(field)
      if isEmpty { try end(sink: sink) }
    case .text(let bytes):
      if text.isEmpty { text = bytes } else { text += bytes }
      guard text.count <= Self.maximumText else {
        throw reader.failure("a text is longer than \(Self.maximumText >> 10) KiB")
      }
    case .end: try end(sink: sink)
    }
  }

  private func shown(_ name: String, _ namespace: String) -> String {
    if namespace == self.namespace { return name }
    return name == "timestamp" ? "mm0:timestamp" : ""
  }

  private mutating func start(_ field: MetalinkField?) {
    switch field {
    case .file:
      file = MetalinkFile()
      file.name = reader.attribute("name") ?? []
    case .hash: type = algorithm()
    case .url:
      priority = Version.priority(of: reader)
      isFile = Version.isFile(reader)
    case .pieces: takesPieces = file.beginPieces(type: algorithm(), length: reader.attribute("length"))
    case .piece:
      pieceIndex = reader.attribute("piece").map { Int(String(decoding: trimmed($0), as: UTF8.self)) ?? -1 }
    case .size, .timestamp, nil: break
    }
  }

  private mutating func end(sink: FeedSink) throws {
    let value = trimmed(text)
    // Of the root there is none.
    switch fields.popLast() ?? nil {
    case .file: try sink(file.item(in: context))
    case .size: file.takeSize(value)
    case .hash: file.takeHash(value, type: type)
    case .url: if isFile { file.takeURL(value, priority: priority) }
    case .piece: if takesPieces { file.takePiece(value, index: pieceIndex) }
    case .timestamp: if value.allSatisfy(\.isASCIIDigit) { file.timestamp = Array(value.prefix(20)) }
    case .pieces, nil: break
    }
    text = []
    _ = open.popLast()
  }

  private func algorithm() -> DigestAlgorithm? {
    reader.attribute("type").flatMap { $0.withUnsafeBytes { DigestAlgorithm(name: $0) } }
  }
}
