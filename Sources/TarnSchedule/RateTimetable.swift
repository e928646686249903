package import TarnCore

/// Rates by the time of day: `[{ at = "08:00-18:00", limit = "2MiB/s" }]`. The first row that applies decides.
package struct RateTimetable: Hashable, Sendable {
  /// A span of the day in local time, on some or all days of the week.
  package struct Row: Hashable, Sendable {
    /// The start, from 0 to 1439 minutes of the day, and the end, from 1 to 1440; never equal. When `end` is before `start`, the
    /// span crosses midnight and belongs to the day on which it began.
    let start: Int
    let end: Int
    /// The days of the week: bit 0 is Monday; 0 stands for every day.
    let weekdays: UInt8
    /// Bytes per second; `nil` for no limit.
    package var limit: UInt64?

    /// - Parameter span: a text such as `08:00-18:00`, `22:00-06:00`, `Mon..Fri 08:00-18:00` or `00:00-24:00`.
    package init(_ span: String, limit: UInt64?) throws(ScheduleTextError) {
      var text = TextCursor(span)
      do {
        weekdays = try Weekdays.parse(&text)
      } catch {
        throw text.error(error.reason, Self.example, at: error.offset)
      }
      start = try Self.minute(&text, most: 1439)
      guard text.consume("-") else {
        throw text.error("`-` and the end of the span are missing", Self.example)
      }
      let offset = text.offset
      end = try Self.minute(&text, most: 1440)
      guard text.isAtEnd else { throw text.error("nothing is expected after the span", Self.example) }
      let front = String(decoding: span.utf8.prefix(offset), as: UTF8.self)
      guard end > 0 else {
        throw text.error("midnight as an end is written 24:00", front + "24:00", at: offset)
      }
      guard end != start else {
        throw text.error(
          "a whole day is written 00:00-24:00, not from a time to itself", "00:00-24:00", at: offset)
      }
      self.limit = limit
    }

    private static let example = "Mon..Fri 08:00-18:00"

    private static func minute(_ text: inout TextCursor, most: Int) throws(ScheduleTextError) -> Int {
      let offset = text.offset
      let hour = try text.number(most: 24, "an hour is at most 24", example)
      guard text.consume(":") else { throw text.error("`:` and the minutes are missing", example) }
      let minute = try text.number(most: 59, "a minute is at most 59", example)
      guard hour * 60 + minute <= most else {
        throw text.error("beyond the end of the day", example, at: offset)
      }
      return hour * 60 + minute
    }

    /// - Parameters:
    ///   - weekday: the day of the week; 0 is Monday.
    ///   - minute: the minute of that day.
    func holds(weekday: Int, minute: Int) -> Bool {
      func begins(_ day: Int) -> Bool { weekdays == 0 || weekdays & 1 << UInt8((day + 7) % 7) != 0 }
      if end > start { return begins(weekday) && (start..<end).contains(minute) }
      return (minute >= start && begins(weekday)) || (minute < end && begins(weekday - 1))
    }
  }

  package let rows: [Row]
  /// Bytes per second when no row applies; `nil` for no limit.
  package let standard: UInt64?

  package init(_ rows: [Row], standard: UInt64?) {
    self.rows = rows
    self.standard = standard
  }

  /// Returns the limit in bytes per second; `nil` for no limit.
  package func limit(at moment: Timestamp, in rules: TimeZoneRules) -> UInt64? {
    let local = moment.seconds + Int64(rules.offset(at: moment.seconds))
    let day = floorQuotient(local, 86_400)
    let minute = Int((local - day * 86_400) / 60)
    let weekday = Civil.weekday(Int(day))
    guard let row = rows.first(where: { $0.holds(weekday: weekday, minute: minute) }) else { return standard }
    return row.limit
  }

  /// Returns the first moment after `moment` at which the limit changes. `nil` when it is the same all week and no clock change
  /// falls into it.
  package func nextChange(after moment: Timestamp, in rules: TimeZoneRules) -> Timestamp? {
    let now = limit(at: moment, in: rules)
    return moments(after: moment, in: rules).first { limit(at: $0, in: rules) != now }
  }

  /// Returns the moments in the next eight days at which the limit can change, in order.
  private func moments(after moment: Timestamp, in rules: TimeZoneRules) -> [Timestamp] {
    let today = floorQuotient(moment.seconds + Int64(rules.offset(at: moment.seconds)), 86_400)
    let minutes = Set(rows.flatMap { [$0.start, $0.end % 1440] } + [0])
    var seconds: Set<Int64> = []
    for day in today...today + 8 {
      for minute in minutes {
        // A time that clocks skip begins with the clock change, which is added below.
        seconds.formUnion(rules.instants(local: day * 86_400 + Int64(minute) * 60))
      }
    }
    var last = moment.seconds
    while let change = rules.nextTransition(after: last), change <= moment.seconds + 8 * 86_400 {
      seconds.insert(change)
      last = change
    }
    return seconds.sorted().compactMap { Timestamp(seconds: $0) }.filter { $0 > moment }
  }
}
