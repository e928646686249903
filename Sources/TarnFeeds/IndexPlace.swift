import TarnCore

/// A directory listing: what its links mean for the tree below the feed.
struct IndexPlace {
  let context: FeedContext
  private let base: [[UInt8]]
  private let prefix: [UInt8]

  /// What a link leads to.
  struct Target {
    let name: [UInt8]
    let isDirectory: Bool
    let url: String
  }

  init(_ context: FeedContext) {
    self.context = context
    base = Self.segments(context.url.directory)
    prefix = context.document.place.map { $0.bytes + [0x2F] } ?? []
  }

  /// - Returns: nil for a link that leaves the listing, names it, or leads further than one segment down.
  func target(of reference: [UInt8]) -> Target? {
    guard !reference.contains(UInt8(ascii: "?")), !reference.contains(UInt8(ascii: "#")) else { return nil }
    let url = context.url.resolve(URLReference(reference))
    guard url.isSameOrigin(as: context.url), url.query == nil else { return nil }
    var segments = Self.segments(url.path)
    let isDirectory = segments.last?.isEmpty == true
    if isDirectory { segments.removeLast() }
    guard segments.count == base.count, let name = segments.last, !name.isEmpty,
      segments.dropLast() == base.dropLast()
    else { return nil }
    return Target(name: name, isDirectory: isDirectory, url: url.text)
  }

  /// The child of a raw name, which may hold anything: `take` judges it.
  func target(named name: [UInt8], isDirectory: Bool) -> Target {
    let directory = URLReference(
      scheme: context.url.scheme, authority: context.url.authority, path: context.url.directory, query: nil)
    let url = directory.bytes + Percent.encode(path: name) + (isDirectory ? [0x2F] : [])
    return Target(name: name, isDirectory: isDirectory, url: String(decoding: url, as: UTF8.self))
  }

  /// Takes a child of the listing.
  ///
  /// - Parameter make: the entry of a file at that path.
  func take(_ target: Target, sink: FeedSink, make: (RelativePath) -> Entry) throws {
    guard !target.name.contains(0x2F) else {
      return try sink(
        Refusal.of(target.name, code: "path-encoded-slash", reason: "the name of one file holds a slash"))
    }
    let path: RelativePath
    do throws(PathRefusal) {
      path = try RelativePath(prefix + target.name, rule: context.document.rule)
    } catch {
      return try sink(.refused(Refusal(name: target.name, error)))
    }
    guard context.isUsable(context.url) else { return try sink(Refusal.withoutSource(target.name)) }
    try sink(target.isDirectory ? .directory(url: target.url, path: path) : .entry(make(path)))
  }

  private static func segments(_ path: [UInt8]) -> [[UInt8]] {
    path.split(separator: 0x2F, omittingEmptySubsequences: false).map { Percent.decode($0) }
  }
}
