import ArgumentParser
import TarnAgent
import TarnEngine

/// The command `tarn sync`.
struct SyncCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "sync",
    abstract: "Bring a mirror up to date.",
    usage: """
      tarn sync [options] FEED FOLDER
      tarn sync [options] [MIRROR...]
      """,
    discussion: """
      Examples:
        tarn sync https://example.org/iso/SHA256SUMS /srv/iso
        tarn sync --delete --exclude '*.tmp' https://example.org/pub/ pub
        tarn sync /srv/iso            again, with the same feed and options
        tarn sync --once --limit-rate 1MiB/s /srv/iso
        tarn sync                     the mirror you are in, or all known ones

      A file appears under its name only when it is whole and verified. An interrupted sync resumes where it \
      stopped.

      A mirror that no settings name remembers its options. An option that you give again replaces the remembered \
      one. 'tarn config show MIRROR' lists them, 'tarn config unset MIRROR OPTION' takes one back. With --once the \
      mirror remembers none.
      """)

  @OptionGroup var flags: PassFlags
  @Flag(help: "Use the options for this pass only, and remember none.") var once = false
  @Flag(name: [.customShort("n"), .long], help: "Show what would be done, as 'tarn plan' does.") var dryRun =
    false
  enum Shown: ShownOptions {
    static let verbose: String? = "Print each file too."
  }
  @OptionGroup var common: CommonOptions<Shown>
  @Argument(
    help: ArgumentHelp("A feed and a folder, or mirrors.", valueName: "mirror"), completion: .mirrorOrFeed)
  var targets: [String] = []

  func validate() throws {
    if once, flags.folder.changeFeed {
      throw ValidationError(
        "--once and --change-feed cannot be combined: the mirror follows the new feed from now on")
    }
  }

  func run() throws {
    let session = try Session(common)
    let words = PassTargets(session: session, command: dryRun ? "sync --dry-run" : "sync")
    var requests = try words.requests(
      targets, flags: flags, remembers: !once && !dryRun, isOnce: once)
    if targets.isEmpty, !dryRun { requests = words.withoutPaused(requests) }
    if dryRun {
      try PlanRun(session: session, usesExitCode: false).run(requests).end()
    } else {
      try SyncRun(session: session).run(requests).end()
    }
  }
}
