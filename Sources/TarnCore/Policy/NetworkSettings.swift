/// How a mirror talks to the network. Everything that is not here is fixed in TarnTransfer/CurlOption.swift.
package struct NetworkSettings: Sendable, Equatable {
  /// Connections in all, 1 to 256.
  package var connections = 16
  /// Connections to one host, 1 to 64. Over HTTP/2 64 files of up to 64 KiB, and more once they come, share the place of one.
  package var connectionsPerHost = 6
  /// Bytes per second over all transfers; nil for no limit.
  package var rate: UInt64?
  package var connectTimeout = 10
  /// A transfer that stays below `lowSpeedLimit` bytes per second for so many seconds is ended.
  package var lowSpeedLimit: UInt64 = 1024
  package var lowSpeedTime = 30
  /// A PEM file of certificate authorities; nil for the system's.
  package var caFile: String?
  /// `Name: value` lines, sent to `credentialOrigin` only.
  package var headers: [String] = []
  /// A Netscape cookie file, sent by its own domain rules, but never to another origin that a redirect leads to, and over
  /// plain http to the feed's own origin only: ports are no part of a cookie's domain.
  package var cookieFile: String?
  /// Look up names and passwords in this netrc file; nil for none.
  package var netrcFile: String?
  /// `http://host:port` or `socks5h://...`; nil for none. The environment is never read.
  package var proxy: String?
  /// `scheme://host:port` of the feed: the only origin that gets `headers`.
  package var credentialOrigin: String?
  /// Redirects and sources on private, loopback and link-local addresses: only when the feed's own host is on
  /// one.
  package var allowsPrivateAddresses = false
  /// The host of a request's own URL may be on one, for somebody asked for just that; redirects lead there only from one.
  package var allowsAskedPrivateAddresses = false
  /// nil for Tarn's own.
  package var userAgent: String?
  /// What servers set is sent back to the hosts that set it.
  package var keepsCookies = false
  /// Of single hosts.
  package var trust: [HostTrust] = []

  package init() {}

  /// No secret goes out with these settings: their connections may be shared with others of the kind. What a proxy's URL
  /// carries is the proxy's, and does not count.
  package var isAnonymous: Bool {
    headers.isEmpty && cookieFile == nil && netrcFile == nil && !keepsCookies && trust.isEmpty
  }
}
