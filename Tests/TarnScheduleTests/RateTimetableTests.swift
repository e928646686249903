import TarnCore
import TestSupport
import Testing

@testable import TarnSchedule

@Suite struct RateTimetableTests {
  private static let berlin = TimeZoneRules(posix: "CET-1CEST,M3.5.0,M10.5.0/3")!

  private func table(_ rows: [(String, UInt64?)], standard: UInt64? = nil) throws -> RateTimetable {
    RateTimetable(try rows.map { try RateTimetable.Row($0.0, limit: $0.1) }, standard: standard)
  }

  @Test func theFirstRowThatHoldsDecides() throws {
    let table = try table([("08:00-18:00", 2), ("17:00-20:00", 3), ("00:00-24:00", nil)], standard: 9)
    for (time, limit) in [
      ("07:59:59", nil), ("08:00:00", 2), ("17:59:59", 2), ("18:00:00", 3), ("20:00:00", nil),
    ] as [(String, UInt64?)] {
      #expect(table.limit(at: instant("2026-11-20T" + time), in: .utc) == limit, "\(time)")
    }
    #expect(try self.table([], standard: 9).limit(at: instant("2026-11-20"), in: .utc) == 9)
  }

  /// 2026-11-20 is a Friday.
  @Test func aSpanOverMidnightBelongsToItsFirstDay() throws {
    let table = try table([("Fri 22:00-06:00", 5)], standard: 1)
    for (time, limit) in [
      ("2026-11-20T05:00:00", 1), ("2026-11-20T21:59:59", 1), ("2026-11-20T22:00:00", 5),
      ("2026-11-21T05:59:59", 5),
      ("2026-11-21T06:00:00", 1), ("2026-11-21T23:00:00", 1),
    ] as [(String, UInt64)] {
      #expect(table.limit(at: instant(time), in: .utc) == limit, "\(time)")
    }
    #expect(
      table.nextChange(after: instant("2026-11-20T22:00:00"), in: .utc) == instant("2026-11-21T06:00:00"))
    #expect(
      table.nextChange(after: instant("2026-11-21T06:00:00"), in: .utc) == instant("2026-11-27T22:00:00"))
  }

  @Test func daysOfTheWeek() throws {
    let table = try table([("Mon..Fri 08:00-18:00", 2), ("Sun 12:00-11:59", 3)], standard: nil)
    #expect(table.limit(at: instant("2026-11-20T10:00:00"), in: .utc) == 2)
    #expect(table.limit(at: instant("2026-11-21T10:00:00"), in: .utc) == nil)
    // Until the next noon, nearly.
    #expect(table.limit(at: instant("2026-11-23T07:00:00"), in: .utc) == 3)
    #expect(table.limit(at: instant("2026-11-22T11:00:00"), in: .utc) == nil)
  }

  @Test func changesAreFoundAcrossChangedClocks() throws {
    let table = try table([("02:30-04:00", 2)], standard: nil)
    // 02:30 is left out: the span begins when the clocks show 03:00.
    #expect(
      table.nextChange(after: instant("2026-03-28T23:00:00"), in: Self.berlin)
        == instant("2026-03-29T01:00:00"))
    // 02:30 comes twice: in between the clocks show 02:00 again.
    var changes: [String] = []
    var last = instant("2026-10-24T22:00:00")
    for _ in 0..<4 {
      guard let next = table.nextChange(after: last, in: Self.berlin) else { break }
      changes.append(next.rfc3339)
      last = next
    }
    #expect(
      changes == [
        "2026-10-25T00:30:00Z", "2026-10-25T01:00:00Z", "2026-10-25T01:30:00Z", "2026-10-25T03:00:00Z",
      ])
  }

  @Test func nothingChangesInOneRate() throws {
    #expect(try table([], standard: 4).nextChange(after: instant("2026-11-20"), in: .utc) == nil)
    #expect(
      try table([("08:00-18:00", 4)], standard: 4).nextChange(after: instant("2026-11-20"), in: .utc) == nil)
    #expect(
      try table([("00:00-24:00", 4)], standard: 5).nextChange(after: instant("2026-11-20"), in: .utc) == nil)
  }

  /// Against a walk minute by minute.
  @Test(arguments: 1...20) func theNextChangeIsTheFirst(seed: Int) throws {
    var random = Seeded(UInt64(seed))
    func time(_ minute: Int) -> String { "\(minute / 60):\(minute % 60)" }
    let rows = try (0...random.below(4)).map { _ in
      let days = random.pick(["", "Mon..Fri ", "Sat,Sun ", "Wed "])
      let start = random.below(1440)
      let span = time(start) + "-" + time((start + random.below(1439)) % 1440 + 1)
      return try RateTimetable.Row(days + span, limit: UInt64(random.below(3)))
    }
    let table = RateTimetable(rows, standard: 7)
    let start = instant("2026-03-27").adding(seconds: Int64(random.below(86_400)))
    let limit = table.limit(at: start, in: Self.berlin)
    let walked = (1...8 * 1440).lazy.map { start.adding(seconds: Int64($0) * 60 - (start.seconds % 60)) }
      .first { table.limit(at: $0, in: Self.berlin) != limit }
    #expect(table.nextChange(after: start, in: Self.berlin) == walked)
  }

  @Test(arguments: [
    ("", 0), ("8-18", 1), ("08:00", 5), ("08:00-", 6), ("08:00-25:00", 6), ("08:60-09:00", 3),
    ("24:00-06:00", 0),
    ("08:00-24:01", 6), ("08:00-00:00", 6), ("08:00-18:00 UTC", 11), ("Fri..Mon 08:00-18:00", 5), ("Mon", 3),
    ("08:00-08:00", 6), ("00:00-00:00", 6), ("Sun 12:00-0:00", 10), ("08:00 - 18:00", 5),
    ("Mon.Fri 08:00-18:00", 3),
    ("Mo 08:00-18:00", 0), (", 08:00-18:00", 0), ("Mon.. 08:00-18:00", 5), ("Mon Tue 08:00-18:00", 4),
    ("+8:00-18:00", 0),
    ("\u{660}8:00-18:00", 0), ("08:00-18:00-20:00", 11), ("-18:00", 0),
  ])
  func otherSpansAreRefused(text: String, offset: Int) {
    let error = #expect(throws: ScheduleTextError.self) { try RateTimetable.Row(text, limit: 1) }
    #expect(error?.offset == offset)
    #expect(throws: Never.self) { try RateTimetable.Row(error?.example ?? "", limit: 1) }
  }
}
