import TarnCore
import TestSupport
import Testing

@Suite struct UnitsTests {
  @Test(
    arguments: [
      ("0", 0), ("42", 42), ("42b", 42), ("512k", 524_288), ("512K", 524_288), ("1KiB", 1024), ("1ki", 1024),
      ("1kb", 1000), ("10MiB", 10_485_760), ("10MB", 10_000_000), ("10 MB", 10_000_000),
      ("1.5 GB", 1_500_000_000),
      ("1.5g", 1_610_612_736), ("2T", 2_199_023_255_552), ("2tb", 2_000_000_000_000), ("0.5", 0),
      (".5k", 512),
      ("1.", 1), ("9223372036854775807", 9_223_372_036_854_775_807),
      ("9007199254740993", 9_007_199_254_740_993),
      ("9223372036854775808", nil), ("18446744073709551616", nil), ("8388608T", nil),
      ("8388607T", 0x7FFF_FF00_0000_0000),
      ("", nil), (" ", nil), ("k", nil), (".", nil), ("1..2", nil), ("1.2.3", nil), ("-1", nil), ("+1", nil),
      ("1e3", nil), ("0x10", nil), ("nan", nil), ("inf", nil), ("1 X", nil), ("1KK", nil), ("1,5", nil),
      ("٣", nil),
      ("1\u{212A}", nil), ("1\n", nil), ("1 0", nil),
      (String(repeating: "9", count: 400), nil), (String(repeating: "0", count: 400) + "7", 7),
    ] as [(String, UInt64?)]) func sizes(_ text: String, _ bytes: UInt64?)
  {
    #expect(Units.bytes(text) == bytes)
  }

  @Test(
    arguments: [
      ("off", .some(nil)), ("2MiB/s", .some(2_097_152)), ("100", .some(100)), ("1k/s", .some(1024)),
      ("0", nil),
      ("0.5", nil), ("/s", nil), ("1/s/s", nil), ("fast", nil), ("", nil), ("-1", nil),
      ("1 MB/s", .some(1_000_000)),
    ] as [(String, UInt64??)]) func rates(_ text: String, _ rate: UInt64??)
  {
    #expect(Units.rate(text) == rate)
  }

  /// A number alone is bytes, where megabytes are meant.
  @Test(
    arguments: [
      ("5", "'5' is 5 bytes per second; did you mean 5MiB/s?"), ("1", "'1' is 1 byte per second"),
      ("1.5/s", "did you mean 1.5MiB/s?"), ("1023", "1,023 bytes per second"), ("1024", nil), ("5B/s", nil),
      ("5b", nil), ("1k", nil), ("off", nil), ("x", nil), ("", nil), ("0", nil),
    ] as [(String, String?)]) func hardlyMeantRates(_ text: String, _ doubt: String?)
  {
    let said = Units.doubt(ofRate: text)
    #expect((said == nil) == (doubt == nil))
    #expect(said?.contains(doubt ?? "") != false, "\(said ?? "")")
  }

  @Test(
    arguments: [
      ("1%", .share(percent: 1)), ("0%", .share(percent: 0)), ("99%", .share(percent: 99)),
      ("2.5%", .share(percent: 2.5)),
      ("99.5%", nil), ("100%", nil), ("-1%", nil), ("-0%", nil), ("nan%", nil), ("inf%", nil), ("%", nil),
      ("1%%", nil),
      ("0x1p3%", nil), ("1e1%", nil), (" 1%", nil), ("10GiB", .bytes(10 << 30)), ("", nil), ("x", nil),
    ] as [(String, Reserve?)]) func reserves(_ text: String, _ reserve: Reserve?)
  {
    #expect(Units.reserve(text) == reserve)
  }

  @Test(
    arguments: [
      (0, "0 B"), (999, "999 B"), (1000, "1.0 KiB"), (1023, "1.0 KiB"), (1024, "1.0 KiB"), (1075, "1.0 KiB"),
      (1076, "1.1 KiB"),
      (10_240, "10.0 KiB"),
      (102_348, "99.9 KiB"), (102_349, "100 KiB"), (1_023_487, "999 KiB"), (1_023_488, "1.0 MiB"),
      (1_048_500, "1.0 MiB"), (1_048_576, "1.0 MiB"), (3_435_973_836, "3.2 GiB"), (1 << 40, "1.0 TiB"),
      (1 << 50, "1.0 PiB"), (1 << 60, "1.0 EiB"), (.max, "16.0 EiB"),
    ] as [(UInt64, String)]) func shown(_ bytes: UInt64, _ text: String)
  {
    #expect(Units.show(bytes) == text)
  }

  @Test(
    arguments: [
      ("1h30m", 5400), ("90s", 90), ("1h 30min", 5400), ("2 days", 172_800), ("1w2d", 777_600),
      ("1 week", 604_800),
      ("1hr", 3600), ("2hours 1minute 1second", 7261), ("5  min", 300), ("1sec2sec", 3), ("0s", 0),
      ("007s", 7),
      (" 1h", nil), ("1h ", nil), ("1 ", nil), ("1", nil), ("h", nil), ("1.5h", nil), ("-1h", nil),
      ("1M", nil),
      ("1y", nil), ("1month", nil), ("1H", nil), ("1h\t1m", nil), ("1h,1m", nil), ("1ms", nil), ("٣s", nil),
      ("", nil),
      (" ", nil), ("9223372036854775807s", .max), ("9223372036854775807s1s", nil),
      ("9223372036854775808s", nil),
      ("9223372036854775807min", nil),
    ] as [(String, Int64?)]) func spans(_ text: String, _ seconds: Int64?)
  {
    #expect(Units.duration(text) == seconds)
  }

  @Test func shownIsShort() {
    var random = Seeded(1)
    for _ in 0..<5000 {
      let bytes = random.next() >> UInt64(random.below(64))
      let number = Units.show(bytes).split(separator: " ")[0]
      guard number.utf8.count <= 4 else {
        Issue.record("\(bytes) is shown as \(number)")
        return
      }
    }
  }

  @Test(
    arguments: [
      (Reserve.bytes(5), 100, 5), (.bytes(.max), 0, .max), (.share(percent: 1), 1000, 10),
      (.share(percent: 0), .max, 0),
      (.share(percent: 99), 100, 99), (.share(percent: 2.5), 1000, 25), (.share(percent: 1), 0, 0),
      (.share(percent: -1), 1000, 0), (.share(percent: .nan), 1000, 0), (.share(percent: 1e300), 100, 99),
    ] as [(Reserve, UInt64, UInt64)]) func reserveOfAFileSystem(
      _ reserve: Reserve, total: UInt64, bytes: UInt64
    )
  {
    #expect(reserve.bytes(ofTotal: total) == bytes)
  }

  @Test func reserveOfTheLargestFileSystem() {
    #expect(Reserve.share(percent: 99).bytes(ofTotal: .max) < .max)
    #expect(Reserve.share(percent: 100).bytes(ofTotal: .max) < .max)
    #expect(Reserve.share(percent: .infinity).bytes(ofTotal: .max) < .max)
  }
}
