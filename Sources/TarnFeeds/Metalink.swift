import TarnCore

/// Metalink 4 (RFC 5854).
struct Metalink: FeedFormat {
  static let namespace = "urn:ietf:params:xml:ns:metalink"

  var name: String { "Metalink 4" }
  var isListing: Bool { false }

  func recognises(_ head: [UInt8]) -> Bool {
    let text = trimmed(head)
    guard text.first == UInt8(ascii: "<") else { return false }
    let start = lowercased(text.prefix(32))
    guard !start.begins(with: "<html"), !start.begins(with: "<!doctype html") else { return false }
    return text.holds("<metalink") || text.holds(Self.namespace)
  }

  func read(_ input: FeedInput, in context: FeedContext, sink: FeedSink) throws -> FeedEnd {
    // Before libxml2 sees it; one that stands further down is met by the reader.
    guard !(try input.peek()).holds("<!DOCTYPE") else { throw XMLReader.doctypeRefused }
    let reader = try XMLReader(input)
    var reading = MetalinkReading(reader, context)
    var isRoot = true
    while let node = try reader.next() {
      if isRoot {
        try Self.checkRoot(node, reader)
        isRoot = false
      } else {
        try reading.take(node, sink: sink)
      }
    }
    guard !isRoot else { throw FeedFailure.truncated("the XML has no root element") }
    return FeedEnd(format: name, isComplete: true)
  }

  private static func checkRoot(_ node: XMLReader.Node, _ reader: XMLReader) throws(FeedFailure) {
    guard case .start("metalink", let namespace, _) = node else {
      throw reader.failure("the root of this XML is no 'metalink'", code: "feed-not-recognised")
    }
    guard namespace != Self.namespace else { return }
    let version = reader.attribute("version") ?? []
    let isThird = namespace.contains("metalinker.org") || version.begins(with: "3")
    throw reader.failure(
      isThird ? "this is Metalink 3, which is not read yet; ask for Metalink 4" : "this is no Metalink 4",
      code: "feed-not-recognised")
  }
}

/// The state while the files are read.
private struct MetalinkReading {
  private static let maximumText = 65_536

  private let reader: XMLReader
  private let context: FeedContext
  /// The names of the open elements below the root; empty for those of other namespaces.
  private var open: [String] = []
  private var file = MetalinkFile()
  private var text: [UInt8] = []

  init(_ reader: XMLReader, _ context: FeedContext) {
    self.reader = reader
    self.context = context
  }

  mutating func take(_ node: XMLReader.Node, sink: FeedSink) throws {
    switch node {
    case .start(let name, let namespace, let isEmpty):
      open.append(namespace == Metalink.namespace ? name : "")
      text = []
      start()
      if isEmpty { try end(sink: sink) }
    case .text(let bytes):
      text += bytes
      guard text.count <= Self.maximumText else {
        throw reader.failure("a text is longer than \(Self.maximumText >> 10) KiB")
      }
    case .end: try end(sink: sink)
    }
  }

  private mutating func start() {
    switch open {
    case ["file"]:
      file = MetalinkFile()
      file.name = reader.attribute("name") ?? []
    case ["file", "hash"]: file.hashType = algorithm()
    case ["file", "url"]:
      let priority = reader.attribute("priority").flatMap {
        Int(String(decoding: trimmed($0), as: UTF8.self))
      }
      file.priority = min(max(priority ?? 999_999, 1), 999_999)
    case ["file", "pieces"]:
      file.pieceType = algorithm()
      file.pieceLength = reader.attribute("length").flatMap {
        UInt64(String(decoding: trimmed($0), as: UTF8.self))
      }
      file.pieceTexts = []
    default: break
    }
  }

  private mutating func end(sink: FeedSink) throws {
    let value = trimmed(text)
    switch open {
    case ["file"]: try sink(file.item(in: context))
    case ["file", "size"]: file.takeSize(value)
    case ["file", "hash"]: file.takeHash(value)
    case ["file", "url"]: file.urls.append((value, file.priority))
    case ["file", "pieces", "hash"]: file.pieceTexts.append(value)
    default: break
    }
    text = []
    _ = open.popLast()
  }

  private func algorithm() -> DigestAlgorithm? {
    reader.attribute("type").flatMap { DigestAlgorithm(name: String(decoding: $0, as: UTF8.self)) }
  }
}

/// One `file` element as it is written.
private struct MetalinkFile {
  var name: [UInt8] = []
  var urls: [(url: [UInt8], priority: Int)] = []
  var priority = 999_999
  var hashType: DigestAlgorithm?
  var pieceType: DigestAlgorithm?
  var pieceLength: UInt64?
  var pieceTexts: [[UInt8]] = []
  private var size: UInt64?
  private var digests: [Digest] = []
  /// The code of the first field that cannot be read.
  private var fault: String?

  mutating func takeSize(_ text: [UInt8]) {
    size = UInt64(String(decoding: text, as: UTF8.self))
    if size.map({ $0 > Int64.max }) ?? true { fault = fault ?? "size-malformed" }
  }

  mutating func takeHash(_ text: [UInt8]) {
    guard let hashType else { return }
    if let digest = Digest(hashType, hex: text) {
      digests.append(digest)
    } else {
      fault = fault ?? "digest-malformed"
    }
  }

  func item(in context: FeedContext) -> FeedItem {
    let path: RelativePath
    do throws(PathRefusal) {
      path = try RelativePath(name, rule: context.document.rule)
    } catch {
      return .refused(Refusal(name: Array(name.prefix(255)), error))
    }
    if let fault {
      let what =
        fault == "size-malformed" ? "the size is no whole number from 0 to 2^63-1" : "a digest is malformed"
      return Refusal.of(name, code: fault, reason: what)
    }
    let sources = urls.compactMap { context.source($0.url, priority: $0.priority) }
    guard !sources.isEmpty else { return Refusal.withoutSource(name) }
    // Swift's sort is stable: equal ones stay in the order of the document.
    return .entry(
      Entry(
        path: path, size: size, digests: digests, sources: sources.sorted { $0.priority < $1.priority },
        pieces: pieces)
    )
  }

  private var pieces: Pieces? {
    Pieces.checked(length: pieceLength, digests: PieceDigests.parse(pieceTexts, pieceType), size: size)
  }
}
