import TarnConfig
package import TarnCore
package import TarnEngine
import TarnFolder
import TarnLedger
import TarnSchedule

/// The journals of mirrors, and what an agent needs to know of the last pass.
extension Tarn {
  /// A mirror to ask: its name and its place.
  package typealias Place = (name: String, folder: String, state: String?)

  /// Returns events. Mirrors that cannot be read are listed beside the events of the others; a mirror that
  /// was never made has none.
  ///
  /// - Parameters:
  ///   - others: mirrors that are left out when they cannot be read.
  ///   - limit: the number of events, 1 to 1,000.
  package func events(
    of places: [Place], and others: [Place] = [], after cursor: EventCursor, limit: Int
  ) -> EventPage {
    withJournals(places, others) { query, unread in
      var page = query.page(after: cursor, limit: limit)
      let all = unread + (page.unread ?? [])
      page.unread = all.isEmpty ? nil : all
      return page
    }
  }

  /// Refuses a place without a mirror.
  ///
  /// - Throws: `folderUnusable`, or the reason why the place cannot be examined.
  package func refuseNoMirror(_ place: Place) throws(PassFailure) {
    _ = try home(place)
  }

  package func eventsEnd(of places: [Place]) -> String {
    withJournals(places, []) { query, _ in query.end().text }
  }

  private func withJournals<Result>(
    _ places: [Place], _ others: [Place], _ body: (EventsQuery, _ unread: [EventPage.Unread]) -> Result
  ) -> Result {
    var journals: [EventsQuery.Journal] = []
    var unread: [EventPage.Unread] = []
    defer { for journal in journals { journal.ledger.close() } }
    for place in places {
      do throws(PassFailure) {
        journals.append(try journal(place))
      } catch {
        guard error.code != "no-folder", error.code != "not-a-mirror" else { continue }
        unread.append(EventPage.Unread(place.name, error))
      }
    }
    for place in others {
      guard let journal = try? journal(place) else { continue }
      if (try? journal.ledger.lastEvent()) != nil { journals.append(journal) } else { journal.ledger.close() }
    }
    return body(EventsQuery(journals), unread)
  }

  private func home(_ place: Place) throws(PassFailure) -> FolderHome {
    let isNamed = configured(place.name) != nil
    return try home(folder: place.folder, state: place.state, name: isNamed ? place.name : nil)
  }

  private func journal(_ place: Place) throws(PassFailure) -> EventsQuery.Journal {
    let home = try home(place)
    return EventsQuery.Journal(mirror: place.name, id: home.id, ledger: try readLedger(home))
  }

  /// Reads the last pass and the last success from the ledger; empty when that cannot be read.
  func history(of settings: MirrorSettings) -> RunSchedule.History {
    let facts = facts([.attempt, .success, .outcome, .feed], settings.folder, settings.state)
    var history = RunSchedule.History()
    history.lastAttempt = facts[.attempt].flatMap { Timestamp(rfc3339: $0) }
    // Results of another feed tell nothing of this one.
    if facts[.feed].map({ isFeed($0, of: settings) }) ?? true {
      history.lastSuccess = facts[.success].flatMap { Timestamp(rfc3339: $0) }
    }
    history.wasCutShort = ["running", "stopped"].contains(facts[.outcome])
    return history
  }

  /// True once a pass has read a feed. A pass that fails before that leaves nothing behind.
  func followsFeed(folder: String, state: String?) -> Bool { !facts([.feed], folder, state).isEmpty }

  /// Reads facts from the ledger, as far as they are readable.
  private func facts(_ names: [LedgerFact], _ folder: String, _ state: String?) -> [LedgerFact: String] {
    guard let home = try? home(folder: folder, state: state), let ledger = try? readLedger(home) else {
      return [:]
    }
    defer { ledger.close() }
    return names.reduce(into: [:]) { facts, name in facts[name] = (try? ledger.fact(name)) ?? nil }
  }
}
