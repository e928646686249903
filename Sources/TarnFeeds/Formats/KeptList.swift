import TarnCore

/// A checksum list as one of the files of its mirror, so that users of the mirror can check it. It takes its place in path order.
struct KeptList {
  /// The entry of the list; `nil` when it was passed on, and where the list is not kept.
  private var entry: Entry?

  /// - Throws: `FeedFailure` when the document cannot be read a second time.
  init(_ format: any FeedFormat, in context: FeedContext, parser: FeedParser) throws(FeedFailure) {
    guard format.isKept, let reread = context.document.reread, let path = context.pathOfDocument else {
      return
    }
    let hasher = context.hashing.hasher(.sha256)
    // These are the bytes that the document's URL returns without an encoding.
    let bytes = reread()
    let size = try hasher.update(context.document.isEncoded ? parser.decoded(bytes) : bytes)
    var list = Entry(
      path: path, size: size, modified: context.document.modified, digests: [hasher.finish()],
      sources: [Source(url: context.url.text)], isList: true)
    list.mayBeCut = !context.document.isWhole
    entry = list
  }

  /// Passes on an item, and the list before the first path that follows its own.
  mutating func hand(_ item: FeedItem, to sink: FeedSink) throws {
    if case .entry(let other) = item, let entry {
      // The files that it names take precedence.
      if entry.path.isAncestor(of: other.path) {
        self.entry = nil
      } else if entry.path < other.path {
        try handList(to: sink)
      }
    }
    try sink(item)
  }

  /// Passes on the list, if that was not done yet.
  mutating func handList(to sink: FeedSink) throws {
    guard let list = entry else { return }
    entry = nil
    try sink(.entry(list))
  }
}

extension FeedContext {
  /// The path of the document beside the files that it names; `nil` when nothing can be fetched from its URL, or the URL names no
  /// file.
  fileprivate var pathOfDocument: RelativePath? {
    guard isUsable(url), url.query == nil, document.place == nil, !url.name.contains(0x2F) else { return nil }
    return try? RelativePath(url.name, rule: document.rule)
  }
}
