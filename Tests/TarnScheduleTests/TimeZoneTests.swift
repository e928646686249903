import Foundation
import TarnCore
import TestSupport
import Testing

@testable import TarnSchedule

@Suite struct TZifTests {
  private struct Sample {
    var version: UInt8 = UInt8(ascii: "2")
    var transitions: [(Int64, UInt8)] = []
    var types: [Int32] = [0]
    var leaps = 0
    var footer: String? = ""

    func bytes(characters: Int = 4) -> [UInt8] {
      var bytes = block(size: 4, characters: characters)
      if version != 0 {
        bytes += block(size: 8, characters: characters)
        if let footer { bytes += Array("\n\(footer)\n".utf8) }
      }
      return bytes
    }

    private func block(size: Int, characters: Int) -> [UInt8] {
      var bytes = Array("TZif".utf8) + [version] + [UInt8](repeating: 0, count: 15)
      for count in [0, 0, leaps, transitions.count, types.count, characters] {
        bytes += number(Int64(count), 4)
      }
      for (time, _) in transitions { bytes += number(time, size) }
      bytes += transitions.map(\.1)
      for offset in types { bytes += number(Int64(offset), 4) + [0, 0] }
      return bytes + [UInt8](repeating: 65, count: characters + leaps * (size + 4))
    }

    private func number(_ value: Int64, _ size: Int) -> [UInt8] {
      (0..<size).map { UInt8(truncatingIfNeeded: value >> Int64((size - 1 - $0) * 8)) }
    }
  }

  private static let berlin = Sample(
    transitions: [(100, 1), (200, 0)], types: [3600, 7200], footer: "CET-1CEST,M3.5.0,M10.5.0/3")

  @Test func aTableAndItsFooter() throws {
    let rules = try TZif.parse(Self.berlin.bytes())
    #expect([99, 100, 199].map { rules.offset(at: $0) } == [3600, 7200, 7200])
    #expect(rules.offset(at: instant("2026-03-29T00:59:59").seconds) == 3600)
    #expect(rules.offset(at: instant("2026-03-29T01:00:00").seconds) == 7200)
    #expect(rules.nextTransition(after: 150) == 200)
    #expect(
      rules.nextTransition(after: instant("2198-12-31").seconds) == instant("2199-03-31T01:00:00").seconds)
  }

  @Test func theFirstVersionHasNoFooter() throws {
    var sample = Self.berlin
    sample.version = 0
    let rules = try TZif.parse(sample.bytes())
    #expect(rules.offset(at: 5_000_000_000) == 3600)
    #expect(rules.nextTransition(after: 200) == nil)
  }

  @Test func damageIsNamed() {
    func fault(_ change: (inout Sample) -> Void) -> TZif.Fault? {
      var sample = Self.berlin
      change(&sample)
      do throws(TZif.Fault) {
        _ = try TZif.parse(sample.bytes())
        return nil
      } catch {
        return error
      }
    }
    #expect(fault { _ in } == nil)
    #expect(fault { $0.version = UInt8(ascii: "9") } == .unknownVersion(57))
    #expect(fault { $0.transitions = [(200, 1), (100, 0)] } == .disordered)
    #expect(fault { $0.transitions = [(100, 1), (100, 0)] } == .disordered)
    #expect(fault { $0.transitions = [(100, 2)] } == .disordered)
    #expect(fault { $0.types = [] } == .truncated)
    #expect(fault { $0.types = [3600, 93_600] } == .offset)
    #expect(fault { $0.types = [.min, 3600] } == .offset)
    #expect(fault { $0.leaps = 1 } == .leapSeconds)
    #expect(fault { $0.footer = nil } == .footer)
    #expect(fault { $0.footer = "CET" } == .footer)
    #expect(fault { $0.footer = "" } == nil)
    #expect(throws: TZif.Fault.notTZif) {
      try TZif.parse(Array("#!/bin/sh".utf8) + [UInt8](repeating: 0, count: 90))
    }
  }

  /// Cut anywhere, or with any byte changed: read or refused, and then asked.
  @Test func damagedBytesNeverCrash() {
    let bytes = Self.berlin.bytes()
    for length in 0..<bytes.count {
      #expect(throws: TZif.Fault.self) { try TZif.parse(Array(bytes[..<length])) }
    }
    var random = Seeded(3)
    for _ in 0..<5000 {
      var spoilt = bytes
      for _ in 0...random.below(4) { spoilt[random.below(spoilt.count)] = UInt8(random.below(256)) }
      guard let rules = try? TZif.parse(spoilt) else { continue }
      for _ in 0..<4 {
        let moment = Int64(random.below(1 << 33))
        #expect(abs(rules.offset(at: moment)) < TimeZoneRules.mostOffset * 8)
        if let next = rules.nextTransition(after: moment) { #expect(next > moment) }
        for instant in rules.instants(local: moment) {
          #expect(instant + Int64(rules.offset(at: instant)) == moment)
        }
      }
    }
  }

  @Test(arguments: [
    ("UTC0", "2026-07-01", 0), ("<+0530>-5:30", "2026-07-01", 19_800), ("EST5", "2026-07-01", -18_000),
    ("EST5EDT,M3.2.0,M11.1.0", "2026-07-01", -14_400),
    ("EST5EDT,M3.2.0,M11.1.0", "2026-03-08T06:59:59", -18_000),
    ("EST5EDT,M3.2.0,M11.1.0", "2026-03-08T07:00:00", -14_400),
    ("EST5EDT,M3.2.0,M11.1.0", "2026-11-01T06:00:00", -18_000),
    // The southern summer goes over the new year.
    ("<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", "2026-01-01", 39_600),
    ("<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", "2026-06-01", 37_800),
    // Dublin's winter is its summer turned round.
    ("IST-1GMT0,M10.5.0,M3.5.0/1", "2026-01-01", 0), ("IST-1GMT0,M10.5.0,M3.5.0/1", "2026-07-01", 3600),
    // Summer all year (RFC 8536 3.3.1), a time before the day (Nuuk), days of the year.
    ("XXX3EDT4,0/0,J365/23", "2026-01-01", -14_400), ("XXX3EDT4,0/0,J365/23", "2027-01-01T02:59:59", -14_400),
    ("XXX3EDT4,0/0,J365/23", "2027-01-01T03:00:00", -14_400),
    ("<-02>2<-01>,M3.5.0/-1,M10.5.0/0", "2026-03-29T00:59:59", -7200),
    ("<-02>2<-01>,M3.5.0/-1,M10.5.0/0", "2026-03-29T01:00:00", -3600),
    ("AAA0BBB,J60/0,300/0", "2028-02-29T23:59:59", 0), ("AAA0BBB,J60/0,300/0", "2028-03-01", 3600),
    ("AAA0BBB,59/0,300/0", "2028-02-29", 3600),
  ])
  func rulesOfTheYearsToCome(text: String, at: String, offset: Int) throws {
    let rules = try #require(TimeZoneRules(posix: text))
    #expect(rules.offset(at: instant(at).seconds) == offset)
  }

  @Test func theEndOfAGapIsTheFirstTimeShown() throws {
    let berlin = try #require(TimeZoneRules(posix: "CET-1CEST,M3.5.0,M10.5.0/3"))
    for minute in [0, 1, 30, 59] {
      let local = instant("2026-03-29T02:00:00").seconds + Int64(minute) * 60
      #expect(berlin.instants(local: local) == [])
      #expect(berlin.endOfGap(local: local) == instant("2026-03-29T03:00:00").seconds)
    }
    #expect(
      berlin.instants(local: instant("2026-10-25T02:30:00").seconds)
        == [instant("2026-10-25T00:30:00").seconds, instant("2026-10-25T01:30:00").seconds])
  }

  @Test(arguments: [
    "", "X0", "ab1", "CET", "CET-25", "CET-1CEST", "CET-1CEST,M3.5.0", "CET-1CEST,M13.5.0,M10.5.0",
    "CET-1CEST,M3.6.0,M10.5.0", "CET-1CEST,M3.5.7,M10.5.0", "CET-1CEST,J0,J365", "CET-1CEST,J366,J1",
    "CET-1CEST,0,366", "CET-1CEST,M3.5.0/168,M10.5.0", "CET-1CEST,M3.5.0,M10.5.0x", "<+1>-1", "<+01-1",
    "CET-1:60",
    "CET--1", "Europe/Berlin",
  ])
  func otherTextIsNoRule(text: String) {
    #expect(TimeZoneRules(posix: text) == nil)
  }

  @Test(arguments: [
    ("Europe/Berlin", true), ("Etc/GMT+5", true), ("America/Argentina/Buenos_Aires", true), ("UTC", true),
    ("", false), ("/etc/passwd", false), ("../x", false), ("a/../b", false), ("a//b", false), ("a/", false),
    ("a b", false), ("a\0b", false), (String(repeating: "a", count: 256), false),
  ])
  func namesStayInTheDirectory(name: String, isSafe: Bool) {
    #expect(TimeZoneName.isSafe(name) == isSafe)
  }
}

/// The machine's zones against zdump(8), which reads them with glibc.
@Suite(
  .enabled(
    if: FileManager.default.isExecutableFile(atPath: zdump) && Zoneinfo.bytes("Europe/Berlin") != nil,
    "no zdump, or no time zone database"))
struct ZoneinfoTests {
  private static let zones = [
    "Europe/Berlin", "Europe/Dublin", "America/New_York", "America/St_Johns", "America/Sao_Paulo",
    "America/Nuuk",
    "Africa/Casablanca", "Asia/Kolkata", "Asia/Gaza", "Asia/Tehran", "Australia/Lord_Howe",
    "Antarctica/Troll",
    "Pacific/Apia", "Pacific/Chatham", "Pacific/Kiritimati",
  ]

  @Test func zdumpSaysTheSame() throws {
    var compared = 0
    for zone in Self.zones {
      let rules = try Zoneinfo.rules(zone)
      for (moment, offset) in try Self.dump(zone) {
        compared += 1
        #expect(rules.offset(at: moment) == offset, "\(zone) at \(moment)")
      }
    }
    #expect(compared > 5000)
  }

  @Test func everyZoneOfTheMachineIsRead() throws {
    let names = try FileManager.default.subpathsOfDirectory(atPath: Zoneinfo.directory)
    var read = 0
    for name in names where !name.hasPrefix("right/") && !name.hasPrefix("leap") {
      guard let bytes = Zoneinfo.bytes(name), bytes.starts(with: "TZif".utf8) else { continue }
      #expect(throws: Never.self, "\(name)") { try TZif.parse(bytes) }
      read += 1
    }
    #expect(read > 300)
  }

  /// Lines such as `Europe/Berlin  Sun Mar 29 00:59:59 2026 UT = Sun Mar 29 01:59:59 2026 CET isdst=0 gmtoff=3600`.
  private static func dump(_ zone: String) throws -> [(Int64, Int)] {
    let process = Process()
    let pipe = Pipe()
    process.executableURL = URL(fileURLWithPath: zdump)
    process.arguments = ["-v", "-c", "1900,2150", zone]
    process.standardOutput = pipe
    try process.run()
    process.killWhenLate()
    let text = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    return text.split(separator: "\n").compactMap { line in
      let words = line.split(separator: " ")
      guard words.count > 8, let offset = words.last?.split(separator: "=").last.flatMap({ Int($0) }),
        let month = months.firstIndex(of: String(words[2])), let day = Int(words[3]), let year = Int(words[5])
      else { return nil }
      let time = words[4].split(separator: ":").compactMap { Int($0) }
      guard time.count == 3,
        let moment = Timestamp(
          year: year, month: month + 1, day: day, hour: time[0], minute: time[1], second: time[2])
      else { return nil }
      return (moment.seconds, offset)
    }
  }
}

private let zdump = "/usr/bin/zdump"
