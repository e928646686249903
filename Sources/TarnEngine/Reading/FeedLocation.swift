/// Where a feed is.
package enum FeedLocation: Sendable, Equatable {
  /// `http` or `https`.
  case remote(url: String)
  /// An absolute path.
  case local(path: [UInt8])
  case standardInput

  /// The base of relative references. Standard input has none: what comes through a pipe may be anybody's, and must
  /// not make Tarn read local files (I5).
  package var baseURL: String {
    switch self {
    case .remote(let url): url
    case .local(let path): "file://" + Self.percentEncoded(path)
    case .standardInput: ""
    }
  }

  /// What users see and the ledger remembers.
  package var text: String {
    switch self {
    case .remote(let url): url
    case .local(let path): String(decoding: path, as: UTF8.self)
    case .standardInput: "-"
    }
  }

  private static func percentEncoded(_ path: [UInt8]) -> String {
    var text: [UInt8] = []
    let digits = Array("0123456789ABCDEF".utf8)
    let safe = Set("/-._~!$&'()*+,;=:@".utf8)
    for byte in path {
      let isPlain = (48...57).contains(byte) || (65...90).contains(byte) || (97...122).contains(byte)
      if isPlain || safe.contains(byte) {
        text.append(byte)
      } else {
        text += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return String(decoding: text, as: UTF8.self)
  }
}
