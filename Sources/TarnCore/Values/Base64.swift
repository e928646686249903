/// Base64 coding (RFC 4648 4).
package enum Base64 {
  /// - Returns: nil for text that is not Base64 with its padding.
  package static func decode(_ text: [UInt8]) -> [UInt8]? {
    let digits = text.prefix { $0 != 0x3D }
    let padding = text.count - digits.count
    guard text.count.isMultiple(of: 4), padding <= 2, text[digits.endIndex...].allSatisfy({ $0 == 0x3D })
    else {
      return nil
    }
    var result: [UInt8] = []
    var bits: UInt32 = 0
    var count = 0
    for digit in digits {
      guard let value = value(digit) else { return nil }
      bits = (bits << 6 | value) & 0xFFFF
      count += 6
      if count >= 8 {
        count -= 8
        result.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
      }
    }
    return result
  }

  private static func value(_ digit: UInt8) -> UInt32? {
    switch digit {
    case 0x41...0x5A: UInt32(digit - 0x41)
    case 0x61...0x7A: UInt32(digit - 0x61) + 26
    case 0x30...0x39: UInt32(digit - 0x30) + 52
    case 0x2B: 62
    case 0x2F: 63
    default: nil
    }
  }

  package static func encode(_ bytes: [UInt8]) -> String {
    var text: [UInt8] = []
    text.reserveCapacity((bytes.count + 2) / 3 * 4)
    for start in stride(from: 0, to: bytes.count, by: 3) {
      let group = bytes[start..<min(start + 3, bytes.count)]
      let bits = group.enumerated().reduce(UInt32(0)) {
        $0 | UInt32($1.element) << UInt32(16 - 8 * $1.offset)
      }
      for index in 0..<4 {
        text.append(index <= group.count ? digits[Int(bits >> UInt32(18 - 6 * index) & 63)] : 0x3D)
      }
    }
    return String(decoding: text, as: UTF8.self)
  }

  private static let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
}
