import TarnCore

/// The location of a feed.
package enum FeedLocation: Sendable, Equatable {
  /// An `http` or `https` URL.
  case remote(url: String)
  /// An absolute path.
  case local(path: [UInt8])
  case standardInput

  /// The base of relative references. Standard input has none: its contents may come from anybody, and must not make Tarn read
  /// local files (I5).
  package var baseURL: String {
    switch self {
    case .remote(let url): url
    case .local(let path): "file://" + String(decoding: Percent.encode(path: path), as: UTF8.self)
    case .standardInput: ""
    }
  }

  /// The location as users see it and the ledger stores it.
  package var text: String {
    switch self {
    case .remote(let url): url
    case .local(let path): String(decoding: path, as: UTF8.self)
    case .standardInput: "-"
    }
  }
}
