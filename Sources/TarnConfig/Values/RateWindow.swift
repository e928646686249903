import TarnCore

/// A rate that holds at some times of the day: `{ at = "Mon..Fri 08:00-18:00", limit = "2MiB/s" }`. Local time.
package struct RateWindow: Sendable, Equatable {
  /// Bit 0 is Monday: the days on which the window begins.
  package var days: UInt8
  /// Minutes after midnight, 0 to 1439.
  package var start: Int
  /// Minutes after midnight, 1 to 1440; below `start` it is on the next day.
  package var end: Int
  /// Bytes per second; nil for no limit.
  package var rate: UInt64?
  /// As it was written.
  package var text: String
  package var rateText: String

  static let everyDay: UInt8 = 0x7F
  static let help = "times such as \"08:00-18:00\" or \"Mon..Fri 08:00-18:00\""

  /// - Returns: nil for what is no time of day, and for a window that ends when it begins.
  package init?(at text: String, limit rateText: String) {
    guard let rate = Units.rate(rateText) else { return nil }
    let words = text.split(separator: " ")
    guard let span = words.last, words.count <= 2 else { return nil }
    guard let days = words.count == 2 ? Self.days(words[0]) : Self.everyDay else { return nil }
    let ends = span.split(separator: "-", omittingEmptySubsequences: false)
    guard ends.count == 2, let start = Self.minute(ends[0]), let end = Self.minute(ends[1]),
      start < 1440, end > 0 || start > 0, start != end
    else { return nil }
    self.days = days
    self.start = start
    self.end = end == 0 ? 1440 : end
    self.rate = rate
    self.text = text
    self.rateText = rateText
  }

  /// - Parameters:
  ///   - weekday: 0 is Monday.
  ///   - minute: after midnight.
  package func contains(weekday: Int, minute: Int) -> Bool {
    let yesterday = (weekday + 6) % 7
    if start < end { return isOn(weekday) && (start..<end).contains(minute) }
    return isOn(weekday) && minute >= start || isOn(yesterday) && minute < end
  }

  private func isOn(_ weekday: Int) -> Bool { (0..<7).contains(weekday) && days >> UInt8(weekday) & 1 == 1 }

  /// `08:00`; `24:00` is the day's end.
  private static func minute(_ text: Substring) -> Int? {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count == 2, parts[0].utf8.count <= 2, parts[1].utf8.count == 2,
      parts.allSatisfy({ $0.utf8.allSatisfy { (0x30...0x39).contains($0) } }),
      let hour = Int(parts[0]), let minute = Int(parts[1]), minute < 60, hour * 60 + minute <= 1440
    else { return nil }
    return hour * 60 + minute
  }

  /// `Mon..Fri`, `Sat,Sun`, `Sat..Mon`, in systemd's grammar; names in English, whole or by three letters.
  private static func days(_ text: Substring) -> UInt8? {
    var days: UInt8 = 0
    for part in text.split(separator: ",", omittingEmptySubsequences: false) {
      let ends: [Substring]
      if let dots = part.firstRange(of: "..") {
        ends = [part[..<dots.lowerBound], part[dots.upperBound...]]
      } else {
        ends = [part, part]
      }
      guard let first = day(ends[0]), let last = day(ends[1]) else { return nil }
      for step in 0...((last - first + 7) % 7) { days |= 1 << UInt8((first + step) % 7) }
    }
    return days
  }

  private static func day(_ text: Substring) -> Int? {
    let names = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
    let word = text.lowercased()
    return names.firstIndex { word == $0 || word == $0.prefix(3) }
  }
}

extension [RateWindow] {
  /// The window that holds; of several the first. nil outside of all.
  package func window(weekday: Int, minute: Int) -> RateWindow? {
    first { $0.contains(weekday: weekday, minute: minute) }
  }
}
