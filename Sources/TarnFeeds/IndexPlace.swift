import TarnCore

/// A directory listing: what its links mean for the tree below the feed.
struct IndexPlace {
  let context: FeedContext
  private let base: [[UInt8]]
  private let prefix: [UInt8]
  /// What links are relative to.
  private var start: URLReference

  /// What a link leads to.
  struct Target {
    var name: [UInt8]
    let isDirectory: Bool
    let url: String
  }

  init(_ context: FeedContext) {
    self.context = context
    base = Self.segments(context.url.directory)
    prefix = context.document.place.map { $0.bytes + [0x2F] } ?? []
    start = context.url
  }

  /// What a link of a listing is about.
  enum Meaning {
    case child(Target)
    /// The listing itself (sorted otherwise, too) or a directory above it.
    case here
    case elsewhere
  }

  /// Takes a base that a page gives for its links.
  mutating func rebase(_ href: [UInt8]) {
    start = context.url.resolve(URLReference(href))
  }

  func meaning(of reference: [UInt8]) -> Meaning {
    if let target = target(of: reference) { return .child(target) }
    let url = start.resolve(URLReference(reference))
    guard url.isSameOrigin(as: context.url) else { return .elsewhere }
    var segments = Self.segments(url.path)
    if segments.last?.isEmpty == true { segments.removeLast() }
    return base.dropLast().starts(with: segments) || url.path == context.url.path ? .here : .elsewhere
  }

  /// Why a listing at this URL may leave names out: it was asked for a part. `P` is Apache's pattern; `limit`
  /// and `offset` are Caddy's.
  static func doubt(of url: URLReference) -> String? {
    let parameters = (url.query ?? []).split { $0 == UInt8(ascii: "&") || $0 == UInt8(ascii: ";") }
    let names = parameters.map { lowercased($0.prefix { $0 != UInt8(ascii: "=") }) }
    guard let name = ["p", "limit", "offset"].first(where: { names.contains(Array($0.utf8)) }) else {
      return nil
    }
    return "the URL asks for a part of the list ('\(name)')"
  }

  /// - Returns: nil for a link that leaves the listing, names it, or leads further than one segment down.
  func target(of reference: [UInt8]) -> Target? {
    guard !reference.contains(UInt8(ascii: "?")), !reference.contains(UInt8(ascii: "#")) else { return nil }
    let url = start.resolve(URLReference(reference))
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
        refusal(target.name, code: "path-encoded-slash", reason: "the name of one file holds a slash"))
    }
    let path: RelativePath
    do throws(PathRefusal) {
      path = try RelativePath(prefix + target.name, rule: context.document.rule)
    } catch {
      return try sink(.refused(Refusal(name: target.name, below: prefix, error)))
    }
    guard context.isUsable(context.url) else { return try sink(context.withoutSource(path)) }
    try sink(target.isDirectory ? .directory(url: target.url, path: path) : .entry(make(path)))
  }

  /// Refuses a child of the listing. A name with a slash is no child's: no path is meant, and it is shown so that it
  /// does not look like one.
  func refusal(_ name: [UInt8], code: String, reason: String) -> FeedItem {
    guard name.contains(0x2F) else {
      return .refused(Refusal(name: name, below: prefix, code: code, reason: reason))
    }
    let shown = Array(
      name.split(separator: 0x2F, omittingEmptySubsequences: false).joined(separator: "%2F".utf8))
    return .refused(Refusal(text: shown, below: prefix, code: code, reason: reason))
  }

  private static func segments(_ path: [UInt8]) -> [[UInt8]] {
    path.split(separator: 0x2F, omittingEmptySubsequences: false).map { Percent.decode($0) }
  }
}
