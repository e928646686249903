import Glibc
import TarnCore

/// An address to listen on: `127.0.0.1:9754`, `[::1]:9754`, `localhost:9754`, or a port of 127.0.0.1.
package struct ListenAddress: Sendable, Equatable {
  /// An IP address, or `localhost`.
  package var host: String
  package var port: Int

  /// - Returns: `nil` for any other text.
  package init?(_ text: String) {
    var host = "127.0.0.1"
    var port = text[...]
    if let colon = text.lastIndex(of: ":") {
      port = text[text.index(after: colon)...]
      guard let name = Self.host(text[..<colon]) else { return nil }
      host = name
    }
    guard (1...5).contains(port.utf8.count), port.utf8.allSatisfy({ $0.isASCIIDigit }),
      let number = Int(port),
      (1...65_535).contains(number)
    else { return nil }
    (self.host, self.port) = (host, number)
  }

  private static func host(_ text: Substring) -> String? {
    if text == "localhost" { return "localhost" }
    if text.hasPrefix("["), text.hasSuffix("]") {
      let inner = String(text.dropFirst().dropLast())
      var address = in6_addr()
      return inet_pton(AF_INET6, inner, &address) == 1 ? inner : nil
    }
    var address = in_addr()
    return inet_pton(AF_INET, String(text), &address) == 1 ? String(text) : nil
  }
}
