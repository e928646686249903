import Logging
import TarnConfig
import TarnCore
import TarnEngine
import TarnRuntime
import TarnSchedule

/// Notifies hooks of passes.
extension Agent {
  /// Tells the log and hooks that a pass has the folder and begins its work. Other reporters, such as repairs, are
  /// ignored.
  func tellBegun(_ name: String, _ number: UInt64) {
    let begun = shared.withLock { shared -> (AgentMirror, AgentWork)? in
      guard let mirror = shared.mirrors[name], let work = mirror.work, work.run == number, !work.hasBegun
      else { return nil }
      shared.mirrors[name]?.work?.hasBegun = true
      return (mirror, work)
    }
    guard let (mirror, work) = begun else { return }
    parts.log.tell(.info, "a pass begins", .of(mirror: name))
    hooks.tell(.started, of: name) {
      newDocument(.started, mirror, work)
    }
  }

  /// - Parameters:
  ///   - mirror: the mirror with its pass, as it was before the end.
  ///   - condition: the mirror's condition now.
  func tellEnded(_ mirror: AgentMirror, _ condition: MirrorCondition?, _ result: RunOutcome) {
    guard let work = mirror.work, ![.cancelled, .busy].contains(result.outcome) else { return }
    var events = [HookEvent.ended]
    if let change = condition?.event(after: mirror.condition) { events.append(change) }
    for event in events {
      hooks.tell(event, of: mirror.settings.name) {
        var document = newDocument(event, mirror, work)
        document.state = condition
        document.setEnd(code: result.code, message: result.messageForHooks, hint: result.hint)
        document.exitStatus = result.exitStatus
        document.hasReport = result.words != nil
        (document.counts, document.bytes) = (result.words?.counts.named, result.words?.report.bytes.named)
        document.setText()
        return document
      }
    }
  }

  private func newDocument(_ event: HookEvent, _ mirror: AgentMirror, _ work: AgentWork) -> HookDocument {
    var document = HookDocument(
      id: parts.random.uuid(), time: parts.clock.time, event: event, mirror: mirror.settings.name,
      feed: Redaction.text(mirror.settings.feed), folder: mirror.settings.folder, run: work.run,
      rid: work.rid,
      host: hooks.host)
    (document.state, document.before) = (mirror.condition, mirror.condition)
    document.setText()
    return document
  }
}

extension MirrorCondition {
  /// `nil` for an outcome that tells nothing of the mirror.
  init?(_ outcome: RunSchedule.Outcome?) {
    switch outcome {
    case .succeeded: self = .good
    case .failedTransient, .failedPermanent: self = .failing
    case .held: self = .held
    case .cancelled, .busy, nil: return nil
    }
  }
}
