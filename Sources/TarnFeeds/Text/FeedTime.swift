import TarnCore

/// Reads times as servers and programs write them: one exact form each, for the words of a listing may look alike. `FeedDate` is for
/// news feeds, whose dates have errors.
enum FeedTime {
  private static let months = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
  ]

  /// Reads `14-Nov-2023 22:13` as UTC, and returns what follows it.
  static func index(_ text: [UInt8]) -> (time: Timestamp, rest: ArraySlice<UInt8>)? {
    guard text.count >= 17, text[2] == 0x2D, text[6] == 0x2D, text[11] == 0x20, text[14] == 0x3A,
      text.count == 17 || isBlank(text[17]),
      let day = number(text[0..<2]), let month = month(text[3..<6]), let year = number(text[7..<11]),
      let hour = number(text[12..<14]), let minute = number(text[15..<17]),
      let time = Timestamp(year: year, month: month, day: day, hour: hour, minute: minute)
    else { return nil }
    return (time, text[17...])
  }

  /// Reads `2023-11-14 22:13` at the beginning of some words, as UTC.
  static func minute(_ words: [[UInt8]]) -> Timestamp? {
    guard words.count >= 2, words[0].count == 10, words[1].count == 5 else { return nil }
    return rfc3339(words[0] + [0x20] + words[1] + Array(":00Z".utf8))
  }

  /// Reads `Tue, 14 Nov 2023 22:13:20 GMT` (RFC 1123).
  static func http(_ text: [UInt8]) -> Timestamp? {
    guard text.count == 29, text[3] == 0x2C, text[16] == 0x20, text[19] == 0x3A, text[22] == 0x3A,
      text[25...].elementsEqual(" GMT".utf8),
      let day = number(text[5..<7]), let month = month(text[8..<11]), let year = number(text[12..<16]),
      let hour = number(text[17..<19]), let minute = number(text[20..<22]), let second = number(text[23..<25])
    else { return nil }
    return Timestamp(year: year, month: month, day: day, hour: hour, minute: minute, second: second)
  }

  /// Reads `2023-11-14T22:13:20.5+01:00` (RFC 3339).
  static func rfc3339(_ text: [UInt8]) -> Timestamp? {
    guard text.count >= 20, text[4] == 0x2D, text[7] == 0x2D, [0x54, 0x74, 0x20].contains(text[10]),
      text[13] == 0x3A, text[16] == 0x3A,
      let year = number(text[0..<4]), let month = number(text[5..<7]), let day = number(text[8..<10]),
      let hour = number(text[11..<13]), let minute = number(text[14..<16]), let second = number(text[17..<19])
    else { return nil }
    var rest = text[19...]
    var fraction = 0
    if rest.first == 0x2E {
      let digits = rest.dropFirst().prefix { $0.isASCIIDigit }
      guard !digits.isEmpty, let value = nanoseconds(digits) else { return nil }
      fraction = value
      rest = rest[digits.endIndex...]
    }
    guard let offset = offset(rest) else { return nil }
    return Timestamp(
      year: year, month: month, day: day, hour: hour, minute: minute, second: second, nanosecond: fraction,
      offsetSeconds: offset)
  }

  /// Reads a JSON number of seconds since 1970.
  static func seconds(_ text: [UInt8]) -> Timestamp? {
    let isNegative = text.first == 0x2D
    let digits = text.drop { $0 == 0x2D }
    let whole = digits.prefix { $0.isASCIIDigit }
    guard let seconds = Int64(String(decoding: whole, as: UTF8.self)) else { return nil }
    var rest = digits[whole.endIndex...]
    var fraction = 0
    if rest.first == 0x2E {
      rest = rest.dropFirst()
      guard !rest.isEmpty, let value = nanoseconds(rest) else { return nil }
      fraction = value
    } else if !rest.isEmpty {
      return nil
    }
    return Timestamp(
      seconds: isNegative ? -seconds : seconds, nanoseconds: Int64(isNegative ? -fraction : fraction))
  }

  /// Reads `Z` or `+01:00`, in seconds.
  private static func offset(_ text: ArraySlice<UInt8>) -> Int? {
    let text = Array(text)
    if text == [0x5A] || text == [0x7A] { return 0 }
    guard text.count == 6, text[0] == 0x2B || text[0] == 0x2D, text[3] == 0x3A,
      let hours = number(text[1..<3]), let minutes = number(text[4..<6]), hours < 24, minutes < 60
    else { return nil }
    return (hours * 3600 + minutes * 60) * (text[0] == 0x2D ? -1 : 1)
  }

  private static func nanoseconds(_ digits: ArraySlice<UInt8>) -> Int? {
    guard digits.allSatisfy(\.isASCIIDigit) else { return nil }
    let padded = Array(digits.prefix(9)) + Array(repeating: 0x30, count: max(0, 9 - digits.count))
    return number(padded[...])
  }

  private static func month(_ name: ArraySlice<UInt8>) -> Int? {
    let name = lowercased(name)
    return months.firstIndex { name.elementsEqual($0.utf8) }.map { $0 + 1 }
  }

  private static func number(_ digits: ArraySlice<UInt8>) -> Int? {
    guard !digits.isEmpty else { return nil }
    var value = 0
    for digit in digits {
      guard digit.isASCIIDigit else { return nil }
      value = value * 10 + Int(digit - 0x30)
    }
    return value
  }
}
