import CurlShim
import Glibc

/// Where a URL points: what connections, limits and secrets are kept apart by.
struct Origin: Hashable, Sendable {
  let scheme: String
  /// Lower case; an IPv6 address with its brackets.
  let host: String
  let port: String

  /// `example.org:443`, for messages.
  var hostAndPort: String { "\(host):\(port)" }

  /// `https://example.org:443`.
  var text: String { "\(scheme)://\(hostAndPort)" }
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

  /// Reads an absolute URL.
  init(_ text: String) throws(Refusal) {
    try self.init(text, base: nil)
  }

  /// Resolves the `Location` of a redirect. Spaces and bytes above 127 in it are percent-encoded, as servers send
  /// them raw.
  func resolving(_ location: String) throws(Refusal) -> SourceURL {
    try SourceURL(location, base: text)
  }

  private init(_ text: String, base: String?) throws(Refusal) {
    guard let handle = curl_url() else { throw Refusal(reason: "out of memory") }
    defer { curl_url_cleanup(handle) }
    let strict = UInt32(CURLU_DISALLOW_USER)
    if let base {
      try Self.set(base, in: handle, flags: strict)
      try Self.set(text, in: handle, flags: strict | UInt32(CURLU_ALLOW_SPACE) | UInt32(CURLU_URLENCODE))
    } else {
      try Self.set(text, in: handle, flags: strict)
    }
    curl_url_set(handle, CURLUPART_FRAGMENT, nil, 0)
    guard let scheme = Self.get(CURLUPART_SCHEME, of: handle) else {
      throw Refusal(reason: "it has no scheme")
    }
    guard ["http", "https", "file"].contains(scheme) else {
      throw Refusal(reason: "its scheme is neither http nor https nor file")
    }
    guard let whole = Self.get(CURLUPART_URL, of: handle) else {
      throw Refusal(reason: "it cannot be written")
    }
    self.text = whole
    if scheme == "file" {
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
    case CURLUE_UNSUPPORTED_SCHEME: throw Refusal(reason: "its scheme is neither http nor https nor file")
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

/// Where an exchange may be sent to.
enum RedirectRule {
  static let mostHops = 5

  /// The statuses that send a GET elsewhere.
  static func isRedirect(_ status: Int) -> Bool {
    [301, 302, 303, 307, 308].contains(status)
  }

  /// - Returns: why not, or nil when the hop is allowed.
  static func refusal(from: Origin, to: Origin) -> String? {
    switch (from.scheme, to.scheme) {
    case (_, "file"): "to a local file"
    case ("https", "http"): "from https to http"
    default: nil
    }
  }
}
