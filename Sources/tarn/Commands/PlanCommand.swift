import ArgumentParser
import TarnAgent
import TarnEngine

/// The command `tarn plan`.
struct PlanCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "plan",
    abstract: "Show what a sync would do, without changing anything.",
    usage: """
      tarn plan [options] FEED FOLDER
      tarn plan [options] [MIRROR...]
      """,
    discussion: """
      Examples:
        tarn plan https://example.org/iso/SHA256SUMS /srv/iso
        tarn plan --delete /srv/iso | grep ^delete
        tarn plan -v /srv/iso                     print the options that hold too
        tarn plan --exit-code -q /srv/iso; [ $? -ne 2 ] || echo to do
      """)

  @OptionGroup var flags: PassFlags
  @Flag(
    help:
      "End with 2 if there are changes to make. A file that must be compared with the server does not count.")
  var exitCode = false
  enum Shown: ShownOptions {
    static let verbose: String? = "Print the options that hold too."
  }
  @OptionGroup var common: CommonOptions<Shown>
  @Argument(
    help: ArgumentHelp("A feed and a folder, or mirrors.", valueName: "mirror"), completion: .mirrorOrFeed)
  var targets: [String] = []

  func run() throws {
    let session = try Session(common)
    let requests = try PassTargets(session: session, command: "plan").requests(
      targets, flags: flags, remembers: false)
    try PlanRun(session: session, usesExitCode: exitCode).run(requests).end()
  }
}
