import TarnCore
import TarnEngine

/// A FEED as users write it (contract.md, Commands): it has a scheme, begins with `/`, `./` or `../`, or is `-`.
enum FeedText {
  /// - Throws: `usage` with what is taken.
  static func parse(_ text: String, workingDirectory: String) throws(PassFailure) -> FeedLocation {
    if text == "-" { return .standardInput }
    if let scheme = scheme(of: text) { return try parse(text, scheme: scheme, workingDirectory) }
    guard text.hasPrefix("/") || text.hasPrefix("./") || text.hasPrefix("../") else {
      throw PassFailure(
        .usage, code: "feed-not-understood", "'\(Printable.escape(text))' is no feed",
        hint: "a feed is a URL, a path that begins with / ./ or ../, or - for standard input")
    }
    return .local(path: absolute(text, workingDirectory))
  }

  private static func parse(
    _ text: String, scheme: String, _ workingDirectory: String
  ) throws(PassFailure) -> FeedLocation {
    switch scheme {
    case "http", "https":
      let authority = text.dropFirst(scheme.count + 3).prefix { $0 != "/" && $0 != "?" && $0 != "#" }
      guard !authority.contains("@") else {
        throw PassFailure(
          .usage, code: "url-with-password", "the feed's URL carries a user name or a password",
          hint: "put them into a netrc file and give --netrc, or into a file for --header-file")
      }
      guard !authority.isEmpty else {
        throw PassFailure(.usage, code: "feed-not-understood", "'\(Printable.escape(text))' names no host")
      }
      return .remote(url: text)
    case "file":
      return .local(path: try localPath(text))
    default:
      throw PassFailure(
        .usage, code: "scheme-not-supported", "Tarn does not read \(Printable.escape(scheme)): feeds",
        hint: "http, https and file are supported")
    }
  }

  /// `file:///path` and `file://localhost/path`, percent-decoded.
  private static func localPath(_ text: String) throws(PassFailure) -> [UInt8] {
    var rest = text.dropFirst("file://".count)
    if rest.hasPrefix("localhost/") { rest = rest.dropFirst("localhost".count) }
    guard rest.hasPrefix("/"), let path = decode(Array(rest.utf8)) else {
      throw PassFailure(
        .usage, code: "feed-not-understood", "'\(Printable.escape(text))' is no local file",
        hint: "write file:///absolute/path, with %XX escapes that are complete")
    }
    return path
  }

  private static func decode(_ text: [UInt8]) -> [UInt8]? {
    var path: [UInt8] = []
    var index = 0
    while index < text.count {
      guard text[index] == UInt8(ascii: "%") else {
        path.append(text[index])
        index += 1
        continue
      }
      guard index + 2 < text.count,
        let byte = UInt8(String(decoding: text[(index + 1)...(index + 2)], as: UTF8.self), radix: 16),
        byte != 0
      else { return nil }
      path.append(byte)
      index += 3
    }
    return path
  }

  static func scheme(of text: String) -> String? {
    guard let colon = text.range(of: "://") else { return nil }
    let scheme = text[..<colon]
    guard let first = scheme.first, first.isLetter,
      scheme.allSatisfy({ $0.isLetter || $0.isNumber || "+-.".contains($0) })
    else { return nil }
    return scheme.lowercased()
  }

  static func absolute(_ path: String, _ workingDirectory: String) -> [UInt8] {
    path.hasPrefix("/") ? Array(path.utf8) : Array((workingDirectory + "/" + path).utf8)
  }
}

extension String {
  /// The first place of `part`; the standard library has none for strings.
  fileprivate func range(of part: String) -> String.Index? {
    indices.first { self[$0...].hasPrefix(part) }
  }
}
