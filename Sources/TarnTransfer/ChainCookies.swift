import TarnCore
import TarnRuntime

/// Cookies that outlive their exchanges, and their client where its owner keeps them. Each goes back only to the host that set it:
/// without a list of public suffixes, nothing tells who owns a wider domain. Callable on any thread.
package final class HostCookies: Sendable {
  private static let mostHosts = 1000
  private let hosts = Locked<[String: ChainCookies]>([:])

  package init() {}

  func store(_ lines: [String], of url: SourceURL, _ now: Timestamp) {
    let host = url.origin.host
    hosts.withLock { hosts in
      guard !lines.isEmpty, hosts[host] != nil || hosts.count < Self.mostHosts else { return }
      hosts[host, default: ChainCookies()].store(lines, from: url, now: now, isHostOnly: true)
    }
  }

  /// Returns the `Cookie` field for a hop, with the cookies of the chain that are not stored here.
  func header(for url: SourceURL, with chain: String?) -> String? {
    guard let own = hosts.withLock({ $0[url.origin.host] })?.header(for: url) else { return chain }
    func names(_ text: String) -> [(Substring, Substring)] {
      text.split(separator: ";").map { pair in
        let pair = pair.drop { $0 == " " }
        return (pair.prefix { $0 != "=" }, pair)
      }
    }
    let known = Set(names(own).map(\.0))
    return ([own] + names(chain ?? "").filter { !known.contains($0.0) }.map { String($0.1) })
      .joined(separator: "; ")
  }
}

/// Cookies that the servers of one chain of redirects set, for its later hops (RFC 6265). They are dropped with the exchange.
///
/// There is no list of public suffixes. A cookie for one reaches only the hosts that the chain leads to.
struct ChainCookies: Equatable, Sendable {
  private struct Cookie: Equatable {
    var name: String
    var value: String
    var domain: String
    /// True when the cookie goes only to the host that set it.
    var isHostOnly: Bool
    var path: String
    var isSecure: Bool

    func isSame(_ other: Cookie) -> Bool {
      name == other.name && domain == other.domain && path == other.path
    }
  }

  static let most = 50
  /// The most bytes of a name and its value.
  static let longest = 4096
  /// The most bytes of the request header.
  static let longestHeader = 8190

  private var cookies: [Cookie] = []

  var isEmpty: Bool { cookies.isEmpty }

  /// Stores the cookies of one answer.
  ///
  /// - Parameters:
  ///   - lines: the values of its `Set-Cookie` fields.
  ///   - url: the URL of the request.
  ///   - now: the wall time, by which an expired cookie is removed.
  ///   - isHostOnly: true when the cookies go back only to this host, whatever domain they name.
  mutating func store(_ lines: [String], from url: SourceURL, now: Timestamp, isHostOnly: Bool = false) {
    for line in lines {
      guard case (var cookie, let isOver)? = Self.read(line, from: url, now: now) else { continue }
      if isHostOnly { (cookie.domain, cookie.isHostOnly) = (url.origin.host, true) }
      let old = cookies.firstIndex { $0.isSame(cookie) }
      if isOver {
        if let old { cookies.remove(at: old) }
      } else if let old {
        cookies[old] = cookie
      } else if cookies.count < Self.most {
        cookies.append(cookie)
      }
    }
  }

  /// Returns the value of the `Cookie` field for a hop: longer paths first, then in the order they came (RFC 6265 5.4).
  ///
  /// - Returns: `nil` for no field.
  func header(for url: SourceURL) -> String? {
    let text = pairs(for: url)
    return text.isEmpty ? nil : text
  }

  private func pairs(for url: SourceURL) -> String {
    let path = url.path
    let fitting = cookies.enumerated().filter { _, cookie in
      Self.domain(cookie.domain, fits: url.origin.host, isHostOnly: cookie.isHostOnly)
        && Self.path(cookie.path, fits: path) && (!cookie.isSecure || url.origin.scheme.isSecure)
    }
    let sorted = fitting.sorted { left, right in
      let (first, second) = (left.element.path.utf8.count, right.element.path.utf8.count)
      return first == second ? left.offset < right.offset : first > second
    }
    var text = ""
    for (_, cookie) in sorted {
      let pair = (text.isEmpty ? "" : "; ") + cookie.name + "=" + cookie.value
      if text.utf8.count + pair.utf8.count <= Self.longestHeader { text += pair }
    }
    return text
  }

  /// - Returns: `nil` for a line that is no cookie, or that this host may not set (RFC 6265 5.2, 5.3).
  private static func read(
    _ line: String, from url: SourceURL, now: Timestamp
  ) -> (Cookie, isOver: Bool)? {
    let parts = line.split(separator: ";", omittingEmptySubsequences: false).map(trimmed)
    guard let equals = parts[0].firstIndex(of: "="), HeaderValue.isSafe(line) else { return nil }
    let name = trimmed(parts[0][..<equals])
    let value = trimmed(parts[0][parts[0].index(after: equals)...])
    guard !name.isEmpty, name.utf8.count + value.utf8.count <= longest else { return nil }
    let host = url.origin.host
    var cookie = Cookie(
      name: String(name), value: String(value), domain: host, isHostOnly: true,
      path: defaultPath(of: url.path), isSecure: false)
    var isOver = false
    var hasAge = false
    for part in parts.dropFirst() {
      let words = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(trimmed)
      let said = words.count > 1 ? String(words[1]) : ""
      switch words[0].lowercased() {
      case "secure": cookie.isSecure = true
      case "path": if said.hasPrefix("/") { cookie.path = said }
      case "domain":
        let domain = (said.hasPrefix(".") ? said.dropFirst() : said[...]).lowercased()
        if domain.isEmpty || domain == host && isAddress(host) { continue }
        guard domain.contains("."), self.domain(domain, fits: host, isHostOnly: false) else { return nil }
        (cookie.domain, cookie.isHostOnly) = (domain, false)
      case "max-age":
        guard let seconds = Int64(said) else { continue }
        (isOver, hasAge) = (seconds <= 0, true)
      case "expires":
        if !hasAge, let date = HeaderValue.date(said) { isOver = date <= now }
      default: break
      }
    }
    // Over plain http anybody on the way could have set it.
    if cookie.isSecure, !url.origin.scheme.isSecure { return nil }
    return (cookie, isOver)
  }

  private static func domain(_ domain: String, fits host: String, isHostOnly: Bool) -> Bool {
    if domain == host { return true }
    return !isHostOnly && host.hasSuffix("." + domain) && !isAddress(host)
  }

  /// Returns whether a host is an address. IPv6 addresses have brackets, and no host name has digits alone as its last label.
  private static func isAddress(_ host: String) -> Bool {
    host.hasPrefix("[") || host.split(separator: ".").last?.utf8.allSatisfy(\.isASCIIDigit) ?? false
  }

  private static func path(_ path: String, fits asked: String) -> Bool {
    guard asked.hasPrefix(path) else { return false }
    return asked.utf8.count == path.utf8.count || path.hasSuffix("/")
      || asked.dropFirst(path.count).hasPrefix("/")
  }

  private static func defaultPath(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/"), slash != path.startIndex else { return "/" }
    return String(path[..<slash])
  }

  private static func trimmed(_ text: some StringProtocol) -> Substring {
    var text = Substring(text)
    while text.first == " " || text.first == "\t" { text.removeFirst() }
    while text.last == " " || text.last == "\t" { text.removeLast() }
    return text
  }
}
