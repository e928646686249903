import TarnCore
import TestSupport
import Testing

@Suite struct DigestTests {
  @Test(
    arguments: [
      ("md5", DigestAlgorithm.md5), ("MD5", .md5), ("sha", .sha1), ("sha1", .sha1), ("SHA-1", .sha1),
      ("sha224", .sha224),
      ("sha-256", .sha256), ("SHA256", .sha256), ("SHA2-256", .sha256), (" sha256 ", .sha256),
      ("sha_256", .sha256),
      ("SHA384", .sha384), ("sha-512", .sha512), ("SHA2-512", .sha512), ("sha3-256", nil),
      ("sha512/256", nil),
      ("blake2b", nil), ("crc32", nil), ("", nil), ("sha2", nil), ("sha25", nil), ("xsha256", nil),
    ] as [(String, DigestAlgorithm?)]) func spellings(_ name: String, _ algorithm: DigestAlgorithm?)
  {
    #expect(DigestAlgorithm(name: name) == algorithm)
  }

  @Test(arguments: DigestAlgorithm.allCases) func readsWhatItWrites(_ algorithm: DigestAlgorithm) throws {
    #expect(DigestAlgorithm(name: algorithm.name) == algorithm)
    var random = Seeded(UInt64(algorithm.rawValue))
    let bytes = random.bytes(Array(0...255), count: algorithm.length)
    let digest = try #require(Digest(algorithm, bytes: bytes))
    #expect(digest.hex.utf8.count == 2 * algorithm.length)
    #expect(Digest(algorithm, hex: Array(digest.hex.utf8)) == digest)
    #expect(Digest(algorithm, hex: Array(digest.hex.uppercased().utf8)) == digest)
    #expect(digest.description == "\(algorithm.name):\(digest.hex)")
    #expect(Digest(algorithm, bytes: Array(bytes.dropLast())) == nil)
    #expect(Digest(algorithm, bytes: bytes + [0]) == nil)
    #expect(Digest(algorithm, hex: Array(digest.hex.utf8.dropLast())) == nil)
    #expect(Digest(algorithm, hex: Array((digest.hex + "0").utf8)) == nil)
    for bad in ["g", "/", ":", "@", "G", "`", " ", "\0", "\u{7F}"] {
      #expect(Digest(algorithm, hex: Array((digest.hex.dropLast() + bad).utf8)) == nil, "\(bad)")
    }
  }

  @Test(arguments: DigestAlgorithm.allCases) func padsToItsLength(_ algorithm: DigestAlgorithm) {
    #expect(Digest(algorithm, padding: []).bytes == [UInt8](repeating: 0, count: algorithm.length))
    #expect(Digest(algorithm, padding: [1, 2]).bytes.prefix(3) == [1, 2, 0])
    let long = [UInt8](repeating: 7, count: 100)
    #expect(Digest(algorithm, padding: long).bytes == [UInt8](repeating: 7, count: algorithm.length))
  }

  @Test func strongerIsGreater() {
    let numbers = DigestAlgorithm.allCases.map(\.rawValue)
    #expect(numbers == [1, 2, 3, 4, 5, 6], "stored in ledgers")
    #expect(DigestAlgorithm.allCases.sorted() == [.md5, .sha1, .sha224, .sha256, .sha384, .sha512])
    #expect(digest("W", .sha256) != digest("W", .sha512))
  }
}

@Suite struct TimestampTests {
  static let known: [(String, Int64)] = [
    ("1970-01-01T00:00:00Z", 0), ("1969-12-31T23:59:59Z", -1), ("2000-02-29T12:00:00Z", 951_825_600),
    ("2000-03-01T00:00:00Z", 951_868_800), ("2038-01-19T03:14:07Z", 2_147_483_647),
    ("2038-01-19T03:14:08Z", 2_147_483_648), ("2106-02-07T06:28:15Z", 4_294_967_295),
    ("2106-02-07T06:28:16Z", 4_294_967_296), ("1900-03-01T00:00:00Z", -2_203_891_200),
    ("1900-02-28T23:59:59Z", -2_203_891_201), ("2100-02-28T23:59:59Z", 4_107_542_399),
    ("2100-03-01T00:00:00Z", 4_107_542_400), ("2024-02-29T23:59:59Z", 1_709_251_199),
    ("1678-01-01T00:00:00Z", -9_214_560_000), ("2261-12-31T23:59:59Z", 9_214_646_399),
    ("2026-11-21T04:30:00Z", 1_795_235_400), ("1972-06-30T23:59:59Z", 78_796_799),
    ("1904-02-29T00:00:01Z", -2_077_747_199), ("2001-09-09T01:46:40Z", 1_000_000_000),
    ("1901-12-13T20:45:52Z", -2_147_483_648),
  ]

  /// `2026-11-21T04:30:00Z` as its six numbers.
  private static func fields(_ text: String) -> [Int] {
    text.split { "-T:Z".contains($0) }.compactMap { Int($0) }
  }

  @Test(arguments: known) func knownInstants(_ text: String, _ seconds: Int64) throws {
    let read = Self.fields(text)
    let time = try #require(
      Timestamp(
        year: read[0], month: read[1], day: read[2], hour: read[3], minute: read[4], second: read[5],
        nanosecond: 999_999_999))
    #expect(time.seconds == seconds)
    #expect(time.rfc3339 == text)
    #expect(moment(seconds).rfc3339 == text)
    #expect(time.nanoseconds == seconds * 1_000_000_000 + 999_999_999)
  }

  @Test func everyDayOfTheRangeReadsBack() {
    var expected: Int64 = -9_214_560_000
    for year in 1678...2261 {
      let isLeap = year % 4 == 0 && year % 100 != 0 || year % 400 == 0
      for (month, days) in [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31].enumerated() {
        for day in 1...days {
          let time = Timestamp(year: year, month: month + 1, day: day)
          guard let time, time.seconds == expected else {
            Issue.record("\(year)-\(month + 1)-\(day)")
            return
          }
          if day == 1 || day == days {
            #expect(Self.fields(time.rfc3339) == [year, month + 1, day, 0, 0, 0])
          }
          expected += 86_400
        }
        #expect(Timestamp(year: year, month: month + 1, day: days + 1) == nil)
      }
    }
  }

  @Test func offsetsAreTakenOff() {
    let time = Timestamp(year: 1970, month: 1, day: 1, hour: 1, offsetSeconds: 3600)
    #expect(time == moment(0))
    #expect(Timestamp(year: 1970, month: 1, day: 1, offsetSeconds: 3600) == moment(-3600))
    #expect(Timestamp(year: 1970, month: 1, day: 1, offsetSeconds: -86_400) == moment(86_400))
    // A leap second is the second after it.
    #expect(
      Timestamp(year: 2016, month: 12, day: 31, hour: 23, minute: 59, second: 60)
        == Timestamp(year: 2017, month: 1, day: 1))
  }

  @Test(arguments: [
    [1677, 12, 31], [2262, 1, 1], [2000, 0, 1], [2000, 13, 1], [2000, 1, 0], [2000, 1, 32], [1900, 2, 29],
    [2001, 2, 29], [2000, 4, 31], [2000, 1, 1, 24], [2000, 1, 1, -1], [2000, 1, 1, 0, 60],
    [2000, 1, 1, 0, 0, 61],
    [2000, 1, 1, 0, 0, 0, 1_000_000_000], [2000, 1, 1, 0, 0, 0, -1], [2000, 1, 1, 0, 0, 0, 0, 86_401],
    [2000, 1, 1, 0, 0, 0, 0, .min], [2000, 1, 1, 0, 0, 0, 0, .max], [.min, 1, 1], [.max, 1, 1],
    [2000, .min, 1],
    [2000, 1, .max], [2000, 1, 1, .max], [2000, 1, 1, 0, .min], [2000, 1, 1, 0, 0, .max],
  ]) func fieldsOutOfRange(_ fields: [Int]) {
    let all = fields + Array(repeating: 0, count: 8 - fields.count)
    #expect(
      Timestamp(
        year: all[0], month: all[1], day: all[2], hour: all[3], minute: all[4], second: all[5],
        nanosecond: all[6], offsetSeconds: all[7]) == nil)
  }

  /// What stat can say of a file that somebody gave an absurd time.
  @Test(arguments: [
    (Int64.min, Int64(-9_223_372_037), "1677-09-21T00:12:43Z"),
    (.min + 1, -9_223_372_037, "1677-09-21T00:12:43Z"),
    (.min + 999_999_998, -9_223_372_036, "1677-09-21T00:12:44Z"),
    (.min + 999_999_999, -9_223_372_036, "1677-09-21T00:12:44Z"),
    (.max, 9_223_372_036, "2262-04-11T23:47:16Z"),
    (-1, -1, "1969-12-31T23:59:59Z"), (-1_000_000_000, -1, "1969-12-31T23:59:59Z"),
    (-1_000_000_001, -2, "1969-12-31T23:59:58Z"), (999_999_999, 0, "1970-01-01T00:00:00Z"),
  ]) func secondsRoundDown(_ nanoseconds: Int64, _ seconds: Int64, _ text: String) {
    let time = Timestamp(nanoseconds: nanoseconds)
    #expect(time.seconds == seconds)
    #expect(time.rfc3339 == text)
  }

  @Test func secondsOutOfRange() {
    #expect(Timestamp(seconds: .max) == nil)
    #expect(Timestamp(seconds: .min) == nil)
    #expect(Timestamp(seconds: 9_223_372_037) == nil)
    #expect(Timestamp(seconds: 9_223_372_036, nanoseconds: 854_775_807)?.nanoseconds == .max)
    #expect(Timestamp(seconds: 9_223_372_036, nanoseconds: 854_775_808) == nil)
    #expect(Timestamp(seconds: 0, nanoseconds: .max)?.nanoseconds == .max)
  }

  @Test func addingStopsAtTheEnds() {
    #expect(moment(100).adding(seconds: -86_400) == moment(-86_300))
    #expect(moment(100).adding(seconds: .max).nanoseconds == .max)
    #expect(moment(100).adding(seconds: .min).nanoseconds == .min)
    #expect(Timestamp(nanoseconds: .max).adding(seconds: 1).nanoseconds == .max)
    #expect(Timestamp(nanoseconds: .min).adding(seconds: -1).nanoseconds == .min)
  }

  @Test func orderIsThatOfTime() {
    #expect(moment(-1) < moment(0))
    #expect(moment(0) < Timestamp(nanoseconds: 1))
  }
}

@Suite struct HostNameTests {
  @Test(arguments: [
    ("Example.ORG.", "example.org", "example.org"), ("localhost", "localhost", "localhost"),
    ("::1", "::1", "[::1]"), ("[0:0:0:0:0:0:0:1]", "::1", "[::1]"),
    ("2001:DB8:0:0:1:0:0:1", "2001:db8::1:0:0:1", "[2001:db8::1:0:0:1]"),
    ("2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1", "[2001:db8:0:1:1:1:1:1]"),
    ("::ffff:127.0.0.1", "::ffff:7f00:1", "[::ffff:7f00:1]"), ("1::", "1::", "[1::]"),
    ("::", "::", "[::]"), ("10.0.0.1", "10.0.0.1", "10.0.0.1"), ("x_1.a-b", "x_1.a-b", "x_1.a-b"),
    ("0xBuild", "0xbuild", "0xbuild"), ("ci.0xg", "ci.0xg", "ci.0xg"),
  ]) func hostsHaveOneForm(written: String, text: String, inURL: String) {
    #expect(HostName(written)?.text == text && HostName(written)?.inURL == inURL)
  }

  @Test(arguments: [
    "", ".", "a..b", "h:80", "[::1]:80", "[h]", "u@h", "a/b", "*.h", "a b", "b\u{FC}cher", "fe80::1%eth0",
    "1:2",
    "::1::2", ":::", "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7::8", "12345::", "+1::", "-0::", "1.2.3.4::",
    "::1.2.3.256", "127.1", "0x7f.0.0.1", "0x7f000001", "127.0.0.01", "a.0x", "0xBad",
  ]) func otherTextsAreNoHosts(written: String) { #expect(HostName(written) == nil) }
}
