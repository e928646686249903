import TarnCore
import Testing

@testable import TarnFeeds

/// Strings and numbers are read eight bytes and eighteen digits at a time where they lie whole in the buffer: every byte at every
/// place has to mean what it means to a reader of single bytes.
@Suite struct JSONReaderTests {
  /// What a string of one odd byte between plain ones comes to, in bytes at hand.
  private static func read(_ text: [UInt8]) -> Result<[UInt8], FeedFailure> {
    var reader = JSONReader([0x22] + text + [0x22])
    do throws(FeedFailure) {
      let string = try reader.string()
      try reader.end()
      return .success(string)
    } catch {
      return .failure(error)
    }
  }

  @Test(arguments: 0...20) func everyByteAtEveryPlaceOfAString(place: Int) {
    for byte in UInt8.min...UInt8.max {
      let text = Array(repeating: UInt8(ascii: "x"), count: place) + [byte] + Array("yz".utf8)
      let result = Self.read(text)
      switch byte {
      case 0x22, 0x5C, 0..<0x20: #expect((try? result.get()) == nil, "\(byte) at \(place)")
      default: #expect((try? result.get()) == text, "\(byte) at \(place)")
      }
    }
  }

  @Test(arguments: 0...20) func escapesAtEveryPlace(place: Int) throws {
    let plain = String(repeating: "x", count: place)
    let text = Array((plain + #"\n\"\\\u00e9"# + plain + #"\t"#).utf8)
    #expect(try Self.read(text).get() == Array((plain + "\n\"\\\u{E9}" + plain + "\t").utf8))
  }

  @Test(arguments: 0...20) func namesTheColumnOfAControlCharacter(place: Int) {
    let text = Array(repeating: UInt8(ascii: "x"), count: place) + [0x01]
    var column: Int?
    if case .failure(let failure) = Self.read(text) { column = failure.column }
    // Behind the quote, counted from 1.
    #expect(column == place + 2)
  }

  @Test(
    arguments: [
      ("0", 0), ("7", 7), ("4096", 4096), ("999999999999999999", 999_999_999_999_999_999),
      ("1000000000000000000", 1_000_000_000_000_000_000), ("18446744073709551615", UInt64.max),
      ("18446744073709551616", nil), ("-1", nil), ("1.0", nil), ("1e3", nil), ("12E+1", nil),
      ("123456789012345678.5", nil),
    ] as [(String, UInt64?)])
  func wholeNumbers(text: String, value: UInt64?) throws {
    var reader = JSONReader(Array("[ \(text) ,5]".utf8))
    try reader.beginArray()
    #expect(try reader.nextElement())
    #expect(try reader.wholeNumber() == value)
    // It was taken, and nothing more.
    #expect(try reader.nextElement())
    #expect(try reader.wholeNumber() == 5)
  }

  @Test(arguments: ["012", "1-", "-", "1.", "1e", "x", "\"1\"", "1..2", "123456789012345678-"])
  func whatIsNoNumber(text: String) {
    var reader = JSONReader(Array("\(text) ".utf8))
    #expect(throws: FeedFailure.self) { try reader.wholeNumber() }
  }

  /// As the text of a tag: blanks are gone, and what `UInt64` reads, it reads.
  @Test(
    arguments: [
      ("0", 0), ("00012", 12), ("+5", 5), ("", nil), ("1a", nil),
      ("1000000000000000000", 1_000_000_000_000_000_000),
      ("18446744073709551616", nil), ("999999999999999999", 999_999_999_999_999_999),
    ] as [(String, UInt64?)])
  func numbersOfTags(text: String, value: UInt64?) {
    #expect(Percent.wholeNumber(Array(text.utf8)) == value)
    #expect(UInt64(text) == value)
  }

  /// Whether a line is the end line is told by its first key alone, however it is written.
  @Test(arguments: [
    #"{"end":"#, #"{ "end" :"#, #"{"\u0065nd":"#, "\t{\r\"e\\u006ed\" : ",
  ])
  func theEndLineHoweverItIsWritten(beginning: String) {
    let lines = ManifestTests.closed(
      [ManifestTests.header, #"{"path":"e"}"#, #"{"end2":1,"path":"end"}"#], files: 2)
    let outcome = parse(lines.replacing(#"{"end":"#, with: beginning))
    #expect(outcome.failure == nil)
    #expect(outcome.isComplete)
    #expect(outcome.names == ["e", "end"])
  }
}
