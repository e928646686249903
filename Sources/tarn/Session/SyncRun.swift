import TarnAgent
import TarnCore
import TarnEngine

/// One pass after the other, each with its summary.
struct SyncRun {
  static let schema = "tarn-sync/1"
  let session: Session

  func run(_ requests: [SyncRequest]) -> ExitStatus {
    session.console.outliveReader()
    var statuses: [ExitStatus] = []
    var ends: [PassEnd] = []
    let agent = AgentSync(session: session)
    for request in requests where Interruption.shared.received == nil {
      do throws(PassFailure) {
        if request.mayBeTheAgents, let end = try agent.run(request, isOnlyOne: requests.count == 1) {
          statuses.append(end.status)
          ends += end.last.flatMap(PassEnd.init).map { [$0] } ?? []
          continue
        }
        if request.isDryRun {
          let mirror = ShellWord.quote(request.name ?? request.folder)
          session.say("\(mirror): 'dry-run' is in its settings: this is a plan, and nothing is changed")
          let plan = PlanRun(session: session, usesExitCode: false)
          let (report, status) = try plan.one(request, isOnlyOne: requests.count == 1)
          ends.append(PassEnd(report))
          statuses.append(status)
          continue
        }
        let report = try pass(request, isOnlyOne: requests.count == 1)
        let status = ExitStatus(report, signal: Interruption.shared.received)
        show(report, request, status: status, isOnlyOne: requests.count == 1)
        ends.append(PassEnd(report))
        statuses.append(status)
      } catch {
        statuses.append(session.tell(error))
      }
    }
    let status = ExitStatus.worst(statuses)
    if session.isJSON, requests.count > 1 {
      let summary = SummaryLine(ends, schema: Self.schema, mirrors: requests.count, status: status)
      session.console.data(JSONText.line(summary))
    }
    return status
  }

  private func pass(_ request: SyncRequest, isOnlyOne: Bool) throws(PassFailure) -> PassReport {
    let name = isOnlyOne ? nil : Printable.escape(request.folder)
    return try session.attend(schema: Self.schema, mirror: name) {
      observer, progress, stop throws(PassFailure) -> PassReport in
      try session.tarn.sync(request, observer: observer, progress: progress, stop: stop)
    }
  }

  private func show(_ report: PassReport, _ request: SyncRequest, status: ExitStatus, isOnlyOne: Bool) {
    if session.isJSON {
      let type = isOnlyOne ? "summary" : "mirror"
      session.console.data(
        JSONText.line(SummaryLine(report, schema: Self.schema, type: type, status: status)))
      return
    }
    if session.isQuiet, report.isInSync { return }
    let mirror = ShellWord.quote(request.folder)
    let place = isOnlyOne ? "" : "\(mirror): "
    let lines = SyncSummary.lines(report, mirror: mirror, style: session.style)
    for (index, line) in lines.enumerated() { session.console.data(index == 0 ? place + line : line) }
  }
}
