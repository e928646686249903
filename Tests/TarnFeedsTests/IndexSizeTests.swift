import TarnCore
import Testing

@testable import TarnFeeds

@Suite struct IndexSizeTests {
  private static func shown(_ text: String, _ units: IndexSize.Units = .unknown) -> IndexSize.Shown? {
    IndexSize.shown(IndexRow.words(Array(text.utf8)), units)
  }

  /// One of the last digit on either side, in units of 1000 at the low end and of 1024 at the high one.
  @Test(
    arguments: [
      ("0", 0, 0, 1), ("2 B", 2, 2, 2), ("78 bytes", 78, 78, 2), ("512B", 512, 512, 1), ("972 ", 972, 972, 1),
      ("1 byte", 1, 1, 2), ("12K", 11_000, 13 * 1024, 1), ("12k rest", 11_000, 13 * 1024, 1),
      ("1.5 GiB", 1_503_238_553, 1_717_986_919, 2), ("2.9M", 2_800_000, 3_145_728, 1),
      ("60.79 KB", 60_780, 62_260, 2), ("0.1 kb", 0, 205, 2), ("0K", 0, 1024, 1),
      ("4096 2024-03-01 10:20", 4096, 4096, 1),
    ] as [(String, UInt64, UInt64, Int)])
  func tellsTheRange(text: String, low: UInt64, high: UInt64, count: Int) {
    #expect(Self.shown(text) == IndexSize.Shown(range: low...high, count: count), "\(text)")
  }

  @Test func knowsServersThatCountIn1024() {
    #expect(Self.shown("12K", .binary)?.range == 11_264...13_312)
    #expect(Self.shown("2.9M", .binary)?.range == 2_936_012...3_145_728)
    #expect(Self.shown("3G", .binary)?.range == 2_147_483_648...4_294_967_296)
  }

  @Test(arguments: [
    "", "-", "1.K", ".5K", "1,5 MB", "1.2.3M", "1.5", "1.5 B", "12X", "12 Xy", "K", "MiB", "1iB", "1 kx",
    "-1K", "1e9K",
    "0x10K", "12345678901234567K", "99999999999999999999",
  ])
  func takesNothingElse(text: String) {
    #expect(Self.shown(text).map(\.range).flatMap { $0.count == 1 ? nil : $0 } == nil, "\(text)")
  }

  /// Sizes beyond what a file may have are the largest one.
  @Test func neverOverflows() {
    let largest = UInt64(Int64.max)
    #expect(Self.shown("999999999999999E")?.range == largest...largest)
    #expect(Self.shown("8E", .binary)?.range == 7 << 60...largest)
    #expect(Self.shown("9223372036854775807")?.range == largest...largest)
    #expect(Self.shown("9223372036854775808") == nil)
  }

  /// As each server prints a size of so many bytes, whichever way it rounds.
  @Test func holdsWhatServersShow() throws {
    let sizes: [UInt64] = [
      1, 2, 51, 99, 100, 512, 972, 973, 1000, 1023, 1024, 1025, 1075, 1076, 10_188, 10_239, 10_240, 99_999,
      1_022_976,
      1_048_575, 1_048_576, 2_936_012, 5_000_000, 1_073_741_823, 3_221_225_472, 13_194_139_533_312,
    ]
    for size in sizes {
      for text in Self.texts(of: size) {
        let range = try #require(Self.shown(text, .binary)?.range, "\(text)")
        #expect(range.contains(size), "\(size) as \(text): \(range)")
        #expect(try #require(Self.shown(text)?.range).contains(size), "\(size) as \(text)")
      }
    }
  }

  @Test func holdsWhatTomcatShows() throws {
    for size in Array(0...5000) + [1_048_575, 1_048_576, 1_048_576 + 926] as [UInt64] {
      let tenths = size == 0 ? 0 : size < 103 ? 1 : size % 1024 / 103
      let text = " \(size / 1024).\(tenths) KiB Mon, 05 May 2008 21:49:33 GMT"
      let sizes = try #require(TomcatIndex().facts(IndexRow(after: Array(text.utf8))).sizes)
      #expect(sizes.contains(size), "\(size) as \(text): \(sizes)")
    }
  }

  /// Up, down and to the nearest, with one digit and with none.
  private static func texts(of size: UInt64) -> [String] {
    var texts = ["\(size)", "\(size) B"]
    var value = Double(size) / 1024
    // Below half of a unit each server takes the next smaller one.
    for unit in ["K", "M", "G", "T"] where unit == "K" || value >= 0.5 {
      for rule: FloatingPointRoundingRule in [.up, .down, .toNearestOrEven] {
        texts.append("\(Int(value.rounded(rule)))\(unit)")
        let tenths = Int((value * 10).rounded(rule))
        texts.append("\(tenths / 10).\(tenths % 10)\(unit)")
      }
      value /= 1024
    }
    return texts
  }

  /// Of each server that rounds: the text behind the link of a row.
  @Test func fillsTheFactsOfARow() {
    let rows: [(any IndexDialect, String, ClosedRange<UInt64>?, UInt64?)] = [
      (NginxIndex(), " 14-Nov-2023 22:13   3G", 2 << 30...4 << 30, nil),
      (NginxIndex(), " 14-Nov-2023 22:13   3", nil, 3),
      // No file without a byte is shown so.
      (NginxIndex(), " 14-Nov-2023 22:13   1G", 512 << 20...2 << 30, nil),
      (NginxIndex(), " 14-Nov-2023 22:13   1K", 1...2048, nil),
      (FancyIndex(), "  1 GiB  2023-Nov-14 22:13", 512 << 20...2 << 30, nil),
      (ApacheIndex(), " 2023-11-14 22:13  1.0K  see there", 921...1127, nil),
      (ApacheIndex(), " 2023-11-14 22:13    2 ", 2...2, nil),
      (ApacheIndex(), " 2023-11-14 22:13    - ", nil, nil),
      (LighttpdIndex(), "  2023-Nov-14 22:13:20  0.1K  text/plain", 1...205, nil),
      (FancyIndex(), "  12.0 KiB  2023-Nov-14 22:13", 12_185...12_391, nil),
      (FancyIndex(), "  863M  2023-Nov-14 22:13", 903_872_512...905_969_664, nil),
      (FancyIndex(), "  12  2023-Nov-14 22:13", nil, 12),
      (TomcatIndex(), "  38.0 kb  Mon, 05 May 2008 21:49:33 GMT", 38_809...39_023, nil),
      (ArtifactoryIndex(), "\n  03-Sep-2025 03:44  60.79 KB", 60_780...62_260, nil),
      (ArtifactoryIndex(), " 03-Sep-2025 03:44  21 bytes", nil, 21),
      (MozillaIndex(), "  3M  27-Oct-2015 17:38 ", 2_000_000...4_194_304, nil),
      (
        MiniserveIndex(), " 2.3 GB 2.3 GB 2022-05-01 12:00:00 +02:00 2 years ago",
        2_200_000_000...2_576_980_378, nil
      ),
      (DarkhttpdIndex(), "   2024-03-01 10:20   12", nil, 12),
      (MavenIndex(), " 2005-09-21 03:35    733741  ", nil, 733_741),
      (MavenIndex(), "  -  - ", nil, nil),
      // It shows the room on the disk.
      (LiteSpeedIndex(), " 19-Jul-2018 03:39   21836k  ", nil, nil),
    ]
    for (dialect, text, sizes, size) in rows {
      let facts = dialect.facts(IndexRow(after: Array(text.utf8)))
      #expect(facts.sizes == sizes, "\(dialect.name): \(text)")
      #expect(facts.size == size, "\(dialect.name): \(text)")
    }
  }
}
