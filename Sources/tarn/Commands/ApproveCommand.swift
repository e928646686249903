import ArgumentParser
import TarnAgent
import TarnCore
import TarnEngine

/// `tarn approve`.
struct ApproveCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "approve",
    abstract: "Let held deletions go ahead.",
    usage: "tarn approve [options] MIRROR [PLAN]",
    discussion: """
      Examples:
        tarn approve /srv/iso                show what would be deleted, and ask
        tarn approve /srv/iso 1a2b3c4d       that set, never a newer or larger one

      Far more deletions than usual are held back until you say so. Approved ones go to the trash: \
      'tarn trash restore' brings a file back.
      """)

  @OptionGroup var record: StateOption
  @OptionGroup var common: CommonOptions
  @Argument(help: ArgumentHelp("A name or a folder.", valueName: "mirror"), completion: .directory)
  var mirror: String
  @Argument(help: ArgumentHelp("The plan's id, from 'tarn status'.", valueName: "plan")) var plan: String?

  func run() throws {
    let session = try Session(common)
    session.console.outliveReader()
    // What is asked for by id is done by id; without one, exactly what was shown.
    var id = plan
    let shown = ApprovalText.mostPaths
    if let held = try session.tarn.heldPaths(folder: mirror, state: record.state, limit: shown),
      plan ?? held.plan.id == held.plan.id
    {
      guard try isApproved(held.plan, held.paths, session) else {
        session.console.message("nothing was changed")
        return try ExitStatus.partial.end()
      }
      id = held.plan.id
    }
    let narrator = Narrator(
      console: session.console, style: session.messageStyle, mode: session.isJSON ? .json : .silent,
      isVerbose: session.isVerbose, schema: "tarn-approve/1", mirror: nil, clock: session.clock)
    let report = try session.stoppable { stop throws(PassFailure) in
      try session.tarn.approve(folder: mirror, state: record.state, plan: id, observer: narrator, stop: stop)
    }
    let status = ExitStatus(report, signal: Interruption.shared.received)
    show(report, session, status: status)
    try status.end()
  }

  private func isApproved(_ held: HeldPlan, _ paths: [RelativePath], _ session: Session) throws(PassFailure)
    -> Bool
  {
    if !session.isJSON, !session.isQuiet || session.mayAsk {
      for line in ApprovalText.question(held, paths, now: session.now) { session.console.message(line) }
    }
    if session.saysYes { return true }
    if session.mayAsk { return session.confirm("Move \(Numbers.pronoun(held.count)) to the trash?") }
    if plan != nil { return true }
    throw PassFailure(
      .usage, code: "not-asked", "cannot ask whether plan \(held.id) shall go ahead",
      hint: "tarn approve \(ShellWord.quote(mirror)) \(held.id)")
  }

  private func show(_ report: ApprovalReport, _ session: Session, status: ExitStatus) {
    if session.isJSON {
      session.console.data(JSONText.line(ApprovalLine(report, status: status)))
    } else if !session.isQuiet || status != .inSync {
      let mirror = ShellWord.quote(mirror)
      for line in ApprovalText.lines(report, mirror: mirror, style: session.style) {
        session.console.data(line)
      }
    }
  }
}
