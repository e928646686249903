import TarnCore
import TestSupport
import Testing

@testable import TarnSchedule

/// What systemd is asked about in CalendarOracleTests is said here once more in small, for machines without it.
@Suite struct CalendarSpecTests {
  private static let berlin = TimeZoneRules(posix: "CET-1CEST,M3.5.0,M10.5.0/3")!

  private func times(_ text: String, after: String, _ count: Int = 3, in rules: TimeZoneRules = .utc) throws
    -> [String]
  {
    let spec = try CalendarSpec(text)
    var last = instant(after)
    return (0..<count).compactMap { _ in
      guard let next = spec.next(after: last, in: rules) else { return nil }
      last = next
      return next.rfc3339
    }
  }

  @Test(arguments: [
    ("Mon-Fri 10:00", "Mon..Fri *-*-* 10:00:00"), ("Sat,Sun,Mon..Wed", "Mon..Wed,Sat,Sun *-*-* 00:00:00"),
    ("mon,tuesday", "Mon,Tue *-*-* 00:00:00"), ("Mon..Sun 1:00", "*-*-* 01:00:00"),
    ("*~3", "*-*~03 00:00:00"), ("*-*~* 5:00", "*-*-* 05:00:00"), ("5~3", "*-05~03 00:00:00"),
    ("1-5~2 3:4", "2001-05~02 03:04:00"),
    ("99-1-1", "1999-01-01 00:00:00"), ("1970..2199/3-1-1", "1970..2198/3-01-01 00:00:00"),
    ("1,1,2:00", "*-*-* 01,02:00:00"), ("0/1:0/1:0/1", "*-*-* 00/1:00/1:*"), ("*:*:*", "*-*-* *:*:*"),
    ("10:00..12", "*-*-* 10:00..12:00"), ("0:0:5..7/10", "*-*-* 00:00:05"),
    ("@1234567", "1970-01-15 06:56:07 UTC"),
    ("0:0:1.5..3.5/0.25", "*-*-* 00:00:01.500000..03.500000/0.250000"),
    ("0:0:1.1234567", "*-*-* 00:00:01.123457"), ("0:0:5/54.999999", "*-*-* 00:00:05/54.999999"),
    ("minutely", "*-*-* *:*:00"), ("HOURLY", "*-*-* *:00:00"), ("daily utc", "*-*-* 00:00:00 UTC"),
    ("weekly Europe/Berlin", "Mon *-*-* 00:00:00 Europe/Berlin"), ("monthly", "*-*-01 00:00:00"),
    ("quarterly", "*-01,04,07,10-01 00:00:00"), ("semiannually", "*-01,07-01 00:00:00"),
    ("anually", "*-01-01 00:00:00"), ("Mon UTC", "Mon *-*-* 00:00:00 UTC"),
    ("2026-1-1 ", "2026-01-01 00:00:00"),
  ])
  func isNormalized(text: String, normalized: String) throws {
    let spec = try CalendarSpec(text)
    #expect(spec.normalized == normalized)
    #expect(try CalendarSpec(spec.normalized) == spec)
  }

  @Test(arguments: [
    ("", 0, "empty"), (" 10:00", 0, "number"), ("10", 2, "`:`"), ("*/2:00", 1, "`-` or `:`"),
    ("24:00", 0, "hour 24"),
    ("10:60", 3, "minute 60"), ("23:59:60", 6, "second 60"), ("*-13-1", 2, "month 13"),
    ("*-*-32", 4, "day 32"),
    ("*-*~29", 4, "day from the month's end 29"), ("*-*~1/1", 4, "step of 1"), ("1969-1-1", 0, "year 1969"),
    ("69..75-1-1", 0, "2069..1975"), ("0:0:0/0", 6, "step of 0"), ("0:0:0..0.5", 4, "shorter than a second"),
    ("0:0:1.", 6, "digits"), ("Fri..Mon", 5, "Monday to Sunday"), ("Mon..", 5, "no end"),
    ("Mon..Tue..Wed", 8, "`..`"),
    ("Mond 10:00", 3, "spelled"), ("Mon,,Tue", 4, "day of the week"),
    ("10:00 Foo/Bar", 6, "Foo/Bar is not known"),
    ("10:00 ../x", 5, "the end is expected"), ("10:00 a/../x", 6, "not known"),
    ("06:00 UTC UTC", 5, "the end is expected"),
    ("1~2~3", 3, "last part"), ("1-2-3-4", 5, "three parts"), ("10:00:00:00", 8, "ends"),
    ("99999999999999999999:00", 0, "too large"), ("0:0:2148", 4, "too large"), ("12:00\u{7}", 5, "`\\x07`"),
    ("1//2:00", 2, "number"), ("@", 1, "number"), ("@99999999999", 1, "2199"), ("Sat, Sun", 5, "number"),
  ])
  func isRefused(text: String, offset: Int, reason: String) {
    let error = #expect(throws: ScheduleTextError.self) {
      try CalendarSpec(text, isKnownZone: { $0 == "Europe/Berlin" })
    }
    #expect(error?.offset == offset)
    #expect(error?.reason.contains(reason) == true, "\(error?.reason ?? "")")
    #expect(throws: Never.self) { try CalendarSpec(error?.example ?? "") }
  }

  @Test func aListIsBounded() {
    let list = Array(repeating: "1", count: 241).joined(separator: ",")
    #expect(throws: Never.self) { try CalendarSpec(list + ":00") }
    #expect(throws: ScheduleTextError.self) { try CalendarSpec(list + ",1:00") }
  }

  /// Nothing of it may crash.
  @Test func anyBytesAreReadOrRefused() {
    var random = Seeded(11)
    var read = 0
    for _ in 0..<20_000 {
      let bytes = random.bytes(Array("0123456789*,.-~:/ @MonTueFriSunUTC".utf8), count: random.below(14))
      guard let spec = try? CalendarSpec(String(decoding: bytes, as: UTF8.self)) else { continue }
      read += 1
      #expect((try? CalendarSpec(spec.normalized)) == spec)
      if let next = spec.next(after: moment(1_790_000_000), in: .utc) {
        #expect(next > moment(1_790_000_000))
      }
    }
    #expect(read > 20)
  }

  @Test func leapYearsAndMonthEnds() throws {
    #expect(try times("*-02-29", after: "2026-01-01", 2) == ["2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"])
    #expect(try times("*-02-29", after: "2096-03-01", 1) == ["2104-02-29T00:00:00Z"])
    #expect(
      try times("*-*~1", after: "2028-01-31T12:00:00", 3)
        == ["2028-02-29T00:00:00Z", "2028-03-31T00:00:00Z", "2028-04-30T00:00:00Z"])
    #expect(
      try times("Mon *-05~07/1", after: "2026-01-01", 2) == ["2026-05-25T00:00:00Z", "2027-05-31T00:00:00Z"])
    // systemd leaves out January 1 (SystemdFault.carry).
    #expect(
      try times("*-*-01/9", after: "2026-12-20", 3)
        == ["2026-12-28T00:00:00Z", "2027-01-01T00:00:00Z", "2027-01-10T00:00:00Z"])
    // systemd refuses it (SystemdFault.monthEndList).
    #expect(
      try times("*-*~02,28", after: "2026-02-01", 2) == ["2026-02-27T00:00:00Z", "2026-03-04T00:00:00Z"])
  }

  @Test(arguments: ["*-02-30", "2026-04-31", "*-02,04,06,09,11-31", "2020-01-01", "Mon *-02-30 *:*:0/0.1"])
  func whatNeverComesIsNil(text: String) throws {
    #expect(try times(text, after: "2026-01-01") == [])
    #expect(try times("Sun *-02-29", after: "2180-01-01", 9).count == 1)
  }

  @Test func theLastYearIs2199() throws {
    #expect(try times("yearly", after: "2197-06-01", 9) == ["2198-01-01T00:00:00Z", "2199-01-01T00:00:00Z"])
    #expect(try CalendarSpec("*:*").next(after: Timestamp(nanoseconds: .max), in: .utc) == nil)
    #expect(try CalendarSpec("*:*").next(after: Timestamp(nanoseconds: .min), in: Self.berlin) != nil)
  }

  @Test func fractionsAreMicroseconds() throws {
    let spec = try CalendarSpec("*:*:0/0.3")
    var last = Timestamp(nanoseconds: 59_800_000_000)
    let next = (0..<3).compactMap { _ -> Int64? in
      guard let next = spec.next(after: last, in: .utc) else { return nil }
      last = next
      return next.nanoseconds
    }
    #expect(next == [60_000_000_000, 60_300_000_000, 60_600_000_000])
    // Less than a microsecond later is later.
    #expect(spec.next(after: Timestamp(nanoseconds: 60_000_000_001), in: .utc)?.nanoseconds == 60_300_000_000)
    #expect(spec.next(after: Timestamp(nanoseconds: 59_999_999_999), in: .utc)?.nanoseconds == 60_000_000_000)
  }

  /// 02:00 to 03:00 is not there on 2026-03-29.
  @Test func whatClocksLeaveOutDoesNotHappen() throws {
    #expect(try times("02:30", after: "2026-03-28T12:00:00", 1, in: Self.berlin) == ["2026-03-30T00:30:00Z"])
    #expect(
      try times("*:0/30", after: "2026-03-29T00:20:00", 3, in: Self.berlin)
        == ["2026-03-29T00:30:00Z", "2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z"])
    #expect(
      try times("02:30 UTC", after: "2026-03-28T12:00:00", 1, in: Self.berlin) == ["2026-03-29T02:30:00Z"])
  }

  /// 02:00 to 03:00 is there twice on 2026-10-25.
  @Test func whatClocksShowTwiceHappensOnce() throws {
    #expect(
      try times("02:30", after: "2026-10-24T12:00:00", 2, in: Self.berlin)
        == ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"])
    #expect(
      try times("*:0/30", after: "2026-10-25T00:20:00", 2, in: Self.berlin)
        == ["2026-10-25T00:30:00Z", "2026-10-25T02:00:00Z"])
    // Asked in the second hour, the rest of it counts.
    #expect(
      try times("*:0/30", after: "2026-10-25T01:20:00", 2, in: Self.berlin)
        == ["2026-10-25T01:30:00Z", "2026-10-25T02:00:00Z"])
  }

  /// A whole day that was left out: Apia went over the date line at the end of 2011-12-29.
  @Test func aDayMayBeLeftOut() throws {
    let line = Int64(1_325_239_200)
    let apia = TimeZoneRules(transitions: [line], offsets: [-36_000, 50_400], footer: nil)
    #expect(
      try times("12:00", after: "2011-12-29T12:00:00", 3, in: apia)
        == ["2011-12-29T22:00:00Z", "2011-12-30T22:00:00Z", "2011-12-31T22:00:00Z"])
    #expect(try times("2011-12-30 12:00", after: "2011-01-01", 1, in: apia) == [])
  }
}

/// `2026-10-25` or `2026-10-25T01:20:00`, UTC.
func instant(_ text: String) -> Timestamp {
  let numbers = text.split(whereSeparator: { "-T:".contains($0) }).compactMap { Int($0) } + [0, 0, 0]
  return Timestamp(
    year: numbers[0], month: numbers[1], day: numbers[2], hour: numbers[3], minute: numbers[4],
    second: numbers[5])!
}
