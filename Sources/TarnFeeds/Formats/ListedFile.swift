import TarnCore

/// Makes the items of files that a list names and that lie beside the list, as in all checksum lists.
enum ListedFile {
  /// Returns the name without a leading `./`.
  static func withoutDot(_ name: some Collection<UInt8>) -> [UInt8] {
    var bytes = Array(name)[...]
    while bytes.begins(with: "./") { bytes = bytes.dropFirst(2).drop { $0 == 0x2F } }
    return Array(bytes)
  }

  static func item(
    _ name: [UInt8], size: UInt64? = nil, digests: [Digest] = [], listing: [UInt8] = [],
    mayBeCut: Bool = false, in context: FeedContext
  ) -> FeedItem {
    let bytes = withoutDot(name)
    do throws(PathRefusal) {
      let path = try RelativePath(bytes, rule: context.document.rule)
      let sources = context.sources(beside: path)
      guard !sources.isEmpty else { return context.withoutSource(path) }
      var entry = Entry(path: path, size: size, digests: digests, sources: sources, listing: listing)
      entry.mayBeCut = mayBeCut
      return .entry(entry)
    } catch {
      return .refused(Refusal(name: bytes, error))
    }
  }

  /// Returns a line without the carriage returns at its end.
  static func withoutReturns(_ line: some Sequence<UInt8>) -> ArraySlice<UInt8> {
    var line = Array(line)[...]
    while line.last == 0x0D { line.removeLast() }
    return line
  }
}
