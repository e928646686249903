import TarnAgent
import TarnConfig
import TarnCore
import TarnEngine
import TarnRuntime

/// Makes one plan after the other, each with its actions and its summary.
struct PlanRun {
  static let schema = "tarn-plan/1"
  let session: Session
  let usesExitCode: Bool

  func run(_ requests: [SyncRequest]) -> ExitStatus {
    var statuses: [ExitStatus] = []
    var ends: [PassEnd] = []
    for request in requests where Interruption.shared.received == nil {
      do throws(PassFailure) {
        let (report, status) = try one(request, isOnlyOne: requests.count == 1)
        ends.append(PassEnd(report))
        statuses.append(status)
      } catch {
        statuses.append(session.tell(error, of: requests.count == 1 ? nil : SyncRun.called(request)))
      }
    }
    let status = ExitStatus.worst(statuses)
    if session.isJSON, requests.count > 1 {
      let summary = SummaryLine(ends, schema: Self.schema, mirrors: requests.count, status: status)
      session.console.data(JSONText.line(summary))
    }
    return status
  }

  /// Makes one plan, and returns its exit status.
  func one(_ request: SyncRequest, isOnlyOne: Bool) throws(PassFailure) -> (PassReport, ExitStatus) {
    var request = request
    if request.name == nil, request.feed == nil {
      request.folder = try AgentLink(session.sources).folder(of: request.folder, session)
    }
    if !isOnlyOne, !session.isJSON, !session.isQuiet {
      session.console.data(
        session.style.paint("\(ShellWord.quote(SyncRun.called(request))):", .strong), now: false)
    }
    // The agent's next pass does not go by this plan then.
    if let name = request.name { AgentSync(session: session).tellOfOlderSettings(of: name) }
    let (report, kinds) = try plan(request, isOnlyOne: isOnlyOne)
    let status = status(report, isToDo: report.counts.toChange > 0 || !kinds.isEmpty)
    show(report, kinds, request, status: status, isOnlyOne: isOnlyOne)
    return (report, status)
  }

  private func plan(
    _ request: SyncRequest, isOnlyOne: Bool
  ) throws(PassFailure) -> (PassReport, [Action.Kind: Int]) {
    let name = isOnlyOne ? nil : Printable.escape(SyncRun.called(request))
    var kinds: [Action.Kind: Int] = [:]
    let report = try session.attend(schema: Self.schema, mirror: name) {
      observer, progress, stop throws(PassFailure) -> PassReport in
      try session.tarn.plan(request, observer: observer, progress: progress, stop: stop) { action, isHeld in
        if !isHeld { kinds.add(action) }
        show(action, isHeld: isHeld, mirror: name)
      }
    }
    return (report, kinds)
  }

  private func show(_ action: Action, isHeld: Bool, mirror: String?) {
    if session.isJSON {
      var line = EventLine(action)
      line.held = isHeld ? true : nil
      line.schema = Self.schema
      line.mirror = mirror
      session.console.data(JSONText.line(line), now: false)
    } else if !session.isQuiet, !action.isRecorded {
      session.console.data(PlanText.line(action, isHeld: isHeld, style: session.style), now: false)
    }
  }

  private func status(_ report: PassReport, isToDo: Bool) -> ExitStatus {
    if report.wasStopped { return ExitStatus.stopped(by: Interruption.shared.received) }
    guard usesExitCode else { return .inSync }
    return isToDo ? .somethingToDo : ExitStatus(report)
  }

  private func show(
    _ report: PassReport, _ kinds: [Action.Kind: Int], _ request: SyncRequest, status: ExitStatus,
    isOnlyOne: Bool
  ) {
    if session.isJSON {
      let type = isOnlyOne ? "summary" : "mirror"
      session.console.data(
        JSONText.line(SummaryLine(report, schema: Self.schema, type: type, status: status)))
    } else if !session.isQuiet {
      if session.isVerbose, let options = report.options {
        session.say("options: \(PlanText.options(options))")
      }
      let targets = [request.feed, request.folder].compactMap { $0.map(ShellWord.quote) }
        .joined(separator: " ")
      let lines = PlanText.summary(
        report, kinds: kinds, targets: targets, mirror: ShellWord.quote(SyncRun.called(request)),
        style: session.style)
      for line in session.sources.paths.completing(lines) {
        session.console.data(line)
      }
    }
  }
}
