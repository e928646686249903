import Foundation
import TarnCore
import TestSupport
import Testing

@testable import TarnSchedule

/// The calendar grammar against systemd's own reader. By hand over many: TARN_CALENDAR=20000 TARN_CALENDAR_SEED=7.
@Suite(.enabled(if: CalendarOracle.isAvailable, "no systemd-analyze, or no time zone database"))
struct CalendarOracleTests {
  private static let zones = [
    "UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Africa/Casablanca",
    "America/Sao_Paulo", "Europe/Dublin", "Pacific/Apia", "America/St_Johns",
  ]
  private static let batch = 50

  private static func number(_ name: String, _ standard: Int) -> Int {
    ProcessInfo.processInfo.environment[name].flatMap { Int($0) } ?? standard
  }

  @Test func systemdSaysTheSame() throws {
    let wanted = Self.number("TARN_CALENDAR", 400)
    let seed = UInt64(Self.number("TARN_CALENDAR_SEED", 1))
    var samples = CalendarSamples(seed: seed, zones: Self.zones.filter { $0 != "UTC" })
    var random = Seeded(seed &+ 1)
    var tally = Tally()
    while tally.expressions < wanted {
      let zone = random.pick(Self.zones)
      let rules = try Zoneinfo.rules(zone)
      let base = Self.base(in: rules, &random)
      let iterations = 5 + random.below(16)
      let texts = (0..<Self.batch).map { _ in samples.next() }.filter { !$0.isEmpty }
      let answers = try CalendarOracle.ask(texts, base: base, zone: zone, iterations: iterations)
      for (text, theirs) in zip(texts, answers) {
        let question = Question(text: text, base: base, zone: zone, rules: rules)
        tally.count(question, theirs, iterations: iterations)
      }
    }
    print(tally.summary)
    for difference in tally.differences.prefix(30) { print(difference) }
    #expect(tally.differences.isEmpty)
    #expect(tally.elapses > wanted)
  }

  /// Anywhere, or close to a moment when clocks are changed, or to the end of a year or of February.
  private static func base(in rules: TimeZoneRules, _ random: inout Seeded) -> Int64 {
    let anywhere = Int64(random.below(1_200_000_000)) + 946_684_800
    switch random.below(4) {
    case 0, 1:
      guard let change = rules.nextTransition(after: anywhere) else { return anywhere }
      return change + Int64(random.below(12 * 3600)) - 9 * 3600
    case 2:
      let year = 2000 + random.below(60)
      let day = random.pick([(12, 31), (2, 28), (2, 27), (1, 1)])
      return (Timestamp(year: year, month: day.0, day: day.1)?.seconds ?? anywhere)
        + Int64(random.below(86_400))
    default: return anywhere
    }
  }
}

/// One expression, and from when and where it is asked.
private struct Question {
  let text: String
  let base: Int64
  let zone: String
  let spec: CalendarSpec?
  /// Of the zone that the expression names, or of `zone`.
  let rules: TimeZoneRules

  init(text: String, base: Int64, zone: String, rules: TimeZoneRules) {
    self.text = text
    self.base = base
    self.zone = zone
    spec = try? CalendarSpec(text, isKnownZone: { Zoneinfo.bytes($0) != nil })
    var named = rules
    if case .named(let name)? = spec?.zone { named = (try? Zoneinfo.rules(name)) ?? .utc }
    if spec?.zone == .utc { named = .utc }
    self.rules = named
  }

  func answer(iterations: Int) -> CalendarOracle.Answer {
    guard let spec else { return CalendarOracle.Answer() }
    var answer = CalendarOracle.Answer(normalized: spec.normalized)
    var last = moment(base)
    while answer.elapses.count < iterations, let next = spec.next(after: last, in: rules) {
      answer.elapses.append(next.seconds)
      last = next
    }
    return answer
  }
}

/// What was compared, and what differed.
private struct Tally {
  var expressions = 0
  var refused = 0
  var elapses = 0
  var never = 0
  var known: [SystemdFault: Int] = [:]
  var differences: [String] = []

  mutating func count(
    _ question: Question, _ theirs: CalendarOracle.Answer, iterations: Int
  ) {
    let ours = question.answer(iterations: iterations)
    expressions += 1
    if ours == CalendarOracle.Answer(), theirs == ours { refused += 1 }
    elapses += theirs.elapses.count
    if theirs.normalized != nil, theirs.elapses.isEmpty { never += 1 }
    guard ours != theirs else { return }
    if let spec = question.spec,
      let fault = SystemdFault.explaining(
        ours, theirs, spec: spec, rules: question.rules, base: question.base,
        iterations: iterations)
    {
      known[fault, default: 0] += 1
      return
    }
    differences.append(
      "[\(question.text)] TZ=\(question.zone) base @\(question.base)\n  Tarn:    \(ours)\n  systemd: \(theirs)"
    )
  }

  var summary: String {
    let faults = SystemdFault.allCases.map { "\($0): \(known[$0] ?? 0)" }.joined(separator: ", ")
    return
      "calendar: \(expressions) expressions compared, \(elapses) elapses; \(refused) refused by both, \(never) never; "
      + "\(differences.count) differences; explained by faults of systemd: \(faults)"
  }
}
