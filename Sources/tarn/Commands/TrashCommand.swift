import ArgumentParser

/// The command `tarn trash`.
struct TrashCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "trash",
    abstract: "List, restore or remove deleted and replaced files.",
    discussion: """
      Examples:
        tarn trash list /srv/iso
        tarn trash restore /srv/iso 1a2b3c4d
        tarn trash empty /srv/iso
      """,
    subcommands: [TrashListCommand.self, TrashRestoreCommand.self, TrashEmptyCommand.self],
    defaultSubcommand: TrashListCommand.self)
}
