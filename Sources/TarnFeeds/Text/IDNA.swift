import TarnCore

/// Turns Unicode host names into the form for the network, with punycode (RFC 3492) and the mappings of UTS 46 that need no
/// tables. libidn2 would also know each character's version of Unicode; without it only a host that does not exist is missed.
package enum IDNA {
  private static let maximumLabel = 63
  private static let maximumLength = 253

  /// Returns the authority of a URL with its host in ASCII, where the host is percent-encoded UTF-8. Any other authority stays as
  /// it is.
  static func ascii(_ authority: [UInt8]) -> [UInt8] {
    guard authority.contains(UInt8(ascii: "%")), !authority.contains(UInt8(ascii: "@")),
      authority.first != UInt8(ascii: "[")
    else { return authority }
    let host = authority.prefix { $0 != UInt8(ascii: ":") }
    guard host.count <= 9 * maximumLength,
      let text = String(validating: Percent.decode(host), as: UTF8.self), let ascii = ascii(text)
    else {
      return authority
    }
    return ascii + authority[host.endIndex...]
  }

  /// Returns a URL as a person writes it with its host in ASCII; the rest stays as it is.
  package static func ascii(url: String) -> String {
    let bytes = Array(url.utf8)
    guard let colon = bytes.place(of: "://") else { return url }
    let authority = bytes[(colon + 3)...].prefix { !"/?#".utf8.contains($0) }
    guard authority.contains(where: { $0 >= 0x80 }) else { return url }
    let host = ascii(Percent.repaired(authority))
    guard !host.contains(UInt8(ascii: "%")) else { return url }
    return String(
      decoding: bytes[..<authority.startIndex] + host + bytes[authority.endIndex...], as: UTF8.self)
  }

  private static func ascii(_ text: String) -> [UInt8]? {
    var result: [UInt8] = []
    let mapped = mapped(text)
    guard !mapped.isEmpty, mapped.allSatisfy(isAllowed) else { return nil }
    for (index, label) in mapped.split(separator: ".", omittingEmptySubsequences: false).enumerated() {
      if index > 0 { result.append(UInt8(ascii: ".")) }
      guard let ascii = encoded(Array(label)), ascii.count <= maximumLabel else { return nil }
      result += ascii
    }
    return result.count <= maximumLength ? result : nil
  }

  /// Maps to lower case, composes a letter with its marks, turns wide forms of ASCII into ASCII, and removes invisible characters.
  private static func mapped(_ text: String) -> [Unicode.Scalar] {
    var lower = String.UnicodeScalarView()
    for scalar in text.unicodeScalars {
      switch scalar.value {
      case 0x3002, 0xFF61: lower.append(".")
      case 0xFF01...0xFF5E:
        let narrow = Unicode.Scalar(UInt8(scalar.value - 0xFEE0))
        lower.append(contentsOf: narrow.properties.lowercaseMapping.unicodeScalars)
      case 0xAD, 0x200B, 0x2060, 0xFE00...0xFE0F, 0xFEFF: continue
      default: lower.append(contentsOf: scalar.properties.lowercaseMapping.unicodeScalars)
      }
    }
    return String(lower).flatMap { character -> [Unicode.Scalar] in
      let scalars = Array(character.unicodeScalars)
      return scalars.count == 1 ? scalars : composed[String(character)].map { [$0] } ?? scalars
    }
  }

  /// Letters with marks (Latin, Greek, Cyrillic, kana, Hangul), each under all its forms, which Swift treats as equal.
  private static let composed: [String: Unicode.Scalar] = {
    var table: [String: Unicode.Scalar] = [:]
    for range: ClosedRange<UInt32> in [
      0xC0...0x24F, 0x386...0x45F, 0x476...0x4F9, 0x1E00...0x1FFC, 0x3044...0x30FE, 0xAC00...0xD7A3,
    ] {
      for scalar in range.lazy.compactMap(Unicode.Scalar.init) where table[String(scalar)] == nil {
        table[String(scalar)] = scalar
      }
    }
    return table
  }()

  /// Returns whether a host name may have the character. Of ASCII only letters, digits and `-._` may occur: nothing that came
  /// encoded may end the host.
  private static func isAllowed(_ scalar: Unicode.Scalar) -> Bool {
    if scalar.isASCII {
      let byte = UInt8(scalar.value)
      return byte.isASCIILetter || byte.isASCIIDigit || "-._".unicodeScalars.contains(scalar)
    }
    switch scalar.properties.generalCategory {
    // Joiners are parts of words in some scripts.
    case .format: return scalar.value == 0x200C || scalar.value == 0x200D
    case .control, .surrogate, .privateUse, .unassigned, .lineSeparator, .paragraphSeparator, .spaceSeparator:
      return false
    default: return true
    }
  }

  // MARK: Punycode

  /// Encodes a label; `nil` when it is too long.
  private static func encoded(_ label: [Unicode.Scalar]) -> [UInt8]? {
    var output = label.filter(\.isASCII).map { UInt8($0.value) }
    guard output.count < label.count else { return output }
    guard label.count <= maximumLabel else { return nil }
    let basic = output.count
    if basic > 0 { output.append(UInt8(ascii: "-")) }
    var (next, delta, bias, handled) = (UInt32(0x80), 0, 72, basic)
    while handled < label.count {
      guard let least = label.lazy.map(\.value).filter({ $0 >= next }).min() else { return nil }
      delta += Int(least - next) * (handled + 1)
      next = least
      for scalar in label {
        if scalar.value < next { delta += 1 }
        guard scalar.value == next else { continue }
        append(delta, bias, to: &output)
        bias = adapted(delta, isFirst: handled == basic, count: handled + 1)
        delta = 0
        handled += 1
      }
      delta += 1
      next += 1
    }
    return Array("xn--".utf8) + output
  }

  private static func append(_ delta: Int, _ bias: Int, to output: inout [UInt8]) {
    var (rest, position) = (delta, 36)
    while true {
      let threshold = min(max(position - bias, 1), 26)
      guard rest >= threshold else { break }
      output.append(digit(threshold + (rest - threshold) % (36 - threshold)))
      rest = (rest - threshold) / (36 - threshold)
      position += 36
    }
    output.append(digit(rest))
  }

  /// Returns the digit: `a` to `z`, then `0` to `9`.
  private static func digit(_ value: Int) -> UInt8 {
    value < 26 ? UInt8(ascii: "a") + UInt8(value) : UInt8(ascii: "0") + UInt8(value - 26)
  }

  private static func adapted(_ delta: Int, isFirst: Bool, count: Int) -> Int {
    var rest = isFirst ? delta / 700 : delta / 2
    rest += rest / count
    var position = 0
    while rest > 455 {
      rest /= 35
      position += 36
    }
    return position + 36 * rest / (rest + 38)
  }
}
