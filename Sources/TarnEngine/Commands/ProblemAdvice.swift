package import TarnCore

/// Advice for a problem of one path. It never names a command that would fail in the same way.
package struct ProblemAdvice {
  let problem: Problem
  /// The mirror as a word of a command.
  let mirror: String
  /// The name of the mirror in the settings; `nil` when it is not there.
  var configuredName: String?
  /// The patterns of `--exclude` that hold for the mirror. New ones replace them, so the advice repeats them.
  var excluded: [String] = []
  var trashBytes: UInt64 = 0

  package init(
    _ problem: Problem, mirror: String, configured name: String? = nil, excluded: [String] = [],
    trashBytes: UInt64 = 0
  ) {
    self.problem = problem
    self.mirror = mirror
    configuredName = name
    self.excluded = excluded
    self.trashBytes = trashBytes
  }

  /// Returns whether another pass would fail in the same way until somebody has fixed something.
  package static func isLasting(_ code: String) -> Bool {
    isGone(code) || isRefusal(code) || isOfTheFeed(code) || isLackOfSpace(code)
  }

  package static func isLackOfSpace(_ code: String) -> Bool {
    ["no-space", "space-short", "quota-exceeded"].contains(code)
  }

  /// The number of failed passes with the same reason from which another failure is likely.
  package static let repeated = 2

  private static func isGone(_ code: String) -> Bool {
    ["http-404", "http-410", "http-451", "not-there", "file-not-readable"].contains(code)
  }

  private static func isRefusal(_ code: String) -> Bool {
    ["http-401", "http-403", "http-407", "tls-failed", "permission-denied"].contains(code)
  }

  /// Returns whether the entry cannot be fetched as the feed names it.
  private static func isOfTheFeed(_ code: String) -> Bool {
    [
      "url-refused", "redirect-refused", "address-refused", "too-many-redirects", "content-encoding-refused",
      "scheme-not-supported", "digest-unsupported", "no-usable-source",
    ].contains(code)
  }

  /// The `next:` of an explanation: a command, or what a person has to do first.
  package var step: String {
    if problem.kind == .refused { return ofRefused }
    let code = problem.code
    // The feed itself: no pattern excludes it.
    if String(decoding: problem.name, as: UTF8.self).contains("://") {
      return problem.attempts < Self.repeated
        ? "tarn sync \(mirror)" : "tell the publisher, and once it is corrected: tarn sync \(mirror)"
    }
    if Self.isLackOfSpace(code) {
      return trashBytes > 0
        ? "tarn trash empty \(mirror) (\(Units.show(trashBytes))), then: tarn sync \(mirror)"
        : "make room on the file system, or keep less of it free (--reserve), then: tarn sync \(mirror)"
    }
    switch code {
    case "http-401", "http-403", "http-407":
      return
        "give the credentials that the server asks for: tarn sync --netrc-file FILE \(mirror), or --header-file FILE; \(without)"
    case "tls-failed" where problem.message.contains("does not speak TLS"):
      return "tell the publisher, and once it is corrected: tarn sync \(mirror); \(without)"
    case "tls-failed":
      return
        "look at this machine's clock and certificates (--cacert FILE), then: tarn sync \(mirror); \(without)"
    case "permission-denied": return "let this user write there, then: tarn sync \(mirror)"
    case "digest-mismatch", "size-mismatch", "piece-mismatch":
      return
        "tarn sync \(mirror); if it stays so, the publisher has to correct the feed or the file; \(without)"
    case "content-mismatch":
      return
        "look at its address with a browser; if one has to log in there, give the credentials that the server asks for: "
        + "tarn sync --netrc-file FILE \(mirror), or --header-file FILE; \(without)"
    default:
      guard Self.isGone(code) || Self.isOfTheFeed(code) else {
        return problem.attempts < Self.repeated
          ? "tarn sync \(mirror)"
          : "tarn sync \(mirror); it has failed so in \(problem.attempts) passes, and its server may need a repair; "
            + without
      }
      return "tell the publisher, and once it is corrected: tarn sync \(mirror); \(without)"
    }
  }

  private var ofRefused: String {
    switch problem.code {
    case "path-not-portable":
      return "to take such names: \(option("--no-portable-names", "portable-names = false"))"
    case "path-empty":
      return "give it a name: a line ' out=NAME' below its URL, as in an input file of aria2"
    case "path-twice":
      return "in a list of URLs, give one of them another name: a line ' out=NAME' below it; \(without)"
    default: return "the publisher has to correct it; all other files come without it; \(without)"
    }
  }

  /// The way to be in sync without this path.
  private var without: String {
    // The name of a directory of the feed ends in a slash.
    let path = problem.name.last == UInt8(ascii: "/") ? Array(problem.name.dropLast()) : problem.name
    let name = path.drop { $0 == UInt8(ascii: "/") }
    guard !name.isEmpty else { return "no option takes it as it is" }
    let patterns = excluded + ["/" + Self.pattern(Array(name))]
    return "to do without it: "
      + option(
        patterns.map { "--exclude \(ShellWord.quote($0))" }.joined(separator: " "),
        "exclude = [\(patterns.map(Self.quoted).joined(separator: ", "))]")
  }

  /// Returns a string of TOML. Single quotes make all characters literal.
  private static func quoted(_ pattern: String) -> String {
    let isPlain = pattern.unicodeScalars.allSatisfy {
      $0 == "\\" || Printable.escape(String($0)) == String($0)
    }
    return pattern.contains("\\") && !pattern.contains("'") && isPlain
      ? "'\(pattern)'" : TOMLText.quote(pattern)
  }

  /// Returns the option as a setting for a mirror of the settings, because options of a command last for one pass there; else as a
  /// command.
  private func option(_ option: String, _ setting: String) -> String {
    configuredName.map { "\(setting) below \(TOMLText.mirror($0)) of the settings" }
      ?? "tarn sync \(option) \(mirror)"
  }

  /// Returns a pattern that matches only this name. A byte that cannot be typed becomes `?`, and the stars of a hidden password
  /// become `*`.
  private static func pattern(_ name: [UInt8]) -> String {
    let secret = Array("***@".utf8)
    var (pattern, index) = ("", 0)
    while index < name.count {
      let length = (1...4).first {
        String(validating: name[index..<min(index + $0, name.count)], as: UTF8.self) != nil
      }
      let bytes = name[index..<min(index + (length ?? 1), name.count)]
      let shown = Printable.escape(bytes)
      if name[index...].starts(with: secret) {
        pattern += "*@"
        index += secret.count
        continue
      }
      if let first = bytes.first, bytes.count == 1, "*?[\\".utf8.contains(first) {
        pattern += "\\" + String(decoding: bytes, as: UTF8.self)
      } else {
        pattern += shown.utf8.elementsEqual(bytes) ? shown : String(repeating: "?", count: bytes.count)
      }
      index += bytes.count
    }
    return pattern
  }

  /// Returns the way to undo all local changes of a mirror whose policy leaves them.
  ///
  /// - Parameters:
  ///   - mirror: the mirror as a word of a command.
  ///   - name: the name of a mirror of the settings, which alone decide from then on, and for a mirror that an agent keeps also
  ///     now. `nil` for a mirror that remembers its options.
  package static func undo(mirror: String, configured name: String?) -> String {
    let command = "tarn sync --local-changes restore \(mirror)"
    guard let name else { return "to undo all local changes, now and from then on: \(command)" }
    return
      "to undo all local changes from then on: local-changes = \"restore\" below \(TOMLText.mirror(name)) of the settings, "
      + "then: tarn reload; for now, where no agent keeps it: \(command)"
  }
}
