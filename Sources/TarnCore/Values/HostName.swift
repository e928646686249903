/// The name or address of a host, without a port, in its normal form: equal hosts have equal values.
package struct HostName: Hashable, Sendable {
  /// Lower case, without brackets and without a dot at its end. An IPv6 address is as in RFC 5952.
  package let text: String
  private let isV6: Bool

  /// The form in a URL, where an IPv6 address has brackets.
  package var inURL: String { isV6 ? "[\(text)]" : text }

  /// - Parameter written: a name or an address. An IPv6 address may have brackets.
  /// - Returns: `nil` for a text that no URL has as its host, such as one with a port or a zone id.
  package init?(_ written: String) {
    let hasBrackets = written.hasPrefix("[") && written.hasSuffix("]") && written.utf8.count > 1
    let inner = hasBrackets ? written.dropFirst().dropLast() : written[...]
    if hasBrackets || inner.contains(":") {
      guard let groups = IPv6Text.groups(inner) else { return nil }
      (text, isV6) = (IPv6Text.shortest(groups), true)
      return
    }
    let name = (inner.hasSuffix(".") ? inner.dropLast() : inner).lowercased()
    let labels = name.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    let isName = labels.allSatisfy { label in
      !label.isEmpty && label.allSatisfy { $0.isASCIILetter || $0.isASCIIDigit || "-_".utf8.contains($0) }
    }
    // A last label that is a number makes an address, and URLs have only the form with four numbers.
    let isNumber = labels.last.map(Self.isNumber) ?? false
    guard isName, !isNumber || IPv6Text.pair(name[...]) != nil else { return nil }
    (text, isV6) = (name, false)
  }

  /// Returns whether a label in lower case is a number of an IPv4 address in any notation (WHATWG URL 3.5).
  private static func isNumber(_ label: Substring.UTF8View) -> Bool {
    guard label.starts(with: "0x".utf8) else { return label.allSatisfy(\.isASCIIDigit) }
    return label.dropFirst(2).allSatisfy { $0.isASCIIDigit || (0x61...0x66).contains($0) }
  }

  /// True for an IPv6 address with a zone id, such as `fe80::1%eth0`.
  package static func hasZone(_ written: String) -> Bool { written.contains(":") && written.contains("%") }
}

/// Reads and writes IPv6 addresses (RFC 4291 2.2).
private enum IPv6Text {
  /// - Returns: the eight groups; `nil` for another text.
  static func groups(_ text: Substring) -> [UInt16]? {
    guard let gap = text.firstRange(of: "::") else {
      return list(text, mayEndInV4: true).flatMap { $0.count == 8 ? $0 : nil }
    }
    guard let first = list(text[..<gap.lowerBound], mayEndInV4: false),
      let last = list(text[gap.upperBound...], mayEndInV4: true), first.count + last.count < 8
    else { return nil }
    return first + Array(repeating: 0, count: 8 - first.count - last.count) + last
  }

  private static func list(_ text: Substring, mayEndInV4: Bool) -> [UInt16]? {
    if text.isEmpty { return [] }
    var groups: [UInt16] = []
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    for (index, part) in parts.enumerated() {
      if mayEndInV4, index == parts.count - 1, let pair = pair(part) {
        groups += pair
      } else {
        guard part.utf8.count <= 4, part.first?.isHexDigit == true, let group = UInt16(part, radix: 16)
        else { return nil }
        groups.append(group)
      }
    }
    return groups
  }

  /// Returns the two groups of an IPv4 address in decimal numbers; `nil` for another text.
  static func pair(_ text: Substring) -> [UInt16]? {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    let numbers = parts.compactMap { UInt8($0) }
    // The same numbers written otherwise, as with leading zeros, may mean another address.
    guard numbers.count == 4, numbers.map(\.description).joined(separator: ".") == text else { return nil }
    return [0, 2].map { UInt16(numbers[$0]) << 8 | UInt16(numbers[$0 + 1]) }
  }

  /// Returns the form of RFC 5952: the first of the longest runs of zeros is left out.
  static func shortest(_ groups: [UInt16]) -> String {
    var longest = 0..<0
    for start in groups.indices where longest.count < groups.count - start {
      let run = groups[start...].prefix { $0 == 0 }
      if run.count > max(1, longest.count) { longest = run.startIndex..<run.endIndex }
    }
    func text(_ part: ArraySlice<UInt16>) -> String {
      part.map { String($0, radix: 16) }.joined(separator: ":")
    }
    if longest.isEmpty { return text(groups[...]) }
    return "\(text(groups[..<longest.lowerBound]))::\(text(groups[longest.upperBound...]))"
  }
}
