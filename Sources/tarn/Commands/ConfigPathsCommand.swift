import ArgumentParser
import TarnConfig
import TarnRuntime

/// The command `tarn config paths`.
struct ConfigPathsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "paths",
    abstract: "List where settings are looked for, and the socket and state.",
    usage: "tarn config paths [options]",
    discussion: """
      Examples:
        tarn config paths
        tarn config paths --json | jq -r '.files[].path'

      What is read later goes before what is read earlier. 'tarn config check' says what is wrong.
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
