/// The URL schemes that Tarn fetches from. A source in TarnTransfer (`SourceProtocol`) fetches the bytes of each.
package enum URLScheme: String, Sendable, CaseIterable {
  case http
  case https
  case file

  /// True when the bytes are on a server: the address has a host, and may have a port.
  package var isRemote: Bool {
    switch self {
    case .http, .https: true
    case .file: false
    }
  }

  /// True when nobody on the way can read or change what is sent.
  package var isSecure: Bool {
    switch self {
    case .http, .file: false
    case .https: true
    }
  }

  /// The default port; `nil` where there are no ports.
  package var port: Int? {
    switch self {
    case .http: 80
    case .https: 443
    case .file: nil
    }
  }

  /// - Parameter name: the scheme without its colon, in upper or lower case (RFC 3986 3.1).
  package init?(_ name: some StringProtocol) {
    self.init(rawValue: name.lowercased())
  }

  /// - Parameter name: the scheme in lower case.
  package init?(_ name: [UInt8]) {
    guard let scheme = Self.allCases.first(where: { $0.rawValue.utf8.elementsEqual(name) }) else {
      return nil
    }
    self = scheme
  }

  /// The beginnings of the addresses of servers in lower case, such as `http://`.
  package static let remotePrefixes = allCases.filter(\.isRemote).map { $0.rawValue + "://" }

  /// All schemes in words: `http, https and file`.
  package static let all = words(allCases)
  /// The schemes of servers in words: `http and https`.
  package static let remote = words(allCases.filter(\.isRemote))

  private static func words(_ schemes: [URLScheme]) -> String {
    let names = schemes.map(\.rawValue)
    return names.dropLast().joined(separator: ", ") + " and " + (names.last ?? "")
  }
}
