import TarnCore

/// The meaning of an element of a Metalink document. The places differ between the versions, the meanings do not.
enum MetalinkField {
  case file, size, hash, url, pieces, piece, timestamp
}

/// A version of Metalink.
protocol MetalinkVersion: FeedFormat {
  /// Returns the meaning of an element by the names of the open elements, from below the root to itself. Names of another namespace
  /// than the root's are empty, except MirrorManager's, which begin with `mm0:`.
  static func field(_ names: [String]) -> MetalinkField?
  /// Returns the priority, from 1 for the best to 999999.
  static func priority(of url: XMLReader) -> Int
  /// Returns true for a URL of the file itself, and not, for example, of a torrent of it.
  static func isFile(_ url: XMLReader) -> Bool
  /// Returns true for the root element of this version.
  static func isRoot(namespace: String, version: [UInt8]) -> Bool
}

extension MetalinkVersion {
  var kind: FeedKind { .list }

  func read(_ input: FeedInput, in context: FeedContext, sink: FeedSink) throws -> FeedEnd {
    let input = try Self.inUTF8(input)
    // Checked before libxml2 sees it; the reader finds one that stands further down.
    guard !(try input.peek()).holds("<!DOCTYPE") else { throw XMLReader.doctypeRefused }
    let reader = try XMLReader(input)
    guard let root = try reader.next() else { throw FeedFailure.truncated("the XML has no root element") }
    var reading = MetalinkReading<Self>(reader, context, namespace: try namespace(of: root, reader))
    while let node = try reader.next() { try reading.read(node, sink: sink) }
    return FeedEnd(format: name, isComplete: true)
  }

  /// Returns the document in UTF-8, with wrong bytes refused. One that is UTF-8 stays as it is. windows-1252 has a letter for each byte,
  /// and its first one may come after the head.
  private static func inUTF8(_ input: FeedInput) throws(FeedFailure) -> FeedInput {
    let (head, hadMark) = (try input.peek(), input.hadByteOrderMark)
    let charset = Charset(head: head, contentType: nil, hadByteOrderMark: hadMark)
    let told = Charset.told(by: head, contentType: nil, hadByteOrderMark: hadMark)
    guard charset != .utf8 || told == .windows1252 else { return input }
    return FeedInput(try UTF8Source(input, contentType: nil, isStrict: true))
  }

  private func namespace(of root: XMLReader.Node, _ reader: XMLReader) throws(FeedFailure) -> String {
    guard case .start("metalink", let namespace, _) = root else {
      throw reader.failure("the root of this XML is not 'metalink'", code: "feed-not-recognised")
    }
    guard Self.isRoot(namespace: namespace, version: reader.attribute("version") ?? []) else {
      throw reader.failure(
        "this is no \(name): the namespace is '\(Printable.escape(Array(namespace.utf8)))'",
        code: "feed-not-recognised")
    }
    return namespace
  }
}

/// Reads the beginning of a document, by which the versions are told apart before parsing.
enum MetalinkHead {
  /// Returns the first tag of an XML document, from `<` to `>`; `nil` when there is none or it is not `metalink`.
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

  /// Returns the index behind a mark.
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
  /// The names of the open elements below the root, and their meanings.
  private var open: [String] = []
  private var fields: [MetalinkField?] = []
  private var file = MetalinkFile()
  private var text: [UInt8] = []
  /// The attributes of the innermost element.
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
    // The root has no field.
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
