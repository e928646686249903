/// The port of a URL.
package enum URLPort {
  /// Returns whether the URL names no port, or one from 1 to 65535. A text that is not a URL names none.
  package static func isSound(_ url: String) -> Bool {
    let bytes = Array(url.utf8)
    guard let start = bytes.firstRange(of: Array("://".utf8))?.upperBound else { return true }
    var authority = bytes[start...].prefix { !"/?#\\".utf8.contains($0) }
    if let at = authority.lastIndex(of: UInt8(ascii: "@")) { authority = authority[(at + 1)...] }
    let port: ArraySlice<UInt8>
    if authority.first == UInt8(ascii: "[") {
      guard let close = authority.firstIndex(of: UInt8(ascii: "]")) else { return false }
      let rest = authority[(close + 1)...]
      guard rest.isEmpty || rest.first == UInt8(ascii: ":") else { return false }
      port = rest.dropFirst()
    } else {
      guard let colon = authority.firstIndex(of: UInt8(ascii: ":")) else { return true }
      port = authority[(colon + 1)...]
    }
    // An empty port means that of the scheme (RFC 3986, 3.2.3).
    guard !port.isEmpty else { return true }
    guard port.count <= 5, port.allSatisfy({ $0.isASCIIDigit }) else { return false }
    return (1...65_535).contains(port.reduce(0) { $0 * 10 + Int($1 - 0x30) })
  }
}
