import Logging
import TarnConfig
package import TarnCore
import TarnEngine
import TarnRuntime
import TarnSchedule
package import TarnServer
import TarnTransfer

extension Agent: AgentPort {
  package func perform(_ command: ControlCommand) throws(ControlFailure) -> ControlAnswer {
    let name = try find(command.target.mirror)
    if let path = command.target.rawPath { return try steer(command, name, path) }
    switch command.verb {
    case .sync:
      try refuseOther(command.expected, name)
      return try sync(name, recreates: command.expected?.recreates == true)
    case .retry: return try sync(name)
    case .pause, .resume: return try setPaused(name, command.verb == .pause)
    case .cancel: return try cancel(name)
    case .prioritize: return try prioritize(name, command.priority ?? .high)
    case .approve: return try approve(name, plan: command.plan)
    }
  }

  /// Returns the name of a mirror, given by its name or its folder. Links to the folder are followed.
  func find(_ mirror: String) throws(ControlFailure) -> String {
    let (found, others) = shared.withLock { shared -> (String?, [MirrorSettings]) in
      if shared.state.isKnown(mirror) { return (mirror, []) }
      let all = shared.mirrors.values.map(\.settings)
      return (all.first { $0.folder.utf8.elementsEqual(mirror.utf8) }?.name, all)
    }
    if let found { return found }
    if mirror.hasPrefix("/") {
      let place = parts.tarn.resolved(mirror)
      let other = others.first { parts.tarn.resolved($0.folder).utf8.elementsEqual(place.utf8) }
      if let other { return other.name }
    }
    throw ControlFailure(
      .notFound, code: "no-such-mirror", "the agent has no mirror '\(Printable.escape(mirror))'",
      hint: mirror.hasPrefix("/")
        ? "the agent looks after the mirrors of its settings only; to sync this one: tarn sync \(ShellWord.quote(mirror))"
        : mirror == "all" ? "all of them: --all" : "'tarn status' lists them")
  }

  private func sync(_ name: String, recreates: Bool = false) throws(ControlFailure) -> ControlAnswer {
    guard !shared.withLock({ $0.isEnding }) else {
      throw ControlFailure(.unavailable, code: "ending", "the agent is ending")
    }
    // Somebody who asks may know that a host is back.
    budget.tryNow(mirror: name)
    let (run, steering, isIdle) = shared.change { shared -> (UInt64?, PassSteering?, Bool) in
      shared.wasWoken = true
      let isIdle = shared.state.isIdle
      if recreates { shared.mirrors[name]?.recreates = true }
      return (shared.state.ask(name), shared.mirrors[name]?.steering, isIdle)
    }
    steering?.tryNow()
    let when = isIdle ? "" : " as soon as a slot is free"
    return ControlAnswer("a pass of \(name) begins\(when)", run: run, mirror: name)
  }

  private func setPaused(_ name: String, _ paused: Bool) throws(ControlFailure) -> ControlAnswer {
    let (ended, wasPaused) = shared.change { shared -> (AgentState.Ended?, Bool) in
      shared.wasWoken = true
      let wasPaused = shared.state.isPaused(name)
      let ended = shared.state.setPaused(name, paused)
      if let ended { shared.withdraw(ended, of: name, Self.paused) }
      return (ended, wasPaused)
    }
    guard let ended else {
      return try keep(
        ControlAnswer("\(name) \(paused ? "is paused already" : "is not paused")", wasSo: true))
    }
    for action in ended.actions { carryOut(action) }
    if ended.withdrawn != nil { tellListeners() }
    parts.log.tell(.notice, paused ? "paused" : "resumed", .of(mirror: name))
    guard paused else { return try keep(ControlAnswer("\(name) goes on")) }
    return try keep(
      ControlAnswer(
        wasPaused
          ? "\(name) is paused already; passes that were asked for since then end"
          : "\(name) is paused until 'tarn resume \(name)'"))
  }

  /// Saves the record, so that what is promised survives even a power cut.
  func keep(_ answer: ControlAnswer) throws(ControlFailure) -> ControlAnswer {
    guard let trouble = save() else { return answer }
    throw ControlFailure(
      .storage, code: "not-kept", "\(answer.message), but only until the agent ends: \(trouble)",
      hint: "make room there, or make it writable, and give the command again")
  }

  private func cancel(_ name: String) throws(ControlFailure) -> ControlAnswer {
    let cancelled = shared.change { shared -> AgentState.Ended? in
      guard let cancelled = shared.state.cancel(name) else { return nil }
      shared.withdraw(cancelled, of: name, Self.cancelled)
      return cancelled
    }
    guard let cancelled else { return ControlAnswer("no pass of \(name) is running", wasSo: true) }
    for action in cancelled.actions { carryOut(action) }
    tellListeners()
    guard cancelled.hasPass || cancelled.withdrawn == nil else {
      return ControlAnswer("the pass of \(name) that was asked for does not begin")
    }
    return ControlAnswer(
      "the pass of \(name) ends; what it fetched is kept"
        + (cancelled.withdrawn == nil ? "" : ", and the one that was asked for meanwhile does not begin"))
  }

  private static let cancelled = PassFailure(.stopped, code: "stopped", "cancelled before it began")
  private static let paused = PassFailure(
    .stopped, code: "stopped", "paused before it began", hint: "'tarn resume' begins it")

  private func prioritize(
    _ name: String, _ priority: ControlCommand.Priority
  ) throws(ControlFailure) -> ControlAnswer {
    let wasSo = shared.change { shared -> Bool in
      defer { shared.mirrors[name]?.priority = priority }
      shared.wasWoken = true
      return shared.mirrors[name]?.priority == priority
    }
    budget.setPriority(TransferPriority(priority), mirror: name)
    return try keep(ControlAnswer("\(name) has \(priority.rawValue) priority", wasSo: wasSo))
  }

  func mirror(_ name: String) throws(ControlFailure) -> AgentMirror {
    if let mirror = shared.withLock({ $0.mirrors[name] }) { return mirror }
    throw ControlFailure(
      .notFound, code: "no-such-mirror", "the mirror '\(Printable.escape(name))' was removed a moment ago")
  }

  package func limit(_ rate: ControlRate?) throws(ControlFailure) -> ControlAnswer {
    let until = shared.change { shared -> Timestamp? in
      shared.wasWoken = true
      guard let rate else {
        shared.limit = nil
        return nil
      }
      let limits = shared.running.settings.limits
      let until = RateTimetable(limits.rates, standard: limits.rate).nextChange(
        after: moment.wall, in: schedules.local)
      shared.limit = (rate.bytesPerSecond, until)
      return until
    }
    guard let rate else { return ControlAnswer("the limit is what the settings say") }
    let text = rate.bytesPerSecond.map { "\(Units.show($0))/s" } ?? "off"
    let end =
      until.map { "until \($0.rfc3339)" } ?? "until the agent ends or [limits] of the settings changes"
    return ControlAnswer("the limit over all mirrors is \(text), \(end)")
  }

  // MARK: - Listeners

  package func subscribe(_ wake: @escaping @Sendable () -> Void) -> AgentSubscription {
    let id = shared.change { shared -> UInt64 in
      shared.lastListener += 1
      shared.listeners[shared.lastListener] = wake
      shared.wasWoken = true
      return shared.lastListener
    }
    return AgentSubscription { [shared] in shared.withLock { _ = $0.listeners.removeValue(forKey: id) } }
  }

  func tellListeners() {
    for wake in shared.withLock({ Array($0.listeners.values) }) { wake() }
  }
}

extension Agent.Shared {
  /// Tells that the promised pass will not come: at once, or with the end of the pass at work.
  ///
  /// - Parameter reason: the reason that is told when no pass is at work.
  fileprivate mutating func withdraw(_ ended: AgentState.Ended, of name: String, _ reason: PassFailure) {
    guard let number = ended.withdrawn else { return }
    // The next pass does not take over what this one was to do.
    mirrors[name]?.recreates = false
    if ended.hasPass {
      mirrors[name]?.withdrawn = number
    } else {
      mirrors[name]?.lastRun = RunOutcome(reason).lastRun(number)
    }
  }
}

extension TransferPriority {
  init(_ priority: ControlCommand.Priority) {
    switch priority {
    case .low: self = .low
    case .normal: self = .normal
    case .high: self = .high
    }
  }
}

extension ControlFailure {
  /// Runs the body and turns every error into a `ControlFailure`.
  static func translating<Result>(_ body: () throws -> Result) throws(ControlFailure) -> Result {
    do {
      return try body()
    } catch {
      throw ControlFailure(PassFailure(translating: error))
    }
  }

  init(_ failure: PassFailure) {
    let kind: Kind =
      switch failure.kind {
      case .usage: .usage
      case .locked, .stopped: .conflict
      case .folderUnusable: .notFound
      case .permission: .permission
      case .feedMalformed, .feedUnreachable, .inputOutput, .configuration, .noAgent: .conflict
      case .defect: .defect
      }
    self.init(kind, code: failure.code, failure.message, hint: failure.hint)
  }
}
