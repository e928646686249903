import ArgumentParser

/// The command `tarn config`.
struct ConfigCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "config",
    abstract: "Check and show the settings, and where each came from.",
    discussion: """
      Examples:
        tarn config check
        tarn config show
        tarn config show /srv/iso               what it remembers
        tarn config unset /srv/iso limit-rate   take that back
        tarn config paths
      """,
    subcommands: [
      ConfigCheckCommand.self, ConfigShowCommand.self, ConfigUnsetCommand.self, ConfigPathsCommand.self,
    ])
}
