import ArgumentParser
import TarnCore

/// An option that a command does not have, and what was probably meant.
struct OptionAdvice: Equatable {
  /// The command, such as `tarn sync`.
  var command: String
  /// The option, with its dashes.
  var option: String
  /// The advice, a sentence; `nil` when there is none.
  var hint: String?

  /// The options of other tools, by command or for all of them.
  private static let habits: [String: [String: String]] = [
    "sync plan": [
      "-j": "--connections N", "--jobs": "--connections N", "-P": "--connections N", "-Z": "--connections N",
      "--parallel": "--connections N", "--transfers": "--connections N",
      "--threads": "--connections N", "--rate-limit": "--limit-rate RATE", "-x": "--connections-per-host N",
      "--bwlimit": "--limit-rate RATE", "--rate": "--limit-rate RATE", "--limit": "--limit-rate RATE",
      "--max-download-limit": "--limit-rate RATE", "--prune": "--delete", "--mirror": "--delete",
      "--delete-after": "--delete", "--delete-removed": "--delete", "--remove": "--delete",
      "--max-delete": "--delete-limit LIMIT", "-H": "--header-file FILE", "--header": "--header-file FILE",
      "--load-cookies": "--cookies FILE", "-b": "--cookies FILE", "-u": "--netrc-file FILE",
      "--user": "--netrc-file FILE", "--password": "--netrc-file FILE", "-A": "--user-agent TEXT",
      "--filter": "--include PATTERN", "--accept": "--include PATTERN", "--reject": "--exclude PATTERN",
      "--dryrun": "--dry-run", "--retry": "--retries N", "--tries": "--retries N", "-t": "--retries N",
      "--ca-certificate": "--cacert FILE", "--keep-last": "--keep N", "--keep-newest": "--keep N",
      "--latest": "--keep N", "--stats": "--verbose", "--stat": "--verbose",
    ],
    "status": ["-w": "--watch", "-f": "--watch", "--follow": "--watch", "--live": "--watch", "--all": ""],
    "events": [
      "-f": "--follow", "-w": "--follow", "--watch": "--follow", "-n": "--newest N", "--lines": "--newest N",
      "--since": "--after N",
    ],
    "agent": ["-c": "--config FILE", "-f": "--config FILE"],
    "get": [
      "-o": "--to PATH", "-O": "--to PATH", "--output": "--to PATH", "--output-document": "--to PATH",
      "--out": "--to PATH", "-P": "--to FOLDER/", "-d": "--to FOLDER/", "--dir": "--to FOLDER/",
      "--directory-prefix": "--to FOLDER/", "--output-dir": "--to FOLDER/", "--create-dirs": "-p",
      "--input-file": "--input LIST", "-j": "-N N", "--jobs": "-N N", "--parallel": "-N N",
      "--connections": "-N N", "--max-concurrent-downloads": "-N N", "--threads": "-N N",
      "-H": "--header-file FILE", "--header": "--header-file FILE", "-u": "--header-file FILE",
      "--user": "--header-file FILE", "--netrc": "--header-file FILE", "--cookies": "--header-file FILE",
      "--checksum": "--sha256 HEX", "--digest": "--sha256 HEX", "-f": "--existing replace",
      "--force": "--existing replace", "--overwrite": "--existing replace",
      "--allow-overwrite": "--existing replace", "--clobber": "--existing replace",
      "--rate": "--limit-rate RATE", "--limit": "--limit-rate RATE", "--rate-limit": "--limit-rate RATE",
      "--bwlimit": "--limit-rate RATE", "--max-download-limit": "--limit-rate RATE", "-t": "--retries N",
      "--tries": "--retries N", "--retry": "--retries N", "--ca-certificate": "--cacert FILE",
      "--daemon": "--background", "-D": "--background",
    ],
  ]

  /// The reasons for options of other tools that have no equivalent.
  private static let answers = [
    "-k": "a certificate is always checked; --cacert FILE trusts one of your own",
    "--insecure": "a certificate is always checked; --cacert FILE trusts one of your own",
    "--no-check-certificate": "a certificate is always checked; --cacert FILE trusts one of your own",
    "-o": "the folder must be the last word: tarn sync FEED FOLDER",
    "-O": "the folder must be the last word: tarn sync FEED FOLDER",
    "--output": "the folder must be the last word: tarn sync FEED FOLDER",
    "-r": "directories below a feed are always read",
    "--recursive": "directories below a feed are always read",
    "-l": "directories below a feed are always read; --limit-rate RATE limits the rate",
    "--level": "directories below a feed are always read",
    "-c": "an interrupted sync always goes on where it was",
    "--continue": "an interrupted sync always goes on where it was",
    "--resume": "an interrupted sync always goes on where it was",
    "--timeout":
      "it is fixed: what sends next to nothing for \(NetworkSettings().lowSpeedTime) seconds is ended, and asked for again as often as --retries N says",
    "--progress": "it is shown on a terminal anyway", "-a": "times and names are always kept",
    "--daemon": "to run without end, use the agent: tarn agent",
    "-d": "to run without end, use the agent: tarn agent",
    "--every": "write every = \"1h\" into the settings, or: tarn schedule MIRROR",
    "--interval": "write every = \"1h\" into the settings, or: tarn schedule MIRROR",
    "--force": "to let held deletions go ahead: tarn approve MIRROR",
  ]

  /// The reasons for `get`.
  private static let downloadAnswers = [
    "-c": "what was fetched is kept, and the same command goes on from there",
    "--continue": "what was fetched is kept, and the same command goes on from there",
    "--continue-at": "what was fetched is kept, and the same command goes on from there",
    "-C": "what was fetched is kept, and the same command goes on from there",
    "--resume": "what was fetched is kept, and the same command goes on from there",
    "-x": "each file uses one connection; -N N fetches more files at a time",
    "-s": "each file uses one connection; -N N fetches more files at a time",
    "--split": "each file uses one connection; -N N fetches more files at a time",
    "--max-connection-per-server": "each file uses one connection; -N N fetches more files at a time",
    "--timeout":
      "it is fixed: what sends nothing for \(TaskLimits.standardIdle) seconds is ended, and asked for again as often as --retries N says",
    "-L": "redirects are always followed", "--location": "redirects are always followed",
    "--sha512": "only a SHA-256 is checked: --sha256 HEX",
    "--sha1": "only a SHA-256 is checked: --sha256 HEX",
    "--md5": "only a SHA-256 is checked: --sha256 HEX",
    "-A": "write a line 'User-Agent: TEXT' into a file for --header-file",
    "--user-agent": "write a line 'User-Agent: TEXT' into a file for --header-file",
    "-r": "only the files of the URLs are fetched; for a directory: tarn sync FEED FOLDER",
    "--recursive": "only the files of the URLs are fetched; for a directory: tarn sync FEED FOLDER",
  ]
  /// The answers that apply to both `sync` and `get`.
  private static let commonAnswers = [
    "-k", "--insecure", "--no-check-certificate", "--progress",
  ]

  /// The advice for a service and for a shell.
  private static let foreground =
    "the agent stays in the foreground; to run it in the background: systemctl --user start tarn, or 'tarn agent &'"
  private static let agentAnswers = [
    "-d": foreground, "-D": foreground, "--daemon": foreground, "--daemonize": foreground,
    "--detach": foreground,
    "--background": foreground, "-b": foreground, "--fork": foreground,
  ]

  /// Explains why a given argument is missing: an option with any number of values has taken it. `nil`
  /// otherwise.
  ///
  /// - Parameter message: the error as argument-parser words it.
  static func taker(of message: String, in arguments: [String]) -> String? {
    guard message.hasPrefix("Missing expected argument '<id>'"), arguments.contains("--wake") else {
      return nil
    }
    return "--wake takes all words that follow; write the ID before it"
  }

  /// - Parameter arguments: the words without the program's name.
  /// - Returns: the first unknown option; `nil` when all are known.
  static func first(in arguments: [String]) -> OptionAdvice? {
    var type: any ParsableCommand.Type = Root.self
    var path = ["tarn"]
    var rest = arguments[...]
    while let word = rest.first,
      let next = type.configuration.subcommands.first(where: { $0.configuration.commandName == word })
    {
      type = next
      path.append(word)
      rest = rest.dropFirst()
    }
    // The program itself takes next to none: whoever gives one before the command means it for the command.
    let isRoot = path.count == 1 && rest.first != "help"
    let known = Options(help: Root.helpMessage(for: type, columns: 400), takesCommon: !isRoot)
    let commands = Root.configuration.subcommands.compactMap { $0.configuration.commandName }
    let meant = rest.first { commands.contains($0) } ?? "COMMAND"
    var isValue = false
    for word in rest {
      if word == "--" { break }
      defer { isValue = !isValue && known.takesValue(word) }
      guard !isValue, word.hasPrefix("-"), word.count > 1, let unknown = known.unknown(in: word) else {
        continue
      }
      return OptionAdvice(
        command: path.joined(separator: " "), option: unknown,
        hint: isRoot && Options.common.contains(unknown)
          ? "options follow the command: tarn \(meant) \(unknown)"
          : hint(unknown, command: path.last ?? "", known: known.names))
    }
    return nil
  }

  private static func hint(_ option: String, command: String, known: [String]) -> String? {
    for (commands, habits) in habits where commands.split(separator: " ").contains(Substring(command)) {
      guard let words = habits[option] else { continue }
      return words.isEmpty ? "without names, the command takes all mirrors" : "did you mean '\(words)'?"
    }
    if ["sync", "plan"].contains(command), let answer = answers[option] { return answer }
    if command == "get", let answer = downloadAnswers[option] { return answer }
    if command == "get", commonAnswers.contains(option) { return answers[option] }
    if command == "agent", let answer = agentAnswers[option] { return answer }
    guard option.hasPrefix("--") else { return nil }
    return Spelling.nearest(String(option.dropFirst(2)), known.map { String($0.drop { $0 == "-" }) })
      .map { "did you mean '--\($0)'?" }
  }

  /// The options that a help text lists.
  private struct Options {
    private(set) var names: [String] = []
    private var valued: Set<String> = []
    /// The options that every command takes, and help lists only where they have a meaning.
    private static let everywhere = [
      "-v", "--verbose", "-y", "--yes", "--no-input", "-h", "--help", "--version",
    ]

    /// The options that no command lacks.
    static let common = [
      "--json", "-q", "--quiet", "-v", "--verbose", "-y", "--yes", "--color", "--no-input", "--config",
      "--socket",
    ]

    /// - Parameter takesCommon: false for the program without a command.
    init(help: String, takesCommon: Bool) {
      for line in help.split(separator: "\n") where line.hasPrefix("  -") {
        // `-q, --quiet   What it does`: two blanks end the names.
        let words = line.dropFirst(2)
        let end = words.firstRange(of: "  ")?.lowerBound ?? words.endIndex
        for part in words[..<end].split(whereSeparator: { $0 == "," || $0 == "/" }) {
          let part = part.drop { $0 == " " }
          let name = String(part.prefix { $0 != " " })
          guard name.hasPrefix("-") else { continue }
          names.append(name)
          if words[..<end].contains("<") { valued.insert(name) }
        }
      }
      if takesCommon { names += Self.everywhere }
    }

    /// True when the next word is the option's value.
    func takesValue(_ word: String) -> Bool { valued.contains(word) }

    /// Returns the unknown option in a word, or the single one in a group such as `-qf`; `nil` when it is
    /// known.
    func unknown(in word: String) -> String? {
      if word.hasPrefix("--") {
        let name = String(word.prefix { $0 != "=" })
        return names.contains(name) ? nil : name
      }
      let letters = word.dropFirst().prefix { $0 != "=" }
      return letters.map { "-\($0)" }.first { !names.contains($0) }
    }
  }
}
