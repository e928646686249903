import CurlShim
import Glibc
import TarnCore

/// Where a URL points: what connections, limits and secrets are kept apart by.
struct Origin: Hashable, Sendable {
  let scheme: URLScheme
  /// Lower case; an IPv6 address with its brackets.
  let host: String
  let port: String
  /// Of all three: it is asked for several times for each file.
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

  /// `example.org:443`, for messages.
  var hostAndPort: String { "\(host):\(port)" }

  /// `https://example.org:443`.
  var text: String { "\(scheme.rawValue)://\(hostAndPort)" }
}

/// A URL that libcurl's parser has read, without user, password and fragment.
struct SourceURL: Sendable {
  /// Why a URL is not taken, in words that finish "the URL was refused: ...".
  struct Refusal: Error {
    let reason: String
  }

  let text: String
  let origin: Origin
  /// The decoded path of a `file:` URL, with a NUL at its end: bytes, as names of files are.
  let filePath: [CChar]?

  /// From the slash behind the authority to the query, as written.
  var path: String {
    let head = text.utf8.firstIndex(of: UInt8(ascii: ":")).map {
      text.utf8[$0...].dropFirst("://".utf8.count)
    }
    let path = head?.drop { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") }
      .prefix { $0 != UInt8(ascii: "?") }
    return path.map { String(Substring($0)) }.flatMap { $0.isEmpty ? nil : $0 } ?? "/"
  }

  /// Reads an absolute URL.
  init(_ text: String) throws(Refusal) {
    try self.init(text, base: nil)
  }

  /// As `SourceURLs` has found it: its parts are known.
  fileprivate init(plain text: String, of origin: Origin) {
    self.text = text
    self.origin = origin
    filePath = nil
  }

  /// Resolves the `Location` of a redirect. Spaces and bytes above 127 in it are percent-encoded, as servers send
  /// them raw.
  func resolving(_ location: String) throws(Refusal) -> SourceURL {
    try SourceURL(location, base: text)
  }

  private init(_ text: String, base: String?) throws(Refusal) {
    guard let handle = curl_url() else { throw Refusal(reason: "out of memory") }
    defer { curl_url_cleanup(handle) }
    // Which schemes are read `URLScheme` says, not the libcurl that is there.
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
        scheme: scheme, host: (Self.get(CURLUPART_HOST, of: handle) ?? "").lowercased(),
        port: Self.get(CURLUPART_PORT, of: handle, flags: UInt32(CURLU_DEFAULT_PORT)) ?? "")
    }
  }

  private static func set(_ text: String, in handle: OpaquePointer, flags: UInt32) throws(Refusal) {
    guard !text.utf8.contains(0) else { throw Refusal(reason: "it contains NUL") }
    let code = curl_url_set(handle, CURLUPART_URL, text, flags)
    switch code {
    case CURLUE_OK: return
    case CURLUE_USER_NOT_ALLOWED: throw Refusal(reason: "it carries a user name")
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

  /// To be freed by the caller.
  private static func part(
    _ name: CURLUPart, of handle: OpaquePointer, flags: UInt32
  ) -> UnsafeMutablePointer<CChar>? {
    var pointer: UnsafeMutablePointer<CChar>?
    return curl_url_get(handle, name, &pointer, flags) == CURLUE_OK ? pointer : nil
  }
}

/// Reads one URL after another: most of a feed's are of the same origin, and to parse one costs more than all else that is done
/// with it before it is sent.
struct SourceURLs {
  /// Scheme, authority and slash of the last one that libcurl's parser left as it was.
  private var prefix: [UInt8] = []
  private var origin: Origin?

  /// - Throws: as `SourceURL.init` would.
  mutating func read(_ text: String) throws(SourceURL.Refusal) -> SourceURL {
    if let origin, isPlain(text) { return SourceURL(plain: text, of: origin) }
    let url = try SourceURL(text)
    remember(url, from: text)
    return url
  }

  /// Whether it begins as the last one did, and has nothing behind it that a parser could change or refuse: no query, no fragment,
  /// no escape, no segment with a dot at its head.
  private func isPlain(_ text: String) -> Bool {
    // Texts of feeds are native strings: nil is of no account.
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

/// Where an exchange may be sent to.
enum RedirectRule {
  /// As wget and aria2: each tracker in front of a podcast's file costs one.
  static let mostHops = 20

  /// The statuses that send a GET elsewhere.
  static func isRedirect(_ status: Int) -> Bool {
    [301, 302, 303, 307, 308].contains(status)
  }

  /// - Returns: why not, or nil when the hop is allowed.
  static func refusal(from: Origin, to: Origin) -> String? {
    switch to.scheme {
    case .file: "to a local file"
    case .http: from.scheme == .https ? "from https to http" : nil
    case .https: nil
    }
  }
}
