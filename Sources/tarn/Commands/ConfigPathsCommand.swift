import ArgumentParser
import TarnConfig
import TarnRuntime

/// The command `tarn config paths`.
struct ConfigPathsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "paths",
    abstract: "List the settings files, the socket and the state directory.",
    usage: "tarn config paths [options]",
    discussion: """
      Examples:
        tarn config paths
        tarn config paths --json | jq -r '.files[].path'

      Files are listed in the order in which Tarn reads them. A later file takes precedence over an earlier one. \
      'tarn config check' reports errors in them.
      """)

  @OptionGroup var common: CommonOptions<NoneShown>

  func run() throws {
    let session = try Session(common)
    let report = SettingsReport(session)
    if session.isJSON {
      session.console.data(JSONText.document(ConfigPathsDocument(report)))
    } else {
      session.console.frame(SettingsText.paths(report.paths, report.loaded))
    }
  }
}
