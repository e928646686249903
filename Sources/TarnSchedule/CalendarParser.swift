import TarnCore

extension CalendarSpec {
  /// Reads what systemd accepts after OnCalendar=, except for abbreviations of the local zone (`CEST`), whose meaning changes with
  /// the season.
  ///
  /// - Parameter isKnownZone: returns whether the time zone database has that name; called at most once.
  package init(_ text: String, isKnownZone: (String) -> Bool = { _ in true }) throws(ScheduleTextError) {
    var parser = CalendarParser(text)
    self = try parser.parse(isKnownZone: isKnownZone)
  }
}

/// Reads one expression byte by byte.
struct CalendarParser {
  /// The most members of a list, as in systemd.
  private static let mostMembers = 241

  private typealias Member = (range: CalendarRange, offset: Int)

  private var text: TextCursor
  private var spec = CalendarSpec()

  init(_ text: String) {
    self.text = TextCursor(text)
  }

  mutating func parse(isKnownZone: (String) -> Bool) throws(ScheduleTextError) -> CalendarSpec {
    guard !text.isAtEnd else { throw text.error("an empty schedule", "Mon..Fri *-*-* 06:00") }
    try takeZone(isKnownZone)
    guard !text.isAtEnd else { throw text.error("a time zone without a schedule", "06:00 UTC") }
    if let shorthand = CalendarSpec.shorthand(text.rest) {
      spec = shorthand.at(spec.zone)
      return spec
    }
    spec.weekdays = try Weekdays.parse(&text)
    if try parseDate() == .date { try parseTime() }
    guard text.isAtEnd else { throw text.error("nothing is expected here", "Mon..Fri *-*-* 06:00") }
    return spec
  }

  /// Cuts off the last word when it is a zone: `UTC`, or a word that begins with a letter.
  private mutating func takeZone(_ isKnownZone: (String) -> Bool) throws(ScheduleTextError) {
    guard let word = text.lastWord, let first = word.text.utf8.first, first.isASCIILetter,
      !Weekdays.begin(word.text)
    else { return }
    if word.text.lowercased() == "utc" {
      spec.zone = .utc
    } else {
      guard TimeZoneName.isSafe(word.text), isKnownZone(word.text) else {
        throw ScheduleTextError(
          offset: word.offset, reason: "the time zone \(Printable.escape(word.text)) is not known",
          example: "06:00 Europe/Berlin")
      }
      spec.zone = .named(word.text)
    }
    text.cut(at: word.offset - 1)
  }

  // MARK: - Date

  private enum Found { case date, moment }

  private mutating func parseDate() throws(ScheduleTextError) -> Found {
    if text.isAtEnd { return .date }
    if text.peek == UInt8(ascii: "@") {
      try parseEpoch()
      return .moment
    }
    let start = text
    let first = try parseChain(inSeconds: false)
    // It was an hour, so there is no date.
    if text.isAtEnd || text.peek == UInt8(ascii: ":") {
      text = start
      return .date
    }
    var fromEnd = try takeDateSeparator()
    let second = try parseChain(inSeconds: false)
    if text.isAtEnd || text.peek == UInt8(ascii: " ") {
      try setDate(year: [], month: first, day: second, fromEnd: fromEnd)
      return .date
    }
    guard !fromEnd else { throw text.error("the day is the last part of a date", "*-*~1") }
    fromEnd = try takeDateSeparator()
    let third = try parseChain(inSeconds: false)
    guard text.isAtEnd || text.peek == UInt8(ascii: " ") else {
      throw text.error("a date has three parts at most", "*-*-01 06:00")
    }
    try setDate(year: first, month: second, day: third, fromEnd: fromEnd)
    return .date
  }

  private mutating func setDate(
    year: [Member], month: [Member], day: [Member], fromEnd: Bool
  ) throws(ScheduleTextError) {
    spec.years = try checked(year.map { (Self.fullYear($0.range), $0.offset) }, .year)
    spec.months = try checked(month, .month)
    spec.days = try checked(day, fromEnd ? .dayFromEnd : .day)
    // All days are the same, from whichever end they are counted.
    spec.countsFromMonthEnd = fromEnd && !spec.days.isEmpty
    text.skipSpaces()
  }

  /// - Returns: true when the following day is counted from the end of the month.
  private mutating func takeDateSeparator() throws(ScheduleTextError) -> Bool {
    if text.consume("~") { return true }
    guard text.consume("-") else { throw text.error("`-` or `:` is missing", "*-*-* 06:00") }
    return false
  }

  /// Completes a year of two digits: 12 is 2012, 89 is 1989.
  private static func fullYear(_ range: CalendarRange) -> CalendarRange {
    func full(_ year: Int) -> Int {
      switch year {
      case 0..<70: year + 2000
      case 70..<100: year + 1900
      default: year
      }
    }
    return CalendarRange(full(range.start), through: range.stop.map(full), step: range.step)
  }

  /// Reads one moment in seconds since 1970, such as `@1234567890`.
  private mutating func parseEpoch() throws(ScheduleTextError) {
    let offset = text.offset
    _ = text.consume("@")
    let example = CalendarSpec.shorthand(text.rest) == nil ? "daily" : text.rest.lowercased()
    guard text.peek?.isASCIILetter != true else {
      throw text.error("@ goes before seconds since 1970, never before a word", example, at: offset)
    }
    let seconds = try text.number(most: 7_258_118_399, "a moment beyond the year 2199", example)
    guard text.isAtEnd else { throw text.error("nothing is expected after a moment", example) }
    let days = seconds / 86_400
    let rest = seconds % 86_400
    let date = Civil(daysSince1970: days)
    spec.years = try checked([(CalendarRange(date.year), offset)], .year)
    spec.months = [CalendarRange(date.month)]
    spec.days = [CalendarRange(date.day)]
    spec.hours = [CalendarRange(rest / 3600)]
    spec.minutes = [CalendarRange(rest / 60 % 60)]
    spec.seconds = [CalendarRange(rest % 60 * CalendarRange.second)]
    spec.zone = .utc
  }

  // MARK: - Time

  private mutating func parseTime() throws(ScheduleTextError) {
    spec.hours = [CalendarRange(0)]
    spec.minutes = [CalendarRange(0)]
    spec.seconds = [CalendarRange(0)]
    if text.isAtEnd { return }
    spec.hours = try checked(parseChain(inSeconds: false), .hour)
    guard text.consume(":") else { throw text.error("`:` and the minutes are missing", "06:00") }
    spec.minutes = try checked(parseChain(inSeconds: false), .minute)
    if text.isAtEnd { return }
    guard text.consume(":") else { throw text.error("`:` or the end is expected", "06:00:00") }
    spec.seconds = try checked(parseChain(inSeconds: true), .second)
    guard text.isAtEnd else { throw text.error("the time ends with the seconds", "06:00:00") }
  }

  // MARK: - Lists

  /// Reads a `*`, which yields the empty list (for seconds every whole one), or members between commas.
  private mutating func parseChain(inSeconds: Bool) throws(ScheduleTextError) -> [Member] {
    let offset = text.offset
    if text.consume("*") {
      return inSeconds ? [(CalendarRange(0, step: CalendarRange.second), offset)] : []
    }
    var members: [Member] = []
    repeat {
      guard members.count < Self.mostMembers else { throw text.error("the list is too long", "*:0/5") }
      let offset = text.offset
      members.append((try parseRange(inSeconds: inSeconds), offset))
    } while text.consume(",")
    return members
  }

  private mutating func parseRange(inSeconds: Bool) throws(ScheduleTextError) -> CalendarRange {
    let offset = text.offset
    var range = CalendarRange(try parseValue(inSeconds))
    if text.consume("..") {
      range.stop = try parseValue(inSeconds)
      range.step = inSeconds ? CalendarRange.second : 1
    }
    if text.consume("/") {
      let offset = text.offset
      range.step = try parseValue(inSeconds)
      guard range.step > 0 else { throw text.error("a step of 0", "*:0/5", at: offset) }
    } else if inSeconds, let stop = range.stop, range.start + range.step > stop {
      // This also holds for a range of one value, as in systemd.
      throw text.error(
        "a range of seconds that is shorter than a second needs a step", "*:*:0..1/0.25", at: offset)
    }
    guard let next = text.peek else { return range }
    guard " ,-~:".utf8.contains(next) else {
      throw text.error("`\(text.shown)` is not expected here", "Mon..Fri *-*-* 06:00")
    }
    return range
  }

  /// Reads a number. Seconds may have up to six decimals, more are rounded; they are returned in microseconds.
  private mutating func parseValue(_ inSeconds: Bool) throws(ScheduleTextError) -> Int {
    let offset = text.offset
    guard let first = text.peek, first.isASCIIDigit else {
      throw text.error("a number is expected", "06:00")
    }
    let number = try text.number(most: Int(Int32.max), "a number that is too large", "06:00")
    guard inSeconds else { return number }
    guard number <= Int(Int32.max) / CalendarRange.second else {
      throw text.error("a number of seconds that is too large", "*:*:30", at: offset)
    }
    var value = number * CalendarRange.second
    guard text.peek == UInt8(ascii: "."), text.peekSecond != UInt8(ascii: ".") else { return value }
    _ = text.consume(".")
    value += try text.millionths()
    return value
  }

  /// Normalises the members of a field and checks that each can match.
  private func checked(
    _ members: [Member], _ field: CalendarSpec.Field
  ) throws(ScheduleTextError) -> [CalendarRange] {
    var ranges: [CalendarRange] = []
    for member in members {
      let range = member.range.normalized
      if let reason = range.fault(in: field) {
        throw text.error(reason, field.example, at: member.offset)
      }
      ranges.append(range)
    }
    ranges.sort(by: CalendarRange.inOrder)
    var last: CalendarRange?
    ranges.removeAll { range in
      defer { last = range }
      return range == last
    }
    return ranges
  }
}

extension CalendarSpec.Field {
  var example: String {
    switch self {
    case .year: "*-01-01"
    case .month: "*-1,7-01"
    case .day: "*-*-15"
    case .dayFromEnd: "*-*~1"
    case .hour: "08..18:00"
    case .minute: "*:0/15"
    case .second: "*:*:0/30"
    }
  }
}

extension CalendarRange {
  /// Returns why this range cannot stand in that field; `nil` when it can.
  func fault(in field: CalendarSpec.Field) -> String? {
    let bounds = field.bounds
    func show(_ value: Int) -> String {
      field.scale > 1 && value % field.scale != 0
        ? "\(Double(value) / Double(field.scale))" : "\(value / field.scale)"
    }
    for value in [start, stop ?? start] where !bounds.contains(value) {
      return
        "\(field.name) \(show(value)) is not in \(show(bounds.lowerBound))..\(bounds.upperBound / field.scale)"
    }
    if step > bounds.upperBound - bounds.lowerBound {
      return "a step of \(show(step)) leads out of the \(field.name)s"
    }
    if let stop {
      return start + step > stop ? "the range \(show(start))..\(show(stop)) holds no step" : nil
    }
    let isInside =
      field == .dayFromEnd ? start - step >= bounds.lowerBound : start + step <= bounds.upperBound
    return isInside ? nil : "a step of \(show(step)) from \(show(start)) leads out of the \(field.name)s"
  }
}
