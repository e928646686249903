import TarnCore

/// The rules at the end of a TZif file for all later years, such as `CET-1CEST,M3.5.0,M10.5.0/3` (POSIX's TZ with the extensions of
/// RFC 8536 3.3.1).
struct PosixZone: Hashable, Sendable {
  /// A day of each year.
  enum Day: Hashable, Sendable {
    /// `J60`: a number from 1 to 365; February 29 is never counted.
    case withoutLeapDay(Int)
    /// `59`: a number from 0 to 365, counting February 29.
    case ofYear(Int)
    /// `M3.5.0`: the last (5) or another Sunday (0) of March.
    case weekday(month: Int, week: Int, day: Int)
  }

  struct Change: Hashable, Sendable {
    var day: Day
    /// The seconds of that day by the clocks before the change; may lie outside the day.
    var time: Int
  }

  struct Summer: Hashable, Sendable {
    var offset: Int
    var start: Change
    var end: Change
  }

  /// The standard offset in seconds east of UTC.
  var standard: Int
  var summer: Summer?

  func offset(at seconds: Int64) -> Int {
    guard let summer else { return standard }
    let last = changes(around: seconds).last { $0.at <= seconds }
    return last?.isSummer == true ? summer.offset : standard
  }

  func nextTransition(after seconds: Int64) -> Int64? {
    summer == nil ? nil : changes(around: seconds).first { $0.at > seconds }?.at
  }

  /// Returns the changes of three years, in order.
  private func changes(around seconds: Int64) -> [(at: Int64, isSummer: Bool)] {
    guard let summer else { return [] }
    let year = Civil(daysSince1970: Int(floorQuotient(seconds, 86_400))).year
    var changes: [(at: Int64, isSummer: Bool)] = []
    for year in year - 1...year + 1 {
      changes.append((summer.start.moment(in: year, offset: standard), true))
      changes.append((summer.end.moment(in: year, offset: summer.offset), false))
    }
    // A summer that begins when the last one ends has no end.
    return changes.sorted { $0.at != $1.at ? $0.at < $1.at : !$0.isSummer && $1.isSummer }
  }
}

extension PosixZone.Change {
  /// - Parameter offset: the offset of the clocks before the change.
  func moment(in year: Int, offset: Int) -> Int64 {
    Int64(day.number(in: year)) * 86_400 + Int64(time - offset)
  }
}

extension PosixZone.Day {
  /// Returns the days since 1970-01-01.
  func number(in year: Int) -> Int {
    let newYear = Civil.days(year: year, month: 1, day: 1)
    switch self {
    case .ofYear(let day): return newYear + day
    case .withoutLeapDay(let day):
      let isLeap = Civil.daysIn(month: 2, year: year) == 29
      return newYear + day - 1 + (isLeap && day >= 60 ? 1 : 0)
    case .weekday(let month, let week, let day):
      let first = Civil.days(year: year, month: month, day: 1)
      // Sunday is 0 here.
      let weekday = (Civil.weekday(first) + 1) % 7
      let found = first + (day - weekday + 7) % 7 + (week - 1) * 7
      return found < first + Civil.daysIn(month: month, year: year) ? found : found - 7
    }
  }
}

extension PosixZone {
  /// Reads the text of the footer; `nil` for anything else.
  init?(_ text: some Collection<UInt8>) {
    var reader = PosixZoneReader(rest: Array(text)[...])
    guard let zone = reader.read(), reader.rest.isEmpty else { return nil }
    self = zone
  }
}

private struct PosixZoneReader {
  var rest: ArraySlice<UInt8>

  mutating func read() -> PosixZone? {
    guard skipName(), let standard = time(mostHours: 24) else { return nil }
    if rest.isEmpty { return PosixZone(standard: -standard) }
    guard skipName() else { return nil }
    var summer = -standard + 3600
    if rest.first != UInt8(ascii: ",") {
      guard let west = time(mostHours: 24) else { return nil }
      summer = -west
    }
    // The zone database always writes the rules; POSIX does not define a default.
    guard let start = change(), let end = change() else { return nil }
    return PosixZone(standard: -standard, summer: PosixZone.Summer(offset: summer, start: start, end: end))
  }

  private mutating func consume(_ character: Character) -> Bool {
    guard let byte = character.asciiValue, rest.first == byte else { return false }
    rest.removeFirst()
    return true
  }

  /// Skips a name of at least three characters, such as `CET` or `<+03>`.
  private mutating func skipName() -> Bool {
    if consume("<") {
      guard let end = rest.firstIndex(of: UInt8(ascii: ">")) else { return false }
      let name = rest[..<end]
      rest = rest[(end + 1)...]
      return name.count >= 3
        && name.allSatisfy {
          $0.isASCIILetter || $0.isASCIIDigit || "+-".utf8.contains($0)
        }
    }
    let name = rest.prefix { $0.isASCIILetter }
    rest = rest[name.endIndex...]
    return name.count >= 3
  }

  private mutating func number(most: Int) -> Int? {
    let digits = rest.prefix { $0.isASCIIDigit }
    guard (1...3).contains(digits.count) else { return nil }
    rest = rest[digits.endIndex...]
    let value = digits.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
    return value <= most ? value : nil
  }

  /// Reads a time such as `-1`, `5:30` or `02:00:00`, in seconds.
  private mutating func time(mostHours: Int) -> Int? {
    let isNegative = consume("-")
    if !isNegative { _ = consume("+") }
    guard let hours = number(most: mostHours) else { return nil }
    var seconds = hours * 3600
    if consume(":") {
      guard let minutes = number(most: 59) else { return nil }
      seconds += minutes * 60
      if consume(":") {
        guard let rest = number(most: 59) else { return nil }
        seconds += rest
      }
    }
    return isNegative ? -seconds : seconds
  }

  /// Reads a change such as `,M3.5.0/2`.
  private mutating func change() -> PosixZone.Change? {
    guard consume(","), let day = day() else { return nil }
    guard consume("/") else { return PosixZone.Change(day: day, time: 7200) }
    guard let time = time(mostHours: 167) else { return nil }
    return PosixZone.Change(day: day, time: time)
  }

  private mutating func day() -> PosixZone.Day? {
    if consume("J") {
      guard let day = number(most: 365), day > 0 else { return nil }
      return .withoutLeapDay(day)
    }
    guard consume("M") else { return number(most: 365).map { .ofYear($0) } }
    guard let month = number(most: 12), month > 0, consume("."), let week = number(most: 5), week > 0,
      consume("."),
      let day = number(most: 6)
    else { return nil }
    return .weekday(month: month, week: week, day: day)
  }
}

extension TimeZoneRules {
  /// Reads rules in the form of the variable TZ: `CET-1CEST,M3.5.0,M10.5.0/3`, `<+0530>-5:30`, `UTC0`. `nil` for anything else.
  package init?(posix text: String) {
    guard let zone = PosixZone(text.utf8) else { return nil }
    self.init(transitions: [], offsets: [Int32(zone.standard)], footer: zone)
  }
}
