import TarnCore

/// A calendar expression in the grammar of systemd's OnCalendar= (systemd.time(7)): `Mon..Fri *-*-* 06:00`, `*-*~1`, `*:0/15`,
/// `weekly Europe/Berlin`. A value; finding the next time is pure.
package struct CalendarSpec: Hashable, Sendable {
  /// The zone in which the text is to be read.
  package enum Zone: Hashable, Sendable {
    /// The zone of the machine, because the text names none.
    case local
    case utc
    /// A name of the time zone database.
    case named(String)
  }

  /// The days of the week: bit 0 is Monday; 0 stands for every day.
  var weekdays: UInt8 = 0
  // An empty list stands for every value.
  var years: [CalendarRange] = []
  var months: [CalendarRange] = []
  var days: [CalendarRange] = []
  var hours: [CalendarRange] = []
  var minutes: [CalendarRange] = []
  /// The seconds, in microseconds of the minute.
  var seconds: [CalendarRange] = []
  /// True when days are counted from the end of the month: 1 is its last day.
  var countsFromMonthEnd = false
  package internal(set) var zone = Zone.local

  /// The fields in which lists of ranges can stand.
  enum Field {
    case year, month, day, dayFromEnd, hour, minute, second

    /// The allowed values; seconds in microseconds.
    var bounds: ClosedRange<Int> {
      switch self {
      case .year: 1970...2199
      case .month: 1...12
      case .day: 1...31
      case .dayFromEnd: 1...28
      case .hour: 0...23
      case .minute: 0...59
      case .second: 0...59_999_999
      }
    }

    /// The name that users know.
    var name: String {
      switch self {
      case .year: "year"
      case .month: "month"
      case .day: "day"
      case .dayFromEnd: "day from the month's end"
      case .hour: "hour"
      case .minute: "minute"
      case .second: "second"
      }
    }

    /// The factor from the unit of the text to the unit of the value.
    var scale: Int { self == .second ? CalendarRange.second : 1 }
  }
}

/// One member of a list: a single value, or a value and every `step` after it, up to `stop` or the end of the field.
struct CalendarRange: Hashable, Sendable {
  /// The microseconds of a second, which are the unit of that field.
  static let second = 1_000_000

  var start: Int
  /// The last value that may match; `nil` for a single value or an open repetition.
  var stop: Int?
  /// The step; 0 for a single value.
  var step: Int

  init(_ start: Int, through stop: Int? = nil, step: Int = 0) {
    self.start = start
    self.stop = stop
    self.step = step
  }

  /// The same values in the shortest form: the stop is a matching value, and a range of one value is that value.
  var normalized: CalendarRange {
    guard let stop else { return self }
    var last = stop
    if last > start, step > 0 { last -= (last - start) % step }
    if last == start { return CalendarRange(start) }
    return CalendarRange(start, through: last, step: step)
  }

  /// Returns the least matching value that is not below `value`; it may lie beyond the end of the field.
  func first(from value: Int) -> Int? {
    if start >= value { return start }
    guard step > 0 else { return nil }
    let next = start + (value - start + step - 1) / step * step
    if let stop, next > stop { return nil }
    return next
  }

  /// Returns the same days counted from the front, in a month of so many days.
  func fromMonthEnd(days: Int) -> CalendarRange {
    guard let stop else { return CalendarRange(days + 1 - start, step: step) }
    return CalendarRange(days + 1 - stop, through: days + 1 - start, step: step)
  }

  static func inOrder(_ left: CalendarRange, _ right: CalendarRange) -> Bool {
    if left.start != right.start { return left.start < right.start }
    if left.stop != right.stop { return (left.stop ?? -1) < (right.stop ?? -1) }
    return left.step < right.step
  }
}

/// The error of a schedule, a rate or a zone that cannot be read. `reason` and `example` are for people.
package struct ScheduleTextError: Error, Equatable, Sendable {
  /// The place of the error, in bytes from the start of the text.
  package let offset: Int
  /// What is wrong, such as `hour 24 is not in 0..23`.
  package let reason: String
  /// A valid text.
  package let example: String

  package init(offset: Int, reason: String, example: String) {
    self.offset = offset
    self.reason = reason
    self.example = example
  }

  /// The message, such as `at column 5: hour 24 is not in 0..23 (for example: 06:00)`.
  package var message: String { "at column \(offset + 1): \(reason) (for example: \(example))" }
}
