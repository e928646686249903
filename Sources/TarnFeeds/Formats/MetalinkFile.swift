import TarnCore

/// A `file` element as it is written, in either version of Metalink.
struct MetalinkFile {
  /// The limits of what is kept of one file. A document with more is not a list that a server made.
  static let maximumURLs = 10_000
  static let maximumPieces = 1_000_000

  var name: [UInt8] = []
  /// MirrorManager's timestamp of the version: a time of the repository, not of the file.
  var timestamp: [UInt8] = []
  private var urls: [(url: [UInt8], priority: Int)] = []
  private var size: UInt64?
  private var digests: [Digest] = []
  private var pieceType: DigestAlgorithm?
  private var pieceLength: UInt64?
  private var pieceTexts: [(index: Int, text: [UInt8])] = []
  private var hasTooManyPieces = false
  /// True when the file has digests that Tarn cannot check.
  private var hasUnknownDigest = false
  /// The code of the first field that cannot be read.
  private var fault: String?

  mutating func takeSize(_ text: [UInt8]) {
    size = Percent.wholeNumber(text)
    if size.map({ $0 > Int64.max }) ?? true { fault = fault ?? "size-malformed" }
  }

  /// - Parameter type: `nil` when the element names no known algorithm; then it is skipped.
  mutating func takeHash(_ text: [UInt8], type: DigestAlgorithm?) {
    guard let type else {
      hasUnknownDigest = true
      return
    }
    let digest = Digest(type, hex: text)
    let known = digests.first { $0.algorithm == type }
    if let digest, known == nil {
      digests.append(digest)
    } else if digest == nil || digest != known {
      fault = fault ?? "digest-malformed"
    }
  }

  /// - Parameter priority: the priority as in a `Source`; 1 is the best.
  mutating func takeURL(_ url: [UInt8], priority: Int) {
    if urls.count < Self.maximumURLs { urls.append((url, priority)) }
  }

  /// Begins the digests of the pieces. The last set that Tarn can check is kept.
  mutating func beginPieces(type: DigestAlgorithm?, length: [UInt8]?) -> Bool {
    if !PieceDigests.checks(type) { hasUnknownDigest = true }
    guard let type else { return false }
    pieceType = type
    pieceLength = length.flatMap { UInt64(String(decoding: trimmed($0), as: UTF8.self)) }
    pieceTexts = []
    hasTooManyPieces = false
    return true
  }

  /// - Parameter index: `nil` in Metalink 4, where the order counts.
  mutating func takePiece(_ text: [UInt8], index: Int?) {
    guard pieceTexts.count < Self.maximumPieces else {
      hasTooManyPieces = true
      return
    }
    pieceTexts.append((index ?? pieceTexts.count, text))
  }

  func item(in context: FeedContext) -> FeedItem {
    let path: RelativePath
    do throws(PathRefusal) {
      path = try RelativePath(name, rule: context.document.rule)
    } catch {
      return .refused(Refusal(name: name, error))
    }
    if let fault {
      let what =
        fault == "size-malformed"
        ? "the size is not a whole number from 0 to 2^63-1"
        : "a digest is malformed, or two of one kind differ"
      return Refusal.of(path, code: fault, reason: what)
    }
    let pieces = pieces
    if digests.isEmpty, pieces == nil {
      if hasUnknownDigest || hasTooManyPieces { return Refusal.unsupportedDigest(path) }
      if !pieceTexts.isEmpty { return Refusal.malformedPieces(path) }
    }
    var sources = urls.compactMap { context.source($0.url, priority: $0.priority) }
    guard !sources.isEmpty else {
      return context.withoutSource(path, urls: urls.map { context.url.resolve(URLReference($0.url)) })
    }
    // Swift's sort is stable: equal priorities stay in the order of the document.
    if sources.count > 1 { sources.sort { $0.priority < $1.priority } }
    return .entry(
      Entry(path: path, size: size, digests: digests, sources: sources, pieces: pieces, listing: timestamp))
  }

  /// The digests in the order of their indexes; `nil` when one is missing or named twice.
  private var pieces: Pieces? {
    guard !hasTooManyPieces, !pieceTexts.isEmpty else { return nil }
    let ordered = pieceTexts.sorted { $0.index < $1.index }
    guard ordered.indices.allSatisfy({ ordered[$0].index == $0 }) else { return nil }
    return Pieces.checked(
      length: pieceLength, digests: PieceDigests.parse(ordered.map(\.text), pieceType), size: size)
  }
}
