import TarnCore

/// A checksum list as one of the files of its mirror, so that whoever uses the mirror can check it. Takes its place in the
/// order of paths.
struct KeptList {
  /// nil once it was handed on, and where the list is not kept.
  private var entry: Entry?

  /// - Throws: `FeedFailure` when the document cannot be read a second time.
  init(_ format: any FeedFormat, in context: FeedContext, parser: FeedParser) throws(FeedFailure) {
    guard format.isKept, let reread = context.document.reread, let path = context.pathOfDocument else {
      return
    }
    let hasher = context.hashing.hasher(.sha256)
    // The bytes that the document's URL gives to who takes no encoding.
    let bytes = reread()
    let size = try hasher.update(context.document.isEncoded ? parser.decoded(bytes) : bytes)
    entry = Entry(
      path: path, size: size, modified: context.document.modified, digests: [hasher.finish()],
      sources: [Source(url: context.url.text)], isList: true)
  }

  /// Hands an item on, and the list in front of the first path behind its own.
  mutating func hand(_ item: FeedItem, to sink: FeedSink) throws {
    if case .entry(let other) = item, let entry {
      // The files that it names go before it.
      if entry.path.isAncestor(of: other.path) {
        self.entry = nil
      } else if entry.path < other.path {
        try handList(to: sink)
      }
    }
    try sink(item)
  }

  /// Hands the list on, if that was not done.
  mutating func handList(to sink: FeedSink) throws {
    guard let list = entry else { return }
    entry = nil
    try sink(.entry(list))
  }
}

extension FeedContext {
  /// Where the document lies beside what it names; nil when nothing can be fetched from its URL, or that names no file.
  fileprivate var pathOfDocument: RelativePath? {
    guard isUsable(url), url.query == nil, document.place == nil else { return nil }
    return try? RelativePath(url.name, rule: document.rule)
  }
}
