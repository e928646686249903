/// Sizes, rates, shares and spans of time as users write them.
package enum Units {
  /// Reads a size such as `10MiB`, `1.5 GB`, `512k` or `42`. K, M, G and T are powers of 1024 with or without `iB`, and of 1000
  /// with `B` (`10MB` is ten million). A number without a unit is in bytes. Whole numbers are exact.
  ///
  /// - Returns: `nil` for anything else, and for 2^63 bytes and more.
  package static func bytes(_ text: String) -> UInt64? {
    let digits = text.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
    let unit = text.dropFirst(digits.count).drop { $0 == " " }
    guard unit.allSatisfy(\.isASCII), let factor = factor(unit.lowercased()) else { return nil }
    if let number = UInt64(digits) {
      let (bytes, overflow) = number.multipliedReportingOverflow(by: factor)
      return overflow || bytes >= 1 << 63 ? nil : bytes
    }
    guard let number = decimal(digits) else { return nil }
    let bytes = number * Double(factor)
    return bytes < 0x1p63 ? UInt64(bytes) : nil
  }

  /// Reads a rate such as `2MiB/s`, or a size alone, in bytes per second; `off` means no limit.
  package static func rate(_ text: String) -> UInt64?? {
    if text == "off" { return .some(nil) }
    let size = text.hasSuffix("/s") ? String(text.dropLast(2)) : text
    guard let bytes = bytes(size), bytes > 0 else { return nil }
    return .some(bytes)
  }

  /// Returns why a rate is probably a mistake: it has no unit and is below 1 KiB/s. `nil` for all others.
  package static func doubt(ofRate text: String) -> String? {
    let number = text.hasSuffix("/s") ? text.dropLast(2) : text[...]
    guard !number.isEmpty, number.allSatisfy({ $0.isASCII && ($0.isNumber || $0 == ".") }),
      let rate = rate(text) ?? nil, rate < 1024
    else { return nil }
    return "'\(text)' is \(count(rate, "byte")) per second; did you mean \(number)MiB/s?"
  }

  /// Reads a share such as `1%`, or a size.
  package static func reserve(_ text: String) -> Reserve? {
    guard text.hasSuffix("%") else { return bytes(text).map { .bytes($0) } }
    guard let percent = decimal(text.dropLast()), (0...99).contains(percent) else { return nil }
    return .share(percent: percent)
  }

  /// Reads `90s`, `15m`, `24h`, `7d`, `2w` and sums such as `1h30m`, also in the forms of systemd.time(7): `1h 30min`, `2 days`.
  /// `m` means minutes. Months and years, whose lengths vary, and fractions of seconds are not accepted.
  ///
  /// - Returns: the seconds; `nil` for anything else.
  package static func duration(_ text: String) -> Int64? {
    var rest = text.utf8[...]
    var total: Int64 = 0
    repeat {
      let digits = rest.prefix(while: \.isASCIIDigit)
      rest = rest[digits.endIndex...].drop { $0 == UInt8(ascii: " ") }
      let unit = rest.prefix { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0) }
      guard let number = Int64(Substring(digits)), let factor = seconds(Substring(unit)) else { return nil }
      let (product, overflow) = number.multipliedReportingOverflow(by: factor)
      let (sum, overflow2) = total.addingReportingOverflow(product)
      guard !overflow, !overflow2 else { return nil }
      total = sum
      let behind = rest[unit.endIndex...]
      rest = behind.drop { $0 == UInt8(ascii: " ") }
      // A blank at the end announces a part that is missing.
      if rest.isEmpty { return behind.isEmpty ? total : nil }
    } while true
  }

  private static func seconds(_ unit: Substring) -> Int64? {
    switch unit {
    case "s", "sec", "second", "seconds": 1
    case "m", "min", "minute", "minutes": 60
    case "h", "hr", "hour", "hours": 3600
    case "d", "day", "days": 86_400
    case "w", "week", "weeks": 604_800
    default: nil
    }
  }

  /// Returns a number with grouped digits, such as `1,234,567`.
  package static func grouped(_ number: some BinaryInteger) -> String {
    let digits = String(number.magnitude)
    var text = ""
    for (index, digit) in digits.enumerated() {
      if index > 0, (digits.count - index) % 3 == 0 { text += "," }
      text.append(digit)
    }
    return number < 0 ? "-" + text : text
  }

  /// Returns a count with its noun: `1 file`, `2,345 files`, `2 entries`, `3 passes`.
  package static func count(_ number: some BinaryInteger, _ noun: String) -> String {
    guard number != 1 else { return "1 \(noun)" }
    let plural = noun.hasSuffix("ry") ? noun.dropLast() + "ies" : noun + (noun.hasSuffix("s") ? "es" : "s")
    return "\(grouped(number)) \(plural)"
  }

  /// Returns a length of time in seconds as text: `2.1 s`, `3 min 12 s`, `2 h 5 min`.
  package static func length(_ seconds: Double) -> String {
    let tenths = Int((max(0, min(seconds, 3.6e9)) * 10).rounded())
    if tenths < 600 { return "\(tenths / 10).\(tenths % 10) s" }
    let seconds = tenths / 10
    return seconds < 3600
      ? "\(seconds / 60) min \(seconds % 60) s" : "\(seconds / 3600) h \(seconds / 60 % 60) min"
  }

  private static let binaryUnits = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]

  /// Returns a size such as `3.2 GiB` with at most three digits; exact below 1,000 bytes.
  package static func show(_ bytes: UInt64) -> String {
    let unit = unit(of: bytes)
    return "\(number(bytes, in: unit)) \(binaryUnits[unit])"
  }

  /// Returns a part of a whole, such as `1.2 of 2.8 GiB`, in the unit of the whole unless the part is too small for it.
  package static func show(_ part: UInt64, of whole: UInt64) -> String {
    let unit = unit(of: whole)
    let done = number(part, in: unit)
    guard part > 0 else { return "0 of \(show(whole))" }
    return done == "0.0" ? "\(show(part)) of \(show(whole))" : "\(done) of \(show(whole))"
  }

  /// Returns the unit in which the size has fewer than four digits.
  private static func unit(of bytes: UInt64) -> Int {
    var value = Double(bytes)
    var unit = 0
    while value >= 999.5, unit < binaryUnits.count - 1 {
      value /= 1024
      unit += 1
    }
    return unit
  }

  private static func number(_ bytes: UInt64, in unit: Int) -> String {
    guard unit > 0 else { return String(bytes) }
    let value = Double(bytes) / Double(UInt64(1) << UInt64(10 * unit))
    let tenths = Int((value * 10).rounded())
    return tenths < 1000 ? "\(tenths / 10).\(tenths % 10)" : String(Int(value.rounded()))
  }

  /// Reads digits and one point, and nothing else that `Double` would read: no sign, exponent, `nan` or hexadecimal.
  private static func decimal(_ text: Substring) -> Double? {
    guard text.allSatisfy({ $0.isASCII && ($0.isNumber || $0 == ".") }) else { return nil }
    return Double(text)
  }

  private static func factor(_ unit: String) -> UInt64? {
    switch unit {
    case "", "b": 1
    case "k", "ki", "kib": 1 << 10
    case "m", "mi", "mib": 1 << 20
    case "g", "gi", "gib": 1 << 30
    case "t", "ti", "tib": 1 << 40
    case "kb": 1000
    case "mb": 1_000_000
    case "gb": 1_000_000_000
    case "tb": 1_000_000_000_000
    default: nil
    }
  }
}
