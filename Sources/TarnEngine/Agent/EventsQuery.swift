package import TarnCore

/// The place of a reader of several journals: the number of the last event that was read in each. It is opaque to users. The number
/// of an event alone is a place in the journal of one mirror.
package struct EventCursor: Sendable, Hashable {
  /// The numbers by the first digits of the id in the mirror's marker. A folder that was made anew begins anew.
  private(set) var numbers: [String: Int64] = [:]
  /// The number of an event, as a person gives it, which applies to every journal that is asked. 0 for the beginning.
  package let number: Int64

  /// Makes the place at the beginning.
  package init() {
    number = 0
  }

  /// The cursor as text: `1`, then `.ID-NUMBER` for each journal. The number alone when no journal is named.
  package var text: String {
    guard !numbers.isEmpty else { return String(number) }
    return "1" + numbers.sorted { $0.key < $1.key }.map { ".\($0.key)-\($0.value)" }.joined()
  }

  /// - Returns: the cursor; `nil` when the text is none of Tarn's.
  package init?(_ text: String) {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    if parts.count == 1 {
      guard text.utf8.allSatisfy({ $0.isASCIIDigit }), let number = Int64(text) else { return nil }
      self.number = number
      return
    }
    number = 0
    guard parts.first == "1", parts.count <= Self.mostJournals + 1 else { return nil }
    for part in parts.dropFirst() {
      let pair = part.split(separator: "-", omittingEmptySubsequences: false)
      guard pair.count == 2, pair[0].utf8.count == Self.digits, let number = Int64(pair[1]), number >= 0,
        pair[0].utf8.allSatisfy({ $0.hexDigitValue != nil })
      else { return nil }
      numbers[String(pair[0])] = number
    }
  }

  /// Returns whether an event belongs to a journal that `known` names. This cursor is the event's, and `previous` is that of the
  /// event before it.
  package func isOfJournal(in known: EventCursor, after previous: EventCursor) -> Bool {
    numbers.allSatisfy { $0.value == previous.numbers[$0.key] || known.numbers[$0.key] != nil }
  }

  subscript(id: String) -> Int64 {
    get { numbers[Self.key(id)] ?? number }
    set { numbers[Self.key(id)] = newValue }
  }

  private static func key(_ id: String) -> String { String(id.prefix(digits)) }

  private static let digits = 8
  private static let mostJournals = 10_000
}

/// Answers from the journals of several mirrors, in the order of time. Only reads; thread-safe.
package struct EventsQuery {
  package struct Journal: Sendable {
    package var mirror: String
    /// The id in the mirror's marker.
    package var id: String
    package var ledger: any LedgerPort

    package init(mirror: String, id: String, ledger: any LedgerPort) {
      self.mirror = mirror
      self.id = id
      self.ledger = ledger
    }
  }

  private let journals: [Journal]

  package init(_ journals: [Journal]) {
    self.journals = journals
  }

  /// Returns the place after the newest events.
  ///
  /// - Parameter cursor: a place whose numbers are kept for other journals, and for journals that cannot be read.
  package func end(_ cursor: EventCursor = EventCursor()) -> EventCursor {
    var cursor = cursor
    for journal in journals {
      if let last = try? journal.ledger.lastEvent() { cursor[journal.id] = last }
    }
    return cursor
  }

  /// Returns the next events after a place: of one mirror in the order of their numbers, of several by time. A journal that cannot
  /// be read does not hold up the others.
  ///
  /// - Parameter limit: the most events, at least 1.
  package func page(after cursor: EventCursor, limit: Int) -> EventPage {
    var heads: [Head] = []
    var unread: [EventPage.Unread] = []
    for journal in journals {
      do throws(LedgerFailure) {
        heads.append((journal, try Self.events(of: journal, after: cursor[journal.id], limit: limit + 1)))
      } catch {
        unread.append(EventPage.Unread(journal.mirror, PassFailure(error)))
      }
    }
    var place = cursor
    // Journals are named from here on, because a number alone would also apply to another journal.
    if cursor.number > 0 { for journal in journals { place[journal.id] = cursor[journal.id] } }
    var documents: [EventDocument] = []
    while documents.count < limit, let index = Self.next(heads), let event = heads[index].events.popFirst() {
      let journal = heads[index].journal
      place[journal.id] = max(place[journal.id], event.number)
      documents.append(EventDocument(event, mirror: journal.mirror, cursor: place.text))
    }
    var page = EventPage(
      events: documents, cursor: place.text, hasMore: heads.contains { !$0.events.isEmpty })
    page.unread = unread.isEmpty ? nil : unread
    return page
  }

  private static func events(
    of journal: Journal, after: Int64, limit: Int
  ) throws(LedgerFailure) -> ArraySlice<Event> {
    var events = try journal.ledger.events(after: after, limit: limit)
    let dropped = try journal.ledger.fact(.eventsDropped).flatMap { Int64($0) } ?? 0
    if dropped > after { events.insert(marker(dropped, before: events.first), at: 0) }
    return events[...]
  }

  private typealias Head = (journal: Journal, events: ArraySlice<Event>)

  /// Returns the index of the journal whose next event is the oldest.
  private static func next(_ heads: [Head]) -> Int? {
    heads.indices.filter { !heads[$0].events.isEmpty }.min { left, right in
      (heads[left].events.first?.when.nanoseconds ?? 0, heads[left].journal.mirror)
        < (heads[right].events.first?.when.nanoseconds ?? 0, heads[right].journal.mirror)
    }
  }

  /// Returns an event that names the numbers that are gone, with the time of the first event that is left.
  private static func marker(_ dropped: Int64, before event: Event?) -> Event {
    Event(
      number: dropped, when: event?.when ?? Timestamp(nanoseconds: 0), code: "events-dropped",
      detail: "the events up to this number are gone")
  }
}

extension EventDocument {
  package init(_ event: Event, mirror: String, cursor: String) {
    self.init(
      number: event.number, mirror: mirror, time: event.when.rfc3339, code: event.code, cursor: cursor)
    if let name = event.path {
      path = name.printable
      pathBytes = name.printable.utf8.elementsEqual(name.bytes) ? nil : Base64.encode(name.bytes)
    }
    bytes = event.bytes
    detail = event.detail.isEmpty ? nil : Message.safe(event.detail)
  }
}
