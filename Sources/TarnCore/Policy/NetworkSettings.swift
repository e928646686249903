/// The network settings of a mirror. All other options are fixed in TarnTransfer/CurlOption.swift.
package struct NetworkSettings: Sendable, Equatable {
  /// The most connections in all, 1 to 256.
  package var connections = 16
  /// The most connections to one host, 1 to 64. Over HTTP/2 many files of up to 64 KiB share one of them. Files of unknown size count
  /// as such until more has come.
  package var connectionsPerHost = 6
  /// Bytes per second over all transfers; nil for no limit.
  package var rate: UInt64?
  package var connectTimeout = 10
  /// A transfer that stays below `lowSpeedLimit` bytes per second for `lowSpeedTime` seconds is ended.
  package var lowSpeedLimit: UInt64 = 1024
  package var lowSpeedTime = 30
  /// A PEM file of certificate authorities; `nil` for the system's.
  package var caFile: String?
  /// `Name: value` lines that are sent only to `credentialOrigin`.
  package var headers: [String] = []
  /// A Netscape cookie file. Cookies are sent by their domain rules, but never to another origin that a redirect leads to. Over
  /// plain http they are sent only to the feed's own origin, since ports are no part of a cookie's domain.
  package var cookieFile: String?
  /// The netrc file with names and passwords; `nil` for none.
  package var netrcFile: String?
  /// The proxy, `http://host:port` or `socks5h://...`; `nil` for none. The environment is never read.
  package var proxy: String?
  /// The feed's `scheme://host:port`, the only origin that gets `headers`.
  package var credentialOrigin: String?
  /// True when redirects and sources may lead to private, loopback and link-local addresses. This holds only when the feed's own
  /// host is on one.
  package var allowsPrivateAddresses = false
  /// True when the host of a request's own URL may be on such an address, because the caller asked for that host. Redirects lead
  /// there only from one.
  package var allowsAskedPrivateAddresses = false
  /// The User-Agent header; `nil` for Tarn's own.
  package var userAgent: String?
  /// True when cookies that servers set are sent back to them.
  package var keepsCookies = false
  /// The trust settings of single hosts.
  package var trust: [HostTrust] = []

  package init() {}

  /// True when no secret is sent with these settings, so that their connections may be shared with others of the kind. Credentials
  /// in a proxy's URL are the proxy's and do not count.
  package var isAnonymous: Bool {
    headers.isEmpty && cookieFile == nil && netrcFile == nil && !keepsCookies && trust.isEmpty
  }
}
