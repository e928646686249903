import ArgumentParser
import TarnAgent
import TarnConfig
import TarnCore
import TarnEngine
import TarnRuntime

/// The command `tarn verify`.
struct VerifyCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify",
    abstract: "Read every file and compare it with the record, without the network.",
    usage: "tarn verify [options] [MIRROR]",
    discussion: """
      Examples:
        tarn verify                       the mirror you are in
        tarn verify /srv/iso
        tarn verify --repair /srv/iso     then download damaged and missing files
      """)

  static let schema = "tarn-verify/1"

  @Flag(help: "Sync afterwards: download damaged and missing files again.") var repair = false
  @OptionGroup var record: StateOption
  enum Shown: ShownOptions {
    static let verbose: String? = "Print each finding as it is made."
  }
  @OptionGroup var common: CommonOptions<Shown>
  @Argument(help: ArgumentHelp("A name or a folder.", valueName: "mirror"), completion: .mirror)
  var mirror: String?

  func run() throws {
    let session = try Session(common)
    session.console.outliveReader()
    let word = try mirror ?? PassTargets(session: session).mirrorHere()
    let mirror = try AgentLink(session.sources).folder(of: word, session, acts: repair)
    var report = try session.attend(schema: Self.schema, mirror: nil) {
      observer, progress, stop throws(PassFailure) -> VerifyReport in
      try session.tarn.verify(
        folder: mirror, state: record.state, repairs: repair, observer: observer, progress: progress,
        stop: stop)
    }
    // The settings name the feed of a mirror with a name.
    if session.tarn.place(of: word) != nil { report.knowsFeed = true }
    let status = ExitStatus(report, signal: Interruption.shared.received)
    let repairs = repair && status == .partial
    show(
      report, session, word, configured: session.configuredName(of: word, in: mirror), status: status,
      repairs: repairs)
    guard repairs else { return try status.end() }
    let request = PassTargets(session: session).request(of: mirror, state: record.state)
    let ended = SyncRun(session: session).run([request])
    // A pass that only plans repairs nothing.
    try (request.isDryRun && ended == .inSync ? status : ended).end()
  }

  private func show(
    _ report: VerifyReport, _ session: Session, _ word: String, configured name: String?,
    status: ExitStatus, repairs: Bool
  ) {
    if session.isJSON {
      let line = VerifyLine(report, type: repairs ? "verified" : "summary", status: status)
      session.console.data(JSONText.line(line))
    } else if !session.isQuiet || !report.isGood {
      let mirror = ShellWord.quote(word)
      let lines = VerifySummary.lines(
        report, mirror: mirror, configured: name, repairs: repairs, style: session.style)
      for line in session.sources.paths.completing(lines) { session.console.data(line) }
    }
  }
}
