/// Percent coding of bytes (RFC 3986 2.1).
package enum Percent {
  private static func table(_ others: String) -> [Bool] {
    (0..<256).map { value in
      let byte = UInt8(value)
      return byte.isASCIILetter || byte.isASCIIDigit || others.utf8.contains(byte)
    }
  }

  /// The bytes that a path keeps as they are, by their values: its slashes and those of a segment (pchar, RFC 3986 3.3).
  package static let keptInPath = table("/-._~!$'()*,;:@&=+")

  /// The unreserved bytes, by their values (RFC 3986 2.3).
  package static let unreserved = table("-._~")

  /// Encodes a raw path for a URL; its slashes separate the segments.
  package static func encode(path: some Sequence<UInt8>) -> [UInt8] { encode(path, keeping: keptInPath) }

  private static let digits = Array("0123456789ABCDEF".utf8)

  /// - Parameter kept: for each byte, whether it stays as it is.
  package static func encode(_ text: some Sequence<UInt8>, keeping kept: [Bool]) -> [UInt8] {
    let text = Array(text)
    guard !text.allSatisfy({ kept[Int($0)] }) else { return text }
    var result: [UInt8] = []
    result.reserveCapacity(text.count + 16)
    for byte in text {
      if kept[Int(byte)] {
        result.append(byte)
      } else {
        result += [0x25, digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return result
  }

  /// Encodes each `%` that begins no code, since it can only mean itself.
  package static func completed(_ path: [UInt8]) -> [UInt8] {
    guard path.contains(0x25) else { return path }
    var result: [UInt8] = []
    for (index, byte) in path.enumerated() {
      result.append(byte)
      let isCode =
        index + 2 < path.count && path[index + 1].hexDigitValue != nil
        && path[index + 2].hexDigitValue != nil
      if byte == 0x25, !isCode { result += Array("25".utf8) }
    }
    return result
  }

  /// Decodes once; a `%` without two hexadecimal digits stays.
  package static func decode(_ text: some Sequence<UInt8>) -> [UInt8] {
    let text = Array(text)
    guard text.contains(0x25) else { return text }
    var result: [UInt8] = []
    var index = 0
    while index < text.count {
      if text[index] == 0x25, index + 2 < text.count, let high = text[index + 1].hexDigitValue,
        let low = text[index + 2].hexDigitValue
      {
        result.append(high << 4 | low)
        index += 3
      } else {
        result.append(text[index])
        index += 1
      }
    }
    return result
  }
}
