import TarnCore

/// The vocabularies of windows, by the namespaces that occur in practice.
enum WindowNames {
  case rss, atom, media, podcast, itunes, dublinCore, syndication, enclosure, other

  /// - Parameters:
  ///   - root: the namespace of the document's root, whose children are RSS whatever it is.
  ///   - kind: the kind of names without a namespace.
  init(namespace: String, prefix: String, root: String, kind: WindowFormat) {
    if namespace.isEmpty {
      // The prefix was not declared, or there is none.
      self = prefix.isEmpty ? kind == .atom ? .atom : .rss : Self.usual[prefix.lowercased()] ?? .other
      return
    }
    let name = namespace.lowercased()
    if let known = Self.marks.first(where: { name.utf8.holds($0.mark) }) {
      self = known.names
    } else {
      self = namespace == root ? .rss : .other
    }
  }

  static func isAtom(_ namespace: some Collection<UInt8>) -> Bool {
    let name = lowercased(namespace)
    return name.holds("w3.org/2005/atom") || name.holds("purl.org/atom/ns")
  }

  private static let usual: [String: WindowNames] = [
    "media": .media, "podcast": .podcast, "itunes": .itunes, "dc": .dublinCore, "dcterms": .dublinCore,
    "sy": .syndication, "enc": .enclosure, "atom": .atom, "atom10": .atom, "a10": .atom,
  ]

  /// The marks, in this order: the modules of RSS 1.0 have names that begin like its own.
  private static let marks: [(mark: String, names: WindowNames)] = [
    ("w3.org/2005/atom", .atom), ("purl.org/atom/ns", .atom), ("search.yahoo.com/mrss", .media),
    ("rssboard.org/media-rss", .media), ("podcastindex.org/namespace", .podcast),
    ("podcastindex-org/podcast-namespace", .podcast), ("itunes.com/dtds/podcast", .itunes),
    ("purl.org/dc/", .dublinCore), ("rss/1.0/modules/syndication", .syndication),
    ("net/rss_2.0/enc", .enclosure), ("rss/1.0/modules/", .other), ("purl.org/rss/1.0", .rss),
    ("purl.org/net/rss1.1", .rss), ("my.netscape.com", .rss), ("channel.netscape.com", .rss),
    ("backend.userland.com", .rss), ("harvard.edu/", .rss), ("rssboard.org/rss", .rss),
  ]
}

/// The root element of an XML document, found without a parser.
struct XMLRoot {
  /// The name in lower case without its prefix.
  let name: String
  /// The namespace; empty when there is none.
  let namespace: [UInt8]

  /// - Parameter text: the beginning of a document in ASCII or a superset of it.
  init?(_ text: [UInt8]) {
    var rest = text[...]
    while true {
      rest = rest.drop { $0 != UInt8(ascii: "<") && (isBlank($0) || $0 >= 0x80) }
      guard rest.first == UInt8(ascii: "<") else { return nil }
      if rest.begins(with: "<!--") {
        rest = Self.behind("-->", rest)
      } else if rest.begins(with: "<?") {
        rest = Self.behind("?>", rest)
      } else if rest.begins(with: "<!") {
        rest = rest.dropFirst(Self.doctypeLength(rest))
      } else {
        break
      }
    }
    let tag = Array(rest.dropFirst().prefix { $0 != UInt8(ascii: ">") && $0 != UInt8(ascii: "<") })
    let full = tag.prefix { !isBlank($0) && $0 != UInt8(ascii: "/") }
    let parts = full.split(separator: UInt8(ascii: ":"))
    guard let local = parts.last else { return nil }
    name = String(decoding: lowercased(local), as: UTF8.self)
    let prefix = parts.count > 1 ? ":" + String(decoding: parts[0], as: UTF8.self) : ""
    namespace = HTMLTag.attribute("xmlns" + prefix.lowercased(), of: tag) ?? []
  }

  /// Returns the length of a DOCTYPE. For one that will be refused a guess is enough.
  private static func doctypeLength(_ text: ArraySlice<UInt8>) -> Int {
    do throws(FeedFailure) {
      return try Doctype.length(in: text) ?? text.count
    } catch {
      var isInside = false
      let length = text.firstIndex { byte in
        if byte == UInt8(ascii: "[") { isInside = true }
        if byte == UInt8(ascii: "]") { isInside = false }
        return !isInside && byte == UInt8(ascii: ">")
      }
      return length.map { $0 + 1 - text.startIndex } ?? text.count
    }
  }

  private static func behind(_ ending: String, _ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    var rest = text.dropFirst(2)
    while !rest.isEmpty, !rest.begins(with: ending) { rest = rest.dropFirst() }
    return rest.dropFirst(ending.utf8.count)
  }
}
