import Testing

@testable import TarnConfig

@Suite struct RateWindowTests {
  @Test(
    arguments: [
      ("08:00-18:00", 0x7F, 480, 1080), ("8:00-9:05", 0x7F, 480, 545), ("22:00-06:00", 0x7F, 1320, 360),
      ("00:00-24:00", 0x7F, 0, 1440), ("12:00-00:00", 0x7F, 720, 1440),
      ("Mon..Fri 08:00-18:00", 0x1F, 480, 1080),
      ("Sat,Sun 08:00-18:00", 0x60, 480, 1080), ("sat..mon,Wednesday 08:00-18:00", 0x65, 480, 1080),
      ("Sun 23:59-24:00", 0x40, 1439, 1440),
    ] as [(String, UInt8, Int, Int)]) func times(_ text: String, _ days: UInt8, _ start: Int, _ end: Int)
  {
    let window = RateWindow(at: text, limit: "1MiB/s")
    #expect(window?.days == days && window?.start == start && window?.end == end && window?.rate == 1 << 20)
  }

  @Test(arguments: [
    "", "08:00", "08:00-", "-18:00", "08:00-08:00", "24:00-06:00", "00:00-00:00", "08:00-24:01", "8-18",
    "08:0-18:00",
    "08:60-18:00", "+8:00-18:00", "08:00 - 18:00", "Mon", "Mon.Fri 08:00-18:00", "Mo 08:00-18:00",
    ", 08:00-18:00",
    "Mon.. 08:00-18:00", "Mon Tue 08:00-18:00", "008:00-18:00", "٠8:00-18:00", "08:00-18:00-20:00",
  ])
  func noTimes(text: String) { #expect(RateWindow(at: text, limit: "1MiB/s") == nil) }

  @Test func aRateIsOne() {
    #expect(RateWindow(at: "08:00-18:00", limit: "fast") == nil)
    #expect(RateWindow(at: "08:00-18:00", limit: "off")?.rate == .some(nil))
  }

  @Test func whenItHolds() throws {
    let work = try #require(RateWindow(at: "Mon..Fri 08:00-18:00", limit: "1M"))
    #expect(work.contains(weekday: 0, minute: 480) && work.contains(weekday: 4, minute: 1079))
    #expect(!work.contains(weekday: 0, minute: 479) && !work.contains(weekday: 4, minute: 1080))
    #expect(!work.contains(weekday: 5, minute: 600))
    // Over midnight it belongs to the day on which it begins.
    let night = try #require(RateWindow(at: "Sun 22:00-06:00", limit: "1M"))
    #expect(night.contains(weekday: 6, minute: 1320) && night.contains(weekday: 0, minute: 359))
    #expect(!night.contains(weekday: 6, minute: 300) && !night.contains(weekday: 0, minute: 360))
    #expect(!night.contains(weekday: 0, minute: 1400))
    let windows = [work, try #require(RateWindow(at: "00:00-24:00", limit: "off"))]
    #expect(windows.window(weekday: 0, minute: 600)?.rate == 1 << 20)
    #expect(windows.window(weekday: 6, minute: 600)?.text == "00:00-24:00")
    #expect([work].window(weekday: 6, minute: 600) == nil)
  }
}
