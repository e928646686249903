import ArgumentParser
import Glibc
import TarnConfig
import TarnCore
import TarnRuntime

/// The command `tarn config check`.
struct ConfigCheckCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "check",
    abstract: "Check the settings: every error with file, line and column.",
    usage: "tarn config check [options]",
    discussion: """
      Examples:
        tarn config check
        tarn config check --config ./tarn.toml
        tarn config check --json | jq '.problems'

      The command changes nothing and asks no server. It ends with 0, or with 78 if the settings have an error.
      """)

  @OptionGroup var common: CommonOptions<NoneShown>

  func run() throws {
    let session = try Session(common)
    let report = SettingsReport(session)
    if session.isJSON {
      session.console.data(JSONText.document(ConfigCheckDocument(report)))
    } else {
      report.tellProblems(session)
      if let settings = report.loaded.settings, !session.isQuiet {
        let files = report.files.map { Printable.escape($0) }.joined(separator: ", ")
        session.console.data(
          files.isEmpty
            ? nothing(report) + systemsOwn(session)
            : "\(files): \(Numbers.count(settings.mirrors.count, "mirror"))\(unplanned(settings))")
      }
    }
    try report.status.end()
  }

  /// Names the mirrors whose passes begin only on command.
  private func unplanned(_ settings: Settings) -> String {
    let names = settings.mirrors.filter { $0.rhythm == .command }.map { Printable.escape($0.name) }
    return names.isEmpty
      ? "" : "; only on command, without every or schedule: \(names.joined(separator: ", "))"
  }

  /// Describes missing settings, which are no error: an agent without settings has no mirrors, and takes them
  /// later.
  private func nothing(_ report: SettingsReport) -> String {
    let directories = report.paths.directories.map { Printable.escape($0) }
    guard !directories.isEmpty else { return "no settings: neither $HOME nor $XDG_CONFIG_HOME is set" }
    let places = directories.map { "\($0)/tarn.toml and \($0)/conf.d/*.toml" }
    return "no settings found, so there is no mirror: looked for " + places.joined(separator: ", ")
      + "; \(report.placeForMirrors)"
  }

  /// A note on the system's settings, which are not this user's. A system's agent names this command when it
  /// rejects settings.
  private func systemsOwn(_ session: Session) -> String {
    session.sources.paths.instance == .user && access("/etc/tarn", F_OK) == 0
      ? "; those of the system's agent: sudo tarn config check" : ""
  }
}
