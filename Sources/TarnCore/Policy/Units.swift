/// Sizes, rates and shares as users write them.
package enum Units {
  /// `10MiB`, `1.5 GB`, `512k`, `42`: K, M, G, T are 1024-fold with or without `iB`, 1000-fold with `B`
  /// (`10MB` is ten million). No unit means bytes.
  ///
  /// - Returns: nil for anything else, and for more than 2^63 bytes.
  package static func bytes(_ text: String) -> UInt64? {
    let text = text.filter { $0 != " " }.lowercased()
    let digits = text.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
    guard let number = Double(digits), number >= 0, let factor = factor(text.dropFirst(digits.count)) else {
      return nil
    }
    let bytes = number * factor
    guard bytes < 0x1p63 else { return nil }
    return UInt64(bytes)
  }

  /// `2MiB/s` or a size alone: bytes per second; `off` is no limit.
  package static func rate(_ text: String) -> UInt64?? {
    if text == "off" { return .some(nil) }
    let size = text.hasSuffix("/s") ? String(text.dropLast(2)) : text
    guard let bytes = bytes(size), bytes > 0 else { return nil }
    return .some(bytes)
  }

  /// `1%` or a size.
  package static func reserve(_ text: String) -> Reserve? {
    guard text.hasSuffix("%") else { return bytes(text).map { .bytes($0) } }
    guard let percent = Double(text.dropLast()), (0...99).contains(percent) else { return nil }
    return .share(percent: percent)
  }

  /// `3.2 GiB`, four characters of number at most; exact below 1 KiB.
  package static func show(_ bytes: UInt64) -> String {
    guard bytes >= 1024 else { return "\(bytes) B" }
    var value = Double(bytes)
    var unit = -1
    let units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]
    while value >= 1023.95, unit < units.count - 1 {
      value /= 1024
      unit += 1
    }
    let tenths = Int((value * 10).rounded())
    return tenths < 1000
      ? "\(tenths / 10).\(tenths % 10) \(units[unit])" : "\(Int(value.rounded())) \(units[unit])"
  }

  private static func factor(_ unit: Substring) -> Double? {
    switch unit {
    case "", "b": 1
    case "k", "ki", "kib": 0x1p10
    case "m", "mi", "mib": 0x1p20
    case "g", "gi", "gib": 0x1p30
    case "t", "ti", "tib": 0x1p40
    case "kb": 1e3
    case "mb": 1e6
    case "gb": 1e9
    case "tb": 1e12
    default: nil
    }
  }
}
