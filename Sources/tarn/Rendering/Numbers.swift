import TarnCore

/// Counts, sizes and shares as people read them.
enum Numbers {
  /// `1,234,567`.
  static func grouped(_ number: Int) -> String {
    let digits = String(number.magnitude)
    var text = ""
    for (index, digit) in digits.enumerated() {
      if index > 0, (digits.count - index) % 3 == 0 { text += "," }
      text.append(digit)
    }
    return number < 0 ? "-" + text : text
  }

  /// `1 file`, `2,345 files`, `2 entries`.
  static func count(_ number: Int, _ noun: String) -> String {
    guard number != 1 else { return "1 \(noun)" }
    let plural = noun.hasSuffix("ry") ? noun.dropLast() + "ies" : noun + "s"
    return "\(grouped(number)) \(plural)"
  }

  /// `1.2 of 2.8 GiB`; the unit is said once when both have the same.
  static func part(_ done: UInt64, of total: UInt64) -> String {
    let done = Units.show(done)
    let total = Units.show(total)
    guard let unit = total.split(separator: " ").last, done.hasSuffix(" \(unit)") else {
      return "\(done) of \(total)"
    }
    return "\(done.dropLast(unit.count + 1)) of \(total)"
  }

  /// `43%`, rounded down so that 100% means all; nil when there is nothing to compare with.
  static func percent(_ done: UInt64, of total: UInt64) -> String? {
    guard total > 0, done <= total else { return nil }
    return "\(Int(Double(done) / Double(total) * 100))%"
  }

  /// `12.3 MiB/s`.
  static func rate(_ bytesPerSecond: UInt64) -> String { "\(Units.show(bytesPerSecond))/s" }
}
