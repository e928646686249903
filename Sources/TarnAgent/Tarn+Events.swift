package import TarnCore
package import TarnEngine
import TarnFolder
import TarnLedger

/// The journals of mirrors, and what an agent wants to know of the last pass.
extension Tarn {
  /// A mirror to be asked: how it is called, and where it lies.
  package typealias Place = (name: String, folder: String, state: String?)

  /// - Parameters:
  ///   - others: left out where they cannot be read.
  ///   - limit: 1 to 1,000.
  /// - Throws: what keeps a ledger from being read; a mirror that is not made yet has no events.
  package func events(
    of places: [Place], and others: [Place] = [], after cursor: EventCursor, limit: Int
  ) throws(PassFailure) -> EventPage {
    try withJournals(places, others) { query throws(LedgerFailure) in
      try query.page(after: cursor, limit: limit)
    }
  }

  /// Refuses what is no mirror.
  ///
  /// - Throws: `folderUnusable`, or what keeps it from being looked at.
  package func refuseNoMirror(_ place: Place) throws(PassFailure) {
    _ = try home(place)
  }

  package func eventsEnd(of places: [Place]) throws(PassFailure) -> String {
    try withJournals(places, []) { query throws(LedgerFailure) in try query.end().text }
  }

  private func withJournals<Result>(
    _ places: [Place], _ others: [Place], _ body: (EventsQuery) throws(LedgerFailure) -> Result
  ) throws(PassFailure) -> Result {
    var journals: [EventsQuery.Journal] = []
    defer { for journal in journals { journal.ledger.close() } }
    for place in places {
      do throws(PassFailure) {
        journals.append(try journal(place))
      } catch {
        guard error.code == "no-folder" || error.code == "not-a-mirror" else { throw error }
      }
    }
    for place in others {
      guard let journal = try? journal(place) else { continue }
      if (try? journal.ledger.lastEvent()) != nil { journals.append(journal) } else { journal.ledger.close() }
    }
    let query = EventsQuery(journals)
    return try PassFailure.translating { try body(query) }
  }

  private func home(_ place: Place) throws(PassFailure) -> FolderHome {
    let isNamed = configured(place.name) != nil
    return try home(folder: place.folder, state: place.state, name: isNamed ? place.name : nil)
  }

  private func journal(_ place: Place) throws(PassFailure) -> EventsQuery.Journal {
    let home = try home(place)
    return EventsQuery.Journal(mirror: place.name, id: home.id, ledger: try readLedger(home))
  }

  /// When the last pass began and the last success was, both nil for a mirror that cannot be read; and whether that pass did not
  /// come to its end.
  func lastPass(
    folder: String, state: String?
  ) -> (attempt: Timestamp?, success: Timestamp?, wasCutShort: Bool) {
    guard let home = try? home(folder: folder, state: state), let ledger = try? readLedger(home) else {
      return (nil, nil, false)
    }
    defer { ledger.close() }
    func moment(_ fact: LedgerFact) -> Timestamp? {
      (try? ledger.fact(fact)).flatMap { $0 }.flatMap { Timestamp(rfc3339: $0) }
    }
    let outcome = (try? ledger.fact(.outcome)).flatMap { $0 }
    return (moment(.attempt), moment(.success), outcome == "running" || outcome == "stopped")
  }

  /// Whether a pass of it has read a feed so far: until then a pass that fails leaves nothing behind.
  func followsFeed(folder: String, state: String?) -> Bool {
    guard let home = try? home(folder: folder, state: state), let ledger = try? readLedger(home) else {
      return false
    }
    defer { ledger.close() }
    return (try? ledger.fact(.feed)).flatMap { $0 } != nil
  }
}
