import Logging
import TarnConfig
import TarnCore
import TarnEngine
import TarnRuntime

/// One pass or repair of a mirror of the agent, on a thread of its own. The pass is that of `tarn sync`.
struct AgentPass: Sendable {
  let agent: Agent
  let mirror: AgentMirror
  let work: AgentWork

  private var name: String { mirror.settings.name }
  private var observer: AgentObserver { AgentObserver(mirror: name, agent: agent, number: work.run) }

  private var request: SyncRequest {
    var request = SyncRequest(mirror.settings, credentials: agent.parts.paths.credentials)
    request.recreate = mirror.recreates
    var context = AgentContext(
      rates: work.rateControl, steering: mirror.steering, keepEvents: agent.settings.agent.keepEvents)
    context.ownWrites = agent.shared.withLock { $0.watched[name]?.ownWrites }
    if context.ownWrites != nil {
      let (shared, name) = (agent.shared, name)
      context.isAsLeft = { shared.withLock { $0.watched[name]?.book.isAsLeft == true } }
    }
    request.agent = context
    return request
  }

  /// - Parameter looked: called with the time that examining the folder took, if something is to be fetched.
  func repair(
    _ regions: [Region], _ events: [Event], onlyCounts: Bool, looked: (Duration) -> Void
  ) -> RepairOutcome {
    let what = regions == [.everything] ? "everything" : Units.count(regions.count, "part") + " of the folder"
    agent.parts.log.tell(
      .debug, onlyCounts ? "counts what is in place" : "looks at \(what)", .of(mirror: name))
    do throws(PassFailure) {
      let report = try agent.parts.tarn.repair(
        regions, events: events, onlyCounts: onlyCounts, request, observer: observer, progress: work.progress,
        stop: work.stop, looked: looked)
      agent.shared.withLock { $0.mirrors[name]?.busy = nil }
      let command = mirror.settings.rhythm == .command ? "tarn sync \(ShellWord.quote(name))" : nil
      return RepairOutcome(report, isWholeLook: regions == [.everything], command: command)
    } catch {
      var outcome = RepairOutcome(agent.explained(error, mirror.settings.folder))
      guard error.kind == .locked else { return outcome }
      // It is tried again each second: the log tells it once, and it is no fault of the folder.
      agent.tellBusy(name, error.message)
      outcome.message = nil
      return outcome
    }
  }

  func run() -> RunOutcome {
    let request = request
    let (tarn, progress, stop) = (agent.parts.tarn, work.progress, work.stop)
    do throws(PassFailure) {
      if request.isDryRun {
        var kinds: [Action.Kind: Int] = [:]
        let report = try tarn.plan(request, observer: observer, progress: progress, stop: stop) {
          action, isHeld in
          if !isHeld { kinds.add(action) }
        }
        return RunOutcome(plan: report, kinds: kinds)
      }
      return RunOutcome(try tarn.sync(request, observer: observer, progress: progress, stop: stop))
    } catch {
      return RunOutcome(agent.explained(error, mirror.settings.folder))
    }
  }
}

/// Observes a pass: logs what needs attention, and wakes those who follow the events.
struct AgentObserver: PassObserver {
  let mirror: String
  let agent: Agent
  /// The number of the pass or repair.
  let number: UInt64

  func pass(_ event: PassEvent) {
    switch event {
    case .phase(let phase):
      change { $0.trouble = nil }
      agent.tellBegun(mirror, number)
      agent.watchIfMissing(mirror)
      // Another repair may examine the folder now, and a host that was waited for has answered.
      agent.wake()
      log(.debug, phase.rawValue)
    case .planned(let report):
      agent.begunJournal(mirror)
      change { $0.hasLooked = true }
      agent.wake()
      if report.counts.toChange + report.counts.planned.asked > 0 { log(.info, PassWords.planned(report)) }
      return
    case .action: return
    case .done(let code, let path, let bytes):
      change { $0.trouble = nil }
      if Self.changes.contains(code) { tally { $0.lastChange = agent.moment.wall } }
      log(.debug, "\(code) \(path.printable) (\(Units.show(bytes)))", code: code, path: path.printable)
    case .problem(let problem):
      tally { $0.count(MetricError(problem.kind)) }
      let name = Printable.escape(problem.name)
      log(.warning, "\(problem.kind.rawValue): \(name): \(problem.message)", code: problem.code, path: name)
    case .retrying(let path, let message, let seconds):
      let trouble = PassTrouble(message, pause: seconds, now: agent.moment.wall)
      let now = agent.parts.clock.monotonic()
      // Told at first, then once a minute while it goes on.
      var isDue = false
      change { work in
        work.trouble = trouble
        isDue = work.toldTrouble.map { now >= $0 + Agent.progressPause } ?? true
        if isDue { work.toldTrouble = now }
      }
      log(isDue ? .notice : .debug, trouble.text(now: agent.moment.wall), path: path.printable)
    case .feedRetrying(let message, let seconds, let isAsked):
      // Applies as well when a redirect led to another host.
      if isAsked { agent.setAsked(mirror, seconds) }
      let trouble = PassTrouble(message, pause: seconds, now: agent.moment.wall)
      change { $0.trouble = trouble }
      log(.notice, trouble.text(now: agent.moment.wall), code: "feed-retry")
    case .notice(let code, let message): log(.notice, message, code: code)
    }
    agent.tellListeners()
  }

  private func log(_ level: Logger.Level, _ message: String, code: String? = nil, path: String? = nil) {
    agent.parts.log.tell(level, message, .of(mirror: mirror, code: code, path: path))
  }

  /// The codes of `done` that change a file, rather than only its record.
  private static let changes = ["fetched", "copied", "updated", "restored", "replaced", "deleted"]

  private func tally(_ body: (inout MirrorTally) -> Void) {
    agent.shared.withLock { shared in
      if var tally = shared.mirrors[mirror]?.tally {
        body(&tally)
        shared.mirrors[mirror]?.tally = tally
      }
    }
  }

  private func change(_ body: (inout AgentWork) -> Void) {
    agent.shared.withLock { $0.mirrors[mirror]?.change(number, body) }
  }
}
