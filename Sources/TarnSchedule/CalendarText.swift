import TarnCore

extension CalendarSpec {
  /// Returns the schedule of a word for a common one; case does not matter.
  static func shorthand(_ word: String) -> CalendarSpec? {
    var spec = CalendarSpec()
    spec.seconds = [CalendarRange(0)]
    switch word.lowercased() {
    case "minutely": return spec
    case "hourly":
      spec.minutes = [CalendarRange(0)]
      return spec
    case "daily": break
    case "weekly": spec.weekdays = 1
    case "monthly": spec.days = [CalendarRange(1)]
    case "quarterly": spec.months = [1, 4, 7, 10].map { CalendarRange($0) }
    case "semiannually", "semi-annually", "biannually", "bi-annually":
      spec.months = [CalendarRange(1), CalendarRange(7)]
    case "yearly", "annually", "anually": spec.months = [CalendarRange(1)]
    default: return nil
    }
    if !spec.months.isEmpty { spec.days = [CalendarRange(1)] }
    spec.minutes = [CalendarRange(0)]
    spec.hours = [CalendarRange(0)]
    return spec
  }

  func at(_ zone: Zone) -> CalendarSpec {
    var spec = self
    spec.zone = zone
    return spec
  }

  /// The text in systemd's normalized form. Parsing it yields the same value.
  package var normalized: String {
    var text = weekdays == 0 ? "" : Weekdays.text(weekdays) + " "
    text += Self.text(years, width: 4) + "-" + Self.text(months, width: 2)
    text += countsFromMonthEnd ? "~" : "-"
    text += Self.text(days, width: 2) + " " + Self.text(hours, width: 2) + ":" + Self.text(minutes, width: 2)
    let isEverySecond = seconds.contains(CalendarRange(0, step: CalendarRange.second))
    text += ":" + (isEverySecond ? "*" : Self.text(seconds, width: 2, scale: CalendarRange.second))
    switch zone {
    case .local: return text
    case .utc: return text + " UTC"
    case .named(let name): return text + " " + name
    }
  }

  private static func text(_ ranges: [CalendarRange], width: Int, scale: Int = 1) -> String {
    if ranges.isEmpty { return "*" }
    return ranges.map { text($0, width: width, scale: scale) }.joined(separator: ",")
  }

  private static func text(_ range: CalendarRange, width: Int, scale: Int) -> String {
    func number(_ value: Int, _ width: Int) -> String {
      let whole = filled(value / scale, width)
      return value % scale == 0 ? whole : whole + "." + filled(value % scale, 6)
    }
    var text = number(range.start, width)
    if let stop = range.stop { text += ".." + number(stop, width) }
    // The step of a range is 1 unless another one is given.
    if range.step > 0, range.stop == nil || range.step != scale { text += "/" + number(range.step, 0) }
    return text
  }

  private static func filled(_ value: Int, _ width: Int) -> String {
    let digits = String(value)
    return String(repeating: "0", count: max(0, width - digits.count)) + digits
  }
}
