import TarnCore

/// Reads the dates of news feeds: RFC 822 and RFC 3339 with the usual errors.
///
/// A date without a zone is taken as UTC, a day without a time as its midnight.
enum FeedDate {
  private static let maximumLength = 100
  private static let months = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
  ]
  /// Hours east of Greenwich. The letters of the military zones were never used correctly (RFC 5322 4.3), so they count as UTC.
  private static let zones: [String: Int] = [
    "ut": 0, "utc": 0, "gmt": 0, "z": 0, "wet": 0, "est": -5, "edt": -4, "cst": -6, "cdt": -5, "mst": -7,
    "mdt": -6, "pst": -8, "pdt": -7, "akst": -9, "akdt": -8, "hst": -10, "bst": 1, "cet": 1, "cest": 2,
    "met": 1, "mest": 2, "mez": 1, "mesz": 2, "eet": 2, "eest": 3, "msk": 3, "jst": 9, "kst": 9, "aest": 10,
    "aedt": 11, "nzst": 12, "nzdt": 13, "art": -3, "brt": -3, "sgt": 8, "hkt": 8,
  ]

  static func parse(_ text: [UInt8]) -> Timestamp? {
    let text = withoutComments(trimmed(text))
    guard (4...maximumLength).contains(text.count) else { return nil }
    if text.prefix(4).allSatisfy(\.isASCIIDigit) { return iso(text) }
    return mail(text)
  }

  /// Removes comments, which are in parentheses (RFC 5322 3.2.2).
  private static func withoutComments(_ text: [UInt8]) -> [UInt8] {
    guard text.contains(0x28) else { return text }
    var depth = 0
    var result: [UInt8] = []
    for byte in text {
      if byte == 0x28 { depth += 1 }
      if depth == 0 { result.append(byte) }
      if byte == 0x29, depth > 0 { depth -= 1 }
    }
    return trimmed(result)
  }

  // MARK: RFC 3339

  /// Reads `2023-11-14T22:13:20.5+01:00` and its shorter forms down to the year (W3C-DTF), also without dashes.
  private static func iso(_ text: [UInt8]) -> Timestamp? {
    let run = text.prefix { $0.isASCIIDigit }
    guard run.count != 8 else {
      let rest = text[8...]
      let dashed = run[0..<4] + [0x2D] + run[4..<6] + [0x2D] + run[6..<8]
      return iso(Array(dashed) + rest)
    }
    guard run.count == 4, let year = number(run) else { return nil }
    var rest = text[4...]
    let mark = rest.first
    guard mark == nil || mark == 0x2D || mark == 0x2F else { return nil }
    let month = part(&rest, behind: mark)
    let day = month == nil ? nil : part(&rest, behind: mark)
    guard month != nil || rest.isEmpty, day != nil || rest.isEmpty else { return nil }
    if let first = rest.first, first | 0x20 == 0x74 || isBlank(first) { rest = rest.dropFirst() }
    guard let time = Time(&rest), let offset = offset(trimmed(Array(rest))) else { return nil }
    return time.on(year: year, month: month ?? 1, day: day ?? 1, offset: offset)
  }

  /// Reads one or two digits after a mark.
  private static func part(_ rest: inout ArraySlice<UInt8>, behind mark: UInt8?) -> Int? {
    guard let mark, rest.first == mark else { return nil }
    let digits = rest.dropFirst().prefix { $0.isASCIIDigit }
    guard (1...2).contains(digits.count) else { return nil }
    rest = rest[digits.endIndex...]
    return number(digits)
  }

  // MARK: RFC 822

  /// Reads `Tue, 14 Nov 2023 22:13:20 +0100`, also in other orders: `November 14, 2023`, `Tue Nov 14 22:13:20 2023`.
  private static func mail(_ text: [UInt8]) -> Timestamp? {
    var day: Int?
    var month: Int?
    var year: Int?
    var time: Time?
    var offset: Int?
    for word in words(text) {
      if word[0].isASCIIDigit, word.contains(0x3A) {
        var rest = word[...]
        guard time == nil, let found = Time(&rest) else { return nil }
        time = found
        if !rest.isEmpty { offset = offset ?? Self.offset(Array(rest)) }
      } else if day == nil, let found = Self.dotted(word) {
        (day, month, year) = found
      } else if word[0].isASCIIDigit {
        let digits = word.prefix { $0.isASCIIDigit }
        guard let value = number(digits), digits.count <= 4 else { return nil }
        if day == nil, digits.count <= 2 {
          day = value
        } else if year == nil {
          year = Self.year(value, digits.count)
        }
      } else if time != nil, let found = Self.offset(word) {
        offset = offset ?? found
      } else if let found = Self.month(word) {
        month = month ?? found
      } else if let hours = meridiem(word), let plain = time {
        time = plain.shifted(hours)
      }
    }
    guard let day, let month, let year else { return nil }
    return (time ?? Time()).on(year: year, month: month, day: day, offset: offset ?? 0)
  }

  /// Reads `28.11.2026`, with the day in front.
  private static func dotted(_ word: [UInt8]) -> (day: Int?, month: Int?, year: Int?)? {
    let parts = word.split(separator: 0x2E, omittingEmptySubsequences: false)
    guard parts.count == 3, parts[0].count <= 2, parts[1].count <= 2, parts[2].count == 4,
      let day = number(parts[0]), let month = number(parts[1]), let year = number(parts[2])
    else { return nil }
    return (day, month, year)
  }

  /// Splits at blanks and commas, and at dashes between letters and digits (`14-Nov-2023`).
  private static func words(_ text: [UInt8]) -> [[UInt8]] {
    var result: [[UInt8]] = []
    for word in text.split(whereSeparator: { isBlank($0) || $0 == 0x2C }) {
      let isDate = word.first.map(\.isASCIIDigit) == true && word.contains(where: \.isASCIILetter)
      let parts =
        isDate && !word.contains(0x3A) ? word.split(whereSeparator: { $0 == 0x2D || $0 == 0x2F }) : [word]
      result += parts.map { Array($0) }
    }
    return result
  }

  /// Completes a year: two digits before 50 are of this century, three count from 1900 (RFC 5322 4.3).
  private static func year(_ value: Int, _ digits: Int) -> Int {
    digits >= 4 ? value : value + (digits == 2 && value < 50 ? 2000 : 1900)
  }

  /// Reads English names of months and their abbreviations, and German ones with another beginning.
  private static func month(_ word: [UInt8]) -> Int? {
    guard word.count >= 3 else { return nil }
    let name = String(decoding: lowercased(word.prefix(3)), as: UTF8.self)
    if let index = months.firstIndex(of: name) { return index + 1 }
    return ["mai": 5, "okt": 10, "dez": 12, "mrz": 3][name]
  }

  private static func meridiem(_ word: [UInt8]) -> Int? {
    switch String(decoding: lowercased(word.filter { $0 != 0x2E }), as: UTF8.self) {
    case "am": 0
    case "pm": 12
    default: nil
    }
  }

  /// Reads `+0100`, `+01:00`, `+1`, `GMT+1`, `EST`, `Z` or nothing, in seconds.
  private static func offset(_ text: [UInt8]) -> Int? {
    let name = text.prefix { $0.isASCIILetter }
    var hours = 0
    if !name.isEmpty {
      if let known = zones[String(decoding: lowercased(name), as: UTF8.self)] {
        hours = known
      } else if name.count > 1 || text.count > 1 {
        return nil
      }
    }
    let rest = text[name.endIndex...]
    guard let sign = rest.first else { return hours * 3600 }
    guard sign == 0x2B || sign == 0x2D else { return nil }
    let digits = rest.dropFirst().filter { $0 != 0x3A }
    guard (1...4).contains(digits.count), let value = number(digits[...]) else { return nil }
    let minutes = digits.count > 2 ? value / 100 * 60 + value % 100 : value * 60
    guard minutes <= 24 * 60 else { return nil }
    return (sign == 0x2D ? -minutes : minutes) * 60
  }

  private static func number(_ digits: ArraySlice<UInt8>) -> Int? {
    guard (1...9).contains(digits.count), digits.allSatisfy(\.isASCIIDigit) else { return nil }
    return digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
  }

  /// A time of day.
  private struct Time {
    var hour = 0
    var minute = 0
    var second = 0
    var nanosecond = 0

    init() {}

    /// Reads `22:13`, `22:13:20`, `22:13:20.5` or `221320`; midnight when the text begins with none of them.
    init?(_ rest: inout ArraySlice<UInt8>) {
      let run = rest.prefix { $0.isASCIIDigit }
      guard !run.isEmpty else { return }
      if run.count == 6 || run.count == 4 {
        rest = rest[run.endIndex...]
        hour = FeedDate.number(run.prefix(2)) ?? 0
        minute = FeedDate.number(run.dropFirst(2).prefix(2)) ?? 0
        second = FeedDate.number(run.dropFirst(4)) ?? 0
      } else {
        guard run.count <= 2, let hour = FeedDate.number(run) else { return nil }
        self.hour = hour
        rest = rest[run.endIndex...]
        guard let minute = FeedDate.part(&rest, behind: 0x3A) else { return nil }
        self.minute = minute
        second = FeedDate.part(&rest, behind: 0x3A) ?? 0
      }
      takeFraction(&rest)
      takeMeridiem(&rest)
    }

    private mutating func takeFraction(_ rest: inout ArraySlice<UInt8>) {
      guard rest.first == 0x2E || rest.first == 0x2C else { return }
      let digits = rest.dropFirst().prefix { $0.isASCIIDigit }
      guard !digits.isEmpty else { return }
      rest = rest[digits.endIndex...]
      let padded = digits.prefix(9) + Array(repeating: 0x30, count: max(0, 9 - digits.count))
      nanosecond = FeedDate.number(padded) ?? 0
    }

    /// Reads the `PM` of `10:13PM`.
    private mutating func takeMeridiem(_ rest: inout ArraySlice<UInt8>) {
      let word = rest.drop(while: isBlank).prefix { $0.isASCIILetter || $0 == 0x2E }
      guard let hours = FeedDate.meridiem(Array(word)) else { return }
      rest = rest[word.endIndex...]
      self = shifted(hours)
    }

    /// - Parameter hours: 12 for the second half of the day.
    func shifted(_ hours: Int) -> Time {
      guard (1...12).contains(hour) else { return self }
      var result = self
      result.hour = hour % 12 + hours
      return result
    }

    func on(year: Int, month: Int, day: Int, offset: Int) -> Timestamp? {
      // The end of a day is the beginning of the next one (ISO 8601).
      let isEnd = hour == 24 && minute == 0 && second == 0 && nanosecond == 0
      if isEnd {
        return Timestamp(
          year: year, month: month, day: day, hour: 23, minute: 59, second: 60, offsetSeconds: offset)
      }
      return Timestamp(
        year: year, month: month, day: day, hour: hour, minute: minute, second: second,
        nanosecond: nanosecond, offsetSeconds: offset)
    }
  }
}
