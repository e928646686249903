import ArgumentParser
import TarnAgent

/// The command `tarn`.
struct Root: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "tarn",
    abstract: "Keep a folder equal to what a feed on the network names.",
    discussion: """
      Examples:
        tarn sync https://example.org/iso/SHA256SUMS /srv/iso   make a mirror
        tarn sync /srv/iso                                      bring it up to date
        tarn add https://example.org/show/feed.xml /srv/show    let the agent keep it
        tarn plan /srv/iso                                      what would that do?
        tarn status                                             how are my mirrors?
        tarn explain /srv/iso debian.iso                        why is it (not) here?

      A feed lists files: a checksum list, a Metalink, a directory index, a podcast or news feed, a list of URLs, \
      a native manifest and others. You give it as a URL, as a file that begins with / or ./, or as - for standard \
      input. A mirror is a folder that follows a feed. 'tarn help exit-status' lists the exit statuses.
      """,
    version: "tarn \(Tarn.version)",
    groupedSubcommands: [
      CommandGroup(
        name: "Mirrors",
        subcommands: [
          SyncCommand.self, PlanCommand.self, StatusCommand.self, ExplainCommand.self, VerifyCommand.self,
          ApproveCommand.self, TrashCommand.self, ForgetCommand.self, EventsCommand.self,
        ]),
      CommandGroup(
        name: "Settings",
        subcommands: [
          InitCommand.self, AddCommand.self, RemoveCommand.self, ConfigCommand.self, FeedsCommand.self,
          ScheduleCommand.self,
        ]),
      CommandGroup(
        name: "Agent",
        subcommands: [
          AgentCommand.self, PauseCommand.self, ResumeCommand.self, RetryCommand.self, CancelCommand.self,
          PrioritizeCommand.self, LimitCommand.self, ReloadCommand.self,
        ]),
      CommandGroup(name: "Downloads", subcommands: [GetCommand.self, SessionCommand.self]),
      CommandGroup(
        name: "This machine", subcommands: [DoctorCommand.self, ReportCommand.self, CompletionCommand.self]),
    ])
}
