import CurlShim
import Glibc
package import TarnCore

/// The origin of a URL, which separates connections, limits and secrets.
struct Origin: Hashable, Sendable {
  let scheme: URLScheme
  /// The host in its normal form (`HostName.inURL`).
  let host: String
  let port: String
  /// The hash of all three parts, which is needed several times for each file.
  private let code: Int

  init(scheme: URLScheme, host: String, port: String) {
    (self.scheme, self.host, self.port) = (scheme, host, port)
    var hasher = Swift.Hasher()
    hasher.combine(scheme)
    hasher.combine(host)
    hasher.combine(port)
    code = hasher.finalize()
  }

  static func == (left: Self, right: Self) -> Bool {
    left.code == right.code && left.host == right.host && left.port == right.port
      && left.scheme == right.scheme
  }

  func hash(into hasher: inout Swift.Hasher) {
    hasher.combine(code)
  }

  /// The host and port, such as `example.org:443`, for messages.
  var hostAndPort: String { "\(host):\(port)" }

  /// The origin as text, such as `https://example.org:443`.
  var text: String { "\(scheme.rawValue)://\(hostAndPort)" }
}

/// Compares the origins of URLs. What belongs to one origin never goes to another.
package enum URLOrigin {
  /// Returns whether two URLs have the same scheme, host and port. A URL that cannot be read has the origin of no other.
  package static func isSame(_ url: String, _ other: String) -> Bool {
    guard let url = try? SourceURL(url), let other = try? SourceURL(other) else { return false }
    return url.origin == other.origin
  }

  /// Returns whether two URLs have the same origin and path, as those of one file with two signatures. Others are of two files, which
  /// may have one ETag (RFC 9110 8.8.1).
  package static func isSameButQuery(_ url: String, _ other: String) -> Bool {
    guard let url = try? SourceURL(url), let other = try? SourceURL(other) else { return false }
    return url.origin == other.origin && url.path == other.path
  }

  /// Returns whether two URLs have the same origin, path and query.
  package static func isSameWithQuery(_ url: String, _ other: String) -> Bool {
    guard let first = try? SourceURL(url), let second = try? SourceURL(other) else { return false }
    return isSameButQuery(url, other) && first.query == second.query
  }

  /// Returns why libcurl's parser cannot read a URL; `nil` when it can.
  package static func fault(of url: String) -> String? {
    do throws(SourceURL.Refusal) {
      _ = try SourceURL(url)
      return nil
    } catch {
      return error.reason
    }
  }

  /// Returns the host of a URL; `nil` for one that cannot be read.
  package static func host(of url: String) -> HostName? {
    (try? SourceURL(url)).flatMap { HostName($0.origin.host) }
  }
}

/// A URL as libcurl's parser reads it, without user, password and fragment.
struct SourceURL: Sendable {
  /// Why a URL is refused, in words that complete "the URL was refused: ...".
  struct Refusal: Error {
    let reason: String
  }

  let text: String
  let origin: Origin
  /// The decoded path of a `file:` URL with a NUL at its end, in bytes, as file names are.
  let filePath: [CChar]?

  /// The path, from the slash behind the authority to the query, as written.
  var path: String {
    let head = text.utf8.firstIndex(of: UInt8(ascii: ":")).map {
      text.utf8[$0...].dropFirst("://".utf8.count)
    }
    let path = head?.drop { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") }
      .prefix { $0 != UInt8(ascii: "?") }
    return path.map { String(Substring($0)) }.flatMap { $0.isEmpty ? nil : $0 } ?? "/"
  }

  /// The query with its question mark, as written; `nil` for none.
  var query: Substring? { text.firstIndex(of: "?").map { text[$0...] } }

  /// The host and port, for messages. A dot at the end of the host stays: a name with it may lack an address that the same name
  /// without it has.
  var hostAndPort: String {
    let rest = text.firstRange(of: "://").map { text[$0.upperBound...] } ?? text[...]
    let host = rest.prefix { $0 != "/" && $0 != "?" && $0 != ":" }
    return host.hasSuffix(".") ? "\(origin.host).:\(origin.port)" : origin.hostAndPort
  }

  /// Reads an absolute URL.
  init(_ text: String) throws(Refusal) {
    try self.init(text, base: nil)
  }

  /// Makes the URL that `SourceURLs` has read, whose parts are known.
  fileprivate init(plain text: String, of origin: Origin) {
    self.text = text
    self.origin = origin
    filePath = nil
  }

  /// Resolves the `Location` of a redirect. Spaces and bytes above 127 in it are percent-encoded, because servers send them raw.
  func resolving(_ location: String) throws(Refusal) -> SourceURL {
    try SourceURL(location, base: text)
  }

  private init(_ text: String, base: String?) throws(Refusal) {
    guard let handle = curl_url() else { throw Refusal(reason: "out of memory") }
    defer { curl_url_cleanup(handle) }
    // `URLScheme` decides which schemes are read, not the installed libcurl.
    let strict = UInt32(CURLU_DISALLOW_USER) | UInt32(CURLU_NON_SUPPORT_SCHEME)
    if let base {
      try Self.set(base, in: handle, flags: strict)
      try Self.set(text, in: handle, flags: strict | UInt32(CURLU_ALLOW_SPACE) | UInt32(CURLU_URLENCODE))
    } else {
      try Self.set(text, in: handle, flags: strict)
    }
    curl_url_set(handle, CURLUPART_FRAGMENT, nil, 0)
    guard let name = Self.get(CURLUPART_SCHEME, of: handle) else {
      throw Refusal(reason: "it has no scheme")
    }
    guard let scheme = URLScheme(name) else {
      let names = URLScheme.allCases.map(\.rawValue).joined(separator: " nor ")
      throw Refusal(reason: "its scheme is neither \(names)")
    }
    guard let whole = Self.get(CURLUPART_URL, of: handle) else {
      throw Refusal(reason: "it cannot be written")
    }
    self.text = whole
    if scheme == .file {
      guard let path = Self.part(CURLUPART_PATH, of: handle, flags: UInt32(CURLU_URLDECODE)) else {
        throw Refusal(reason: "its path cannot be decoded")
      }
      defer { curl_free(path) }
      filePath = Array(UnsafeBufferPointer(start: path, count: strlen(path) + 1))
      origin = Origin(scheme: scheme, host: "", port: "")
    } else {
      filePath = nil
      origin = Origin(
        scheme: scheme, host: Self.normal(Self.get(CURLUPART_HOST, of: handle) ?? ""),
        port: Self.get(CURLUPART_PORT, of: handle, flags: UInt32(CURLU_DEFAULT_PORT)) ?? "")
    }
  }

  private static func normal(_ host: String) -> String { HostName(host)?.inURL ?? host.lowercased() }

  private static func set(_ text: String, in handle: OpaquePointer, flags: UInt32) throws(Refusal) {
    guard !text.utf8.contains(0) else { throw Refusal(reason: "it contains NUL") }
    let code = curl_url_set(handle, CURLUPART_URL, text, flags)
    switch code {
    case CURLUE_OK: return
    case CURLUE_USER_NOT_ALLOWED: throw Refusal(reason: "it contains a user name")
    default:
      let words = curl_url_strerror(code).map { String(cString: $0) } ?? "malformed"
      throw Refusal(reason: words.lowercased())
    }
  }

  private static func get(_ name: CURLUPart, of handle: OpaquePointer, flags: UInt32 = 0) -> String? {
    guard let text = part(name, of: handle, flags: flags) else { return nil }
    defer { curl_free(text) }
    return String(cString: text)
  }

  /// Returns a part of the URL, which the caller must free.
  private static func part(
    _ name: CURLUPart, of handle: OpaquePointer, flags: UInt32
  ) -> UnsafeMutablePointer<CChar>? {
    var pointer: UnsafeMutablePointer<CChar>?
    return curl_url_get(handle, name, &pointer, flags) == CURLUE_OK ? pointer : nil
  }
}

/// Reads one URL after another. Most URLs of a feed have the same origin, and parsing one costs more than everything else that is
/// done with it before it is sent.
struct SourceURLs {
  /// Scheme, authority and slash of the last URL that libcurl's parser left unchanged.
  private var prefix: [UInt8] = []
  private var origin: Origin?

  /// - Throws: the same as `SourceURL.init`.
  mutating func read(_ text: String) throws(SourceURL.Refusal) -> SourceURL {
    if let origin, isPlain(text) { return SourceURL(plain: text, of: origin) }
    let url = try SourceURL(text)
    remember(url, from: text)
    return url
  }

  /// Returns whether the text begins like the last URL and has nothing after that which a parser could change or refuse. That means
  /// no query, no fragment, no escape, and no segment that begins with a dot.
  private func isPlain(_ text: String) -> Bool {
    // Texts of feeds are native strings, so that `nil` does not occur in practice.
    text.utf8.withContiguousStorageIfAvailable { bytes in
      guard bytes.count < Self.longest, bytes.count >= prefix.count else { return false }
      for index in prefix.indices where bytes[index] != prefix[index] { return false }
      return Self.plain.withUnsafeBufferPointer { plain in
        var last = UInt8(ascii: "/")
        for index in prefix.count..<bytes.count {
          let byte = bytes[index]
          guard plain[Int(byte)], byte != UInt8(ascii: ".") || last != UInt8(ascii: "/") else { return false }
          last = byte
        }
        return true
      }
    } ?? false
  }

  private mutating func remember(_ url: SourceURL, from text: String) {
    guard url.filePath == nil, url.text == text else { return }
    let head = url.origin.scheme.rawValue.utf8.count + "://".utf8.count
    guard let slash = text.utf8.dropFirst(head).firstIndex(of: UInt8(ascii: "/")) else { return }
    prefix = Array(text.utf8[...slash])
    origin = url.origin
  }

  private static let longest = 4096
  /// The unreserved characters of RFC 3986 2.3 and the slash.
  private static let plain = (0..<256).map { number in
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/".utf8.contains(UInt8(number))
  }
}

/// The redirects that an exchange may follow.
enum RedirectRule {
  /// The most redirects, as in wget and aria2: each tracker in front of a podcast's file costs one.
  static let mostHops = 20

  /// Returns whether a status redirects a GET.
  static func isRedirect(_ status: Int) -> Bool {
    [301, 302, 303, 307, 308].contains(status)
  }

  /// Returns whether the next request is a GET without the body. As in browsers (RFC 9110 15.4), only 307 and 308 repeat the body.
  static func dropsBody(_ status: Int) -> Bool {
    ![307, 308].contains(status)
  }

  /// - Returns: why the hop is refused; `nil` when it is allowed.
  static func refusal(from: Origin, to: Origin) -> String? {
    if !to.scheme.isRemote { return "to a local file" }
    return from.scheme.isSecure && !to.scheme.isSecure
      ? "from \(from.scheme.rawValue) to \(to.scheme.rawValue)" : nil
  }
}
