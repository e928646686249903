import TarnCore

/// Reads sizes as indexes print them.
enum IndexSize {
  /// The meaning of the letters.
  enum Units {
    /// Powers of 1024, whatever the letters are.
    case binary
    /// Powers of 1000 or of 1024, unless the letters tell (`MiB`).
    case unknown
  }

  /// A size at the beginning of some words.
  struct Shown: Equatable {
    /// Every size that some server may show this way, however it rounds.
    let range: ClosedRange<UInt64>
    /// The number of words that make up the size.
    let count: Int
  }

  /// Reads whole bytes; `nil` for anything rounded.
  static func exact(_ text: some Collection<UInt8>) -> UInt64? {
    guard !text.isEmpty, text.allSatisfy(\.isASCIIDigit),
      let size = UInt64(String(decoding: text, as: UTF8.self)), size <= Int64.max
    else { return nil }
    return size
  }

  /// Reads a size at the beginning of these words: `2.9M`, `1.5 GiB`, `12K`, `2 B`, `78 bytes`, or digits alone, which are bytes.
  ///
  /// - Returns: `nil` for anything else.
  static func shown(_ words: some Collection<[UInt8]>, _ units: Units = .unknown) -> Shown? {
    guard let word = words.first else { return nil }
    let number = word.prefix { $0.isASCIIDigit || $0 == 0x2E }
    let letters = word[number.endIndex...]
    if letters.isEmpty, let next = words.dropFirst().first, let unit = Unit(next[...]),
      let range = range(number, unit, units)
    {
      return Shown(range: range, count: 2)
    }
    guard let unit = letters.isEmpty ? .bytes : Unit(letters), let range = range(number, unit, units) else {
      return nil
    }
    return Shown(range: range, count: 1)
  }

  private struct Unit {
    static let bytes = Unit(power: 0, isBinary: true)
    let power: Int
    let isBinary: Bool

    init(power: Int, isBinary: Bool) {
      self.power = power
      self.isBinary = isBinary
    }

    /// Reads `B`, `bytes`, or a letter with or without `B` or `iB`.
    init?(_ text: ArraySlice<UInt8>) {
      let text = lowercased(text)
      let rest: ArraySlice<UInt8>
      if let letter = text.first, let power = Array("kmgtpe".utf8).firstIndex(of: letter) {
        self.power = power + 1
        rest = text.dropFirst()
      } else {
        guard !text.isEmpty else { return nil }
        power = 0
        rest = text[...]
      }
      let isInformal = ["", "b", "byte", "bytes"].contains { rest.elementsEqual($0.utf8) }
      isBinary = power == 0 || rest.elementsEqual("ib".utf8)
      guard isInformal || isBinary && power > 0 else { return nil }
    }
  }

  /// Returns the sizes within one of the last digit on either side.
  private static func range(_ number: ArraySlice<UInt8>, _ unit: Unit, _ units: Units) -> ClosedRange<UInt64>?
  {
    let parts = number.split(separator: 0x2E, omittingEmptySubsequences: false)
    guard (1...2).contains(parts.count), parts.allSatisfy({ !$0.isEmpty }), number.count <= 15,
      let digits = exact(parts.joined())
    else { return unit.power == 0 && parts.count == 1 ? exact(number).map { $0...$0 } : nil }
    if unit.power == 0 { return parts.count == 1 ? digits...digits : nil }
    let scale = power(10, parts.count == 2 ? parts[1].count : 0)
    let isBinary = unit.isBinary || units == .binary
    // No file without a byte has a digit above 0. Servers round a small one up to `1K`, but none below half of a greater unit.
    let least = unit.power > 1 ? Double(digits) / 2 : min(Double(digits), scale / 1024)
    let low = max(Double(digits) - 1, least)
    let high = Double(digits) + 1
    return bytes(
      low / scale * power(isBinary ? 1024 : 1000, unit.power))...bytes(
        (high / scale * power(1024, unit.power)).rounded(.up))
  }

  private static func power(_ base: Double, _ exponent: Int) -> Double {
    (0..<exponent).reduce(1) { value, _ in value * base }
  }

  private static func bytes(_ value: Double) -> UInt64 {
    UInt64(exactly: max(0, value).rounded(.down)).map { min($0, UInt64(Int64.max)) } ?? UInt64(Int64.max)
  }
}
