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
        tarn sync /srv/iso            again: feed and options are remembered
        tarn sync --once --limit-rate 1MiB/s /srv/iso
        tarn sync                     the mirror you are in, or all known ones

      What is fetched is verified before it appears under its name. An interrupted sync goes on \
      where it was. Options given again replace the remembered ones; 'tarn config show MIRROR' lists \
      these, 'tarn config unset MIRROR OPTION' takes them back, and --once remembers none.
      """)

  @OptionGroup var flags: PassFlags
  @Flag(help: "The options hold for this pass only: none is remembered.") var once = false
  @Flag(name: [.customShort("n"), .long], help: "Show what would be done; change nothing.") var dryRun = false
  enum Shown: ShownOptions {
    static let verbose: String? = "Say more: each file."
  }
  @OptionGroup var common: CommonOptions<Shown>
  @Argument(
    help: ArgumentHelp("A feed and a folder, or mirrors.", valueName: "mirror"), completion: .mirrorOrFeed)
  var targets: [String] = []

  func validate() throws {
    if once, flags.folder.changeFeed {
      throw ValidationError(
        "--once and --change-feed exclude each other: the mirror follows the new feed from now on")
    }
  }

  func run() throws {
    let session = try Session(common)
    let words = PassTargets(session: session)
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
