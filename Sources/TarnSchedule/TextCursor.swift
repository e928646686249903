import TarnCore

/// A position in a short ASCII text that is being read.
struct TextCursor {
  private var bytes: [UInt8]
  private(set) var offset = 0

  init(_ text: String) {
    bytes = Array(text.utf8)
  }

  var isAtEnd: Bool { offset >= bytes.count }

  var peek: UInt8? { isAtEnd ? nil : bytes[offset] }

  var peekSecond: UInt8? { offset + 1 < bytes.count ? bytes[offset + 1] : nil }

  /// The text that is not read yet.
  var rest: String { String(decoding: bytes[offset...], as: UTF8.self) }

  /// The rest of the text, safe to print.
  var shown: String { Printable.escape(rest) }

  /// The word after the last space, and its position; `nil` without a space.
  var lastWord: (text: String, offset: Int)? {
    guard let space = bytes.lastIndex(of: UInt8(ascii: " ")) else { return nil }
    return (String(decoding: bytes[(space + 1)...], as: UTF8.self), space + 1)
  }

  /// Drops everything from `end` on.
  mutating func cut(at end: Int) {
    bytes.removeSubrange(end...)
  }

  /// - Returns: true when the text continues with these words, which are skipped then.
  mutating func consume(_ text: StaticString) -> Bool {
    let found = text.withUTF8Buffer { bytes[offset...].starts(with: $0) }
    if found { offset += text.utf8CodeUnitCount }
    return found
  }

  /// Skips a word without regard to the case of ASCII letters, like `consume`. `lowercased` must be in lower case.
  mutating func takeWord(_ lowercased: String) -> Bool {
    let wanted = lowercased.utf8
    guard bytes.count - offset >= wanted.count,
      zip(bytes[offset...], wanted).allSatisfy({ $0 == $1 || ($0 | 0x20 == $1 && $0.isASCIILetter) })
    else { return false }
    offset += wanted.count
    return true
  }

  mutating func skipSpaces() {
    while peek == UInt8(ascii: " ") { offset += 1 }
  }

  /// Reads at least one digit.
  mutating func number(
    most: Int, _ reason: String, _ example: String
  ) throws(ScheduleTextError) -> Int {
    let start = offset
    var value = 0
    while let byte = peek, byte.isASCIIDigit {
      value = value * 10 + Int(byte - UInt8(ascii: "0"))
      guard value <= most else { throw error(reason, example, at: start) }
      offset += 1
    }
    guard offset > start else { throw error("a number is expected", example) }
    return value
  }

  /// Reads at least one digit after a decimal point, in millionths; the seventh one rounds.
  mutating func millionths() throws(ScheduleTextError) -> Int {
    let start = offset
    var value = 0
    var weight = 1_000_000
    while let byte = peek, byte.isASCIIDigit {
      let digit = Int(byte - UInt8(ascii: "0"))
      if weight > 1 {
        weight /= 10
        value += digit * weight
      } else if offset == start + 6, digit >= 5 {
        value += 1
      }
      offset += 1
    }
    guard offset > start else { throw error("digits are missing after the point", "*:*:0/0.5") }
    return value
  }

  func error(_ reason: String, _ example: String, at place: Int? = nil) -> ScheduleTextError {
    ScheduleTextError(offset: place ?? offset, reason: reason, example: example)
  }
}

/// Reads and writes sets of days of the week: bit 0 is Monday.
enum Weekdays {
  static let all: UInt8 = 127
  static let names = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
  private static let longNames = [
    "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday",
  ]

  /// Reads days such as `Mon..Fri,Sun ` with the spaces after them; nothing when the text does not begin with a day.
  ///
  /// - Returns: the days; 0 for none and for all.
  static func parse(_ text: inout TextCursor) throws(ScheduleTextError) -> UInt8 {
    var days: UInt8 = 0
    var rangeStart: Int?
    while true {
      let place = text.offset
      guard let day = try takeDay(&text) else {
        if days == 0 { return 0 }
        throw text.error("a day of the week is expected", "Mon..Fri 06:00")
      }
      days |= 1 << UInt8(day)
      if let start = rangeStart {
        guard start <= day else {
          throw text.error("a range of days runs from Monday to Sunday", "Sat,Sun,Mon 06:00", at: place)
        }
        for between in start..<day { days |= 1 << UInt8(between) }
      }
      let isRangeOpen: Bool
      switch text.peek {
      case UInt8(ascii: "."), UInt8(ascii: "-"):
        guard rangeStart == nil, text.consume("..") || text.consume("-") else {
          throw text.error("`..` is expected between two days", "Mon..Fri 06:00")
        }
        rangeStart = day
        isRangeOpen = true
      case UInt8(ascii: ","):
        _ = text.consume(",")
        rangeStart = nil
        isRangeOpen = false
      default:
        text.skipSpaces()
        return days == all ? 0 : days
      }
      // A comma may end the list.
      if text.isAtEnd || text.peek == UInt8(ascii: " ") {
        guard !isRangeOpen else { throw text.error("the range of days has no end", "Mon..Fri 06:00") }
        text.skipSpaces()
        return days == all ? 0 : days
      }
    }
  }

  private static func takeDay(_ text: inout TextCursor) throws(ScheduleTextError) -> Int? {
    for day in longNames.indices
    where text.takeWord(longNames[day]) || text.takeWord(String(longNames[day].prefix(3))) {
      guard let next = text.peek, !" -.,".utf8.contains(next) else { return day }
      throw text.error("a day of the week is spelled Mon or Monday", "Mon..Fri 06:00")
    }
    return nil
  }

  /// Returns whether the text begins with a day of the week, in any spelling.
  static func begin(_ text: String) -> Bool {
    var cursor = TextCursor(text)
    do throws(ScheduleTextError) {
      return try takeDay(&cursor) != nil
    } catch {
      return false
    }
  }

  /// Returns days as text, such as `Mon..Wed,Sat,Sun`.
  static func text(_ days: UInt8) -> String {
    var parts: [String] = []
    var day = 0
    while day < 7 {
      guard days & 1 << UInt8(day) != 0 else {
        day += 1
        continue
      }
      var last = day
      while last < 6, days & 1 << UInt8(last + 1) != 0 { last += 1 }
      switch last - day {
      case 0: parts.append(names[day])
      case 1: parts += [names[day], names[last]]
      default: parts.append("\(names[day])..\(names[last])")
      }
      day = last + 1
    }
    return parts.joined(separator: ",")
  }
}
