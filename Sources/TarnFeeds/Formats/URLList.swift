import TarnCore

/// One absolute URL on each line. Several on one line, separated by tabs, are mirrors of one file.
struct URLList: FeedFormat {
  var name: String { "URL list" }
  var kind: FeedKind { .list }

  func recognises(_ head: [UInt8]) -> Bool {
    for line in head.split(separator: 0x0A) {
      let text = lowercased(trimmed(line))
      if text.isEmpty || text.first == UInt8(ascii: "#") { continue }
      // A text whose lines end in CR alone is no URL.
      return !text.contains(0x0D) && URLScheme.remotePrefixes.contains { text.begins(with: $0) }
    }
    return false
  }

  func read(_ input: FeedInput, in context: FeedContext, sink: FeedSink) throws -> FeedEnd {
    var reason: String?
    while let (line, isEnded) = try input.readLine() {
      let text = trimmed(line)
      if !isEnded { reason = reason ?? "line \(input.line), the last one, has no end: it may be cut" }
      if text.isEmpty || text.first == UInt8(ascii: "#") { continue }
      let references = text.split(separator: 0x09).map { trimmed($0) }.filter { !$0.isEmpty }
      let urls = references.map { URLReference($0) }
      guard !text.contains(0), urls.allSatisfy({ $0.scheme != nil }),
        !references.contains(where: { $0.contains(0x20) })
      else {
        try sink(Self.malformed(text, line: input.line, reason: "line \(input.line) is not an absolute URL"))
        if reason == nil { reason = "line \(input.line) is not understood" }
        continue
      }
      try sink(Self.item(urls, shown: text, in: context))
    }
    reason = reason ?? context.doubt
    return FeedEnd(format: name, isComplete: reason == nil, incompleteReason: reason ?? "")
  }

  private static let howToName =
    "give the file one in a line below the URL, as in the input files of aria2: a blank and then out=NAME"

  /// Refuses a line. Where blanks are the reason, it says how to write them.
  static func malformed(_ text: [UInt8], line: Int, reason: String) -> FeedItem {
    let words = text.split(separator: 0x20)
    let isURL = words.count > 1 && !text.contains(0) && words.first.map(isAbsolute) ?? false
    let blanks =
      words.dropFirst().contains(where: isAbsolute)
      ? "separates URLs by a blank: the mirrors of one file are separated by tabs, and each file has a line of its own"
      : "has a blank in its URL: write it as %20"
    return Refusal.of(text: text, code: "line-malformed", reason: isURL ? "line \(line) \(blanks)" : reason)
  }

  private static func isAbsolute(_ word: some Sequence<UInt8>) -> Bool {
    let url = URLReference(word)
    return url.scheme != nil && url.authority?.isEmpty == false
  }

  /// - Parameters:
  ///   - urls: the URLs of one file, the best first; the first that Tarn fetches names it.
  ///   - out: the name that the list gives; empty for the name in the URL.
  ///   - directory: the directory that the list gives; empty for the folder itself.
  ///   - fault: why the entry is not accepted, whatever its URLs are.
  static func item(
    _ urls: [URLReference], shown: [UInt8], out: [UInt8] = [], directory: [UInt8] = [],
    digests: [Digest] = [], fault: (code: String, reason: String)? = nil, in context: FeedContext
  ) -> FeedItem {
    let known = urls.filter(\.isRemote)
    let first = known.first ?? urls.first
    let name = Percent.decode(first?.path.split(separator: 0x2F, omittingEmptySubsequences: false).last ?? [])
    guard !name.contains(0x2F) || !out.isEmpty else {
      return Refusal.of(text: shown, code: "path-encoded-slash", reason: "the name of one file holds a slash")
    }
    // A URL without a host is not the address of a file, and what precedes an `@` may be a password.
    if let first, first.scheme != nil, first.authority == nil, first.path.contains(UInt8(ascii: "@")),
      out.isEmpty
    {
      return Refusal.of(text: shown, code: "scheme-not-supported", reason: "its URL names no host")
    }
    let place = (directory.isEmpty ? [] : directory + [0x2F]) + (out.isEmpty ? name : out)
    let path: RelativePath
    do throws(PathRefusal) {
      path = try RelativePath(place, rule: context.document.rule)
    } catch {
      guard !place.isEmpty else {
        return Refusal.of(text: shown, code: error.rawValue, reason: "\(error.reason); \(howToName)")
      }
      return .refused(Refusal(name: place, error))
    }
    if let fault { return Refusal.of(path, code: fault.code, reason: fault.reason) }
    guard !known.isEmpty else {
      return Refusal.of(
        path, code: "scheme-not-supported", reason: "Tarn fetches \(URLScheme.remote) URLs only in a URL list"
      )
    }
    let sources = known.filter { context.isUsable($0) }.map { Source(url: $0.text) }
    guard !sources.isEmpty else { return context.withoutSource(path, urls: known) }
    return .entry(Entry(path: path, digests: digests, sources: sources))
  }
}
