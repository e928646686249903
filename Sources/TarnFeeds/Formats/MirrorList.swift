import TarnCore

/// The plain list of mirrors of a yum repository: the URL of the repository's top directory on each mirror, one on each line.
///
/// It stands for one file on all of them, `repodata/repomd.xml`, with the name that MirrorManager's Metalink for the same
/// repository gives it. It is a list of places and not of files, so it is never complete.
struct MirrorList: FeedFormat {
  private static let file = Array("repomd.xml".utf8)
  private static let maximumMirrors = 10_000

  var name: String { "mirror list" }
  var kind: FeedKind { .list }

  /// Recognises lines that are all URLs of directories; one file among them makes it a `URLList`.
  func recognises(_ head: [UInt8]) -> Bool {
    var lines = head.split(separator: 0x0A, omittingEmptySubsequences: false)
    // The last line of a longer document may be cut.
    if head.count >= FeedInput.headSize { lines = lines.dropLast() }
    var hasMirror = false
    for line in lines {
      let text = trimmed(line)
      if text.isEmpty || text.first == UInt8(ascii: "#") { continue }
      guard let url = Self.mirror(text) else { return false }
      if url.isRemote { hasMirror = true }
    }
    return hasMirror
  }

  func read(_ input: FeedInput, in context: FeedContext, sink: FeedSink) throws -> FeedEnd {
    var sources: [Source] = []
    var unusable: [URLReference] = []
    while let (line, _) = try input.readLine() {
      let text = trimmed(line)
      if text.isEmpty || text.first == UInt8(ascii: "#") { continue }
      guard var url = Self.mirror(text) else {
        try sink(
          Refusal.of(
            text: text, code: "line-malformed", reason: "line \(input.line) is not the URL of a directory"))
        continue
      }
      url.path += Array("repodata/".utf8) + Self.file
      if context.isUsable(url) {
        if sources.count < Self.maximumMirrors { sources.append(Source(url: url.text)) }
      } else if unusable.count < 2 {
        unusable.append(url)
      }
    }
    if sources.isEmpty {
      try sink(context.withoutSource(RelativePath(trusted: Self.file), urls: unusable))
    } else {
      try sink(.entry(Entry(path: RelativePath(trusted: Self.file), sources: sources)))
    }
    return FeedEnd(format: name, isComplete: false, incompleteReason: Self.reason)
  }

  static let reason = "the list names mirrors, not the files on them"

  /// Schemes of mirrors that Tarn does not fetch from.
  private static let others: Set = ["ftp", "rsync"]

  private static func mirror(_ text: [UInt8]) -> URLReference? {
    guard !text.contains(where: { isBlank($0) || $0 == 0 }) else { return nil }
    let url = URLReference(text)
    guard let scheme = url.scheme, url.isRemote || others.contains(String(decoding: scheme, as: UTF8.self)),
      url.authority?.isEmpty == false,
      url.path.last == 0x2F, url.query == nil
    else { return nil }
    return url
  }
}
