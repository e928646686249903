import TarnCore
import TestSupport
import Testing

@testable import TarnEngine

/// Several journals as one.
@Suite struct EventsQueryTests {
  private static let ids = ["a": "aaaaaaaa11111111", "b": "bbbbbbbb22222222"]

  private func journal(_ name: String, _ seconds: [Int64]) throws -> EventsQuery.Journal {
    let ledger = MemoryLedger()
    try ledger.apply(
      seconds.map { .event(Event(when: Timestamp(seconds: $0)!, code: "fetched", detail: "\(name)\($0)")) })
    return EventsQuery.Journal(mirror: name, id: Self.ids[name] ?? "", ledger: ledger)
  }

  /// All events by pages of that size, each page asked with the cursor's text.
  private func all(_ query: EventsQuery, limit: Int) throws -> [String] {
    var found: [String] = []
    var cursor = EventCursor()
    while true {
      let page = query.page(after: cursor, limit: limit)
      found += page.events.map { $0.detail ?? $0.code }
      #expect(page.events.count <= limit)
      #expect(page.events.last.map { $0.cursor == page.cursor } ?? true)
      cursor = try #require(EventCursor(page.cursor))
      if !page.hasMore { return found }
    }
  }

  @Test(arguments: [1, 2, 3, 100]) func theyComeByTimeAndNoneIsMissed(limit: Int) throws {
    let query = EventsQuery([try journal("a", [10, 30, 50]), try journal("b", [20, 30, 40, 60])])
    #expect(try all(query, limit: limit) == ["a10", "b20", "a30", "b30", "b40", "a50", "b60"])
  }

  /// The names in it are escaped already. Nothing else gets to a terminal as it is.
  @Test func whatIsEscapedIsNotEscapedAgain() throws {
    let event = Event(
      when: try #require(Timestamp(seconds: 1)), code: "refused", detail: "tab\\tx: a\u{1B}[31m")
    #expect(EventDocument(event, mirror: "m", cursor: "").detail == "tab\\tx: a\\x1b[31m")
  }

  @Test func eachEventsOwnCursorGoesOnAfterIt() throws {
    let query = EventsQuery([try journal("a", [10, 30]), try journal("b", [20, 40])])
    let page = query.page(after: EventCursor(), limit: 10)
    for (index, event) in page.events.enumerated() {
      let rest = query.page(after: try #require(EventCursor(event.cursor)), limit: 10)
      #expect(rest.events.map(\.detail) == page.events.dropFirst(index + 1).map(\.detail))
    }
  }

  @Test func aPlaceTellsOfWhichJournalItsEventIs() throws {
    let a = try journal("a", [10, 30])
    let known = EventsQuery([a]).end(EventCursor())
    try a.ledger.apply([.event(Event(when: Timestamp(seconds: 50)!, code: "deleted"))])
    let page = EventsQuery([a, try journal("b", [20, 40, 60])]).page(after: known, limit: 10)
    var previous = known
    let isKnown = try page.events.map { event in
      let place = try #require(EventCursor(event.cursor))
      defer { previous = place }
      return place.isOfJournal(in: known, after: previous)
    }
    #expect(isKnown == [false, false, true, false])
  }

  @Test func withinAMirrorNumbersGoBeforeClocks() throws {
    // The clock was set back between the two.
    let query = EventsQuery([try journal("a", [50, 10]), try journal("b", [20])])
    #expect(try all(query, limit: 1) == ["b20", "a50", "a10"])
  }

  @Test func theEndIsAfterTheNewestAndKnowsWhatCameLater() throws {
    let a = try journal("a", [10])
    let query = EventsQuery([a, try journal("b", [])])
    let end = query.end()
    #expect(query.page(after: end, limit: 10).events.isEmpty)
    try a.ledger.apply([.event(Event(when: Timestamp(seconds: 5)!, code: "deleted"))])
    #expect(query.page(after: end, limit: 10).events.map(\.code) == ["deleted"])
  }

  @Test func whatIsGoneIsSaid() throws {
    let a = try journal("a", [10, 20, 30])
    try a.ledger.apply([.pruneEvents(keeping: 1, before: .distantFuture, now: Timestamp(seconds: 1_000_000)!)]
    )
    let query = EventsQuery([a])
    let page = query.page(after: EventCursor(), limit: 10)
    #expect(page.events.map(\.code) == ["events-dropped", "fetched"])
    #expect(page.events.first?.number == 2)
    // Who was beyond it hears nothing of it.
    let later = query.page(after: try #require(EventCursor(page.events[0].cursor)), limit: 10)
    #expect(later.events.map(\.code) == ["fetched"])
  }

  /// As a person gives it, who has seen an event with that number.
  @Test func theNumberOfAnEventIsAPlace() throws {
    let query = EventsQuery([try journal("a", [10, 30, 50])])
    let page = query.page(after: try #require(EventCursor("1")), limit: 1)
    #expect(page.events.map(\.number) == [2])
    #expect(
      query.page(after: try #require(EventCursor(page.cursor)), limit: 9).events.map(\.number) == [3])
    // Nothing came after it: the place is that of the journal, and of no other.
    let end = query.page(after: try #require(EventCursor("3")), limit: 1)
    #expect(end.events.isEmpty && end.cursor == "1.aaaaaaaa-3")
    #expect(EventCursor().text == "0" && EventCursor("0") == EventCursor())
  }

  @Test func aMirrorThatIsNotAskedForKeepsItsPlace() throws {
    let a = try journal("a", [10, 30])
    let b = try journal("b", [20])
    let both = EventsQuery([a, b]).page(after: EventCursor(), limit: 2)
    let one = EventsQuery([a]).page(after: try #require(EventCursor(both.cursor)), limit: 10)
    #expect(one.events.map(\.detail) == ["a30"])
    #expect(
      EventsQuery([a, b]).page(after: try #require(EventCursor(one.cursor)), limit: 9).events.isEmpty)
  }

  @Test func oneThatCannotBeReadHidesNoOther() throws {
    let (a, b) = (try journal("a", [10, 30]), try journal("b", [20]))
    b.ledger.close()
    let page = EventsQuery([b, a]).page(after: EventCursor(), limit: 10)
    #expect(page.events.map(\.detail) == ["a10", "a30"])
    #expect(page.unread?.map(\.mirror) == ["b"] && page.unread?.first?.exitStatus == 74)
    #expect(EventsQuery([b, a]).end().text == page.cursor)
  }

  @Test(
    arguments: [
      "", "-1", "+1", "99999999999999999999", "1.", "1.aaaaaaaa", "1.aaaaaaaa-", "1.aaaaaaaa-x",
      "1.aaaaaaaa--1", "1.zzzzzzzz-1", "1.aaaa-1",
      "1.aaaaaaaa-99999999999999999999", "1 ", "1.aaaaaaaa-1\n",
    ])
  func whatIsNoCursorIsRefused(text: String) {
    #expect(EventCursor(text) == nil)
  }

  @Test func pathsAreSafeAndWhole() throws {
    let ledger = MemoryLedger()
    let path = try RelativePath([0x66, 0xFF])
    try ledger.apply([.event(Event(when: Timestamp(seconds: 1)!, code: "fetched", path: path, bytes: 7))])
    let page = EventsQuery([EventsQuery.Journal(mirror: "m", id: "cccccccc", ledger: ledger)]).page(
      after: EventCursor(), limit: 1)
    #expect(page.events.first?.path == "f\\xff")
    #expect(page.events.first?.pathBytes == "Zv8=")
    #expect(page.events.first?.bytes == 7)
  }
}
