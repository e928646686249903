import Glibc
import TarnConfig
package import TarnCore
import TarnEngine
import TarnRuntime
import TarnSchedule
import TarnTransfer

extension Agent {
  package func status(mirrors: [String], problemLimit: Int) throws(ControlFailure) -> StatusAnswer {
    let names = try places(of: mirrors).map(\.name)
    return StatusAnswer(
      agent: document(),
      mirrors: names.compactMap { name in
        document(of: name) { recorded($0, problemLimit: problemLimit).document }
      })
  }

  /// The places of the named mirrors, or of all when none is named.
  private func places(of mirrors: [String]) throws(ControlFailure) -> [Tarn.Place] {
    let named = try mirrors.map { mirror throws(ControlFailure) in try find(mirror) }
    return shared.withLock { shared in
      (named.isEmpty ? shared.mirrors.keys.sorted() : named).compactMap { name in
        shared.mirrors[name].map { (name: name, folder: $0.settings.folder, state: $0.settings.state) }
      }
    }
  }

  /// The status of the agent itself.
  func document() -> AgentDocument {
    let (hooks, wakes) = (hooks.statuses, ownSessions?.wakeTroubles() ?? [])
    return shared.withLock { shared in
      var document = AgentDocument(
        version: Tarn.version, process: getpid(), started: started.rfc3339,
        settingsRead: shared.settingsRead.rfc3339)
      document.state = shared.isEnding ? "stopping" : "running"
      document.passes = shared.state.running.count
      document.mostPasses = shared.running.settings.limits.passes
      let transfers = budget.snapshot()
      document.transfers = transfers.running
      // Most of them wait in their mirror before they ask the budget for a place.
      let inMirrors = shared.mirrors.values.reduce(0) { $1.works.reduce($0) { $0 + $1.progress.waiting } }
      document.waiting = max(transfers.waiting, inMirrors)
      document.rate = transfers.bytesPerSecond
      document.rateLimit = rateLimit(shared)
      document.restingHosts = transfers.resting.map { resting in
        var host = AgentDocument.RestingHost(
          host: resting.host, until: (resting.until ?? moment.wall).rfc3339)
        host.asked = resting.isAsked
        host.askedUntil = resting.askedUntil?.rfc3339
        host.mirrors = resting.mirrors
        return host
      }
      document.rejected = shared.rejected
      document.settingsCheck = parts.paths.command("config check")
      document.needRestart = shared.needRestart
      document.hooks = hooks
      let troubles = [shared.recordTrouble, shared.metricsTrouble].compactMap { $0 } + wakes
      document.troubles = troubles.isEmpty ? nil : troubles
      return document
    }
  }

  /// The current bytes per second of all mirrors together; `nil` for no limit.
  func rateLimit(_ shared: Shared) -> UInt64? {
    let now = moment.wall
    if let limit = shared.limit, limit.until.map({ now < $0 }) ?? true { return limit.rate }
    let limits = shared.running.settings.limits
    return RateTimetable(limits.rates, standard: limits.rate).limit(at: now, in: schedules.local)
  }

  /// - Parameter recorded: returns the status from the mirror's ledger.
  func document(of name: String, recorded: (AgentMirror) -> StatusDocument) -> StatusDocument? {
    let now = moment
    let known = shared.withLock { shared -> (AgentMirror, RunSchedule.NextRun?, AgentState.MirrorStatus?)? in
      guard let mirror = shared.mirrors[name] else { return nil }
      return (mirror, shared.state.next(name, now: now, random: 0), shared.state.status(of: name))
    }
    guard let (mirror, next, status) = known else { return nil }
    var document = recorded(mirror)
    document.name = name
    document.nextRun = next?.at?.rfc3339
    document.nextRunReason = next?.reason.rawValue
    // The ledger of a missing folder tells nothing. A mirror that was forgotten since begins anew.
    let isNew = document.lastAttempt == nil && document.lastFailure == nil
    // An earlier message about a lost folder no longer applies, nor any where the folder now tells another.
    let isFound = document.lastFailure == nil && mirror.lastRun?.code == PassFailure.lostFolder
    let isTold = document.lastAttempt == nil && document.lastFailure != nil
    document.set(
      attempt: status?.history.lastAttempt, failure: isFound || isTold ? nil : mirror.failure?.message)
    if !isNew, !mirror.settings.isDryRun, document.feedBefore == nil {
      document.lastSuccess = document.lastSuccess ?? status?.history.lastSuccess?.rfc3339
    }
    document.set(askedUntil: status?.history.heldUntil, now: now.wall)
    let watched = shared.withLock { $0.watched[name] }
    if let watched {
      (document.watch.mode, document.watch.reason) = watched.book.status
    } else {
      document.watch.reason = "the next pass finds local changes"
    }
    settle(&document.problems, nextRun: document.nextRun, steering: mirror.steering)
    document.run = mirror.works.first?.run
    if document.run != nil { document.runKind = mirror.work == nil ? "repair" : "pass" }
    document.lastRun = mirror.lastRun
    // Another process works at the mirror: the ledger's status counts, as without an agent.
    if let process = document.process, process != getpid(), process != 0 { return document }
    if let work = mirror.works.first {
      let others = mirror.works.dropFirst().map { $0.progress.snapshot() }
      let isOfRepairs = mirror.work == nil
      show(
        others.reduce(work.progress.snapshot()) { isOfRepairs ? $0.adding($1) : $0.beside($1) }, in: &document
      )
      document.lastFailure = mirror.works.lazy.compactMap(\.trouble).first?.text(now: now.wall)
    } else if status?.isPaused == true {
      document.state = "paused"
      if let watched, document.watch.mode == "watching", !watched.book.isAsLeft {
        document.watch.reason = "local changes wait for 'tarn resume \(ShellWord.quote(name))'"
      }
    } else if let trouble = watched?.trouble, document.lastFailure == nil, !isNew {
      document.state = "failing"
      document.lastFailure = trouble
    } else if let (path, count) = watched?.book.contested, document.lastFailure == nil, !isNew {
      document.state = "failing"
      let others = count > 1 ? " and \(Units.count(count - 1, "other path"))" : ""
      document.lastFailure =
        "another program keeps changing \(path.printable)\(others); Tarn restores it from time to time"
    }
    return document
  }

  /// Corrects problems that the ledger has as the last pass left them. The agent knows when they are tried
  /// again, and which transfers were resumed.
  private func settle(
    _ problems: inout [StatusDocument.ProblemLine], nextRun: String?, steering: PassSteering
  ) {
    let paused = Set(steering.paused.map(\.bytes))
    problems.removeAll { $0.code == "paused" && !paused.contains($0.name) }
    for index in problems.indices where problems[index].kind == Problem.Kind.failed.rawValue {
      problems[index].nextAttempt = nextRun
    }
  }

  /// Returns the status from the ledger, or from the settings for a mirror that does not exist yet.
  ///
  /// - Returns: the status, and whether it could be read. Otherwise the mirror is failing with the reason.
  func recorded(_ mirror: AgentMirror, problemLimit: Int) -> (document: StatusDocument, isTold: Bool) {
    let settings = mirror.settings
    do throws(PassFailure) {
      return (try parts.tarn.status(of: settings, problemLimit: problemLimit), true)
    } catch {
      let failure = explained(error, settings.folder)
      var document = StatusDocument(settings)
      document.state = "failing"
      (document.lastFailure, document.hint) = (failure.message, failure.hint)
      return (document, false)
    }
  }

  /// Adds what lets the agent write to a folder. A service's unit makes all places read-only that it does not
  /// name (ProtectSystem=strict), which would look like a broken disk.
  func explained(_ failure: PassFailure, _ folder: String) -> PassFailure {
    var failure = failure
    if parts.environment["NOTIFY_SOCKET"] != nil, MountedFileSystem.isReadOnly(folder) {
      let path = "ReadWritePaths=\(Printable.escape(folder))"
      failure.message += "; a service may write only where its unit says: add \(path)"
      failure.hint = "systemctl edit tarn: write [Service] and \(path); then: systemctl restart tarn"
    } else if failure.kind == .permission, let hint = Self.takeOver(folder) {
      failure.hint = hint
    }
    return failure
  }

  /// Returns the command that gives this process's user a folder that root made; `nil` for any other folder.
  private static func takeOver(_ folder: String) -> String? {
    var status = stat()
    guard geteuid() != 0, stat("\(folder)/.tarn", &status) == 0 || stat(folder, &status) == 0,
      status.st_uid == 0
    else { return nil }
    let name = getpwuid(geteuid()).flatMap { String(validatingCString: $0.pointee.pw_name) }
    let user = name.map(ShellWord.quote) ?? String(geteuid())
    return "give it to the agent's user: sudo chown -R \(user): \(ShellWord.quote(folder))"
  }

  /// Shows the progress of the pass at work, which is ahead of the ledger.
  private func show(_ snapshot: PassProgress.Snapshot, in document: inout StatusDocument) {
    document.state = snapshot.phase.rawValue
    document.process = getpid()
    (document.lastFailure, document.hint) = (nil, nil)
    document.feedTransfer = snapshot.feed
    document.progress = snapshot.progress
    document.show(snapshot.transfers, waiting: snapshot.waiting)
    let transferring = Set(snapshot.transfers.map(\.path.printable))
    let listed = document.problems.count
    document.problems.removeAll { $0.kind == Problem.Kind.failed.rawValue && transferring.contains($0.path) }
    // This concerns repairs: entries that a pass tries again are pending in the ledger.
    let tried = min(listed - document.problems.count, document.entries.failed)
    document.entries.failed -= tried
    document.entries.pending += tried
  }

  // MARK: - Events

  package func events(
    after cursor: String?, mirrors: [String], limit: Int
  ) throws(ControlFailure) -> EventPage {
    guard let place = cursor.map({ EventCursor($0) }) ?? EventCursor() else {
      throw ControlFailure(
        .usage, code: "bad-cursor", "'\(Printable.escape(cursor ?? ""))' is no place in the journal",
        hint: "give what an earlier answer had as its cursor, or leave it out for the oldest event")
    }
    let wanted = try places(of: mirrors)
    guard place.number == 0 || wanted.count == 1 else {
      throw ControlFailure(
        .usage, code: "bad-cursor",
        "\(place.number) is the number of an event of one mirror, and \(wanted.count) are asked",
        hint: "name the mirror, or give what an earlier answer had as its cursor")
    }
    let page = parts.tarn.events(of: wanted, after: place, limit: min(max(limit, 1), 1000))
    // No other mirror has events to show.
    if let unread = page.unread, unread.count == wanted.count { throw ControlFailure(unread[0].failure) }
    return page
  }

  package func mirrorFolders() -> [String: String] {
    shared.withLock { $0.mirrors.mapValues(\.settings.folder) }
  }

  package func eventsEnd() throws(ControlFailure) -> String {
    parts.tarn.eventsEnd(of: try places(of: []))
  }
}
