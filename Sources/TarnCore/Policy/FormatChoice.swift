/// What a feed is read as (`--format`). One place for the words and what they mean.
package enum FormatChoice: String, Sendable, CaseIterable {
  /// Whatever it is recognised as.
  case auto
  case rss
  case index
  /// Any web page, read for its links.
  case links
  case manifest
  case metalink
  case checksums
  case sfv
  case urls

  /// As in `this does not look like ...`.
  package var meaning: String {
    switch self {
    case .auto: "a feed"
    case .rss: "RSS, Atom or JSON Feed"
    case .index: "a directory index of a server that Tarn knows"
    case .links: "a web page"
    case .manifest: "Tarn's manifest"
    case .metalink: "a Metalink document"
    case .checksums: "a checksum list"
    case .sfv: "an SFV list"
    case .urls: "a list of URLs"
    }
  }

  /// A list of lines without a mark of its own.
  package var isPlainList: Bool {
    switch self {
    case .checksums, .sfv, .urls: true
    case .auto, .rss, .index, .links, .manifest, .metalink: false
    }
  }

  package static var words: String {
    let words = allCases.map(\.rawValue)
    return words.dropLast().joined(separator: ", ") + " or " + (words.last ?? "")
  }
}
