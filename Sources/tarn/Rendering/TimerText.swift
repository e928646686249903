import TarnConfig
import TarnCore

/// A systemd timer and the service that it starts, for one mirror: systemd.timer(5), systemd.unit(5).
///
/// The system's service is an instance of `tarn@.service` with a drop-in; a user's is complete.
struct TimerText {
  /// The absolute path of the program.
  let program: String
  /// The arguments of `tarn sync`.
  let arguments: [String]
  /// The mirror's name, or its folder.
  let name: String
  /// The words `--config FILE`, when they were given.
  let config: [String]
  let rhythm: MirrorSettings.Rhythm
  /// The directories that a pass writes to.
  let writes: [String]
  /// Those of them that are missing. systemd opens only what is there to a service.
  var missing: [String] = []
  let isSystem: Bool
  /// The credentials that the mirror's settings expect from the service, by name.
  var credentials: [String] = []

  /// The name of the unit without its suffix.
  var unit: String { "tarn@\(Self.instance(name))" }

  var timerPath: String { "\(directory)/\(unit).timer" }
  var servicePath: String { "\(directory)/\(unit).service\(isSystem ? ".d/tarn-schedule.conf" : "")" }

  private var directory: String { isSystem ? "/etc/systemd/system" : "~/.config/systemd/user" }
  private var systemctl: String { isSystem ? "systemctl" : "systemctl --user" }

  /// The lines of the timer.
  var lines: [String] {
    let word = ShellWord.quote(name)
    let command = (["tarn", "schedule"] + config.map { ShellWord.quote($0) }).joined(separator: " ")
    return [
      "# When \(unit).service runs. To install it:",
      "#   mkdir -p \(Self.shell(parent(servicePath)))",
      "#   \(command) \(word) > \(Self.shell(timerPath))",
      "#   \(command) --service \(word) > \(Self.shell(servicePath))",
    ] + (isSystem ? missing : []).map { "#   install -d -o tarn -g tarn \(Self.shell($0))" } + [
      "#   \(systemctl) daemon-reload && \(systemctl) enable --now \(ShellWord.quote(unit + ".timer"))",
      "# A mirror belongs to its timer or to 'tarn agent', not to both: the second one ends with 75.",
      "[Unit]",
      "Description=When the mirror \(Self.text(name)) is brought up to date",
      "",
      "[Timer]",
    ] + when + ["", "[Install]", "WantedBy=timers.target"]
  }

  private var when: [String] {
    switch rhythm {
    case .command:
      return [
        "# The mirror has no schedule of its own.", "OnCalendar=hourly",
        "# Not at the full hour with everyone else.", "RandomizedDelaySec=10min", "Persistent=true",
      ]
    case .every(let seconds):
      return [
        "OnActiveSec=1min", "OnUnitActiveSec=\(seconds)s",
        "# The same on each day, and another on each machine.",
        "RandomizedDelaySec=\(max(1, seconds / 10))s", "FixedRandomDelay=true",
      ]
    case .calendar(let expressions):
      return expressions.map { "OnCalendar=\($0)" } + [
        "# A run that was due while the machine was off happens at its next start.", "Persistent=true",
      ]
    }
  }

  /// The lines of the drop-in for the template, or of a user's whole service.
  var service: [String] {
    let start =
      "ExecStart=" + ([program, "sync", "--no-input"] + arguments).map(Self.argument).joined(separator: " ")
    guard isSystem else {
      return [
        "[Unit]", "Description=Tarn, one pass over the mirror \(Self.text(name))", "", "[Service]",
        "Type=oneshot", start,
        "# Another Tarn is at work on the folder, or a stop in the middle: no failures.",
        "SuccessExitStatus=75 143", "TimeoutStartSec=infinity", "TimeoutStopSec=2min", "Nice=10",
        "IOSchedulingClass=idle", "NoNewPrivileges=yes",
        "# What a user's manager can take from a service without namespaces of its own.",
        "LockPersonality=yes", "MemoryDenyWriteExecute=yes", "RestrictRealtime=yes", "RestrictNamespaces=yes",
        "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK", "SystemCallArchitectures=native",
        "SystemCallFilter=@system-service", "SystemCallFilter=~@privileged @resources",
        "# Without it the filter kills: Swift's dispatch library calls setpriority, which is one of @resources.",
        "SystemCallErrorNumber=EPERM",
      ] + secrets("%h/.config/tarn/credentials")
    }
    return [
      "[Service]", "# The settings name the feed and the folder.", "EnvironmentFile=", "ExecStart=", start,
    ] + access + secrets("/etc/tarn/credentials")
  }

  /// Returns the credentials of this unit, for it does not have those of `tarn.service`.
  private func secrets(_ directory: String) -> [String] {
    guard !credentials.isEmpty else { return [] }
    return ["# The settings name secrets; they may lie elsewhere. A pass without them fails."]
      + credentials.map { name in
        let word = name.replacing("%", with: "%%")
        return "LoadCredential=\(word):\(directory)/\(word)"
      }
  }

  /// Opens what `ProtectSystem=strict` and `ProtectHome=yes` of the template hide.
  private var access: [String] {
    let isHome = writes.contains { path in
      let parts = path.split(separator: "/")
      return parts.first == "home" || parts.first == "root" || parts.starts(with: ["run", "user"])
    }
    let paths = writes.map { Self.word($0) }.joined(separator: " ")
    return isHome ? ["ProtectHome=tmpfs", "BindPaths=\(paths)"] : ["ReadWritePaths=\(paths)"]
  }

  private func parent(_ path: String) -> String {
    path.lastIndex(of: "/").map { String(path[..<$0]) } ?? path
  }

  /// Quotes a path for the shell. A tilde stays outside of the quotes, where it is expanded.
  private static func shell(_ path: String) -> String {
    path.hasPrefix("~/") ? "~/" + ShellWord.quote(String(path.dropFirst(2))) : ShellWord.quote(path)
  }

  // MARK: systemd's notations

  /// Escapes a name like `systemd-escape`, with `--path` for a folder.
  static func instance(_ name: String) -> String {
    let isPath = name.hasPrefix("/")
    let trimmed = isPath ? name.split(separator: "/").joined(separator: "/") : name
    guard !trimmed.isEmpty else { return "-" }
    var escaped = ""
    for (index, byte) in trimmed.utf8.enumerated() {
      switch byte {
      case UInt8(ascii: "/"): escaped += "-"
      case _ where byte.isASCIILetter || byte.isASCIIDigit, UInt8(ascii: ":"), UInt8(ascii: "_"),
        UInt8(ascii: ".") where index > 0:
        escaped.unicodeScalars.append(Unicode.Scalar(byte))
      default:
        let digits = String(byte, radix: 16)
        escaped += "\\x" + (digits.count == 1 ? "0" : "") + digits
      }
    }
    return escaped
  }

  /// Escapes a value that people read: `%` begins a specifier.
  private static func text(_ value: String) -> String {
    Printable.escape(value).replacing("%", with: "%%")
  }

  /// Escapes one word of a list.
  private static func word(_ value: String) -> String {
    let isPlain = value.utf8.allSatisfy { byte in
      byte.isASCIIDigit || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
        || byte > 0x7F
        || "/._-+:@=,%".utf8.contains(byte)
    }
    let escaped = value.replacing("%", with: "%%")
    guard !isPlain else { return escaped }
    var quoted = ""
    for scalar in escaped.unicodeScalars {
      switch scalar {
      case "\"", "\\": quoted += "\\\(scalar)"
      case let control where control.value < 0x20 || control.value == 0x7F:
        let digits = String(control.value, radix: 16)
        quoted += "\\x" + (digits.count == 1 ? "0" : "") + digits
      default: quoted.unicodeScalars.append(scalar)
      }
    }
    return "\"\(quoted)\""
  }

  /// Escapes one word of a command line, where `$` begins a variable as well.
  private static func argument(_ value: String) -> String {
    word(value).replacing("$", with: "$$")
  }
}
