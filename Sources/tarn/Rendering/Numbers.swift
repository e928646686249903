import TarnCore

/// Writes counts, sizes and shares for people.
enum Numbers {
  /// Returns `1,234,567`.
  static func grouped(_ number: Int) -> String { Units.grouped(number) }

  /// Returns `1 file`, `2,345 files` or `2 entries`.
  static func count(_ number: Int, _ noun: String) -> String { Units.count(number, noun) }

  /// Returns the pronoun for a number of things already named.
  static func pronoun(_ number: Int) -> String { number == 1 ? "it" : "them" }

  /// Returns `1.2 of 2.8 GiB`; the unit is written once when both have the same.
  static func part(_ done: UInt64, of total: UInt64) -> String { Units.show(done, of: total) }

  /// Returns `43%`, rounded down so that 100% means all; `nil` when there is nothing to compare with.
  static func percent(_ done: UInt64, of total: UInt64) -> String? {
    guard total > 0, done <= total else { return nil }
    return "\(Int(Double(done) / Double(total) * 100))%"
  }

  /// Returns `12.3 MiB/s`.
  static func rate(_ bytesPerSecond: UInt64) -> String { "\(Units.show(bytesPerSecond))/s" }
}
