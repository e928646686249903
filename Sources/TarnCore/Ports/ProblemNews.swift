/// Which problems of entries began, changed their kind or ended in one transaction, as events of its journal.
///
/// What is dropped and found again in between is no news, nor is another reason of the same kind. What waits for somebody (`held`)
/// is none either: a plan that is held has an event of its own.
package struct ProblemNews: Sendable {
  /// Events with a path in one transaction; one more without a path says that there are others.
  package static let most = 100
  package static let ended = "recovered"

  private struct Change {
    var before: Problem.Kind?
    var problem: Problem?
    var isUnwanted = false
  }

  private var changes: [[UInt8]: Change] = [:]
  /// In the order in which they came first.
  private var names: [[UInt8]] = []

  package init() {}

  /// - Parameters:
  ///   - old: as the ledger had it before this change.
  ///   - new: as it has it now; nil for none.
  ///   - isUnwanted: it has ended because the feed does not name the entry any more.
  package mutating func note(
    _ name: [UInt8], from old: Problem.Kind?, to new: Problem?, isUnwanted: Bool = false
  ) {
    guard old != nil || new != nil || changes[name] != nil else { return }
    if changes[name] == nil {
      changes[name] = Change(before: old)
      names.append(name)
    }
    changes[name]?.problem = new
    if old != nil || new != nil { changes[name]?.isUnwanted = isUnwanted }
  }

  package func events(when: Timestamp) -> [Event] {
    var events: [Event] = []
    var others: [(code: String, count: Int)] = []
    for name in names {
      guard let change = changes[name], let event = Self.event(name, change, when) else { continue }
      if events.count < Self.most {
        events.append(event)
      } else if let index = others.firstIndex(where: { $0.code == event.code }) {
        others[index].count += 1
      } else {
        others.append((event.code, 1))
      }
    }
    return events
      + others.map { code, count in
        Event(when: when, code: code, detail: "\(Units.count(count, "more entry")): tarn status -v")
      }
  }

  private static func event(_ name: [UInt8], _ change: Change, _ when: Timestamp) -> Event? {
    let (before, after) = (told(change.before), told(change.problem?.kind))
    guard before != after else { return nil }
    var event = Event(when: when, code: ended, path: try? RelativePath(name))
    if let after, let problem = change.problem {
      event.code = after.rawValue
      event.detail = problem.message
    } else if let before {
      event.detail =
        before == .conflict ? "was in conflict" : before == .refused ? "was refused" : "had failed"
      // A listing has no path, and no feed names it.
      if change.isUnwanted, event.path != nil || before == .refused {
        event.detail += ", and is no longer wanted"
      }
    }
    if event.path == nil { event.detail = "\(Printable.escape(name)): \(event.detail)" }
    return event
  }

  private static func told(_ kind: Problem.Kind?) -> Problem.Kind? { kind == .held ? nil : kind }
}
