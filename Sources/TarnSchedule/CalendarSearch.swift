package import TarnCore

extension CalendarSpec {
  /// The last year of any schedule, as in systemd.
  static let lastYear = 2199

  /// Returns the first moment after `moment` that the schedule names, in whole microseconds.
  ///
  /// Goes through local times in calendar order, beginning with the one that clocks show at `moment`. A time that clocks skip when
  /// they are set forward does not happen. A time that they show twice when they are set back happens once, at the first of the two
  /// that lies after `moment`.
  ///
  /// - Parameter rules: the rules of the zone that `zone` names; ignored when that is UTC.
  /// - Returns: `nil` when there is none up to the year 2199.
  package func next(after moment: Timestamp, in rules: TimeZoneRules) -> Timestamp? {
    let rules = zone == .utc ? .utc : rules
    let first = floorQuotient(moment.nanoseconds, 1000) + 1
    let second = floorQuotient(first, Self.second)
    var place = LocalMoment(microseconds: first + Int64(rules.offset(at: second)) * Self.second)
    while let found = nextLocal(from: place) {
      let local = found.microseconds
      let localSecond = floorQuotient(local, Self.second)
      let fraction = local - localSecond * Self.second
      let instants = rules.instants(local: localSecond)
      if let instant = instants.first(where: { $0 * Self.second + fraction >= first }) {
        return Timestamp(nanoseconds: (instant * Self.second + fraction) * 1000)
      }
      let end = instants.isEmpty ? rules.endOfGap(local: localSecond) * Self.second : 0
      place = LocalMoment(microseconds: max(local + 1, end))
    }
    return nil
  }

  private static let second: Int64 = 1_000_000

  /// Returns the first matching local time from `place` on, whether clocks ever show it or not.
  private func nextLocal(from place: LocalMoment) -> LocalMoment? {
    guard let day = nextDay(from: place.day) else { return nil }
    if day == place.day, let time = nextTime(from: place.microsecondOfDay) {
      return LocalMoment(day: day, microsecondOfDay: time)
    }
    guard let next = day == place.day ? nextDay(from: day + 1) : day, let time = nextTime(from: 0) else {
      return nil
    }
    return LocalMoment(day: next, microsecondOfDay: time)
  }

  // MARK: - Days

  /// Returns the number of the next matching day; days count from 1970-01-01. Visits each month of each matching year at most once,
  /// so that an impossible date also ends in the year 2199.
  private func nextDay(from start: Int) -> Int? {
    let date = Civil(daysSince1970: start)
    var (year, month, day) = (date.year, date.month, date.day)
    while let matchingYear = Self.first(years, from: year, to: Self.lastYear) {
      if matchingYear > year { (month, day) = (1, 1) }
      year = matchingYear
      while let matchingMonth = Self.first(months, from: month, to: 12) {
        if matchingMonth > month { day = 1 }
        month = matchingMonth
        if let found = nextDay(year, month, from: day) { return found }
        (month, day) = (month + 1, 1)
      }
      (year, month, day) = (year + 1, 1, 1)
    }
    return nil
  }

  private func nextDay(_ year: Int, _ month: Int, from start: Int) -> Int? {
    let count = Civil.daysIn(month: month, year: year)
    let ranges = countsFromMonthEnd ? days.map { $0.fromMonthEnd(days: count) } : days
    var day = start
    while let matching = Self.first(ranges, from: day, to: count) {
      let number = Civil.days(year: year, month: month, day: matching)
      if weekdays == 0 || weekdays & 1 << UInt8(Civil.weekday(number)) != 0 { return number }
      day = matching + 1
    }
    return nil
  }

  // MARK: - Times

  /// Returns the next matching time in microseconds of the day, as if it had 24 hours.
  private func nextTime(from start: Int) -> Int? {
    let minuteLength = 60 * CalendarRange.second
    var hour = start / (60 * minuteLength)
    var minute = start / minuteLength % 60
    var second = start % minuteLength
    while let matchingHour = Self.first(hours, from: hour, to: 23) {
      if matchingHour > hour { (minute, second) = (0, 0) }
      hour = matchingHour
      while let matchingMinute = Self.first(minutes, from: minute, to: 59) {
        if matchingMinute > minute { second = 0 }
        minute = matchingMinute
        if let found = Self.first(seconds, from: second, to: minuteLength - 1) {
          return (hour * 60 + minute) * minuteLength + found
        }
        (minute, second) = (minute + 1, 0)
      }
      (hour, minute, second) = (hour + 1, 0, 0)
    }
    return nil
  }

  /// Returns the least value in `from...to` that one of the ranges matches. An empty list matches every value.
  private static func first(_ ranges: [CalendarRange], from: Int, to: Int) -> Int? {
    guard from <= to else { return nil }
    guard !ranges.isEmpty else { return from }
    guard let least = ranges.lazy.compactMap({ $0.first(from: from) }).min(), least <= to else { return nil }
    return least
  }
}

/// The date and time that clocks show, without regard to any zone.
struct LocalMoment {
  static let dayLength: Int64 = 86_400_000_000

  /// The days since 1970-01-01.
  let day: Int
  let microsecondOfDay: Int

  init(day: Int, microsecondOfDay: Int) {
    self.day = day
    self.microsecondOfDay = microsecondOfDay
  }

  init(microseconds: Int64) {
    let day = floorQuotient(microseconds, Self.dayLength)
    self.init(day: Int(day), microsecondOfDay: Int(microseconds - day * Self.dayLength))
  }

  var microseconds: Int64 { Int64(day) * Self.dayLength + Int64(microsecondOfDay) }
}

extension Civil {
  /// Returns the day of the week; 0 is Monday.
  static func weekday(_ daysSince1970: Int) -> Int {
    // 1970-01-01 was a Thursday.
    ((daysSince1970 + 3) % 7 + 7) % 7
  }
}

/// Divides and rounds down.
func floorQuotient(_ value: Int64, _ by: Int64) -> Int64 {
  let (quotient, remainder) = value.quotientAndRemainder(dividingBy: by)
  return remainder < 0 ? quotient - 1 : quotient
}
