import ArgumentParser
import TarnAgent
import TarnConfig
import TarnCore
import TarnEngine
import TarnRuntime

/// The command `tarn config show`.
struct ConfigShowCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "show",
    abstract: "Show the settings that hold, and where each comes from.",
    usage: "tarn config show [options] [MIRROR]",
    discussion: """
      Examples:
        tarn config show
        tarn config show podcasts
        tarn config show /srv/iso      what a mirror made by hand remembers
        tarn config show | grep -v '# standard'
        tarn config show --json | jq '.settings[] | select(.name == "feed")'

      The output is TOML that gives the same settings again. Of a secret it shows only the place.
      """)

  @OptionGroup var common: CommonOptions<NoneShown>
  @Argument(
    help: ArgumentHelp("A name or a folder. Default: all settings.", valueName: "mirror"),
    completion: .mirror)
  var mirror: String?

  func run() throws {
    let session = try Session(common)
    if let mirror { return try show(mirror, session) }
    let report = SettingsReport(session)
    if session.isJSON {
      session.console.data(JSONText.document(ConfigShowDocument(report)))
    } else {
      session.console.frame(SettingsText.show(report.loaded))
      report.tellProblems(session)
    }
    try report.status.end()
  }

  private func show(_ mirror: String, _ session: Session) throws {
    let records = try records(of: mirror, session)
    if session.isJSON {
      session.console.data(JSONText.document(ConfigShowDocument(records)))
    } else {
      session.console.frame(SettingsText.show(records))
    }
  }

  /// Returns the settings of a configured mirror, or what another mirror remembers.
  private func records(of mirror: String, _ session: Session) throws(PassFailure) -> [SettingRecord] {
    let folder = try AgentLink(session.sources).folder(of: mirror, session)
    if let name = session.configured((mirror, folder, nil))?.name {
      return session.sources.checked().records.filter { $0.table == .mirror(name) }
    }
    let known = try session.tarn.remembered(folder: folder)
    return RememberedSettings.records(
      feed: known.feed, folder: known.folder, state: known.state, options: known.options)
  }
}
