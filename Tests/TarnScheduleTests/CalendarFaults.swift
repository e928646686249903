import TarnCore

@testable import TarnSchedule

/// Where systemd 252 itself is wrong, each as a narrow rule: only a difference that it explains is let pass.
enum SystemdFault: String, CaseIterable {
  /// Each further member of a list of days from the month's end is bounded by three days less (`*-*~02,28` is refused).
  case monthEndList = "lists of days from the month's end are bounded ever tighter"
  /// When the next value of a repetition lies beyond its field and the field above is full, too, the search goes on
  /// there and not at its beginning: `*-*-01/9` leaves out January 1.
  case carry = "a repetition carried over two fields loses the first values"
  /// Where clocks are put forward but the summer flag is not set by it (Dublin, Casablanca, Apia), or within an hour (St
  /// John's until 2011), the search takes a step back, sees that, and leaves out the rest of the hour or day.
  case gap = "clocks put forward without a summer flag, or within an hour, lose the rest of the day"
  /// A repetition that was carried past the moment when clocks are put back, or a day found from the month's end, is looked
  /// at with the summer flag of the other side: the day begins late, or of two equal times the second one is taken.
  case staleFlag = "a day on which clocks are put back begins late after a carry"
  /// A repetition carried into a day whose clocks are changed, or a change in the midst of an hour (St John's until 2011,
  /// at 00:01), makes the search run in circles until it is ended.
  case circle = "a search across a change of clocks is given up"
  /// Impossible dates (`*-02,04,06,09,11-31`): the search is ended after 1,000 steps, before the year 2199 is reached.
  case impatience = "a date that never comes is given up"
  /// The month's end is looked up with the summer flag of another day, and found a day off.
  case monthEndClock = "days from the end of a month in which clocks are changed"

  /// - Returns: the fault that explains the difference; nil for none.
  static func explaining(
    _ ours: CalendarOracle.Answer, _ theirs: CalendarOracle.Answer, spec: CalendarSpec, rules: TimeZoneRules,
    base: Int64, iterations: Int
  ) -> SystemdFault? {
    if theirs.gaveUp {
      if ours.elapses.count < iterations { return .impatience }
      let end = ours.elapses.last ?? base
      guard let change = rules.nextTransition(after: base - 86_400), change < end + 31 * 86_400 else {
        return nil
      }
      let isWithinAnHour = (change + Int64(rules.offset(at: change))) % 3600 != 0
      return repeats(spec) || isWithinAnHour ? .circle : nil
    }
    if theirs.normalized == nil { return hasTightList(spec) ? .monthEndList : nil }
    guard theirs.normalized == ours.normalized else { return nil }
    // What systemd names has to be right, and what it leaves out has to be explained.
    var explanation: SystemdFault?
    var last = moment(base)
    for their in theirs.elapses {
      var omitted: [Int64] = []
      while let next = spec.next(after: last, in: rules), next.seconds <= their {
        last = next
        if next.seconds == their { break }
        guard let fault = omission(of: next, spec, rules) else { return nil }
        explanation = fault
        omitted.append(next.seconds)
      }
      if last.seconds == their { continue }
      // The second of two equal local times, after the first was lost.
      if omitted.contains(where: {
        $0 + Int64(rules.offset(at: $0)) == their + Int64(rules.offset(at: their))
      }) {
        last = moment(their)
      } else {
        let change = rules.nextTransition(after: their - 31 * 86_400) ?? .max
        return spec.countsFromMonthEnd && change < their + 31 * 86_400 ? .monthEndClock : nil
      }
    }
    if theirs.elapses.count < ours.elapses.count {
      guard let next = spec.next(after: last, in: rules) else { return nil }
      explanation = omission(of: next, spec, rules)
    }
    return explanation
  }

  private static func repeats(_ spec: CalendarSpec) -> Bool {
    [spec.months, spec.days, spec.hours, spec.minutes, spec.seconds].contains(where: isOpen)
  }

  private static func isOpen(_ ranges: [CalendarRange]) -> Bool {
    ranges.contains { $0.stop == nil && $0.step > 0 }
  }

  private static func hasTightList(_ spec: CalendarSpec) -> Bool {
    spec.countsFromMonthEnd
      && spec.days.enumerated().contains { index, range in
        max(range.start, range.stop ?? 0) > 28 - 3 * index || range.step > 27 - 3 * index
      }
  }

  private static func omission(of moment: Timestamp, _ spec: CalendarSpec, _ rules: TimeZoneRules)
    -> SystemdFault?
  {
    let seconds = moment.seconds
    let local = seconds + Int64(rules.offset(at: seconds))
    let day = floorQuotient(local, 86_400)
    let date = Civil(daysSince1970: Int(day))
    let second = local - day * 86_400
    let isCarried =
      (isOpen(spec.days) && date.month == 1)
      || (isOpen(spec.hours) && date.day == 1)
      || (isOpen(spec.minutes) && second < 3600)
      || (isOpen(spec.seconds) && (second % 3600 < 60 || second % 60 == 0))
    if isCarried { return .carry }
    guard let change = rules.nextTransition(after: seconds - 86_400) else { return nil }
    // By the clocks before the change or after it: it may lie at midnight.
    let isThatDay = [change - 1, change].contains {
      floorQuotient(change + Int64(rules.offset(at: $0)), 86_400) == day
    }
    if rules.offset(at: change) > rules.offset(at: change - 1) { return isThatDay ? .gap : nil }
    let isLate = second < 7200 || rules.instants(local: local).count > 1
    if isThatDay { return isLate && (repeats(spec) || spec.countsFromMonthEnd) ? .staleFlag : nil }
    // Days are carried into the next month, past the change and back to the first.
    return isLate && isOpen(spec.days) && date.day == 1 && change < seconds + 31 * 86_400 ? .staleFlag : nil
  }
}
