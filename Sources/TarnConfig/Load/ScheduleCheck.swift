import TarnCore
import TarnSchedule

/// Checks that schedules can be parsed and have at least one occurrence.
struct ScheduleCheck: Sendable {
  var now: Timestamp
  /// Returns the rules of a zone; `nil` when the time zone database does not have it.
  var rules: @Sendable (CalendarSpec.Zone) -> TimeZoneRules?

  /// - Throws: when the text is not a schedule, or has no occurrence in the past or the future.
  func check(_ text: String, at position: SettingPosition) throws(Refusal) {
    let spec = try spec(text, at: position)
    let rules = rules(spec.zone) ?? .utc
    if spec.next(after: now, in: rules) == nil, spec.next(after: Self.start, in: rules) == nil {
      throw Refusal(
        .badValue, "takes a time that occurs, and '\(Redaction.short(text))' never does",
        hint: "there is no such time up to the year 2199; the last day of a month is *-*~1: "
          + "write for example schedule = \"*-*~1 03:00\"",
        position: position)
    }
  }

  /// Returns a warning when no schedule of a setting has an occurrence left. They are accepted nevertheless,
  /// for an agent has to start again after that day.
  ///
  /// - Parameter texts: the schedules of one setting, already checked.
  func warning(_ texts: [String]) -> Refusal? {
    let isComing = texts.contains { text in
      guard let spec = try? CalendarSpec(text) else { return true }
      return spec.next(after: now, in: rules(spec.zone) ?? .utc) != nil
    }
    guard !isComing, let first = texts.first else { return nil }
    let what = texts.count == 1 ? "'\(Redaction.short(first))' is over" : "all of these are over"
    return Refusal(
      .badValue, "no longer begins a pass: \(what)",
      hint: "now is \(now.rfc3339): write for example schedule = \"*-*-* 03:00\"; "
        + "without it 'tarn sync' makes the passes")
  }

  /// The last day before 1970, earlier than any date a schedule can name.
  private static let start = Timestamp(nanoseconds: -86_400_000_000_000)

  private func spec(_ text: String, at position: SettingPosition) throws(Refusal) -> CalendarSpec {
    do throws(ScheduleTextError) {
      return try CalendarSpec(text) { rules(.named($0)) != nil }
    } catch {
      let cron = Cron.calendar(text)
      let example = "schedule = \(TOMLText.quote(cron ?? error.example))"
      throw Refusal(
        .badValue, "takes a time as in systemd.time(7); \(error.place(in: text))",
        hint: cron != nil
          ? "this looks like crontab(5), which is \(example)"
          : "write for example \(example), or every = \"1h\"", position: position)
    }
  }
}

/// Reads schedules of crontab(5), which have five fields.
enum Cron {
  /// Returns the equivalent for systemd; `nil` when it is uncertain.
  static func calendar(_ text: String) -> String? {
    let fields = text.split { $0 == " " || $0 == "\t" }.map(String.init)
    guard fields.count == 5, let minute = time(fields[0], below: 60), let hour = time(fields[1], below: 24),
      let day = date(fields[2], 1...31), let month = date(fields[3], 1...12),
      let weekday = date(fields[4], 0...7)
    else { return nil }
    // With a weekday and a day of the month, cron takes either.
    guard weekday == "*" || day == "*" else { return nil }
    let calendar = "\(hour):\(minute)"
    let names = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
    let front = Int(weekday).map { names[$0] + " " } ?? ""
    let isDaily = weekday == "*" && day == "*" && month == "*"
    return isDaily && hour == "*" ? calendar : "\(front)*-\(month)-\(day) \(calendar)"
  }

  /// Reads `5`, `*` or `*/5`.
  private static func time(_ field: String, below bound: Int) -> String? {
    if field == "*" { return "*" }
    if field.hasPrefix("*/"), let step = Int(field.dropFirst(2)), (1..<bound).contains(step) {
      return "0/\(step)"
    }
    return date(field, 0...(bound - 1))
  }

  /// Reads `05` or `*`.
  private static func date(_ field: String, _ bounds: ClosedRange<Int>) -> String? {
    if field == "*" { return "*" }
    guard let number = Int(field), bounds.contains(number) else { return nil }
    return number < 10 ? "0\(number)" : "\(number)"
  }
}
