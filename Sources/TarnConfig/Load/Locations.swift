import TarnCore

/// Paths as users write them into settings.
enum SettingPath {
  /// Normalizes a path: removes empty segments and `.`, and expands `~/` to the home directory.
  ///
  /// - Returns: `nil` for a path that is relative, too long for the kernel, or has control bytes. Also `nil`
  ///   for one with `..`, which leads elsewhere behind a link.
  static func absolute(_ text: String, home: String?) -> String? {
    var text = text
    if text.utf8.starts(with: "~/".utf8) || text == "~" {
      guard let home else { return nil }
      text = home + String(text.dropFirst())
    }
    guard text.utf8.count < longest, text.utf8.first == UInt8(ascii: "/"),
      text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F })
    else {
      return nil
    }
    // Bytes, not characters: a slash before a combining mark would not be found.
    let segments = text.utf8.split(separator: UInt8(ascii: "/")).filter { !$0.elementsEqual(".".utf8) }
    guard !segments.contains(where: { $0.elementsEqual("..".utf8) }) else { return nil }
    return segments.isEmpty ? "/" : segments.map { "/" + String(Substring($0)) }.joined()
  }

  /// The bytes of the longest path with its NUL, PATH_MAX.
  private static let longest = 4096

  static func hint(_ text: String) -> String {
    if text.utf8.count >= longest { return "a path has less than \(longest) bytes" }
    if text.isEmpty { return "write a path that begins with /" }
    guard text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
      return "a path has no control bytes: write it without \\u0000 and its like"
    }
    if text.utf8.split(separator: UInt8(ascii: "/")).contains(where: { $0.elementsEqual("..".utf8) }) {
      return "write the path without .."
    }
    return "the agent has no working directory: write a path that begins with /"
  }
}

/// Checks feeds by the rules of the command line, without standard input and relative paths.
enum FeedRule {
  static func check(_ text: String) throws(Refusal) -> String {
    if text == "-" {
      throw Refusal(
        .badValue, "is standard input, which an agent does not have", hint: "write the feed's URL or path")
    }
    guard text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
      throw Refusal(.badValue, "has control bytes in it", hint: "write the feed's URL or path")
    }
    if text.utf8.first == UInt8(ascii: "/") { return text }
    guard let mark = text.firstRange(of: "://") else {
      throw Refusal(
        .badValue, "takes \(SettingKind.feed.takes)",
        hint: text.utf8.first == UInt8(ascii: ".")
          ? "the agent has no working directory: write a path that begins with /"
          : "write https:// before a host's name, or a path that begins with /")
    }
    let scheme = text[..<mark.lowerBound].lowercased()
    let rest = text[mark.upperBound...]
    guard let known = URLScheme(scheme) else {
      throw Refusal(
        .badValue, "has a scheme that Tarn does not read", hint: "\(URLScheme.all) are supported")
    }
    guard known.isRemote else {
      guard rest.hasPrefix("/") || rest.hasPrefix("localhost/") else {
        throw Refusal(.badValue, "is not a local file", hint: "write file:///absolute/path")
      }
      return text
    }
    try refusePassword(
      text,
      hint: "put them into a netrc file and set netrc-file, or the header into a file and set header-file")
    guard let first = rest.utf8.first, !"/?#".utf8.contains(first) else {
      throw Refusal(.badValue, "names no host", hint: "write \(scheme)://HOST/PATH")
    }
    guard URLPort.isSound(text) else {
      throw Refusal(
        .badValue, "has a port that is out of range",
        hint: "a port is a number from 1 to 65535, as in \(scheme)://HOST:8443/PATH")
    }
    guard !text.utf8.contains(0x20) else {
      throw Refusal(.badValue, "has a blank in its URL", hint: "write %20 for it")
    }
    return text
  }

  /// Checks the address of a hook. Errors never quote the text, which may be the secret.
  static func checkAddress(_ text: String, _ setting: Setting) throws(Refusal) -> String {
    try refusePassword(
      text, hint: "write the whole URL into a file of its own: \(setting.name) = { file = \"/path\" }")
    let lower = text.lowercased()
    let scheme = ["https://", "http://"].first { lower.hasPrefix($0) }
    let rest = text.utf8.dropFirst(scheme?.utf8.count ?? 0)
    guard scheme != nil, let first = rest.first, !"/?#".utf8.contains(first), URLPort.isSound(text),
      text.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F })
    else {
      throw Refusal(.badValue, "takes \(setting.kind.takes)", hint: "write https://HOST/PATH")
    }
    return text
  }

  static func refusePassword(_ text: String, hint: String) throws(Refusal) {
    guard !Redaction.carriesUser(text) else {
      throw Refusal(.urlWithPassword, "contains a user name or a password in its URL", hint: hint)
    }
  }
}
