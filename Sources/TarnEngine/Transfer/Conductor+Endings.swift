import TarnCore
import TarnRuntime

/// What follows from the end of an exchange.
extension Conductor {
  /// - Parameter received: bytes that came for the file in this exchange.
  func ended(_ id: UInt64, _ end: JobEnd, received: UInt64) throws {
    guard jobs[id] != nil else { return }
    if let atHand = end.atHand { jobs[id]?.partial = atHand.partial }
    if isOfNoUse(id, end) { return cancelled(id, end) }
    guard
      let (step, discards) = jobs[id]?.attempts.next(
        after: end, received: received, retry: retry, random: ports.random)
    else { return }
    if discards {
      jobs[id]?.partial?.discard()
      jobs[id]?.partial = nil
    }
    try take(step, of: id)
  }

  /// Nobody waits for what the exchange would have brought.
  private func isOfNoUse(_ id: UInt64, _ end: JobEnd) -> Bool {
    switch end {
    case .network(let failure, _, _) where failure.code == .cancelled: true
    case .folder(let failure, _, _) where failure.code == .pieceMismatch:
      jobs[id]?.isOvertaken == true || abandoned.contains(id)
    default: false
    }
  }

  private func take(_ step: Attempts.Step, of id: UInt64) throws {
    switch step {
    case .publish(let partial, let sealed, let head): try publish(id, partial, sealed, head: head)
    case .seal: sealWhole(id)
    case .unchanged: if let job = jobs[id] { try revalidated(job) }
    case .lacksSpace(let failure): lackSpace(id, failure)
    case .fail(let failure): giveUp(id, code: failure.code.rawValue, message: failure.message)
    case .ask, .wait, .exhausted:
      guard !stop.isSet else { return drop(id) }
      if !endSteered(id) { tryAgain(id, step) }
    }
  }

  /// Asks again, unless no source is left.
  private func tryAgain(_ id: UInt64, _ step: Attempts.Step) {
    guard let job = jobs[id] else { return }
    func tell(_ message: String, seconds: Double = 0) {
      observer.pass(.retrying(path: job.entry.path, message: message, seconds: seconds))
    }
    switch step {
    case .ask(let told):
      if let told { tell(told) }
      go(id)
    case .wait(let seconds, let told, let isNewRound):
      tell(told, seconds: seconds)
      // Wanted during the attempt that failed.
      let isWanted = job.wishes != steering?.wishes
      if seconds > 0, !isWanted { delay(id, seconds: seconds) } else { go(id) }
      if isNewRound { ready += duplicates.failed(job) }
    case .exhausted(let code, let message): forsake(id, code: code, message: message)
    case .publish, .seal, .unchanged, .lacksSpace, .fail: break
    }
  }

  /// - Parameter failure: nil where its size was not known.
  private func lackSpace(_ id: UInt64, _ failure: FolderFailure?) {
    guard let job = jobs[id] else { return }
    let isOfKernel = failure.map { $0.errno != 0 } ?? false
    if isOfKernel { space.doubt() }
    let failure = failure ?? FolderFailure(.noSpace, space.refusal(nil))
    guard squeeze(id) else { return giveUp(id, code: failure.code.rawValue, message: failure.message) }
    // The kernel refused it, which is said even if all comes right; what only would not fit beside others waits in silence.
    guard isOfKernel else { return }
    let message = "\(job.entry.path.printable): \(failure.message); tried again when the others are over"
    observer.pass(.notice(code: failure.code.rawValue, message: message))
  }
}
