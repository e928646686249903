/// Turns bytes from outside into text that is safe on a terminal, in a log and in a status document (I14).
package enum Printable {
  /// Keeps printable UTF-8. Writes control characters, bidi controls, the backslash and bytes that are not UTF-8 as `\n`, `\t`,
  /// `\\` or `\xHH`, so that two different names never look the same.
  package static func escape(_ bytes: some Sequence<UInt8>) -> String {
    var text = ""
    let bytes = Array(bytes)
    var index = 0
    while index < bytes.count {
      let length = scalarLength(bytes, at: index)
      guard length > 0, let scalar = decode(bytes[index..<(index + length)]) else {
        text += hex(bytes[index])
        index += 1
        continue
      }
      append(scalar, raw: bytes[index..<(index + length)], to: &text)
      index += length
    }
    return text
  }

  /// Escapes text in the same way, such as an error message of a library.
  package static func escape(_ text: String) -> String {
    escape(Array(text.utf8))
  }

  private static func append(_ scalar: Unicode.Scalar, raw: ArraySlice<UInt8>, to text: inout String) {
    switch scalar.value {
    case 0x0A: text += "\\n"
    case 0x0D: text += "\\r"
    case 0x09: text += "\\t"
    case 0x5C: text += "\\\\"
    case 0..<0x20, 0x7F, 0x80...0x9F, 0x200E, 0x200F, 0x061C, 0x2028...0x202E, 0x2066...0x2069, 0xFEFF:
      for byte in raw { text += hex(byte) }
    default: text.unicodeScalars.append(scalar)
    }
  }

  private static func hex(_ byte: UInt8) -> String {
    let digits = Array("0123456789abcdef".unicodeScalars)
    var text = "\\x"
    text.unicodeScalars.append(digits[Int(byte >> 4)])
    text.unicodeScalars.append(digits[Int(byte & 15)])
    return text
  }

  /// Returns the length that the lead byte announces; 0 when it is no lead byte or the bytes end too early.
  private static func scalarLength(_ bytes: [UInt8], at index: Int) -> Int {
    let length: Int
    switch bytes[index] {
    case 0..<0x80: length = 1
    case 0xC2...0xDF: length = 2
    case 0xE0...0xEF: length = 3
    case 0xF0...0xF4: length = 4
    default: return 0
    }
    return index + length <= bytes.count ? length : 0
  }

  private static func decode(_ bytes: ArraySlice<UInt8>) -> Unicode.Scalar? {
    guard let text = String(validating: bytes, as: UTF8.self) else { return nil }
    return text.unicodeScalars.count == 1 ? text.unicodeScalars.first : nil
  }
}

/// Messages of other parts of Tarn, whose names are escaped already.
package enum Message {
  /// Makes a message safe on a terminal in any case. The backslashes of escaped names stay as they are.
  package static func safe(_ text: String) -> String {
    text.split(separator: "\\", omittingEmptySubsequences: false).map { Printable.escape(String($0)) }
      .joined(separator: "\\")
  }
}
