import TarnCore

/// A file of the native manifest as it is written, before it is checked.
struct ManifestFile {
  private var path: [UInt8]?
  private var pathBytes: [UInt8]?
  /// The type; `nil` for a file, the usual type.
  private var type: [UInt8]?
  private(set) var size: UInt64?
  private var isSizeBad = false
  private var modified: Timestamp?
  private var digests: [Digest] = []
  private var isDigestBad = false
  /// True when the entry has digests that Tarn cannot check.
  private var hasUnknownDigest = false
  private var pieceLength: UInt64?
  private var pieceDigests: [Digest]?
  /// True when there are digests of pieces, whether they can be used or not.
  private var hasPieces = false
  private var urls: [(url: [UInt8], priority: Int)] = []
  private var hasURL = false

  private static let keys = JSONKeys("path", "size", "hashes", "mtime", "url", "pathBytes", "type", "pieces")

  /// Reads an object and overwrites what is set already; unknown keys are ignored.
  mutating func read(_ reader: inout JSONReader) throws(FeedFailure) {
    try reader.beginObject()
    while let key = try reader.nextKey(of: Self.keys) {
      switch key {
      case 0: path = try reader.string()
      case 1: try readSize(&reader)
      case 2: try readDigests(&reader)
      case 3: try readTime(&reader)
      case 5: pathBytes = try reader.string()
      case 6: type = try reader.string()
      case 7: try readPieces(&reader)
      case 4:
        urls = try Self.sources(&reader)
        hasURL = true
      default: try reader.skip()
      }
    }
  }

  /// Reads a URL, or an array of URLs and of objects with `url` and `priority`.
  static func sources(_ reader: inout JSONReader) throws(FeedFailure) -> [(url: [UInt8], priority: Int)] {
    guard try reader.kind() == .array else { return [(try reader.string(), 1)] }
    var found: [(url: [UInt8], priority: Int)] = []
    try reader.beginArray()
    while try reader.nextElement() {
      guard try reader.kind() == .object else {
        found.append((try reader.string(), 1))
        continue
      }
      var url: [UInt8]?
      var priority = 1
      try reader.beginObject()
      while let key = try reader.nextKey() {
        switch String(decoding: key, as: UTF8.self) {
        case "url": url = try reader.string()
        case "priority":
          priority = min(
            max(Int(String(decoding: try reader.number(), as: UTF8.self)) ?? 999_999, 1), 999_999)
        default: try reader.skip()
        }
      }
      if let url { found.append((url, priority)) }
    }
    return found
  }

  /// Returns the item of the feed; `nil` for a directory, which files imply.
  ///
  /// - Parameter bases: the base URLs of the header.
  func item(in context: FeedContext, _ header: ManifestHeader, _ bases: [ManifestBase]) -> FeedItem? {
    if type?.elementsEqual("dir".utf8) == true { return nil }
    let raw = rawPath()
    let path: RelativePath
    do throws(PathRefusal) {
      path = try RelativePath(raw ?? [], rule: context.document.rule)
    } catch {
      return .refused(Refusal(name: raw ?? self.path ?? [], error))
    }
    if let type, type.elementsEqual("deleted".utf8) { return .deleted(path) }
    if let type, !type.elementsEqual("file".utf8) {
      return Refusal.of(
        path, code: "type-not-supported", reason: "Tarn mirrors files only, not \(Printable.escape(type))")
    }
    if isSizeBad {
      return Refusal.of(
        path, code: "size-malformed", reason: "the size is not a whole number from 0 to 2^63-1")
    }
    if isDigestBad {
      return Refusal.of(
        path, code: "digest-malformed", reason: "a digest is not hexadecimal of the right length")
    }
    if digests.isEmpty, pieces == nil {
      if hasUnknownDigest { return Refusal.unsupportedDigest(path) }
      if hasPieces { return Refusal.malformedPieces(path) }
    }
    let sources = sources(of: path, in: context, header, bases)
    guard !sources.isEmpty else {
      let named = urls.map(\.url) + header.mirrors.map(\.url)
      return context.withoutSource(
        path,
        urls: hasURL || !named.isEmpty ? named.map { context.url.resolve(URLReference($0)) } : [context.url])
    }
    return .entry(
      Entry(path: path, size: size, modified: modified, digests: digests, sources: sources, pieces: pieces))
  }

  // MARK: Fields

  private func rawPath() -> [UInt8]? {
    guard let pathBytes else { return path }
    return Base64.decode(pathBytes)
  }

  private func sources(
    of path: RelativePath, in context: FeedContext, _ header: ManifestHeader, _ bases: [ManifestBase]
  ) -> [Source] {
    if !hasURL, header.mirrors.isEmpty { return context.sources(beside: path) }
    var sources: [Source] = []
    for url in urls {
      if let source = context.source(url.url, priority: url.priority) { sources.append(source) }
    }
    for base in bases { sources.append(base.source(of: path)) }
    // Swift's sort is stable: equal priorities stay in the order of the document.
    return sources.count > 1 ? sources.sorted { $0.priority < $1.priority } : sources
  }

  private var pieces: Pieces? {
    Pieces.checked(length: pieceLength, digests: pieceDigests, size: size)
  }

  private mutating func readSize(_ reader: inout JSONReader) throws(FeedFailure) {
    guard try reader.kind() == .number else {
      isSizeBad = true
      return try reader.skip()
    }
    size = try reader.wholeNumber()
    isSizeBad = size.map { $0 > Int64.max } ?? true
  }

  private mutating func readTime(_ reader: inout JSONReader) throws(FeedFailure) {
    switch try reader.kind() {
    case .string: modified = FeedTime.rfc3339(try reader.string())
    case .number: modified = FeedTime.seconds(try reader.number())
    default: try reader.skip()
    }
  }

  private mutating func readDigests(_ reader: inout JSONReader) throws(FeedFailure) {
    digests = []
    hasUnknownDigest = false
    try reader.beginObject()
    while let known = try reader.nextKey(as: { DigestAlgorithm(name: $0) }) {
      guard let algorithm = known else {
        hasUnknownDigest = true
        try reader.skip()
        continue
      }
      if try reader.kind() == .string, let digest = try reader.string(as: { Digest(algorithm, hex: $0) }) {
        digests.append(digest)
      } else {
        isDigestBad = true
      }
    }
  }

  private mutating func readPieces(_ reader: inout JSONReader) throws(FeedFailure) {
    var algorithm: DigestAlgorithm?
    var texts: [[UInt8]] = []
    try reader.beginObject()
    while let key = try reader.nextKey() {
      switch String(decoding: key, as: UTF8.self) {
      case "length": pieceLength = try reader.wholeNumber()
      case "type": algorithm = try reader.string(as: { DigestAlgorithm(name: $0) })
      case "hashes":
        try reader.beginArray()
        while try reader.nextElement() { texts.append(try reader.string()) }
      default: try reader.skip()
      }
    }
    if !texts.isEmpty, !PieceDigests.checks(algorithm) { hasUnknownDigest = true }
    hasPieces = !texts.isEmpty
    pieceDigests = PieceDigests.parse(texts, algorithm)
  }
}

/// Reads digests of pieces as feeds write them.
enum PieceDigests {
  /// - Parameter algorithm: `nil` for one that Tarn does not know.
  static func checks(_ algorithm: DigestAlgorithm?) -> Bool {
    algorithm.map { [.sha1, .sha256, .sha512].contains($0) } ?? false
  }

  /// - Returns: `nil` when pieces are not checked with the algorithm, or a digest is malformed.
  static func parse(_ texts: [[UInt8]], _ algorithm: DigestAlgorithm?) -> [Digest]? {
    guard let algorithm, checks(algorithm) else { return nil }
    let digests = texts.compactMap { Digest(algorithm, hex: $0) }
    return digests.count == texts.count ? digests : nil
  }
}

extension Pieces {
  /// - Parameter size: `nil` where the feed gives none; then the pieces tell where the file ends.
  /// - Returns: `nil` unless the number of digests is that of the pieces of a file of this size.
  static func checked(length: UInt64?, digests: [Digest]?, size: UInt64?) -> Pieces? {
    guard let length, let digests, length > 0, !digests.isEmpty,
      size.map({ UInt64(digests.count) == $0 / length + ($0 % length == 0 ? 0 : 1) }) ?? true
    else { return nil }
    return Pieces(length: length, digests: digests)
  }
}
