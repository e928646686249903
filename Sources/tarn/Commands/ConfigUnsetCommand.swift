import ArgumentParser
import TarnAgent
import TarnConfig
import TarnCore
import TarnEngine
import TarnRuntime

/// The command `tarn config unset`.
struct ConfigUnsetCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "unset",
    abstract: "Take back options that a mirror made by hand remembers.",
    usage: "tarn config unset [options] MIRROR OPTION...",
    discussion: """
      Examples:
        tarn config unset /srv/iso limit-rate
        tarn config unset /srv/iso delete exclude
        tarn config unset --all /srv/iso          all of them; the feed stays

      A mirror that no settings name remembers the options of 'tarn sync', except those given with --once. \
      'tarn config show MIRROR' lists them. The next pass runs without the options that you take back. Taking \
      back 'delete' also drops a plan of deletions that waits for approval.
      """)

  @Flag(help: "Take back everything that the mirror remembers, except the feed.") var all = false
  @OptionGroup var record: StateOption
  @OptionGroup var common: CommonOptions<NoneShown>
  @Argument(help: ArgumentHelp("A folder.", valueName: "mirror"), completion: .mirror) var mirror: String
  @Argument(
    help: ArgumentHelp("Options without their dashes, such as limit-rate.", valueName: "option"),
    completion: .list(PassOptions.Name.allCases.map(\.rawValue)))
  var names: [String] = []

  func validate() throws {
    if names.isEmpty != all {
      throw ValidationError(
        all
          ? "--all and single options cannot be combined" : "say which options, such as limit-rate, or --all")
    }
    _ = try options
  }

  private var options: [PassOptions.Name] {
    get throws {
      try names.map { word in
        let text =
          word.hasPrefix("no-") && PassOptions.Name(rawValue: word) == nil ? String(word.dropFirst(3)) : word
        guard let name = PassOptions.Name(rawValue: text) else {
          let near = Spelling.nearest(text, PassOptions.Name.allCases.map(\.rawValue))
          throw ValidationError(
            "'\(Printable.escape(word))' is no option of a pass"
              + (near.map { "; did you mean '\($0)'?" } ?? ": 'tarn sync --help' lists them"))
        }
        return name
      }
    }
  }

  func run() throws {
    let session = try Session(common)
    let folder = try AgentLink(session.sources).folder(of: mirror, session)
    try refuseConfigured(folder, session)
    let (gone, plan) = try session.tarn.forgetOptions(
      all ? nil : try options, folder: folder, state: record.state)
    if session.isJSON {
      session.console.data(
        JSONText.document(
          UnsetReport(
            folder: Printable.escape(folder), options: gone.named,
            droppedPlan: plan.map { Printable.escape($0.id) })))
    } else if !session.isQuiet {
      let words = gone.words.map(Message.safe).joined(separator: " ")
      session.console.data(
        words.isEmpty
          ? "nothing to take back: \(ShellWord.quote(mirror)) remembers none of them"
          : "taken back: \(words); the next pass of \(ShellWord.quote(mirror)) goes without")
      if let plan {
        session.console.data(
          "plan \(Printable.escape(plan.id)) is dropped: \(Numbers.count(plan.count, "deletion")) waited for approval"
        )
      }
    }
  }

  /// Refuses a mirror of the settings, whose options are removed there.
  private func refuseConfigured(_ folder: String, _ session: Session) throws(PassFailure) {
    let name =
      session.configured((mirror, folder, record.state))?.name
      ?? AgentLink(session.sources).name(of: mirror, session)
    guard let name else { return }
    throw PassFailure(
      .usage, code: "of-the-settings",
      "'\(Printable.escape(name))' is a mirror of the settings, and remembers no options",
      hint:
        "take the lines out below \(TOMLText.mirror(name)); if an agent runs, then: tarn reload")
  }
}

/// The output of `config unset --json`: the options that were remembered.
struct UnsetReport: Encodable {
  var schema = "tarn-config/1"
  var folder: String
  var options: [String: [String]]
  /// The plan whose deletions waited for an approval, and no longer do.
  var droppedPlan: String?
}
