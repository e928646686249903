import TarnCore

/// The files and directories that an instance of Tarn uses. They follow from the environment and the flags
/// alone; the disk is not read.
package struct SettingsPaths: Sendable, Equatable {
  package enum Instance: String, Sendable {
    /// `/etc/tarn`, `/run/tarn`, `/var/lib/tarn`.
    case system
    /// The XDG directories.
    case user
  }

  package var instance: Instance
  /// The file of `--config FILE`, which replaces all others.
  package var file: String?
  /// The directories of settings. In each, `tarn.toml` is read first, then `conf.d/*.toml` in byte order of
  /// the names. What is read later wins.
  package var directories: [String] = []
  /// The directory of the agent's own state, which belongs to no mirror.
  package var state: String?
  package var runtime: String?
  /// The directory `$CREDENTIALS_DIRECTORY`.
  package var credentials: String?
  package var home: String?
  /// The values that take precedence over every file: `$TARN_SOCKET`, then the flags.
  package var overrides: [SettingOverride] = []

  /// Identifies the settings by their file or directories, whatever they contain. `nil` when there is no
  /// place for any.
  package var place: String? {
    file ?? (directories.isEmpty ? nil : directories.joined(separator: ":"))
  }

  /// The control socket when no setting names another.
  package var socket: String? { runtime.map { "\($0)/tarn.sock" } }

  /// Returns a command of Tarn that reads the same settings, for hints. It has `--config FILE` when that was
  /// given.
  package func command(_ words: String) -> String {
    "tarn \(words)" + (file.map { " --config \(ShellWord.quote($0))" } ?? "")
  }

  /// - Parameters:
  ///   - isRoot: true for the user id 0; outside of a service this decides the instance.
  ///   - config: the file of `--config`.
  ///   - flags: other flags that are settings, each with its origin.
  ///   - workingDirectory: the base of relative paths in flags and variables.
  package init(
    environment: [String: String], isRoot: Bool, config: String? = nil, socket: String? = nil,
    flags: [SettingOverride] = [], workingDirectory: String
  ) {
    func absolute(_ path: String) -> String { path.utf8.first == 0x2F ? path : "\(workingDirectory)/\(path)" }
    /// The absolute paths in a variable. Relative ones are invalid (XDG Base Directory Specification), and
    /// systemd sets none.
    func directories(_ name: String) -> [String] {
      (environment[name] ?? "").utf8.split(separator: UInt8(ascii: ":")).map { String(Substring($0)) }
        .filter { $0.utf8.first == 0x2F }
    }
    func directory(_ name: String) -> String? { directories(name).first }

    home = directory("HOME")
    credentials = directory("CREDENTIALS_DIRECTORY")
    let runtimeOfUser = directory("XDG_RUNTIME_DIR")
    // A service of a user's manager has both variables; root's services have only the first.
    let configured = directories("CONFIGURATION_DIRECTORY")
    instance = isRoot || (!configured.isEmpty && runtimeOfUser == nil) ? .system : .user
    file = config.map(absolute)
    switch instance {
    case .system:
      self.directories = configured.isEmpty ? ["/etc/tarn"] : configured
      state = directory("STATE_DIRECTORY") ?? "/var/lib/tarn"
      runtime = directory("RUNTIME_DIRECTORY") ?? "/run/tarn"
    case .user:
      let base = directory("XDG_CONFIG_HOME") ?? home.map { "\($0)/.config" }
      self.directories = configured.isEmpty ? base.map { ["\($0)/tarn"] } ?? [] : configured
      state =
        directory("STATE_DIRECTORY") ?? directory("XDG_STATE_HOME").map { "\($0)/tarn" }
        ?? home.map { "\($0)/.local/state/tarn" }
      runtime = directory("RUNTIME_DIRECTORY") ?? runtimeOfUser.map { "\($0)/tarn" }
    }
    if let path = environment["TARN_SOCKET"], !path.isEmpty {
      overrides.append(
        SettingOverride(.agent, "socket", absolute(path), origin: .environment("TARN_SOCKET")))
    }
    if let socket {
      overrides.append(SettingOverride(.agent, "socket", absolute(socket), origin: .flag("--socket")))
    }
    overrides += flags
  }
}

/// A value that comes from a flag or a variable instead of a file.
package struct SettingOverride: Sendable, Equatable {
  package var scope: Setting.Scope
  package var name: String
  /// The value without quotes, as on a command line.
  package var text: String
  package var origin: SettingOrigin

  /// - Parameter scope: `agent` or `limits`.
  package init(_ scope: Setting.Scope, _ name: String, _ text: String, origin: SettingOrigin) {
    self.scope = scope
    self.name = name
    self.text = text
    self.origin = origin
  }

  /// The value as a node of a document.
  var node: SettingNode {
    let value: SettingNode.Value =
      switch Setting.find(name, in: scope)?.kind {
      case .boolean where ["true", "false"].contains(text): .boolean(text == "true")
      case .number: Int64(text).map { .integer($0) } ?? .text(text)
      default: .text(text)
      }
    return SettingNode(value: value, position: SettingPosition(line: 1, column: 1))
  }
}
