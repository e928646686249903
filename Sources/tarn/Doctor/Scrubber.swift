import Glibc
import TarnAgent
import TarnConfig
import TarnCore
import TarnRuntime

/// Removes secrets from texts that are passed on: texts that look like secrets, and the secrets that this
/// machine's settings lead to. When in doubt, the text is removed.
struct Scrubber {
  static let mark = "***"
  /// The known secrets, the longest first, for one may be a part of another.
  private var secrets: [String] = []
  /// Addresses whose path is taken out where they stand and nowhere else, with what is shown for them.
  private var addresses: [(whole: String, shown: String)] = []
  /// The characters of a secret, at least; shorter ones would be found in ordinary words.
  private static let shortest = 4

  init() {}

  // MARK: What is known

  mutating func learn(_ secret: String) {
    let forms = [secret, String(decoding: Percent.decode(secret.utf8), as: UTF8.self)]
    for form in forms where form.count >= Self.shortest && !secrets.contains(form) { secrets.append(form) }
    secrets.sort { ($0.count, $0) > ($1.count, $1) }
  }

  /// Learns the user, the password and the query of an address.
  mutating func learn(address: String) {
    guard let mark = address.firstRange(of: "://") else { return }
    let authority = address[mark.upperBound...].prefix { !"/?#".contains($0) }
    if let at = authority.lastIndex(of: "@") {
      for part in authority[..<at].split(separator: ":", maxSplits: 1) { learn(String(part)) }
    }
    guard let question = address.firstIndex(where: { $0 == "?" || $0 == "#" }) else { return }
    let query = address[address.index(after: question)...]
    learn(String(query))
    for item in query.split(whereSeparator: { "&;#".contains($0) }) {
      learn(String(item.split(separator: "=", maxSplits: 1).last ?? item))
    }
  }

  /// Learns the values of `Name: value` lines.
  mutating func learn(headers text: String) {
    for line in text.split(whereSeparator: \.isNewline) {
      guard let colon = line.firstIndex(of: ":") else { continue }
      let value = String(line[line.index(after: colon)...].drop { $0 == " " })
      learn(value)
      for word in value.split(whereSeparator: { " =;,".contains($0) }) where word.count > 7 {
        learn(String(word))
      }
    }
  }

  /// Learns the values of `login`, `password` and `account` in a netrc file.
  mutating func learn(netrc text: String) {
    let words = Self.words(text)
    for (word, next) in zip(words, words.dropFirst()) where ["login", "password", "account"].contains(word) {
      learn(next)
    }
  }

  /// Splits a text at blanks, except within quotes.
  private static func words(_ text: String) -> [String] {
    var words: [String] = []
    var rest = text[...]
    while let start = rest.firstIndex(where: { !$0.isWhitespace }) {
      rest = rest[start...]
      let isQuoted = rest.first == "\""
      if isQuoted { rest = rest.dropFirst() }
      let word = rest.prefix { isQuoted ? $0 != "\"" : !$0.isWhitespace }
      words.append(String(word))
      rest = rest[word.endIndex...].dropFirst(isQuoted ? 1 : 0)
    }
    return words
  }

  /// Learns the values of a Netscape cookie file, its last column.
  mutating func learn(cookies text: String) {
    for line in text.split(whereSeparator: \.isNewline) {
      if let value = line.split(separator: "\t").last, line.contains("\t") { learn(String(value)) }
    }
  }

  // MARK: Hooks

  /// Learns the parts of a hook's address, or of its program's arguments, that look like tokens. The others may be ordinary words:
  /// they are taken out in the setting alone.
  mutating func learn(_ way: HookSettings.Way) {
    switch way {
    case .command(let words):
      let breaks = "\"'`"
      for word in words.dropFirst() {
        for part in word.split(whereSeparator: { $0.isWhitespace || breaks.contains($0) }) {
          learn(address: String(part))
          learn(tokensOf: String(part))
        }
      }
    case .webhook(.url(let address)), .ping(.url(let address)):
      learn(address: address)
      learn(tokensOf: address)
      hidePath(of: address)
    case .webhook(.secret), .ping(.secret): break
    }
  }

  private mutating func learn(tokensOf text: String) {
    for part in text.split(whereSeparator: { "/?#&=,;@".contains($0) }) {
      // Telegram's `bot123:ABC` is a name and its password.
      if part.wholeMatch(of: /bot[0-9]+:.+/) != nil { learn(String(part)) }
      for piece in part.split(whereSeparator: { ":.".contains($0) }) where Self.isLikeToken(piece) {
        learn(String(piece))
      }
    }
  }

  /// Returns whether letters and digits are mixed as in no word. `debian-12-netinst-amd64` is no token, a UUID is one.
  private static func isLikeToken(_ text: Substring) -> Bool {
    guard text.count >= shortestToken else { return false }
    var (digits, changes) = (0, 0)
    for run in text.split(whereSeparator: { !$0.isLetter && !$0.isNumber }) {
      let kinds = run.map { $0.isNumber ? 0 : $0.isUppercase ? 1 : 2 }
      if kinds.contains(where: { $0 > 0 }) { digits += kinds.count { $0 == 0 } }
      changes += zip(kinds, kinds.dropFirst()).count { $0 != $1 }
    }
    return digits >= 4 || changes * 3 >= text.count
  }

  private static let shortestToken = 16

  private mutating func hidePath(of address: String) {
    let plain = Redaction.message(String(address.prefix { !"?#".contains($0) }))
    guard let mark = plain.firstRange(of: "://"), let slash = plain[mark.upperBound...].firstIndex(of: "/"),
      plain.index(after: slash) < plain.endIndex
    else { return }
    addresses.append((plain, String(plain[...slash]) + Self.mark))
  }

  /// Replaces an address, but not the beginning of a longer one.
  private static func replacing(_ address: String, with shown: String, in line: String) -> String {
    var clean = ""
    var rest = line[...]
    while let found = rest.firstRange(of: address) {
      let next = rest[found.upperBound...].first
      let isLonger = next.map { $0.isLetter || $0.isNumber || "-._~%/".contains($0) } ?? false
      clean += String(rest[..<found.lowerBound]) + (isLonger ? address : shown)
      rest = rest[found.upperBound...]
    }
    return clean + String(rest)
  }

  /// Learns from a file of settings. Refused ones may hold what no rule allows, and nobody knows what belongs to a hook: of all their
  /// addresses but those of feeds, only the host stays.
  mutating func learn(settings text: String, areRefused: Bool) {
    var isHook = false
    for line in text.split(whereSeparator: \.isNewline) {
      let start = line.drop { $0.isWhitespace }
      if start.hasPrefix("[") {
        isHook = start.dropFirst().drop { $0 == "[" || $0.isWhitespace }.hasPrefix("hook")
      } else if areRefused, isHook, !start.contains("=") {
        // A line of an array: arguments of a program.
        for word in line.split(whereSeparator: { "\"',[]".contains($0) }) { learn(Self.trimmed(word)) }
      }
      let isFeed = line.drop { $0.isWhitespace || "\"'".contains($0) }.hasPrefix("feed")
      let words = line.split { $0.isWhitespace || "\"',[]{}".contains($0) }
      for word in words where word.contains("://") {
        learn(address: String(word))
        guard areRefused else { continue }
        learn(tokensOf: String(word))
        if !isFeed { hidePath(of: String(word)) }
      }
    }
  }

  private static func trimmed(_ word: Substring) -> String {
    String(word.drop { $0.isWhitespace }.reversed().drop { $0.isWhitespace }.reversed())
  }

  // MARK: What it looks like

  func clean(_ text: String) -> String {
    // strstr(3) ends at a NUL.
    let text =
      text.utf8.contains(0) ? String(decoding: text.utf8.map { $0 == 0 ? 0x20 : $0 }, as: UTF8.self) : text
    return text.split(separator: "\n", omittingEmptySubsequences: false).map { clean(line: String($0)) }
      .joined(separator: "\n")
  }

  private func clean(line: String) -> String {
    var line = line
    if Self.contains(line, ":/") { line = Redaction.message(line) }
    for address in addresses where Self.contains(line, address.whole) {
      line = Self.replacing(address.whole, with: address.shown, in: line)
    }
    for secret in secrets where Self.contains(line, secret) { line = line.replacing(secret, with: Self.mark) }
    let small = line.lowercased()
    guard Self.signs.contains(where: { Self.contains(small, $0) }) else { return line }
    return Self.byForm(line)
  }

  private static func contains(_ line: String, _ word: String) -> Bool {
    line.withCString { line in word.withCString { strstr(line, $0) != nil } }
  }

  /// The marks of lines that may hold a secret. Others are not searched further, which would take time.
  private static let signs = [
    "://", "authorization", "cookie", "token", "secret", "passw", "pwd=", "key", "sig", "auth", "credential",
    "bearer ", "basic ", "command",
  ]

  private static func byForm(_ text: String) -> String {
    // Whatever follows the path of an address.
    let query = /([a-zA-Z][a-zA-Z0-9+.\-]*:\/\/[^\s"'<>?#]*[?#])(?:[^\s"'<>]|'(?=[^\s"'<>:;,.)\]]))+/
    // Values such as `Authorization: Bearer x` and `"password": "x"`.
    let named =
      /((?i:authorization|cookie|token|secret|passwd|password|api-?key|signature)[A-Za-z0-9_\-]*["']?[ ]?:[ ]?["']?)[^"'\s][^"'\n]*/
    // Assignments such as `token=x`, as in forms and in queries without an address.
    let assigned =
      /((?i:token|secret|passwd|password|pwd|key(?!ring)|sig(?!nal|hup|kill)|auth|credential)[A-Za-z0-9_\-]*=)[^\s&"'<>]+/
    // The same as settings have them: with blanks, or with a quote that may be missing at the end.
    let set =
      /((?i:token|secret|passwd|password|pwd|key(?!ring)|sig(?!nal|hup|kill)|auth|credential)[A-Za-z0-9_\-]*["']?(?:[ \t]+=|=[ \t]|=["'])[ \t]*["']?)[^\s"'][^"'\n]*/
    let scheme = /(\b(?:Bearer|bearer|Basic) )[A-Za-z0-9+\/=._~\-]{6,}/
    // The arguments of a hook's program in its setting, and of one in whose place it stands.
    let arguments = /(\bcommand ?= ?\[ ?(?:"(?:[^"\\]|\\.)*"|'[^']*')).+\]/
    // The same without an end.
    let endless = /(\bcommand ?= ?\[ ?["'][^\s"',\]]*)[^\]]+$/
    // The same as a text, which the settings refuse, and a line of a netrc file.
    let line = /(\bcommand ?= ?["']+[^\s"']*)\s[^"']*/
    let login = /(\blogin\s+\S+\s+password\s+)[^\s"']+(?:\s[^\s"']+)*/
    var text = text.replacing(query) { "\($0.output.1)\(mark)" }
    text.replace(arguments) { "\($0.output.1), \(mark)]" }
    text.replace(endless) { "\($0.output.1) \(mark)" }
    text.replace(line) { "\($0.output.1) \(mark)" }
    text.replace(login) { "\($0.output.1)\(mark)" }
    text.replace(named) { "\($0.output.1)\(mark)" }
    text.replace(assigned) { "\($0.output.1)\(mark)" }
    text.replace(set) { "\($0.output.1)\(mark)" }
    text.replace(scheme) { "\($0.output.1)\(mark)" }
    return text
  }
}

extension Scrubber {
  /// Learns the secrets that the settings, the environment and the mirrors made by hand lead to, as far as
  /// this user can read them.
  init(_ session: Session) {
    self.init()
    let loaded = session.sources.checked()
    let credentials = session.sources.paths.credentials
    for mirror in loaded.settings?.mirrors ?? [] {
      learn(address: mirror.feed)
      learn(mirror.options, session)
      for (name, place) in mirror.secrets {
        if let path = place.path(credentials: credentials) { learn(file: path, of: name) }
      }
    }
    for hook in loaded.settings?.hooks ?? [] { learn(hook.way) }
    for folder in session.tarn.knownFolders() {
      guard let known = try? session.tarn.remembered(folder: folder) else { continue }
      if let feed = known.feed { learn(address: feed) }
      learn(known.options, session)
    }
    for name in ["http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
      if let url = environment(name) { learn(address: url) }
    }
    for file in loaded.files {
      guard let text = TextFile.read(file.path, limit: 1 << 20) else { continue }
      learn(settings: text, areRefused: loaded.settings == nil)
    }
  }

  private mutating func learn(_ options: PassOptions, _ session: Session) {
    for name in [PassOptions.Name.headerFile, .netrcFile, .cookies] {
      if let path = options.last(name) { learn(file: path, of: name) }
    }
    if options.isOn(.netrc), let home = session.tarn.homeDirectory {
      learn(file: home + "/.netrc", of: .netrcFile)
    }
    if let proxy = options.last(.proxy) { learn(address: proxy) }
  }

  private mutating func learn(file path: String, of name: PassOptions.Name) {
    guard let text = TextFile.read(path, limit: 1 << 20) else { return }
    switch name {
    case .headerFile: learn(headers: text)
    case .netrcFile, .netrc: learn(netrc: text)
    case .cookies: learn(cookies: text)
    case .proxy: learn(address: text.split(whereSeparator: \.isNewline).first.map(String.init) ?? "")
    default: break
    }
  }
}
