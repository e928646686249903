import ArgumentParser
import TarnAgent
import TarnControl
import TarnCore
import TarnEngine
import TarnRuntime

/// The command `tarn approve`.
struct ApproveCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "approve",
    abstract: "Let held deletions go ahead.",
    usage: "tarn approve [options] MIRROR [PLAN]",
    discussion: """
      Examples:
        tarn approve /srv/iso                show what would be deleted, and ask
        tarn approve /srv/iso 1a2b3c4d       exactly this plan, no other

      A pass that would delete far more than usual holds its deletions until you approve them. Approved files go \
      to the trash: 'tarn trash restore' brings one back. If an agent keeps the mirror, it carries out the plan \
      after the current pass.

      The command asks before it begins. Without a terminal, or with --no-input or --json, it cannot ask: then \
      the plan's id is the answer. Without an id, only --yes lets a plan go ahead.
      """)

  @OptionGroup var record: StateOption
  enum Shown: ShownOptions {
    static let verbose: String? = "Print each file too."
    static let asks = true
  }
  @OptionGroup var common: CommonOptions<Shown>
  @Argument(help: ArgumentHelp("A name or a folder.", valueName: "mirror"), completion: .mirror)
  var mirror: String
  @Argument(help: ArgumentHelp("The plan's id, from 'tarn status'.", valueName: "plan"), completion: .plan)
  var plan: String?

  func run() throws {
    let session = try Session(common)
    guard plan?.isEmpty != true else {
      throw PassFailure(
        .usage, code: "empty-name", "the name of the plan is empty",
        hint: "is a variable not set? 'tarn status' names the plan")
    }
    try session.refuseFaultySettings([mirror])
    session.console.outliveReader()
    if let held = try agentsPlan(session) { return try askAgent(held, session) }
    guard !session.onlyPlans(mirror) else { throw Self.onlyPlans(mirror) }
    if let settings = session.configured((mirror, mirror, nil)) {
      _ = try session.tarn.dropUnorderedHold(of: settings, state: record.state)
    }
    // The plan is the given one, or else exactly the one that was shown.
    var id = plan
    if let held = try session.tarn.heldPaths(folder: mirror, state: record.state, limit: mostPaths),
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

  /// The number of the plan's files that are shown.
  private var mostPaths: Int { common.verbose ? .max : ApprovalText.mostPaths }

  private static func onlyPlans(_ mirror: String) -> PassFailure {
    PassFailure(
      .usage, code: "dry-run",
      "'dry-run' is in the settings of \(ShellWord.quote(mirror)): nothing is changed there",
      hint: "take it out, then approve")
  }

  // MARK: - By the agent

  /// Returns the agent's status of the mirror with its held plan; `nil` when no agent has the mirror.
  private func agentsPlan(_ session: Session) throws(PassFailure) -> StatusDocument? {
    try session.tarn.refuseEmptyNames(mirror, record.state)
    let answer = try AgentLink(session.sources).tryAsking(about: mirror, session) { client, mirror in
      try client.status(mirrors: [mirror], problemLimit: 0)
    }
    guard let document = answer?.mirrors.first else { return nil }
    // The agent of another user may have this name for another folder.
    if let place = session.tarn.place(of: mirror),
      !session.tarn.resolved(place.folder).utf8.elementsEqual(session.tarn.resolved(document.folder).utf8)
    {
      return nil
    }
    return document
  }

  private func askAgent(_ document: StatusDocument, _ session: Session) throws {
    var command = ControlCommand(.approve, ControlTarget(mirror: document.name))
    command.plan = plan ?? document.held?.plan
    if let held = document.held, command.plan == held.plan {
      let place = session.tarn.place(of: mirror)
      let known = try? session.tarn.heldPaths(
        folder: document.folder, state: record.state ?? place?.state, limit: mostPaths)
      let shown = HeldPlan(
        id: Printable.escape(held.plan), when: Timestamp(rfc3339: held.since) ?? session.now,
        count: held.deletions, reason: held.reason ?? "")
      let paths = known?.plan.id == held.plan ? known?.paths ?? [] : []
      guard try isApproved(shown, paths, session) else {
        session.console.message("nothing was changed")
        return try ExitStatus.partial.end()
      }
    }
    let asked = command
    let answer = try AgentLink(session.sources).ask { try $0.perform(asked) }
    guard let approval = answer.approval else { return Steering(session: session).show(answer) }
    let status: ExitStatus = approval.failed == 0 ? .inSync : .partial
    if session.isJSON {
      session.console.data(JSONText.line(ApprovalLine(approval, status: status)))
    } else if !session.isQuiet || status != .inSync {
      let mirror = ShellWord.quote(mirror)
      for line in ApprovalText.lines(approval, mirror: mirror, style: session.style) {
        session.console.data(session.sources.paths.completing(line))
      }
    }
    try status.end()
  }

  // MARK: - Here

  private func isApproved(_ held: HeldPlan, _ paths: [RelativePath], _ session: Session) throws(PassFailure)
    -> Bool
  {
    if !session.isJSON, !session.isQuiet || session.mayAsk {
      for line in ApprovalText.question(held, paths, most: mostPaths, now: session.now) {
        session.console.message(line)
      }
    }
    if session.saysYes { return true }
    if session.mayAsk { return session.confirm("Move \(Numbers.pronoun(held.count)) to the trash?") }
    if plan != nil { return true }
    throw PassFailure(
      .usage, code: "not-asked", "cannot ask whether to carry out plan \(held.id)",
      hint: "tarn approve \(ShellWord.quote(mirror)) \(held.id)")
  }

  private func show(_ report: ApprovalReport, _ session: Session, status: ExitStatus) {
    if session.isJSON {
      session.console.data(JSONText.line(ApprovalLine(report, status: status)))
    } else if !session.isQuiet || status != .inSync {
      let mirror = ShellWord.quote(mirror)
      for line in ApprovalText.lines(report, mirror: mirror, style: session.style) {
        session.console.data(session.sources.paths.completing(line))
      }
    }
  }
}
