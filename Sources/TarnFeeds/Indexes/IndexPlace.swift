import TarnCore

/// A directory listing: the meaning of its links for the tree below the feed.
struct IndexPlace {
  let context: FeedContext
  private let base: [[UInt8]]
  private let prefix: [UInt8]
  /// The base of relative links.
  private var start: URLReference

  /// The target of a link.
  struct Target {
    /// The directories between the listing and the name; none for a child.
    var directories: [[UInt8]] = []
    var name: [UInt8]
    let isDirectory: Bool
    let url: String

    /// The same target with the slash that its link lacks.
    var asDirectory: Target {
      Target(directories: directories, name: name, isDirectory: true, url: url + "/")
    }
  }

  init(_ context: FeedContext) {
    self.context = context
    base = Self.segments(context.url.directory)
    prefix = context.document.place.map { $0.bytes + [0x2F] } ?? []
    start = context.url
  }

  /// The meaning of a link in a listing.
  enum Meaning {
    case child(Target)
    /// The listing itself, perhaps in another order, or a directory above it.
    case here
    case elsewhere
    /// What lies in a directory below the listing. That directory has a list of its own.
    case deeper
    /// A file of the directory, with a query.
    case question
    /// A name with a colon that the server meant as a child's, and that reads as a URL of another scheme.
    case misread([UInt8])
  }

  /// Takes the base that a page gives for its links.
  mutating func rebase(_ href: [UInt8]) {
    start = context.url.resolve(URLReference(href))
  }

  func meaning(of reference: [UInt8]) -> Meaning {
    if let target = target(of: reference) { return .child(target) }
    let link = URLReference(reference)
    let url = start.resolve(link)
    guard url.isSameOrigin(as: context.url) else {
      return misread(reference, link).map { .misread($0) } ?? .elsewhere
    }
    var segments = Self.segments(url.path)
    if segments.last?.isEmpty == true { segments.removeLast() }
    if base.dropLast().starts(with: segments) || url.path == context.url.path { return .here }
    if below(reference)?.target.directories.isEmpty == false { return .deeper }
    guard let mark = reference.firstIndex(of: UInt8(ascii: "?")),
      let target = target(of: Array(reference[..<mark]))
    else { return .elsewhere }
    // Servers pass the order of a list on to the directories below it.
    return target.isDirectory ? .child(target) : .question
  }

  /// The schemes without an authority that web pages link to. A link with an authority (`ftp://`) is not a name.
  private static let schemes = [
    "about", "bitcoin", "blob", "callto", "cid", "data", "ed2k", "facetime", "feed", "file", "ftp", "geo",
    "http",
    "https", "intent", "irc", "itms", "javascript", "magnet", "mailto", "news", "nntp", "rsync", "rtsp",
    "sip",
    "sips", "skype", "sms", "steam", "tel", "tg", "thunder", "urn", "vbscript", "view-source", "webcal",
    "whatsapp",
    "xmpp",
  ]

  /// Returns the name in `Sub:Dir/`, which RFC 3986 (4.2) requires to be written as `./Sub:Dir/`.
  private func misread(_ reference: [UInt8], _ link: URLReference) -> [UInt8]? {
    guard let scheme = link.scheme, link.authority == nil, link.query == nil,
      !Self.schemes.contains(where: { scheme.elementsEqual($0.utf8) })
    else { return nil }
    let name = reference.last == 0x2F ? reference.dropLast() : reference[...]
    return name.contains(0x2F) || name.contains(UInt8(ascii: "#")) ? nil : Percent.decode(name)
  }

  /// Returns why a listing at this URL may omit names: only a part was requested. `P` is Apache's pattern; `limit` and `offset` are
  /// Caddy's.
  static func doubt(of url: URLReference) -> String? {
    let parameters = (url.query ?? []).split { $0 == UInt8(ascii: "&") || $0 == UInt8(ascii: ";") }
    let names = parameters.map { lowercased($0.prefix { $0 != UInt8(ascii: "=") }) }
    guard let name = ["p", "limit", "offset"].first(where: { names.contains(Array($0.utf8)) }) else {
      return nil
    }
    return "the URL asks for a part of the list ('\(name)')"
  }

  /// - Returns: `nil` for a link that leaves the listing, names it, or leads more than one segment down.
  func target(of reference: [UInt8]) -> Target? {
    guard !reference.contains(UInt8(ascii: "?")), !reference.contains(UInt8(ascii: "#")),
      let found = below(reference), !found.hasQuery, found.target.directories.isEmpty
    else { return nil }
    return found.target
  }

  /// Returns what a link leads to below the listing, at any depth.
  ///
  /// - Returns: `nil` for a link that leaves the listing or names it.
  func below(_ reference: [UInt8]) -> (target: Target, hasQuery: Bool)? {
    var url = start.resolve(URLReference(reference))
    guard url.isSameOrigin(as: context.url) else { return nil }
    url.path = Percent.completed(url.path)
    var segments = Self.segments(url.path)
    let isDirectory = segments.last?.isEmpty == true
    if isDirectory { segments.removeLast() }
    guard segments.count >= base.count, segments.prefix(base.count - 1) == base.dropLast(),
      let name = segments.last, !name.isEmpty
    else { return nil }
    let directories = Array(segments[(base.count - 1)..<(segments.count - 1)])
    let target = Target(directories: directories, name: name, isDirectory: isDirectory, url: url.text)
    return (target, url.query != nil)
  }

  /// Returns the child with a raw name, which may hold anything: `emit` checks it.
  func target(named name: [UInt8], isDirectory: Bool) -> Target {
    let directory = URLReference(
      scheme: context.url.scheme, authority: context.url.authority, path: context.url.directory, query: nil)
    let url = directory.bytes + Percent.encode(path: name) + (isDirectory ? [0x2F] : [])
    return Target(name: name, isDirectory: isDirectory, url: String(decoding: url, as: UTF8.self))
  }

  /// Passes on a target below the listing.
  ///
  /// - Parameter make: makes the entry of a file at that path.
  func emit(_ target: Target, sink: FeedSink, make: (RelativePath) -> Entry) throws {
    if let name = (target.directories + [target.name]).first(where: { $0.contains(0x2F) }) {
      return try sink(refusal(name, code: "path-encoded-slash", reason: "the name of one file holds a slash"))
    }
    let below = prefix + target.directories.flatMap { $0 + [0x2F] }
    let path: RelativePath
    do throws(PathRefusal) {
      path = try RelativePath(below + target.name, rule: context.document.rule)
    } catch {
      // The state of a mirror that is served itself is not part of what it mirrors.
      if error == .reserved, target.name == PathRule.reservedName { return }
      return try sink(.refused(Refusal(name: target.name, below: below, error)))
    }
    guard context.isUsable(context.url) else { return try sink(context.withoutSource(path)) }
    try sink(target.isDirectory ? .directory(url: target.url, path: path) : .entry(make(path)))
  }

  /// Refuses a child of the listing. A name with a slash cannot be a child's: no path is meant, and it is shown so that it does not
  /// look like one.
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
