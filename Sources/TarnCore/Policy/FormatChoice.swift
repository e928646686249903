/// The format that a feed is read as (`--format`): one place for the words and their meanings.
package enum FormatChoice: String, Sendable, CaseIterable {
  /// The format that is recognised.
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

  /// The words for a message such as `this does not look like ...`.
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

  /// True for a list of lines that has no signature of its own.
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
