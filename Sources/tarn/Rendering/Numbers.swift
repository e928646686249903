import TarnCore

/// Counts, sizes and shares as people read them.
enum Numbers {
  /// `1,234,567`.
  static func grouped(_ number: Int) -> String { Units.grouped(number) }

  /// `1 file`, `2,345 files`, `2 entries`.
  static func count(_ number: Int, _ noun: String) -> String { Units.count(number, noun) }

  /// What was counted, once it was named.
  static func pronoun(_ number: Int) -> String { number == 1 ? "it" : "them" }

  /// `1.2 of 2.8 GiB`; the unit is said once when both have the same.
  static func part(_ done: UInt64, of total: UInt64) -> String { Units.show(done, of: total) }

  /// `43%`, rounded down so that 100% means all; nil when there is nothing to compare with.
  static func percent(_ done: UInt64, of total: UInt64) -> String? {
    guard total > 0, done <= total else { return nil }
    return "\(Int(Double(done) / Double(total) * 100))%"
  }

  /// `12.3 MiB/s`.
  static func rate(_ bytesPerSecond: UInt64) -> String { "\(Units.show(bytesPerSecond))/s" }
}
