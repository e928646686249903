/// Turns the problems that began, changed their kind or ended in one transaction into events of the journal.
///
/// A problem that is dropped and found again in the transaction is no event, nor is another reason of the same kind. `held` is left
/// out as well: a held plan has an event of its own.
package struct ProblemNews: Sendable {
  /// The most events with a path in one transaction. One more event without a path for each code counts the others.
  package static let most = 100
  package static let ended = "recovered"

  private struct Change {
    var before: Problem.Kind?
    var problem: Problem?
    var isUnwanted = false
  }

  private var changes: [[UInt8]: Change] = [:]
  /// The names in the order in which they came first.
  private var names: [[UInt8]] = []

  package init() {}

  /// - Parameters:
  ///   - old: the kind in the ledger before this change.
  ///   - new: the problem in the ledger after it; `nil` for none.
  ///   - isUnwanted: true when it ended because the feed no longer names the entry.
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
