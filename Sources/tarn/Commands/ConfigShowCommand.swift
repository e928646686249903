import ArgumentParser
import TarnConfig

/// `tarn config show`.
struct ConfigShowCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "show",
    abstract: "Show the settings that hold, and where each came from.",
    usage: "tarn config show [options]",
    discussion: """
      Examples:
        tarn config show
        tarn config show | grep -v '# standard'
        tarn config show --json | jq '.settings[] | select(.name == "feed")'

      It is TOML that gives the same settings again. Of a secret only the place is shown.
      """)

  @OptionGroup var common: CommonOptions

  func run() throws {
    let session = try Session(common)
    let report = SettingsReport(session)
    if session.isJSON {
      session.console.data(JSONText.document(ConfigShowDocument(report)))
    } else {
      session.console.frame(SettingsText.show(report.loaded))
      report.tellProblems(session)
    }
    try report.status.end()
  }
}
