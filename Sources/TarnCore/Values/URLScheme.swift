/// The schemes of the addresses that Tarn fetches from. A source in TarnTransfer (`SourceProtocol`) brings the bytes of each.
package enum URLScheme: String, Sendable, CaseIterable {
  case http
  case https
  case file

  /// A server has the bytes: an address has a host, and may have a port.
  package var isRemote: Bool {
    switch self {
    case .http, .https: true
    case .file: false
    }
  }

  /// Nobody on the way can read or change what is sent.
  package var isSecure: Bool { self == .https }

  /// The port that an address means without saying so; nil where there are none.
  package var port: Int? {
    switch self {
    case .http: 80
    case .https: 443
    case .file: nil
    }
  }

  /// - Parameter name: as written, without its colon; upper and lower case are the same (RFC 3986 3.1).
  package init?(_ name: some StringProtocol) {
    self.init(rawValue: name.lowercased())
  }

  /// - Parameter name: in lower case.
  package init?(_ name: [UInt8]) {
    guard let scheme = Self.allCases.first(where: { $0.rawValue.utf8.elementsEqual(name) }) else {
      return nil
    }
    self = scheme
  }

  /// How the addresses of servers begin, in lower case: `http://`.
  package static let remotePrefixes = allCases.filter(\.isRemote).map { $0.rawValue + "://" }

  /// All of them, in words: `http, https and file`.
  package static let all = words(allCases)
  /// Those of servers: `http and https`.
  package static let remote = words(allCases.filter(\.isRemote))

  private static func words(_ schemes: [URLScheme]) -> String {
    let names = schemes.map(\.rawValue)
    return names.dropLast().joined(separator: ", ") + " and " + (names.last ?? "")
  }
}
