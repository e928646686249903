import Glibc
import Logging
import TarnConfig
import TarnCore
import TarnEngine
import TarnRuntime

/// One pass of a mirror of the agent's, or a repair, on a thread of its own: the pass of `tarn sync`.
struct AgentPass: Sendable {
  let agent: Agent
  let mirror: AgentMirror
  let number: UInt64
  let progress: PassProgress
  let stop: StopFlag

  private var request: SyncRequest {
    var request = SyncRequest(mirror.settings, credentials: agent.parts.paths.credentials)
    request.recreate = mirror.recreates
    request.agent = AgentContext(
      rates: mirror.works.first { $0.run == number }?.rateControl, steering: mirror.steering,
      keepEvents: agent.settings.agent.keepEvents, watched: watchedFolder)
    return request
  }

  /// nil when nobody watches the folder.
  private var watchedFolder: WatchedFolder? {
    let name = mirror.settings.name
    guard let ownWrites = agent.shared.withLock({ $0.watched[name]?.ownWrites }) else { return nil }
    return WatchedFolder(
      ownWrites: ownWrites,
      isAsLeft: { [agent] in agent.shared.withLock { $0.watched[name]?.book.isAsLeft == true } })
  }

  /// - Parameter looked: called once it has looked at the folder, if something is to be brought: with what that took.
  func repair(
    _ regions: [Region], _ events: [Event], onlyCounts: Bool, looked: (Duration) -> Void
  ) -> RepairOutcome {
    let observer = AgentObserver(mirror: mirror.settings.name, agent: agent, number: number)
    let what = regions == [.everything] ? "everything" : Units.count(regions.count, "part") + " of the folder"
    agent.parts.log.tell(
      .debug, onlyCounts ? "counts what is in place" : "looks at \(what)",
      .of(mirror: mirror.settings.name))
    do throws(PassFailure) {
      let report = try agent.parts.tarn.repair(
        regions, events: events, onlyCounts: onlyCounts, request, observer: observer, progress: progress,
        stop: stop, looked: looked)
      agent.shared.withLock { $0.mirrors[mirror.settings.name]?.busy = nil }
      let name = mirror.settings.name
      let command = mirror.settings.rhythm == .command ? "tarn sync \(ShellWord.quote(name))" : nil
      return RepairOutcome(report, isWholeLook: regions == [.everything], command: command)
    } catch {
      var outcome = RepairOutcome(explained(error))
      guard error.kind == .locked else { return outcome }
      // It is tried again each second: said once, and no trouble of the folder.
      agent.tellBusy(mirror.settings.name, error.message)
      outcome.message = nil
      return outcome
    }
  }

  func run() -> RunOutcome {
    let request = request
    let observer = AgentObserver(mirror: mirror.settings.name, agent: agent, number: number)
    agent.parts.log.tell(.info, "a pass begins", .of(mirror: mirror.settings.name))
    do throws(PassFailure) {
      if request.isDryRun {
        var kinds: [Action.Kind: Int] = [:]
        let report = try agent.parts.tarn.plan(request, observer: observer, progress: progress, stop: stop) {
          action, isHeld in
          if !isHeld { kinds[action.kind, default: 0] += 1 }
        }
        return RunOutcome(plan: report, kinds: kinds)
      }
      return RunOutcome(
        try agent.parts.tarn.sync(request, observer: observer, progress: progress, stop: stop))
    } catch {
      return RunOutcome(explained(error))
    }
  }

  /// To a service every place that its unit does not name is a read-only file system (ProtectSystem=strict), which would
  /// look like a broken disk.
  private func explained(_ failure: PassFailure) -> PassFailure {
    let folder = mirror.settings.folder
    guard agent.parts.environment["NOTIFY_SOCKET"] != nil, Self.isReadOnly(folder) else { return failure }
    var failure = failure
    failure.message +=
      "; a service may write only where its unit says: add ReadWritePaths=\(Printable.escape(folder)) (systemctl edit tarn)"
    return failure
  }

  /// Of the nearest directory that is there.
  private static func isReadOnly(_ folder: String) -> Bool {
    var path = folder[...]
    var status = statvfs()
    while statvfs(path.isEmpty ? "/" : String(path), &status) != 0 {
      guard errno == ENOENT, let slash = path.lastIndex(of: "/") else { return false }
      path = path[..<slash]
    }
    return status.f_flag & UInt(ST_RDONLY) != 0
  }
}

/// Hears a pass: what needs attention goes to the log, and who follows the events is woken.
struct AgentObserver: PassObserver {
  let mirror: String
  let agent: Agent
  /// Of the pass or repair.
  let number: UInt64

  func pass(_ event: PassEvent) {
    let log = agent.parts.log
    var fields = Logger.Metadata.of(mirror: mirror)
    switch event {
    case .phase(let phase):
      tell(trouble: nil)
      agent.watchIfMissing(mirror)
      // Another repair may look now, and a host that was waited for has answered.
      agent.wake()
      log.tell(.debug, phase.rawValue, fields)
    case .planned(let report):
      agent.begunJournal(mirror)
      agent.shared.withLock { $0.mirrors[mirror]?.change(number) { $0.hasLooked = true } }
      agent.wake()
      if report.counts.planned > 0 { log.tell(.info, PassWords.planned(report), fields) }
      return
    case .action: return
    case .done(let code, let path, let bytes):
      fields["code"] = .string(code)
      fields["path"] = .string(path.printable)
      tell(trouble: nil)
      log.tell(.debug, "\(code) \(path.printable) (\(Units.show(bytes)))", fields)
    case .problem(let problem):
      fields["code"] = .string(problem.code)
      fields["path"] = .string(Printable.escape(problem.name))
      log.tell(
        .warning, "\(problem.kind.rawValue): \(Printable.escape(problem.name)): \(problem.message)", fields)
    case .retrying(let path, let message, let seconds):
      fields["path"] = .string(path.printable)
      agent.tellTrouble(
        PassTrouble(message, pause: seconds, now: agent.moment.wall), of: mirror, number, fields)
    case .feedRetrying(let message, let seconds, let isAsked):
      // Also where a redirect led to another host.
      if isAsked { agent.setAsked(mirror, seconds) }
      let trouble = PassTrouble(message, pause: seconds, now: agent.moment.wall)
      fields["code"] = .string("feed-retry")
      tell(trouble: trouble)
      log.tell(.notice, trouble.text(now: agent.moment.wall), fields)
    case .notice(let code, let message):
      fields["code"] = .string(code)
      log.tell(.notice, message, fields)
    }
    agent.tellListeners()
  }

  private func tell(trouble: PassTrouble?) {
    agent.shared.withLock { $0.mirrors[mirror]?.change(number) { $0.trouble = trouble } }
  }
}

/// The files that hold secrets of the settings, looked at again when they are used.
enum SecretFiles {
  /// - Throws: `configuration` for a file that others can read by now.
  static func refuseExposed(_ paths: [String]) throws(PassFailure) {
    for path in paths {
      guard let status = TextFile.status(path), SecretPlace.isExposed(mode: status.st_mode) else { continue }
      throw PassFailure(
        .configuration, code: "secret-exposed",
        "\(Printable.escape(path)) holds a secret, and others can read it",
        hint: "chmod 600 \(ShellWord.quote(path))")
    }
  }
}
