import TarnAgent
import TarnConfig
import TarnCore
import TarnEngine
import TarnRuntime

/// Makes one pass after the other, each with its summary.
struct SyncRun {
  static let schema = "tarn-sync/1"
  let session: Session

  func run(_ requests: [SyncRequest]) -> ExitStatus {
    session.console.outliveReader()
    var statuses: [ExitStatus] = []
    var ends: [PassEnd] = []
    let isOnlyOne = requests.count == 1
    var begun = 0
    for request in requests where Interruption.shared.received == nil {
      begun += 1
      do throws(PassFailure) {
        let (status, end) = try one(request, isOnlyOne: isOnlyOne)
        statuses.append(status)
        ends += end.map { [$0] } ?? []
      } catch {
        statuses.append(session.tell(error, of: isOnlyOne ? nil : Self.called(request)))
        if [.feedUnreachable, .feedMalformed].contains(error.kind) { tellForgottenOptions(request) }
      }
    }
    let status = ExitStatus.worst(statuses)
    if !isOnlyOne {
      tell(Array(requests.prefix(begun)), statuses, ends, status, untried: requests.count - begun)
    }
    return status
  }

  /// Tells which options were not remembered, and have to be given again: they are remembered only once the
  /// feed was read.
  private func tellForgottenOptions(_ request: SyncRequest) {
    guard request.name == nil, !request.isOnce, !request.options.values.isEmpty,
      let known = try? session.tarn.remembered(folder: request.folder, state: request.state).options
    else { return }
    let given = request.options.withoutPasswords.values.filter { known.values[$0.key] != $0.value }
    guard !given.isEmpty else { return }
    let words = Message.safe(PassOptions(values: given).words.joined(separator: " "))
    session.say("the feed was not read, so nothing remembers '\(words)': give that again in the next sync")
  }

  /// Lets the agent make the pass when it has the mirror; otherwise makes it here, or only a plan when the
  /// settings say so.
  private func one(
    _ request: SyncRequest, isOnlyOne: Bool
  ) throws(PassFailure) -> (status: ExitStatus, end: PassEnd?) {
    if request.mayBeTheAgents,
      let end = try AgentSync(session: session).run(request, isOnlyOne: isOnlyOne)
    {
      return (end.status, end.last.flatMap(PassEnd.init))
    }
    if request.isDryRun {
      session.say(
        "\(ShellWord.quote(Self.called(request))): 'dry-run' is in its settings: this is a plan, and nothing is changed"
      )
      let (report, status) = try PlanRun(session: session, usesExitCode: false).one(
        request, isOnlyOne: isOnlyOne)
      return (status, PassEnd(report))
    }
    for name in [PassOptions.Name.include, .exclude] where request.options.values[name]?.contains("") == true
    {
      session.say(
        "--\(name.rawValue) '' names nothing: it only takes the place of patterns that were remembered")
    }
    let report = try pass(request, isOnlyOne: isOnlyOne)
    let status = ExitStatus(report, signal: Interruption.shared.received)
    show(report, request, status: status, isOnlyOne: isOnlyOne)
    return (status, PassEnd(report))
  }

  /// Returns the name of a configured mirror, or the folder of another one, without anything that may be a
  /// password.
  static func called(_ request: SyncRequest) -> String { Redaction.message(request.name ?? request.folder) }

  /// Tells how all passes ended.
  ///
  /// - Parameter untried: the number of passes that were not begun, after a signal.
  private func tell(
    _ requests: [SyncRequest], _ statuses: [ExitStatus], _ ends: [PassEnd], _ status: ExitStatus, untried: Int
  ) {
    if session.isJSON {
      let summary = SummaryLine(ends, schema: Self.schema, mirrors: requests.count + untried, status: status)
      session.console.data(JSONText.line(summary))
    } else if !session.isQuiet || status != .inSync {
      let names = requests.map { ShellWord.quote(Self.called($0)) }
      let line = SyncSummary.ofSeveral(names, statuses.map { $0 == .inSync })
      session.console.data(untried > 0 ? "\(line); \(Numbers.grouped(untried)) not begun" : line)
    }
  }

  private func pass(_ request: SyncRequest, isOnlyOne: Bool) throws(PassFailure) -> PassReport {
    let name = isOnlyOne ? nil : Printable.escape(Self.called(request))
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
    let mirror = ShellWord.quote(isOnlyOne ? request.folder : Self.called(request))
    let place = isOnlyOne ? "" : "\(mirror): "
    let lines = session.sources.paths.completing(
      SyncSummary.lines(report, mirror: mirror, style: session.style))
    for (index, line) in lines.enumerated() { session.console.data(index == 0 ? place + line : line) }
  }
}
