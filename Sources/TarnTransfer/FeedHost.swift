import Glibc
package import TarnCore

/// The host of a feed, as the resolver sees it before the pass.
package struct FeedHost: Sendable, Equatable {
  /// True when every address of the host is private, local or reserved. Then sources and redirects on such addresses are allowed as
  /// well. False when the host cannot be resolved, and behind a proxy, where the rule cannot be applied.
  package let isPrivate: Bool

  /// Asks the resolver, unless there is a proxy, which resolves names itself. Blocking.
  ///
  /// - Parameters:
  ///   - url: an `http` or `https` URL.
  ///   - proxy: the proxy for the host; `nil` for none.
  /// - Throws: `.urlRefused` when it is not such a URL, or carries a user name.
  package init(url: String, proxy: String?) throws(DownloadFailure) {
    let source: SourceURL
    do {
      source = try SourceURL(url)
    } catch {
      throw DownloadFailure(.urlRefused, "the URL was refused: \(error.reason)", isTransient: false)
    }
    isPrivate = proxy == nil && Self.areAllPrivate(host: source.origin.host)
  }

  private static func areAllPrivate(host: String) -> Bool {
    var list: UnsafeMutablePointer<addrinfo>?
    let name = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
    guard getaddrinfo(name, nil, nil, &list) == 0 else { return false }
    defer { freeaddrinfo(list) }
    var isAny = false
    var next = list
    while let info = next?.pointee {
      guard let address = info.ai_addr, AddressRule.isPrivate(address, length: Int(info.ai_addrlen)) else {
        return false
      }
      isAny = true
      next = info.ai_next
    }
    return isAny
  }
}
