import TarnConfig
import TarnCore
import TarnEngine
import TarnRuntime
import TarnTransfer

/// Orders for single transfers, whose TARGET is `MIRROR:PATH`.
extension Agent {
  /// Gives an order for a transfer. Blocks until the pass at work has taken it.
  func steer(_ command: ControlCommand, _ name: String, _ bytes: [UInt8]) throws(ControlFailure)
    -> ControlAnswer
  {
    let path: RelativePath
    do throws(PathRefusal) {
      path = try RelativePath(bytes)
    } catch {
      throw ControlFailure(
        .usage, code: "bad-path", "'\(Printable.escape(bytes))' is no path: \(error.reason)")
    }
    let steering = try mirror(name).steering
    let target = "\(name):\(path.printable)"
    let (order, done, wasSo): (PassSteering.Order, String, String)
    switch command.verb {
    case .cancel:
      order = .cancel
      (done, wasSo) = ("the transfer of \(target) ends; the next pass tries again", "it ends already")
    case .retry:
      guard !steering.paused.contains(path) else {
        throw ControlFailure(
          .usage, code: "paused", "\(target) is paused: no pass tries it until it is resumed",
          hint: "tarn resume \(ShellWord.quote(target))")
      }
      budget.tryNow(mirror: name)
      order = .retry
      done = "\(target) is tried now, in the pass at work"
      wasSo = "\(target) does not wait: it is at work"
    case .prioritize where command.priority == .high || command.priority == nil:
      order = .prioritize
      (done, wasSo) = ("\(target) gets the next connection", "\(target) has priority already")
    case .pause:
      order = .pause
      done = "\(target) is paused until 'tarn resume \(ShellWord.quote(target))'"
      wasSo = "\(target) is paused already"
    case .resume: return try resumeTransfer(name, path, steering, target)
    case .sync, .approve, .prioritize:
      throw ControlFailure(
        .usage, code: "not-of-a-path", "\(command.verb.rawValue) takes whole mirrors only",
        hint: "name the mirror alone: \(name)")
    }
    let given = steering.give(order, path)
    if given == .notThere {
      if order == .retry, let answer = try retryLater(name, path, target) { return answer }
      throw ControlFailure(
        .notFound, code: "no-such-transfer", "\(target) is not being transferred",
        hint:
          "what is: tarn status --watch \(name); why this is not: tarn explain \(name) \(ShellWord.quote(bytes: bytes))"
      )
    }
    let answer = ControlAnswer(given == .done ? done : wasSo, wasSo: given == .wasSo)
    // Only the pause of a transfer outlives the agent.
    return order == .pause ? try keep(answer) : answer
  }

  private func resumeTransfer(
    _ name: String, _ path: RelativePath, _ steering: PassSteering, _ target: String
  ) throws(ControlFailure) -> ControlAnswer {
    guard steering.resume(path) else {
      return try keep(ControlAnswer("\(target) is not paused", wasSo: true))
    }
    if steering.give(.retry, path) == .done {
      return try keep(ControlAnswer("\(target) goes on, in the pass at work"))
    }
    let mirror = try mirror(name)
    if !mirror.works.isEmpty, state(of: path, mirror.settings) == "pending" {
      return try keep(ControlAnswer("\(target) goes on: it waits for its turn in the pass at work"))
    }
    return try keep(inNextPass(name, "\(target) goes on", isAtWork: !mirror.works.isEmpty))
  }

  /// Leaves a path that no pass works on, and that is not in place, to the next pass.
  ///
  /// - Returns: `nil` for a path that no pass would fetch.
  private func retryLater(
    _ name: String, _ path: RelativePath, _ target: String
  ) throws(ControlFailure) -> ControlAnswer? {
    let mirror = try mirror(name)
    let state = state(of: path, mirror.settings)
    let isAtWork = !mirror.works.isEmpty
    if state == "pending", isAtWork {
      return ControlAnswer("\(target) waits for its turn in the pass at work", wasSo: true)
    }
    guard let state, ["failed", "missing", "changed", "pending"].contains(state) else { return nil }
    return try inNextPass(name, "\(target) is tried", isAtWork: isAtWork)
  }

  /// The state that `tarn explain` tells; `nil` when it knows nothing of the path.
  private func state(of path: RelativePath, _ settings: MirrorSettings) -> String? {
    try? parts.tarn.explain(
      folder: settings.folder, state: settings.state, path: path.bytes, name: path.bytes
    ).state
  }

  private func inNextPass(
    _ name: String, _ what: String, isAtWork: Bool
  ) throws(ControlFailure) -> ControlAnswer {
    var answer = try perform(ControlCommand(.sync, ControlTarget(mirror: name)))
    answer.message =
      "\(what) in the next pass, which begins as soon as "
      + (isAtWork ? "the one at work has ended" : "a slot is free")
    return answer
  }
}
