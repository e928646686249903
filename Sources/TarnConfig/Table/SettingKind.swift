import TarnCore
package import TarnSchedule

/// The kind of value that a setting takes, and its form in TOML.
package enum SettingKind: Sendable, Equatable {
  case boolean
  /// A whole number, or a word in quotes.
  case number(ClosedRange<Int64>, or: String?)
  /// `10GiB`, a whole number of bytes, or a share of the file system such as `1%`.
  case reserve
  /// `10%`, a whole number of files, or `off`.
  case limit
  /// `2MiB/s` or `off`.
  case rate
  /// `1h 30min`, at least a second, or a word.
  case span(or: String?)
  /// A span that `Cadence` takes.
  case interval
  case choice([String])
  /// A text that the field of a pass takes, described by these words.
  case text(String)
  case patterns
  /// A path that is absolute or begins with `~/`.
  case path
  /// A file of secrets: its path, `{ file = "/path" }` or `{ credential = "name" }`.
  case secretFile
  /// A URL, or the place of a secret one.
  case secretURL
  case feed
  /// An IP address and a port, or a port.
  case socketAddress
  /// A program and its arguments.
  case command
  /// An http or https URL, or the place of a secret one.
  case address
  /// Some of the given words, in any order.
  case words([String])
  /// Names of mirrors.
  case names
  /// `[{ at = "08:00-18:00", limit = "2MiB/s" }]`.
  case rates
  /// One expression of systemd.time(7), or a list of them.
  case calendar

  /// The kind with its article, for messages and the documentation.
  package var takes: String {
    switch self {
    case .boolean: "true or false"
    case .number(let range, let word):
      "a whole number from \(range.lowerBound) to \(range.upperBound)" + Self.or(word)
    case .limit: DeleteLimit.expected
    case .reserve: "a size such as \"10GiB\" or a share such as \"1%\""
    case .rate: "a rate such as \"2MiB/s\", or \"off\""
    case .span(let word): "a span such as \"90s\", \"1h 30min\" or \"7d\"" + Self.or(word)
    case .interval: "a span from \"1min\" to \"366d\""
    case .choice(let words):
      words.dropLast().map { "\"\($0)\"" }.joined(separator: ", ") + " or \"\(words.last ?? "")\""
    case .text(let what): what
    case .patterns: "a list of patterns such as [\"*.tmp\", \"old/\"]"
    case .path: "an absolute path such as \"/srv/tarn\""
    case .secretFile: "the path of a file, or { credential = \"name\" }"
    case .secretURL:
      "a URL such as \"http://host:port\", or { file = \"/path\" } or { credential = \"name\" }"
    case .feed: "a URL such as \"https://example.org/SHA256SUMS\", or an absolute path"
    case .socketAddress: "an address such as \"127.0.0.1:9754\" or \"[::1]:9754\", or a port in quotes"
    case .command: "a list such as [\"/usr/local/bin/tell\", \"--now\"], a program and its arguments"
    case .address:
      "a URL such as \"https://example.org/path\", or { file = \"/path\" } or { credential = \"name\" }"
    case .words(let words): "a list of " + words.map { "\"\($0)\"" }.joined(separator: ", ")
    case .names: "a list of names of mirrors"
    case .rates: "a list such as [{ at = \"08:00-18:00\", limit = \"2MiB/s\" }]"
    case .calendar: "a time such as \"Mon..Fri *-*-* 06:00\", or a list of them"
    }
  }

  private static func or(_ word: String?) -> String { word.map { ", or \"\($0)\"" } ?? "" }

  /// True when the value names the place of a secret.
  package var isSecret: Bool { [.secretFile, .secretURL, .address].contains(self) }
}

/// A value as it was written, checked by itself.
package enum SettingValue: Sendable, Equatable {
  case boolean(Bool)
  case number(Int64)
  case text(String)
  case texts([String])
  case secret(SecretPlace)
  case rates([Rate])

  /// One row of a timetable, and how it was written.
  package struct Rate: Sendable, Equatable {
    package var row: RateTimetable.Row
    package var at: String
    package var limit: String
  }

  /// The value as TOML, on one line; URLs without user names and passwords.
  package var toml: String {
    switch self {
    case .boolean(let value): String(value)
    case .number(let value): String(value)
    case .text(let text): TOMLText.quote(text)
    case .texts(let texts): "[" + texts.map(TOMLText.quote).joined(separator: ", ") + "]"
    case .secret(.file(let path)): "{ file = \(TOMLText.quote(path)) }"
    case .secret(.credential(let name)): "{ credential = \(TOMLText.quote(name)) }"
    case .rates(let rates):
      "["
        + rates.map { "{ at = \(TOMLText.quote($0.at)), limit = \(TOMLText.quote($0.limit)) }" }
        .joined(separator: ", ") + "]"
    }
  }
}
