import TarnCore

/// `SHA256SUMS` and its kin: the lines of coreutils, BSD, openssl and Fedora's clearsigned lists.
struct ChecksumList: FeedFormat {
  var name: String { "checksum list" }
  var isListing: Bool { false }

  func recognises(_ head: [UInt8]) -> Bool {
    guard head.first(where: { !isBlank($0) }) != UInt8(ascii: "<") else { return false }
    let lines = head.split(separator: 0x0A).lazy.map { ListedFile.withoutReturns($0) }
    return lines.contains { line in
      switch ChecksumLine(line) {
      case .file, .unsupported: true
      default: false
      }
    }
  }

  func read(_ input: FeedInput, in context: FeedContext, sink: FeedSink) throws -> FeedEnd {
    var reading = ChecksumReading(context: context)
    var text = SignedText(isSigned: SignedText.begins(in: try input.peek()))
    while let (raw, isEnded) = try input.readLine() {
      guard let line = text.next(ListedFile.withoutReturns(raw)) else { continue }
      try reading.take(line, number: input.line, isEnded: isEnded, sink: sink)
    }
    try reading.flush(to: sink)
    guard reading.understood > 0 else {
      throw FeedFailure(code: "feed-not-recognised", message: "no line of this list is a checksum line")
    }
    if text.isCut { reading.note("truncated: the end of the PGP signature is missing") }
    if let doubt = context.doubt { reading.note(doubt) }
    return FeedEnd(format: name, isComplete: reading.reason == nil, incompleteReason: reading.reason ?? "")
  }
}

/// The lines of a clearsigned message that are signed (RFC 9580 7), or all lines of a plain document.
private struct SignedText {
  private enum Place { case before, headers, body, signature, after }
  private var place: Place
  private let isSigned: Bool
  private static let begin = "-----BEGIN PGP SIGNED MESSAGE-----"

  init(isSigned: Bool) {
    self.isSigned = isSigned
    place = isSigned ? .before : .body
  }

  /// True when the message ended before its signature did.
  var isCut: Bool { isSigned && place != .after }

  static func begins(in head: [UInt8]) -> Bool {
    head.split(separator: 0x0A).contains { ListedFile.withoutReturns($0).elementsEqual(begin.utf8) }
  }

  /// The line as it was before signing; nil when it is not part of the signed text.
  mutating func next(_ line: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
    guard isSigned else { return line }
    switch place {
    case .before:
      if line.elementsEqual(Self.begin.utf8) { place = .headers }
    case .headers:
      if line.isEmpty { place = .body }
    case .body:
      if line.begins(with: "-----BEGIN PGP SIGNATURE-----") {
        place = .signature
      } else {
        return line.begins(with: "- ") ? line.dropFirst(2) : line
      }
    case .signature:
      if line.begins(with: "-----END PGP SIGNATURE-----") { place = .after }
    case .after: break
    }
    return nil
  }
}

/// The state while a list is read. Consecutive lines about one file are one entry.
private struct ChecksumReading {
  let context: FeedContext
  let untaggedIsUnknown: Bool
  var understood = 0
  /// Why the list is not complete.
  private(set) var reason: String?
  private var pending: Entry?
  /// A file whose lines so far have digests that Tarn cannot check.
  private var unchecked: [UInt8]?
  private var announced: (name: [UInt8], size: UInt64)?

  init(context: FeedContext) {
    self.context = context
    // Standard input has the working directory for its base, and a directory's name says nothing.
    let parts = context.url.path.split(separator: 0x2F, omittingEmptySubsequences: false)
    let last = lowercased(parts.last ?? [])
    let isKnown = last.holds("sha1") || last.holds("sha2") || last.holds("sha5") || last.holds("md5")
    let isOther = ["b2", "blake", "sm3", "sha3-", "sha3_", "sha3sum"].contains { last.holds($0) }
    untaggedIsUnknown = isOther && !isKnown
  }

  /// Keeps the first reason.
  mutating func note(_ text: String) {
    if reason == nil { reason = text }
  }

  mutating func take(_ line: ArraySlice<UInt8>, number: Int, isEnded: Bool, sink: FeedSink) throws {
    switch ChecksumLine(line, untaggedIsUnknown: untaggedIsUnknown) {
    case .nothing: break
    case .size(let name, let size): announced = (name, size)
    case .file(let name, let digest):
      understood += 1
      try take(name, digest, sink: sink)
    case .unsupported(let name):
      understood += 1
      let bytes = ListedFile.withoutDot(name)
      if pending?.path.bytes == bytes || unchecked == bytes { break }
      try flush(to: sink)
      unchecked = bytes
    case .malformed where !isEnded && understood > 0:
      throw FeedFailure(
        code: "feed-truncated", message: "the list ends in the middle of a line", line: number)
    case .malformed:
      try flush(to: sink)
      try sink(Refusal.of(text: line, code: "line-malformed", reason: "line \(number) is no checksum line"))
      note("line \(number) is not understood")
    }
    if !isEnded { note("line \(number), the last one, has no end: it may be cut") }
  }

  mutating func flush(to sink: FeedSink) throws {
    if let entry = pending { try sink(.entry(entry)) }
    pending = nil
    if let name = unchecked {
      try sink(.refused(Refusal(name: name, code: "digest-unsupported", reason: Refusal.noCheck)))
    }
    unchecked = nil
  }

  private mutating func take(_ name: [UInt8], _ digest: Digest, sink: FeedSink) throws {
    let bytes = ListedFile.withoutDot(name)
    if let known = pending, known.path.bytes == bytes,
      !known.digests.contains(where: { $0.algorithm == digest.algorithm })
    {
      pending = Entry(
        path: known.path, size: known.size, digests: known.digests + [digest], sources: known.sources)
      return
    }
    if unchecked == bytes { unchecked = nil }
    try flush(to: sink)
    let path: RelativePath
    do throws(PathRefusal) {
      path = try RelativePath(bytes, rule: context.document.rule)
    } catch {
      return try sink(.refused(Refusal(name: bytes, error)))
    }
    let size = announced.flatMap { $0.name == name ? $0.size : nil }
    let sources = context.sources(beside: path)
    guard !sources.isEmpty else { return try sink(context.withoutSource(path)) }
    pending = Entry(path: path, size: size, digests: [digest], sources: sources)
  }
}
