import TarnCore

/// A function called for each item in the order of the document.
typealias FeedSink = (FeedItem) throws -> Void

/// A format of feeds.
protocol FeedFormat: Sendable {
  /// The name as `tarn status` prints it.
  var name: String { get }
  var kind: FeedKind { get }
  /// True for a list that is kept beside the files that it names, for users who check them.
  var isKept: Bool { get }
  /// Recognises a document by its first bytes (at most `FeedInput.headSize`, without a byte order mark).
  func recognises(_ head: [UInt8]) -> Bool
  /// Recognises a document also by its name, the last segment of its URL, which may tell what its bytes do not.
  func recognises(_ head: [UInt8], named name: [UInt8]) -> Bool
  /// Recognises a document that a listing led to, where weaker evidence is enough.
  func recognisesBelow(_ head: [UInt8]) -> Bool
  /// Reads the whole document in bounded memory.
  func read(_ input: FeedInput, in context: FeedContext, sink: FeedSink) throws -> FeedEnd
}

extension FeedFormat {
  /// True for a directory index, the only kind that is read below the feed itself.
  var isListing: Bool { kind == .index }
  var isKept: Bool { false }
  func recognises(_ head: [UInt8], named name: [UInt8]) -> Bool { recognises(head) }
  func recognisesBelow(_ head: [UInt8]) -> Bool { recognises(head) }
}

/// The facts about the document that a format needs.
struct FeedContext {
  let document: FeedDocument
  let url: URLReference
  let hashing: any Hashing
  /// The URL of the document's directory, with a slash at its end.
  private let directory: [UInt8]
  /// The directory of a local feed as the names of its path; `nil` for others.
  private let localDirectory: [[UInt8]]?

  /// Why a list without an end mark may be incomplete; `nil` when it is complete.
  var doubt: String? {
    document.isWhole ? nil : "nothing marks where the list ends, so a truncated one would look whole"
  }

  init(document: FeedDocument, hashing: any Hashing) {
    self.document = document
    self.hashing = hashing
    var url = document.base
    if url.isLocal, url.authority == nil { url.authority = [] }
    self.url = url
    directory =
      URLReference(scheme: url.scheme, authority: url.authority, path: url.directory, query: nil).bytes
    localDirectory = url.isLocal ? Self.names(ofLocal: url.directory) : nil
  }

  /// Returns the address of the next page, where it may be fetched.
  ///
  /// - Parameters:
  ///   - reference: the reference as the document has it.
  ///   - base: the base of the document's relative references.
  func page(_ reference: [UInt8], of base: URLReference) -> String? {
    guard !reference.isEmpty else { return nil }
    let page = base.resolve(URLReference(reference))
    return isUsable(page) ? page.text : nil
  }

  /// Returns whether the path is that of the document itself, as far as the folder follows the server.
  func isDocument(_ path: [UInt8]) -> Bool {
    (url.query == nil || DigestFileName.isList(path)) && !path.isEmpty && path == url.name
  }

  /// Returns the URL of a raw path below the document's directory.
  func url(of path: RelativePath) -> String {
    Percent.text(of: path, behind: directory)
  }

  /// Returns the one source of a path beside the document; none when the document's URL cannot be used.
  func sources(beside path: RelativePath) -> [Source] {
    isUsable(url) ? [Source(url: url(of: path))] : []
  }

  /// Returns the source for a URL of the document, resolved against the document.
  ///
  /// - Returns: `nil` for other schemes than http, https and file, for a URL with a user name or password, and for one without a
  ///   host. The scheme file is accepted only in a local feed, for its own directory and below.
  func source(_ reference: some Sequence<UInt8>, priority: Int = 1) -> Source? {
    let plain = reference.withContiguousStorageIfAvailable {
      URLReference.isPlain($0) ? String(decoding: $0, as: UTF8.self) : nil
    }
    if let plain = plain ?? nil { return Source(url: plain, priority: priority) }
    let resolved = url.resolve(URLReference(reference))
    return isUsable(resolved) ? Source(url: resolved.text, priority: priority) : nil
  }

  /// Refuses a file beside a document whose own URL cannot be used.
  func withoutSource(_ path: RelativePath) -> FeedItem { withoutSource(path, urls: [url]) }

  /// Refuses a file for which `source` returned nothing.
  ///
  /// - Parameter urls: all URLs that the feed gives for it, resolved.
  func withoutSource(_ path: RelativePath, urls: [URLReference]) -> FeedItem {
    Refusal.of(path, code: Self.noSource, reason: reason(urls))
  }

  /// Refuses a file that has no path.
  func withoutSource(text: some Sequence<UInt8>, urls: [URLReference]) -> FeedItem {
    Refusal.of(text: text, code: Self.noSource, reason: reason(urls))
  }

  private static let noSource = "no-usable-source"

  private func reason(_ urls: [URLReference]) -> String {
    guard let first = urls.first else { return "the feed names no URL for this file" }
    let reason = obstacle(first).map { ": \($0)" } ?? ""
    return
      "the feed names no URL that Tarn may fetch this file from\(urls.count > 1 ? "; the first" : "")\(reason)"
  }

  func isUsable(_ url: URLReference) -> Bool { obstacle(url) == nil }

  /// Returns why nothing is fetched from a URL, for people; `nil` when it may be fetched.
  private func obstacle(_ url: URLReference) -> String? {
    if url.scheme == nil {
      return "a feed on standard input has no address, so it has to name whole http or https URLs"
    }
    let host = url.authority ?? []
    guard url.isLocal, !host.contains(UInt8(ascii: "@")) else { return url.obstacle }
    let isHere = host.isEmpty || host.elementsEqual("localhost".utf8)
    guard isHere, isInLocalDirectory(url.path) else {
      return "of local files a feed may name only those in its own directory and below, and only a local feed"
    }
    return nil
  }

  /// Returns whether a local path is in the feed's own directory. The feed may be anybody's, for example from an archive, and must
  /// not bring in a file that only lies on the same machine.
  private func isInLocalDirectory(_ path: [UInt8]) -> Bool {
    guard let localDirectory, let names = Self.names(ofLocal: path) else { return false }
    return names.starts(with: localDirectory)
  }

  /// Returns the names along a path after decoding, as when it is opened, with `.` and `..` resolved.
  ///
  /// - Returns: `nil` for a path with a NUL.
  private static func names(ofLocal path: [UInt8]) -> [[UInt8]]? {
    let decoded = Percent.decode(path)
    guard !decoded.contains(0) else { return nil }
    var names: [[UInt8]] = []
    for name in decoded.split(separator: 0x2F) where !name.elementsEqual(".".utf8) {
      if name.elementsEqual("..".utf8) { _ = names.popLast() } else { names.append(Array(name)) }
    }
    return names
  }
}

extension Refusal {
  /// Refuses a text that names no path.
  static func of(text: some Sequence<UInt8>, code: String, reason: String) -> FeedItem {
    .refused(Refusal(text: Array(text), code: code, reason: reason))
  }

  static func of(_ path: RelativePath, code: String, reason: String) -> FeedItem {
    .refused(Refusal(path: path, code: code, reason: reason))
  }

  /// Refuses an entry that would be published unverified although the feed gives digests. One digest that Tarn can check is enough.
  static func unsupportedDigest(_ path: RelativePath) -> FeedItem {
    of(path, code: "digest-unsupported", reason: noCheck)
  }

  /// Refuses a file that has digests of its pieces alone, of which some are missing or malformed.
  static func malformedPieces(_ path: RelativePath) -> FeedItem {
    of(
      path, code: "digest-malformed",
      reason: "the digests of its pieces are malformed, or not as many as it has pieces")
  }

  static let noCheck = "Tarn cannot check this kind of digest"
}

extension FeedFailure {
  static func malformed(_ message: String, line: Int? = nil, column: Int? = nil) -> FeedFailure {
    FeedFailure(code: "feed-malformed", message: message, line: line, column: column)
  }

  static func truncated(_ message: String, line: Int? = nil, column: Int? = nil) -> FeedFailure {
    FeedFailure(code: "feed-truncated", message: message, line: line, column: column)
  }
}

/// Returns the bytes without blanks at both ends.
func trimmed(_ bytes: some BidirectionalCollection<UInt8>) -> [UInt8] {
  if let bytes = bytes as? [UInt8], !isBlank(bytes.first ?? 0), !isBlank(bytes.last ?? 0) { return bytes }
  var bytes = Array(bytes)[...]
  while let first = bytes.first, isBlank(first) { bytes.removeFirst() }
  while let last = bytes.last, isBlank(last) { bytes.removeLast() }
  return Array(bytes)
}

func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }

/// Returns the bytes with ASCII letters in lower case.
func lowercased(_ bytes: some Sequence<UInt8>) -> [UInt8] {
  bytes.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }
}

extension Collection where Element == UInt8 {
  func begins(with text: String) -> Bool { starts(with: text.utf8) }

  /// Returns whether the text occurs anywhere.
  func holds(_ text: String) -> Bool { place(of: text) != nil }

  /// Returns the first position of the text.
  func place(of text: String) -> Index? {
    let wanted = Array(text.utf8)
    guard let first = wanted.first else { return startIndex }
    var rest = self[startIndex...]
    while let index = rest.firstIndex(of: first) {
      if self[index...].starts(with: wanted) { return index }
      rest = self[self.index(after: index)...]
    }
    return nil
  }
}

extension FeedDocument {
  /// The base of references: where the document came from. A store of releases redirects each file to a name of its own, or to a
  /// URL that is signed only for it. A checksum list from such a store belongs to the requested URL.
  var base: URLReference {
    let final = URLReference(url)
    guard let requested = requestedURL.map({ URLReference($0) }), DigestFileName.isList(requested.name) else {
      return final
    }
    let isSigned = final.query != nil && requested.query == nil
    return isSigned || !DigestFileName.isList(final.name) ? requested : final
  }
}
