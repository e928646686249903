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
    case .local(let path): "file://" + Self.percentEncoded(path)
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

  private static func percentEncoded(_ path: [UInt8]) -> String {
    let safe = Set("/-._~!$&'()*+,;=:@".utf8)
    return path.map { byte in
      let scalar = Unicode.Scalar(byte)
      if scalar.isASCII, scalar.properties.isAlphabetic || (48...57).contains(byte) || safe.contains(byte) {
        return String(scalar)
      }
      return (byte < 16 ? "%0" : "%") + String(byte, radix: 16, uppercase: true)
    }.joined()
  }
}
