/// The options of a pass as they were given: on the command line now, or remembered by the mirror. One place for their names,
/// values and meanings.
package struct PassOptions: Sendable, Equatable {
  /// The name of an option. The raw value is the word without its two dashes.
  package enum Name: String, Sendable, CaseIterable {
    case delete
    case include
    case exclude
    case keep
    case maxAge = "max-age"
    case template
    case deleteLimit = "delete-limit"
    case keepTrash = "keep-trash"
    case localChanges = "local-changes"
    case publishLast = "publish-last"
    case keepList = "keep-list"
    case portableNames = "portable-names"
    case format
    case connections
    case connectionsPerHost = "connections-per-host"
    case retries
    case limitRate = "limit-rate"
    case reserve
    case headerFile = "header-file"
    case cookies
    case netrc
    case netrcFile = "netrc-file"
    case cacert
    case proxy
    case userAgent = "user-agent"

    /// The options because of which a pass may be refused before it begins: their file is missing or cannot be used.
    package static let ofFiles: [Name] = [.headerFile, .cookies, .netrc, .netrcFile, .cacert, .proxy]

    /// True for an option that may be given more than once.
    package var isList: Bool {
      switch self {
      case .include, .exclude, .publishLast: true
      default: false
      }
    }
  }

  /// The values of each option: one for most, several for lists, `true` or `false` for switches.
  package var values: [Name: [String]]

  package init(values: [Name: [String]] = [:]) {
    self.values = values
  }

  package struct Failure: Error, Sendable, Equatable {
    package var name: Name
    package var value: String
    /// The accepted values, such as `a number from 1 to 256`.
    package var expected: String

    package var message: String {
      let shown = name == .proxy ? Redaction.address(value) : value
      return "--\(name.rawValue): '\(Printable.escape(shown))' is not \(expected)"
    }
  }

  /// Returns these options where given, and the remembered ones elsewhere.
  package func over(_ remembered: PassOptions) -> PassOptions {
    PassOptions(values: remembered.values.merging(values) { _, given in given })
  }

  /// Returns the options that would change a pass with the options `others`. An option that is only written differently, or is the
  /// standard anyway, is not among them.
  package func changing(_ others: PassOptions) -> [Name] {
    Name.allCases.filter { name in
      guard let given = values[name] else { return false }
      let changed = PassOptions(values: [name: given]).over(others)
      switch name {
      case .netrc: return changed.isOn(name) != others.isOn(name)
      case .headerFile, .netrcFile:
        return !(changed.last(name) ?? "").utf8.elementsEqual((others.last(name) ?? "").utf8)
      default:
        return (try? changed.policy()) != (try? others.policy())
          || (try? changed.network()) != (try? others.network())
      }
    }
  }

  /// The options as text for the ledger, one line per value. Reading it back yields the same options.
  package var encoded: String {
    Name.allCases.flatMap { name in
      (values[name] ?? []).map { "\(name.rawValue)=\(EscapedLine.escape($0))" }
    }.joined(separator: "\n")
  }

  /// Reads the text and leaves out lines that this Tarn does not know.
  package init(encoded: String) {
    values = [:]
    // Splits by scalars: by characters, a line feed after "\r" and "=" before an accent would not be found.
    for line in encoded.unicodeScalars.split(separator: "\n") {
      guard let equals = line.firstIndex(of: "="), let name = Name(rawValue: String(line[..<equals])) else {
        continue
      }
      values[name, default: []].append(EscapedLine.unescape(line[line.index(after: equals)...]))
    }
  }

  /// Returns what a pass may do to the folder.
  package func policy() throws(Failure) -> PassPolicy {
    var policy = PassPolicy()
    policy.deletes = isOn(.delete)
    if let text = last(.localChanges) {
      guard let changes = PassPolicy.LocalChanges(rawValue: text) else {
        throw Failure(name: .localChanges, value: text, expected: "restore, keep or report")
      }
      policy.localChanges = changes
      policy.window.localChanges = changes
    }
    try readDeletions(into: &policy)
    policy.window = try window(policy.window)
    for name in [Name.include, .exclude, .publishLast] { try refuseBroken(name) }
    policy.filter.include = PathPatterns(values[.include] ?? [])
    policy.filter.exclude = PathPatterns(values[.exclude] ?? [])
    if let patterns = values[.publishLast] { policy.publishLast = PathPatterns(patterns) }
    policy.keepsList = last(.keepList) != "false"
    policy.pathRule = PathRule(portable: isOn(.portableNames))
    if let text = last(.format) {
      guard let format = FormatChoice(rawValue: text) else {
        throw Failure(name: .format, value: text, expected: FormatChoice.words)
      }
      policy.format = format
    }
    policy.window.namesArePortable = last(.portableNames) != "false"
    policy.retries = try number(.retries, 0...100) ?? policy.retries
    if let text = last(.reserve) {
      guard let reserve = Units.reserve(text) else {
        throw Failure(name: .reserve, value: text, expected: "a size such as 10GiB or a share such as 1%")
      }
      policy.reserve = reserve
    }
    return policy
  }

  private func readDeletions(into policy: inout PassPolicy) throws(Failure) {
    if let text = last(.deleteLimit) {
      guard let limit = DeleteLimit(text) else {
        throw Failure(name: .deleteLimit, value: text, expected: DeleteLimit.expected)
      }
      policy.deleteLimit = limit
    }
    if let text = last(.keepTrash) {
      policy.keepTrash = nil
      guard text != "all" else { return }
      guard let seconds = Units.duration(text), seconds > 0 else {
        throw Failure(name: .keepTrash, value: text, expected: "a span such as 7d or 12h, or all")
      }
      policy.keepTrash = seconds
    }
  }

  /// Refuses a broken pattern: it never matches, and would silently leave out nothing or everything.
  private func refuseBroken(_ name: Name) throws(Failure) {
    for text in values[name] ?? [] {
      guard let fault = PathPatterns.fault(in: text) else { continue }
      throw Failure(name: name, value: text, expected: "a pattern: \(fault)")
    }
  }

  private func window(_ standard: WindowPolicy) throws(Failure) -> WindowPolicy {
    var window = standard
    window.keep = try last(.keep) == "all" ? nil : number(.keep, 1...1_000_000)
    if let text = last(.maxAge), text != "off" {
      guard let seconds = Units.duration(text), seconds > 0 else {
        throw Failure(name: .maxAge, value: text, expected: "a span such as 90d, 24h or 1h30m, or off")
      }
      window.maxAge = seconds
    }
    if let text = last(.template) {
      guard let template = NameTemplate(text) else {
        throw Failure(name: .template, value: text, expected: NameTemplate.help(for: text))
      }
      window.template = template
    }
    return window
  }

  /// Returns the network settings. The caller reads files that hold secrets.
  package func network() throws(Failure) -> NetworkSettings {
    var settings = NetworkSettings()
    settings.connections = try number(.connections, 1...256) ?? settings.connections
    settings.connectionsPerHost = try number(.connectionsPerHost, 1...64) ?? settings.connectionsPerHost
    if let text = last(.limitRate) {
      guard let rate = Units.rate(text) else {
        throw Failure(name: .limitRate, value: text, expected: "a rate such as 2MiB/s, or off")
      }
      settings.rate = rate
    }
    settings.cookieFile = last(.cookies)
    settings.caFile = last(.cacert)
    settings.proxy = try proxy()
    settings.userAgent = try userAgent()
    return settings
  }

  /// Returns the proxy; `nil` for an empty text, which turns off a remembered one.
  private func proxy() throws(Failure) -> String? {
    guard let text = last(.proxy), !text.isEmpty else { return nil }
    let schemes = ["http", "https", "socks4", "socks4a", "socks5", "socks5h"]
    let scheme = schemes.first { text.lowercased().hasPrefix($0 + "://") }
    let rest = scheme.map { text.dropFirst($0.count + 3) } ?? ""
    guard !rest.isEmpty, rest.first != "/", rest.first != ":", URLPort.isSound(text),
      text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
    else {
      throw Failure(
        name: .proxy, value: text, expected: "a URL such as http://host:port or socks5h://host:port")
    }
    return text
  }

  /// Returns the User-Agent; `nil` for an empty text, which restores the standard.
  private func userAgent() throws(Failure) -> String? {
    guard let text = last(.userAgent), !text.isEmpty else { return nil }
    guard text.utf8.count <= 256, text.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }) else {
      throw Failure(name: .userAgent, value: text, expected: Self.userAgentRule)
    }
    return text
  }

  package static let userAgentRule = "a text of up to 256 letters, digits and signs of ASCII"

  package func last(_ name: Name) -> String? { values[name]?.last }

  package func isOn(_ name: Name) -> Bool { last(name) == "true" }

  private func number(_ name: Name, _ range: ClosedRange<Int>) throws(Failure) -> Int? {
    guard let text = last(name) else { return nil }
    guard let number = Int(text), range.contains(number) else {
      throw Failure(
        name: name, value: text, expected: "a number from \(range.lowerBound) to \(range.upperBound)")
    }
    return number
  }
}
