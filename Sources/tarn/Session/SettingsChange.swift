import Glibc
import TarnAgent
import TarnConfig
import TarnControl
import TarnCore
import TarnRuntime

/// A change of one file of the settings, by a command: looked at before it is made, and taken back where it is not taken.
struct SettingsChange {
  let session: Session

  /// Where a command may write: the directory that has the last word.
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

  /// Settings that a file is proposed for.
  ///
  /// - Parameter text: nil for a file that goes.
  func proposed(_ path: String, _ text: String?) -> LoadedSettings {
    session.sources.load(.check, ProposedSettings(DiskSettings(), path, text.map { Array($0.utf8) }))
  }

  /// The first error that the settings did not have before.
  func news(_ loaded: LoadedSettings) -> SettingsProblem? {
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

  /// What became of the change at an agent.
  enum Outcome {
    case taken(ReloadAnswer)
    /// With what is wrong, as text.
    case rejected([String])
    /// None goes by these settings now.
    case noAgent
    /// It is there, and did not answer.
    case silent(PassFailure)
  }

  /// Lets an agent that goes by these settings read them again.
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

  /// How to start the agent of these settings.
  var start: String { Self.start(isSystem: isSystem) }

  static func start(isSystem: Bool) -> String {
    let directories = ["/etc/systemd", "/usr/local/lib/systemd", "/usr/lib/systemd", "/lib/systemd"]
    let unit = isSystem ? "system/tarn.service" : "user/tarn.service"
    guard access("/run/systemd/system", F_OK) == 0,
      directories.contains(where: { access("\($0)/\(unit)", F_OK) == 0 })
    else { return "tarn agent" }
    return isSystem ? "sudo systemctl enable --now tarn" : "systemctl --user enable --now tarn"
  }
}

extension SettingsChange.Outcome {
  /// For programs.
  var word: String {
    switch self {
    case .taken: "reloaded"
    case .rejected: "rejected"
    case .noAgent: "none"
    case .silent: "silent"
    }
  }
}
