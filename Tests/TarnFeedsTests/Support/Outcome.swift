import TarnCore

@testable import TarnFeeds

/// Hands out at most `step` bytes at a time.
struct SteppedSource: ByteSource {
  let bytes: [UInt8]
  var step = 1 << 20
  var position = 0

  init(_ bytes: [UInt8], step: Int = 1 << 20) {
    self.bytes = bytes
    self.step = step
  }

  mutating func read(into buffer: UnsafeMutableRawBufferPointer) throws(FeedFailure) -> Int {
    let count = min(step, buffer.count, bytes.count - position)
    buffer.copyBytes(from: bytes[position..<(position + count)])
    position += count
    return count
  }
}

/// What a parse gave.
struct Outcome: Equatable {
  var items: [FeedItem] = []
  var end: FeedEnd?
  var failure: FeedFailure?

  var entries: [Entry] {
    items.compactMap { if case .entry(let entry) = $0 { entry } else { nil } }
  }
  var refused: [Refusal] {
    items.compactMap { if case .refused(let refusal) = $0 { refusal } else { nil } }
  }
  var enclosures: [Enclosure] {
    items.compactMap { if case .enclosure(let enclosure) = $0 { enclosure } else { nil } }
  }
  var names: [String] { entries.map(\.path.printable) }
  var codes: [String] { refused.map(\.code) }
  var isComplete: Bool { end?.isComplete ?? false }
}

extension Outcome {
  /// Reads a document as the format that it is recognised as, or as the given one whatever it looks like.
  static func of(
    _ bytes: [UInt8], as format: (any FeedFormat)? = nil, _ document: FeedDocument, hashing: any Hashing,
    step: Int = 1 << 20
  ) -> Outcome {
    var outcome = Outcome()
    let source = SteppedSource(bytes, step: step)
    do {
      if let format {
        outcome.end = try format.read(
          FeedInput(source), in: FeedContext(document: document, hashing: hashing)
        ) { outcome.items.append($0) }
      } else {
        outcome.end = try FeedParser(hashing: hashing).parse(source, as: document) {
          outcome.items.append($0)
        }
      }
    } catch {
      outcome.failure = error as? FeedFailure
    }
    return outcome
  }

  /// What no document may bring about, whatever its bytes; empty when all is well.
  var faults: [String] {
    var faults: [String] = []
    if (end == nil) == (failure == nil) { faults.append("neither an end nor a failure, or both") }
    if let end, end.isComplete != end.incompleteReason.isEmpty { faults.append("no reason, or one too many") }
    if failure?.code.isEmpty ?? false { faults.append("a failure without a code") }
    for item in items {
      switch item {
      case .entry(let entry): faults += Self.faults(of: entry)
      case .refused(let refusal):
        if refusal.code.isEmpty || refusal.name.count > 4095 { faults.append("a refusal: \(refusal)") }
      case .directory(let url, let path):
        if !Self.isFetched(url) || !Self.isPath(path) { faults.append("a directory: \(url)") }
      case .enclosure(let enclosure):
        if enclosure.sources.isEmpty || !enclosure.sources.allSatisfy({ Self.isFetched($0.url) }) {
          faults.append("an enclosure: \(enclosure.sources)")
        }
        if enclosure.length == 0 || enclosure.guid?.isEmpty == true { faults.append("an enclosure's fields") }
      case .deleted(let path): if !Self.isPath(path) { faults.append("a path: \(path.bytes)") }
      }
    }
    return faults
  }

  private static func faults(of entry: Entry) -> [String] {
    var faults: [String] = []
    if !isPath(entry.path) { faults.append("a path: \(entry.path.bytes)") }
    if entry.sources.isEmpty || !entry.sources.allSatisfy({ isFetched($0.url) }) {
      faults.append("sources: \(entry.sources)")
    }
    if entry.sources.contains(where: { !(1...999_999).contains($0.priority) }) { faults.append("a priority") }
    if let size = entry.size, size > Int64.max { faults.append("a size: \(size)") }
    if let pieces = entry.pieces, pieces.length == 0 || pieces.digests.isEmpty { faults.append("pieces") }
    return faults
  }

  private static func isPath(_ path: RelativePath) -> Bool {
    (try? RelativePath(path.bytes, rule: .linux)) != nil
  }

  /// Of a document that came over https no other scheme is taken.
  private static func isFetched(_ url: String) -> Bool {
    url.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F } && (url.hasPrefix("http://") || url.hasPrefix("https://"))
  }
}

extension FeedFormat {
  /// The name of the format as a directory's: `metalink-4`.
  var slug: String {
    String(
      decoding: name.utf8.map { $0.isASCIILetter || $0.isASCIIDigit ? lowercased([$0])[0] : 0x2D },
      as: UTF8.self)
  }
}
