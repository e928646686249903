import Logging
import TarnConfig
import TarnCore
import TarnEngine
import TarnRuntime
import TarnSchedule

/// The command `tarn approve`. It takes effect at once, or, during a pass of the mirror, as soon as that has
/// ended. An accepted approval is in the agent's record: a later agent carries it out before the mirror's
/// next pass.
extension Agent {
  func approve(_ name: String, plan: String?) throws(ControlFailure) -> ControlAnswer {
    let mirror = try mirror(name)
    guard !mirror.settings.isDryRun else {
      throw ControlFailure(
        .usage, code: "dry-run", "'dry-run' is in the settings of \(name): nothing is changed there",
        hint:
          "remove dry-run below \(TOMLText.mirror(name)) of the settings, then: tarn reload; tarn approve \(ShellWord.quote(name))"
      )
    }
    _ = try ControlFailure.translating { try parts.tarn.dropUnorderedHold(of: mirror.settings) }
    // Works during a pass as well.
    let held = try ControlFailure.translating {
      try parts.tarn.heldPlan(folder: mirror.settings.folder, state: mirror.settings.state, plan: plan)
    }
    let isLater = shared.wait { shared -> Bool? in
      if shared.state.run(of: name) != nil {
        shared.mirrors[name]?.approved = held.id
        return true
      }
      return shared.approving.insert(name).inserted ? false : nil
    }
    if isLater {
      parts.log.tell(.notice, "plan \(held.id) is approved", .of(mirror: name))
      return try keep(
        ControlAnswer(
          approval: ControlApproval(plan: held.id, left: held.count, isDeferred: true),
          "plan \(held.id) of \(name) is carried out as soon as the current pass has ended"))
    }
    defer { shared.change { _ = $0.approving.remove(name) } }
    let report = try ControlFailure.translating { try carryOut(held.id, mirror, stop: StopFlag()) }
    return ControlAnswer(
      approval: ControlApproval(report), "plan \(report.plan.id): \(report.deleted) moved to the trash")
  }

  private func carryOut(
    _ plan: String, _ mirror: AgentMirror, stop: StopFlag
  ) throws(PassFailure) -> ApprovalReport {
    let name = mirror.settings.name
    let report = try parts.tarn.approve(
      folder: mirror.settings.folder, state: mirror.settings.state, plan: plan,
      observer: AgentObserver(mirror: name, agent: self, number: 0), stop: stop,
      ownWrites: shared.withLock { $0.watched[name]?.ownWrites })
    parts.log.tell(
      report.problems.isEmpty ? .notice : .warning,
      "plan \(plan): \(report.deleted) moved to the trash"
        + (report.problems.isEmpty ? "" : ", \(report.problems.count) failed"),
      .of(mirror: name, code: "plan-approved"))
    tellListeners()
    return report
  }

  // MARK: - Beside passes

  /// Waits until no approval of the mirror is at work, then carries out one that was accepted earlier. Runs
  /// on the thread of a pass that begins.
  ///
  /// - Parameter stop: the flag that stops the pass.
  func approveBefore(_ name: String, stop: StopFlag) {
    shared.wait { $0.approving.contains(name) ? nil : () }
    _ = approveAccepted(name, stop: stop)
  }

  /// Carries out an approval that was accepted during a pass. Runs on the thread of that pass, which still
  /// counts as at work.
  ///
  /// - Parameter result: the outcome of the pass, which these deletions alone may have kept from being in
  ///   sync.
  /// - Returns: false when the plan has to wait for the next pass.
  func approveAfter(_ name: String, _ result: inout RunOutcome) -> Bool {
    // The pass has its own flag, which may be set: somebody may have cancelled the pass.
    guard let (approval, isOver) = approveAccepted(name, stop: StopFlag()) else { return true }
    switch approval {
    case .success(let report): if isOver { result.add(report) }
    case .failure(let failure):
      result.message += "; its approved plan cannot go ahead: \(failure.message)"
    }
    return isOver
  }

  /// - Returns: the result, and whether nothing is left to do; `nil` when nothing was accepted. An agent that
  ///   ends leaves the approval to the next one.
  private func approveAccepted(
    _ name: String, stop: StopFlag
  ) -> (Result<ApprovalReport, PassFailure>, isOver: Bool)? {
    let accepted = shared.withLock { shared -> (AgentMirror, String)? in
      guard !shared.isEnding, let mirror = shared.mirrors[name], let plan = mirror.approved else {
        return nil
      }
      shared.mirrors[name]?.work?.stop = stop
      return (mirror, plan)
    }
    guard let (mirror, plan) = accepted else { return nil }
    let result = Result { () throws(PassFailure) in try carryOut(plan, mirror, stop: stop) }
    let isOver: Bool
    switch result {
    case .success(let report): isOver = !report.wasStopped
    case .failure(let failure) where failure.kind == .locked:
      isOver = false
      tellBusy(name, failure.message)
    case .failure(let failure):
      isOver = true
      parts.log.tell(
        .warning, "plan \(plan) was approved and cannot go ahead: \(failure.message)",
        .of(mirror: name, code: failure.code))
    }
    if isOver {
      shared.withLock { shared in
        if shared.mirrors[name]?.approved == plan { shared.mirrors[name]?.approved = nil }
      }
    }
    return (result, isOver)
  }
}

extension RunOutcome {
  /// Adds deletions that were approved during the pass and carried out after it.
  mutating func add(_ report: ApprovalReport) {
    let approved = "; plan \(report.plan.id) was approved: \(report.deleted) moved to the trash"
    words?.counts.deleted += report.deleted
    words?.counts.held = report.left
    words?.counts.failed += report.problems.count
    guard outcome == .held, let words else {
      if let words, code == "partial" { message = words.notInSync }
      return message += approved
    }
    // Files below one that was held are still wanted; the next pass fetches them soon.
    let isWhole = words.counts.wanting == 0
    if isWhole {
      outcome = .succeeded
      (code, level, exitStatus) = ("in-sync", .info, 0)
    } else {
      let mayPass = words.counts.waiting > 0 || report.problems.contains(where: \.mayPass)
      outcome = mayPass ? .failedTransient : .failedPermanent
      code = "partial"
    }
    message = (isWhole ? words.inSync : words.notInSync) + approved
  }
}

extension ControlApproval {
  init(_ report: ApprovalReport) {
    self.init(plan: report.plan.id, left: report.left)
    deleted = report.deleted
    spared = report.spared
    problems = report.problems.prefix(10).map {
      "\($0.kind.rawValue)  \(Printable.escape($0.name)): \($0.message)"
    }
    failed = report.problems.count
  }
}
