import ArgumentParser

/// The command `tarn config`.
struct ConfigCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "config",
    abstract: "Check the settings, or show them and where each comes from.",
    discussion: """
      Examples:
        tarn config check
        tarn config show
        tarn config show /srv/iso               what that mirror remembers
        tarn config unset /srv/iso limit-rate   take that option back
        tarn config paths
      """,
    subcommands: [
      ConfigCheckCommand.self, ConfigShowCommand.self, ConfigUnsetCommand.self, ConfigPathsCommand.self,
    ])
}
