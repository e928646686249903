import TarnCore

/// A URL or a relative reference, as bytes and never decoded (RFC 3986), except that a Unicode host is turned into ASCII. The
/// fragment is dropped.
struct URLReference: Equatable {
  var scheme: [UInt8]?
  var authority: [UInt8]?
  var path: [UInt8]
  var query: [UInt8]?

  init(scheme: [UInt8]?, authority: [UInt8]?, path: [UInt8], query: [UInt8]?) {
    self.scheme = scheme
    self.authority = authority
    self.path = path
    self.query = query
  }

  /// Splits text; every text is some reference. Bytes that no URL may hold are percent-encoded.
  init(_ text: some Sequence<UInt8>) {
    var rest = Percent.repaired(text)[...]
    if let fragment = rest.firstIndex(of: UInt8(ascii: "#")) { rest = rest[..<fragment] }
    if let colon = rest.firstIndex(of: UInt8(ascii: ":")), Self.isScheme(rest[..<colon]) {
      scheme = rest[..<colon].map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }
      rest = rest[(colon + 1)...]
    }
    if let mark = rest.firstIndex(of: UInt8(ascii: "?")) {
      query = Array(rest[(mark + 1)...])
      rest = rest[..<mark]
    }
    if rest.starts(with: [0x2F, 0x2F]) {
      rest = rest.dropFirst(2)
      let slash = rest.firstIndex(of: 0x2F) ?? rest.endIndex
      authority = IDNA.ascii(Array(rest[..<slash]))
      rest = rest[slash...]
    }
    path = Array(rest)
  }

  init(_ text: String) {
    self.init(text.utf8)
  }

  /// Returns whether the text is an absolute URL of a server with a host and without user, query and fragment. It must also stay
  /// the same when it is split, resolved and joined again. Most URLs pass, and need no other check.
  static func isPlain(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
    guard let scheme = Self.lengthOfScheme(text) else { return false }
    return Percent.keptInURL.withUnsafeBufferPointer {
      isPlain(behindScheme: UnsafeBufferPointer(rebasing: text[scheme...]), keeps: $0)
    }
  }

  private static func lengthOfScheme(_ text: UnsafeBufferPointer<UInt8>) -> Int? {
    for prefix in URLScheme.remotePrefixes where text.count > prefix.utf8.count {
      if text.starts(with: prefix.utf8) { return prefix.utf8.count }
    }
    return nil
  }

  private static func isPlain(
    behindScheme text: UnsafeBufferPointer<UInt8>, keeps: UnsafeBufferPointer<Bool>
  ) -> Bool {
    var (isHost, isPort, isBracket) = (true, false, false)
    // The counts are of the host, or of the current segment.
    var (length, dots) = (0, 0)
    for byte in text {
      switch byte {
      case UInt8(ascii: "/"):
        guard isHost ? length > 0 : !isDots(length, dots) else { return false }
        (isHost, length, dots) = (false, 0, 0)
      case UInt8(ascii: "?"), UInt8(ascii: "#"): return false
      case UInt8(ascii: "@") where isHost, UInt8(ascii: "%") where isHost: return false
      case UInt8(ascii: "[") where isHost:
        isBracket = true
        length += 1
      case UInt8(ascii: ":") where isHost && !isBracket:
        guard length > 0 else { return false }
        isPort = true
      case _ where isHost && isPort && !byte.isASCIIDigit: return false
      default:
        guard keeps[Int(byte)] else { return false }
        length += 1
        if byte == UInt8(ascii: ".") { dots += 1 }
      }
    }
    return isHost ? length > 0 : !isDots(length, dots)
  }

  /// Returns whether a segment with this length and number of dots is `.` or `..`.
  private static func isDots(_ length: Int, _ dots: Int) -> Bool {
    length == dots && (dots == 1 || dots == 2)
  }

  /// Resolves a reference with this URL as the base (RFC 3986 5.2.2).
  func resolve(_ reference: URLReference) -> URLReference {
    var result = reference
    result.path = Self.removeDotSegments(reference.path)
    if reference.scheme != nil { return result }
    result.scheme = scheme
    if reference.authority != nil { return result }
    result.authority = authority
    if reference.path.isEmpty {
      result.path = path
      result.query = reference.query ?? query
    } else if reference.path[0] != 0x2F {
      result.path = Self.removeDotSegments(directory + reference.path)
    }
    return result
  }

  /// The path up to and including its last slash.
  var directory: [UInt8] {
    guard let slash = path.lastIndex(of: 0x2F) else { return authority == nil ? [] : [0x2F] }
    return Array(path[...slash])
  }

  /// The last segment of the path, decoded; empty for the path of a directory.
  var name: [UInt8] {
    Percent.decode(path.split(separator: 0x2F, omittingEmptySubsequences: false).last ?? [])
  }

  var bytes: [UInt8] {
    var text: [UInt8] = []
    if let scheme { text += scheme + [0x3A] }
    if let authority { text += [0x2F, 0x2F] + authority }
    text += path
    if let query { text += [0x3F] + query }
    return text
  }

  var text: String { String(decoding: bytes, as: UTF8.self) }

  /// The scheme by which it is fetched; `nil` for a relative reference, and for schemes that Tarn does not fetch from.
  var source: URLScheme? { scheme.flatMap { URLScheme($0) } }

  /// True when it names something on a server.
  var isRemote: Bool { source?.isRemote == true }

  /// True when it names a file of this machine.
  var isLocal: Bool { source == .file }

  /// Why nothing is fetched from an absolute URL of a server, for people; `nil` when it may be fetched.
  var obstacle: String? {
    let host = authority ?? []
    guard isRemote || host.contains(UInt8(ascii: "@")) else {
      let name = Printable.escape(scheme ?? [])
      return "its URL begins with '\(name):', and Tarn fetches over \(URLScheme.remote) only"
    }
    if host.contains(UInt8(ascii: "@")) {
      return "its URL contains a user name or a password; write them into a file for --netrc or --header-file"
    }
    if host.isEmpty || host.first == UInt8(ascii: ":") { return "its URL names no host" }
    // This may be a user name, and a password with a slash in it.
    let isBracket = host.contains(UInt8(ascii: "["))
    let port = isBracket ? [] : host.split(separator: UInt8(ascii: ":")).dropFirst().last ?? []
    guard port.allSatisfy(\.isASCIIDigit) else { return "its URL's port is not a number" }
    return host.contains(UInt8(ascii: "%")) ? "'\(Printable.escape(host))' is no name of a host" : nil
  }

  /// Returns whether scheme, host and port are the same.
  func isSameOrigin(as other: URLReference) -> Bool {
    // Nearly all links of a page are written like the page's own URL.
    scheme == other.scheme && (authority == other.authority || server == other.server)
  }

  /// The host, in its normal form where it has one, and the port.
  private var server: [String] {
    let text = String(decoding: authority ?? [], as: UTF8.self)
    // An IPv6 address has colons within its brackets.
    let colon = text.lastIndex(of: ":").flatMap { text[$0...].contains("]") ? nil : $0 } ?? text.endIndex
    let (host, port) = (String(text[..<colon]), text[colon...].dropFirst())
    return [
      HostName(host)?.inURL ?? host.lowercased(), port.isEmpty ? "\(source?.port ?? 0)" : String(port),
    ]
  }

  private static func isScheme(_ text: ArraySlice<UInt8>) -> Bool {
    guard let first = text.first, first.isASCIILetter else { return false }
    return text.allSatisfy { $0.isASCIILetter || $0.isASCIIDigit || [0x2B, 0x2D, 0x2E].contains($0) }
  }

  /// Returns whether a segment is `.` or `..`: a dot alone says nothing, since most names have one.
  private static func hasDotSegment(_ path: [UInt8]) -> Bool {
    var length = 0
    var dots = 0
    for byte in path {
      if byte == 0x2F {
        if isDots(length, dots) { return true }
        (length, dots) = (0, 0)
      } else {
        length += 1
        if byte == 0x2E { dots += 1 }
      }
    }
    return isDots(length, dots)
  }

  /// Removes dot segments (RFC 3986 5.2.4); a path above the root stays at the root.
  private static func removeDotSegments(_ path: [UInt8]) -> [UInt8] {
    guard hasDotSegment(path) else { return path }
    let segments = path.split(separator: 0x2F, omittingEmptySubsequences: false)
    var kept: [ArraySlice<UInt8>] = []
    for (index, segment) in segments.enumerated() {
      let isLast = index == segments.count - 1
      if segment.elementsEqual([0x2E]) {
        if isLast { kept.append([]) }
      } else if segment.elementsEqual([0x2E, 0x2E]) {
        if kept.count > 1 || kept.first?.isEmpty == false { kept.removeLast() }
        if isLast { kept.append([]) }
      } else {
        kept.append(segment)
      }
    }
    if path.first == 0x2F, kept.isEmpty || kept.first?.isEmpty == false { kept.insert([], at: 0) }
    if kept.count == 1, kept.first?.isEmpty == true, path.first == 0x2F { return [0x2F] }
    return Array(kept.joined(separator: [0x2F]))
  }
}

extension Percent {
  /// The bytes that a whole URL may hold: everything printable except these.
  static let keptInURL: [Bool] = (0..<256).map { value in
    value > 0x20 && value < 0x7F && !Array("\"<>\\^`{|}".utf8).contains(UInt8(value))
  }

  /// Encodes the bytes of a URL from outside that no URL may hold.
  static func repaired(_ text: some Sequence<UInt8>) -> [UInt8] {
    encode(text, keeping: keptInURL)
  }

  /// Returns a URL in ASCII made of a base, which ends with its last slash, and a path below it.
  static func text(of path: RelativePath, behind base: [UInt8]) -> String {
    let isPlain = keptInPath.withUnsafeBufferPointer { kept in
      path.bytes.withUnsafeBufferPointer { $0.allSatisfy { kept[Int($0)] } }
    }
    guard isPlain else { return String(decoding: base + encode(path: path.bytes), as: UTF8.self) }
    let length = base.count + path.bytes.count
    return String(unsafeUninitializedCapacity: length) { text in
      let text = UnsafeMutableRawBufferPointer(text)
      base.withUnsafeBytes { text.copyMemory(from: $0) }
      path.bytes.withUnsafeBytes {
        UnsafeMutableRawBufferPointer(rebasing: text[base.count...]).copyMemory(from: $0)
      }
      return length
    }
  }

  /// Reads a number like `UInt64`, but faster when it has only digits, and not too many.
  static func wholeNumber(_ text: [UInt8]) -> UInt64? {
    guard (1...18).contains(text.count), text.allSatisfy(\.isASCIIDigit) else {
      return UInt64(String(decoding: text, as: UTF8.self))
    }
    return text.reduce(0) { $0 * 10 + UInt64($1 & 15) }
  }
}
