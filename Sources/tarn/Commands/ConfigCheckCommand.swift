import ArgumentParser
import Glibc
import TarnConfig
import TarnCore

/// `tarn config check`.
struct ConfigCheckCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "check",
    abstract: "Check the settings: every error with its file, line and column.",
    usage: "tarn config check [options]",
    discussion: """
      Examples:
        tarn config check
        tarn config check --config ./tarn.toml
        tarn config check --json | jq .problems

      Nothing is changed and no server is asked. It ends with 0 or 78.
      """)

  @OptionGroup var common: CommonOptions

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
            ? "no settings: 'tarn config paths' lists where they are looked for" + systemsOwn(session)
            : "\(files): \(Numbers.count(settings.mirrors.count, "mirror"))")
      }
    }
    try report.status.end()
  }

  /// A running system's agent says 'tarn config check' when it rejects settings: those are not this user's.
  private func systemsOwn(_ session: Session) -> String {
    session.sources.paths.instance == .user && access("/etc/tarn", F_OK) == 0
      ? "; those of the system's agent: sudo tarn config check" : ""
  }
}
