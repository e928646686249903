import ArgumentParser
import TarnAgent
import TarnCore
import TarnRuntime
import TarnSchedule

/// The command `tarn add`.
struct AddCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "add",
    abstract: "Add a mirror to the settings of the agent.",
    usage: "tarn add [options] FEED FOLDER",
    discussion: """
      Examples:
        tarn add https://example.org/iso/SHA256SUMS ~/iso
        tarn add --every 6h --delete https://example.org/pub/ ~/pub
        tarn add --name show --keep 20 --delete https://example.org/feed.xml ~/show
        tarn add --schedule '*-*-* 03:00' https://example.org/pub/ ~/pub

      The command reads the feed, and checks the settings as 'tarn config check' does. Then it writes one file \
      to conf.d. A running agent takes up the mirror at once. 'tarn remove NAME' removes the file again.

      Root changes the settings of the system's agent, other users change their own. To make one pass without \
      settings, use 'tarn sync FEED FOLDER'.
      """)

  @Option(help: ArgumentHelp("The name of the mirror. Default: that of its folder.", valueName: "name"))
  var name: String?
  @Option(help: ArgumentHelp("How often a pass begins. Default: 1h.", valueName: "span"))
  var every: String?
  @Option(
    help: ArgumentHelp("When a pass begins, as in systemd.time(7). Replaces --every.", valueName: "when"))
  var schedule: String?
  @Flag(help: "Write the mirror without reading the feed.") var noCheck = false
  @OptionGroup(title: "What is mirrored") var selection: SelectionFlags
  @OptionGroup(title: "The folder") var folderOptions: AddedFolderFlags
  @OptionGroup(title: "The network") var network: NetworkFlags
  @OptionGroup var common: CommonOptions<NoneShown>
  @Argument(help: ArgumentHelp("A URL or a file.", valueName: "feed"), completion: .file()) var feed: String
  @Argument(help: ArgumentHelp("The directory to keep current.", valueName: "folder"), completion: .directory)
  var folder: String

  func validate() throws {
    if every != nil, schedule != nil {
      throw ValidationError("--every and --schedule cannot be combined")
    }
    try Self.checkEvery(every)
    try PassFlags.validate(options(""))
  }

  /// - Throws: `ValidationError` when the text is no interval of a mirror.
  static func checkEvery(_ text: String?) throws {
    guard let text else { return }
    guard let seconds = Units.duration(text), Cadence.bounds.contains(seconds) else {
      throw ValidationError("--every: '\(Printable.escape(text))' is not a span from 1min to 366d")
    }
  }

  private func options(_ directory: String) -> PassOptions {
    PassFlags.options(
      [selection.given, folderOptions.policy.given, network.given], workingDirectory: directory)
  }

  func run() throws {
    let session = try Session(common)
    var wish = MirrorAdding.Wish(feed: feed, folder: folder)
    wish.name = name
    wish.state = folderOptions.state
    wish.rhythm = (name: "every", text: every ?? "1h")
    if let schedule { wish.rhythm = (name: "schedule", text: schedule) }
    wish.adopts = folderOptions.adopt
    wish.changesFeed = folderOptions.changeFeed
    wish.options = options(session.tarn.workingDirectory)
    wish.readsFeed = !noCheck
    let report = try MirrorAdding(session).run(wish)
    if session.isJSON {
      session.console.data(JSONText.line(report))
    } else if !session.isQuiet {
      for line in report.lines { session.console.data(line) }
    }
  }
}

/// The options of `tarn add` for the folder.
struct AddedFolderFlags: ParsableArguments {
  @OptionGroup var policy: FolderPolicyFlags
  @Flag(help: "Take a folder that is not empty. Files that match the feed become the mirror's.")
  var adopt = false
  @Flag(help: "Let a folder that follows another feed follow this one from now on.") var changeFeed = false
  @Option(
    help: ArgumentHelp(
      "Keep the mirror's state in this directory, on the same file system.", valueName: "dir"),
    completion: .directory)
  var state: String?
}
