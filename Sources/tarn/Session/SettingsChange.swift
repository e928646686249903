import Glibc
import TarnAgent
import TarnConfig
import TarnControl
import TarnCore
import TarnRuntime

/// A change of one settings file by a command. It is checked before it is made, and undone when the agent
/// refuses it.
struct SettingsChange {
  let session: Session

  /// Returns the directory that a command may write to: the one that takes precedence.
  ///
  /// - Throws: `usage` under `--config`, which reads one file alone.
  func directory() throws(PassFailure) -> String {
    let paths = session.sources.paths
    if let file = paths.file {
      throw PassFailure(
        .usage, code: "one-file",
        "with --config only \(Printable.escape(file)) is read, and no conf.d, where this command writes",
        hint: "leave --config out, or edit that file yourself")
    }
    guard let directory = paths.directories.last else {
      throw PassFailure(
        .configuration, code: "no-home",
        "there is no place for settings: neither $HOME nor $XDG_CONFIG_HOME is set",
        hint: "set $HOME")
    }
    return directory
  }

  var isSystem: Bool { session.sources.paths.instance == .system }

  /// Returns the settings with a proposed file.
  ///
  /// - Parameter text: the text of the file; `nil` when it is removed.
  func proposed(_ path: String, _ text: String?) -> LoadedSettings {
    session.sources.load(.check, ProposedSettings(DiskSettings(), path, text.map { Array($0.utf8) }))
  }

  /// Returns the first error that the settings did not have before.
  func firstNewError(in loaded: LoadedSettings) -> SettingsProblem? {
    let known = session.sources.checked().problems.filter { $0.severity == .error }.map(\.text)
    return loaded.problems.first { $0.severity == .error && !known.contains($0.text) }
  }

  func failure(_ failure: SettingsFile.Failure, _ what: String) -> PassFailure {
    let path = Printable.escape(failure.path)
    guard failure.isDenied else {
      return PassFailure(
        .inputOutput, code: "settings-not-written", "cannot \(what) \(path): \(failure.text)")
    }
    return PassFailure(
      .permission, code: "settings-not-written", "cannot \(what) \(path): \(failure.text)",
      hint: isSystem ? "these are the system's settings: try it with sudo" : "is that directory yours?")
  }

  // MARK: The agent

  /// The effect of the change on an agent.
  enum Outcome {
    case taken(ReloadAnswer)
    /// The agent refused the settings, with these errors.
    case rejected([String])
    /// No agent runs with these settings now.
    case noAgent
    /// There is an agent, and it did not answer.
    case silent(PassFailure)
  }

  /// Lets an agent that runs with these settings read them again.
  func tellAgent() -> Outcome {
    let link = AgentLink(session.sources)
    guard link.isOfTheseSettings(session) else {
      guard AgentLink.wasSilent.withLock({ $0 }) else { return .noAgent }
      return .silent(PassFailure(.noAgent, code: PassFailure.silentAgent, "the agent does not answer"))
    }
    do throws(PassFailure) {
      let answer = try link.ask { try $0.reload() }
      return answer.isTaken ? .taken(answer) : .rejected(answer.problems)
    } catch {
      return error.code == "no-agent" ? .noAgent : .silent(error)
    }
  }

  /// The command that starts the agent of these settings.
  var start: String { Self.start(session.sources.paths) }

  /// Returns the command that starts the agent of these settings.
  static func start(_ paths: SettingsPaths) -> String {
    let isSystem = paths.instance == .system
    // A unit reads the settings that are in their usual places.
    guard paths.file == nil else { return paths.command("agent") }
    let directories = ["/etc/systemd", "/usr/local/lib/systemd", "/usr/lib/systemd", "/lib/systemd"]
    let unit = isSystem ? "system/tarn.service" : "user/tarn.service"
    guard access("/run/systemd/system", F_OK) == 0,
      directories.contains(where: { access("\($0)/\(unit)", F_OK) == 0 })
    else { return "tarn agent" }
    // A user has a manager of systemd only where a login starts one (pam_systemd).
    guard isSystem || access("/run/user/\(geteuid())/systemd", F_OK) == 0 else { return "tarn agent" }
    return isSystem ? "sudo systemctl enable --now tarn" : "systemctl --user enable --now tarn"
  }
}

extension SettingsChange.Outcome {
  /// The word for programs.
  var word: String {
    switch self {
    case .taken: "reloaded"
    case .rejected: "rejected"
    case .noAgent: "none"
    case .silent: "silent"
    }
  }
}
