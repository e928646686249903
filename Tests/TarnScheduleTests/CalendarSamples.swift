import TarnCore
import TarnSchedule
import TestSupport

/// Random expressions of the calendar grammar: most are right, some are spoilt.
struct CalendarSamples {
  private var random: Seeded
  private let zones: [String]

  init(seed: UInt64, zones: [String]) {
    random = Seeded(seed)
    self.zones = zones
  }

  mutating func next() -> String {
    var text = expression()
    if random.chance(10) { spoil(&text) }
    return text
  }

  private mutating func expression() -> String {
    var parts: [String] = []
    if random.chance(8) {
      parts.append(
        random.pick([
          "minutely", "hourly", "daily", "weekly", "monthly", "quarterly", "semiannually", "yearly",
          "annually",
        ]))
    } else {
      let hasDays = random.chance(35)
      if hasDays { parts.append(weekdays()) }
      let hasDate = random.chance(60)
      if hasDate { parts.append(date()) }
      if random.chance(80) || !(hasDays || hasDate) { parts.append(time()) }
    }
    if random.chance(15) { parts.append("UTC") } else if random.chance(8) { parts.append(random.pick(zones)) }
    return parts.joined(separator: " ")
  }

  private mutating func weekdays() -> String {
    let names = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
    let long = ["Monday", "tuesday", "Wednesday", "thursday", "FRIDAY", "Saturday", "sunday"]
    return (0...random.below(3)).map { _ in
      let first = random.below(7)
      let name = random.chance(15) ? long[first] : names[first]
      guard random.chance(40) else { return name }
      return name + (random.chance(10) ? "-" : "..") + names[first + random.below(7 - first)]
    }.joined(separator: ",")
  }

  private mutating func date() -> String {
    let isFromEnd = random.chance(20)
    let day = chain(isFromEnd ? 1...28 : 1...31, starChance: isFromEnd ? 5 : 35)
    let month = chain(1...12, starChance: 60)
    let rest = month + (isFromEnd ? "~" : "-") + day
    guard random.chance(75) else { return rest }
    return year() + "-" + rest
  }

  private mutating func year() -> String {
    if random.chance(75) { return "*" }
    let start = random.pick([1970, 2000, 2020, 2024, 2026, 2030, 2096, 2190, 2000 + random.below(200)])
    switch random.below(5) {
    case 0: return String(start % 100)
    case 1: return "\(start)..\(min(2199, start + random.below(30)))"
    case 2: return "\(start)/\(1 + random.below(9))"
    case 3: return "\(start),\(min(2199, start + 3)),2028"
    default: return String(start)
    }
  }

  private mutating func time() -> String {
    let hour = chain(0...23, starChance: 40)
    let minute = chain(0...59, starChance: 25)
    guard random.chance(45) else { return hour + ":" + minute }
    return hour + ":" + minute + ":" + seconds()
  }

  private mutating func seconds() -> String {
    guard random.chance(30) else { return chain(0...59, starChance: 15) }
    let start = random.below(60)
    let fraction = String(random.below(1_000_000))
    switch random.below(3) {
    case 0: return "\(start).\(fraction)"
    case 1: return "\(random.below(20))/\(1 + random.below(15)).\(fraction)"
    default: return "\(random.below(20))..\(20 + random.below(40))/\(random.below(9)).5"
    }
  }

  private mutating func chain(_ bounds: ClosedRange<Int>, starChance: Int) -> String {
    if random.chance(starChance) { return "*" }
    let count = random.chance(25) ? 2 + random.below(3) : 1
    return (0..<count).map { _ in member(bounds) }.joined(separator: ",")
  }

  private mutating func member(_ bounds: ClosedRange<Int>) -> String {
    let start = bounds.lowerBound + random.below(bounds.count)
    let text = random.chance(50) && start < 10 ? "0\(start)" : "\(start)"
    let stop = start + random.below(bounds.upperBound - start + 1)
    let step = 1 + random.below(max(1, bounds.count / 3))
    switch random.below(10) {
    case 0, 1: return "\(text)..\(stop)"
    case 2: return "\(text)..\(stop)/\(step)"
    case 3, 4: return "\(random.chance(70) ? bounds.lowerBound : start)/\(step)"
    default: return text
    }
  }

  /// Changes, drops or adds a byte or two.
  private mutating func spoil(_ text: inout String) {
    var bytes = Array(text.utf8)
    for _ in 0...random.below(2) where !bytes.isEmpty {
      let place = random.below(bytes.count)
      let byte = random.pick(Array("0123456789*,.-~:/ @MonFriUTCe".utf8))
      switch random.below(3) {
      case 0: bytes[place] = byte
      case 1: bytes.remove(at: place)
      default: bytes.insert(byte, at: place)
      }
    }
    text = String(decoding: bytes, as: UTF8.self)
  }
}
