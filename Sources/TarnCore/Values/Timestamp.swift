/// A moment in nanoseconds since 1970-01-01T00:00:00Z, in the years 1678 to 2262.
package struct Timestamp: Hashable, Comparable, Sendable {
  package let nanoseconds: Int64

  package init(nanoseconds: Int64) {
    self.nanoseconds = nanoseconds
  }

  /// A moment after all others.
  package static let distantFuture = Timestamp(nanoseconds: .max)

  /// - Returns: `nil` outside the range.
  package init?(seconds: Int64, nanoseconds: Int64 = 0) {
    let (scaled, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    let (sum, overflow2) = scaled.addingReportingOverflow(nanoseconds)
    guard !overflow, !overflow2 else { return nil }
    self.nanoseconds = sum
  }

  /// Makes a moment from a date of the proleptic Gregorian calendar in UTC.
  ///
  /// - Returns: nil when a field is out of range (month 1-12, day 1-31 of that month, hour 0-23, minute 0-59,
  ///   second 0-60).
  package init?(
    year: Int, month: Int, day: Int, hour: Int = 0, minute: Int = 0, second: Int = 0, nanosecond: Int = 0,
    offsetSeconds: Int = 0
  ) {
    guard (1678...2261).contains(year), (1...12).contains(month), (0...23).contains(hour),
      (0...59).contains(minute), (0...60).contains(second), (0..<1_000_000_000).contains(nanosecond),
      (1...Civil.daysIn(month: month, year: year)).contains(day), (-86_400...86_400).contains(offsetSeconds)
    else { return nil }
    let days = Civil.days(year: year, month: month, day: day)
    let seconds = days * 86_400 + hour * 3600 + minute * 60 + second - offsetSeconds
    self.init(seconds: Int64(seconds), nanoseconds: Int64(nanosecond))
  }

  /// Whole seconds, rounded down.
  package var seconds: Int64 { floorDivide(nanoseconds, 1_000_000_000) }

  /// Reads the form that `rfc3339` has, and nothing else.
  package init?(rfc3339 text: String) {
    let fields = text.split { "-T:Z".contains($0) }.compactMap { Int($0) }
    guard text.hasSuffix("Z"), text.utf8.count == 20, fields.count == 6 else { return nil }
    self.init(
      year: fields[0], month: fields[1], day: fields[2], hour: fields[3], minute: fields[4], second: fields[5]
    )
  }

  /// `2026-11-21T04:30:00Z` (RFC 3339), in whole seconds.
  package var rfc3339: String {
    let civil = Civil(daysSince1970: Int(floorDivide(seconds, 86_400)))
    let second = Int(seconds - floorDivide(seconds, 86_400) * 86_400)
    return "\(pad(civil.year, 4))-\(pad(civil.month, 2))-\(pad(civil.day, 2))"
      + "T\(pad(second / 3600, 2)):\(pad(second / 60 % 60, 2)):\(pad(second % 60, 2))Z"
  }

  package static func < (left: Self, right: Self) -> Bool { left.nanoseconds < right.nanoseconds }

  /// Returns the moment so many seconds later, limited to the range.
  package func adding(seconds: Int64) -> Timestamp {
    let (scaled, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    let (sum, overflow2) = nanoseconds.addingReportingOverflow(scaled)
    if overflow || overflow2 { return Timestamp(nanoseconds: seconds < 0 ? .min : .max) }
    return Timestamp(nanoseconds: sum)
  }
}

/// Divides and rounds down. No value overflows.
private func floorDivide(_ value: Int64, _ by: Int64) -> Int64 {
  let (quotient, remainder) = value.quotientAndRemainder(dividingBy: by)
  return remainder < 0 ? quotient - 1 : quotient
}

private func pad(_ value: Int, _ width: Int) -> String {
  let text = String(value)
  return String(repeating: "0", count: max(0, width - text.count)) + text
}

/// Days and dates of the Gregorian calendar (the algorithm of "chrono-Compatible Low-Level Date Algorithms").
package struct Civil {
  package let year: Int
  package let month: Int
  package let day: Int

  package init(daysSince1970 days: Int) {
    let shifted = days + 719_468
    let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
    let dayOfEra = shifted - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shiftedMonth = (5 * dayOfYear + 2) / 153
    day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
    month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
    year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
  }

  package static func days(year: Int, month: Int, day: Int) -> Int {
    let shifted = month <= 2 ? year - 1 : year
    let era = (shifted >= 0 ? shifted : shifted - 399) / 400
    let yearOfEra = shifted - era * 400
    let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
    return era * 146_097 + dayOfEra - 719_468
  }

  package static func daysIn(month: Int, year: Int) -> Int {
    switch month {
    case 2: (year % 4 == 0 && year % 100 != 0) || year % 400 == 0 ? 29 : 28
    case 4, 6, 9, 11: 30
    default: 31
    }
  }
}
