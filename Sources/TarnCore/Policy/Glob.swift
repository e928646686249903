/// Git's wildmatch, over bytes.
///
/// There is one difference: `a**b` means `a*b`, as gitignore(5) says. Git lets it cross segments when nothing special comes before
/// the stars.
enum Glob {
  private static let slash = UInt8(ascii: "/")
  private static let star = UInt8(ascii: "*")
  private static let backslash = UInt8(ascii: "\\")

  private typealias Mark = (pattern: ArraySlice<UInt8>, text: ArraySlice<UInt8>)

  /// Goes back only to the newest star of each kind: what an older star of the segment, or an older `**/`, takes makes no
  /// difference. So for each segment of the text the time is at most the product of the lengths.
  static func matches(_ whole: ArraySlice<UInt8>, _ text: ArraySlice<UInt8>) -> Bool {
    var pattern = whole
    var text = text
    var single: Mark?
    var double: Mark?
    while true {
      if pattern.first == star {
        let rest = pattern.drop { $0 == star }
        let isSegment =
          rest.startIndex - pattern.startIndex > 1 && (rest.isEmpty || rest.first == slash)
          && (pattern.startIndex == whole.startIndex || whole[pattern.startIndex - 1] == slash)
        if isSegment, rest.isEmpty { return true }
        // `**/` matches no directory at all, too.
        pattern = isSegment ? rest.dropFirst() : rest
        if isSegment { double = (pattern, text) }
        single = isSegment ? nil : (pattern, text)
        continue
      }
      if pattern.isEmpty && text.isEmpty { return true }
      if let byte = text.first, let rest = step(pattern, byte) {
        if byte == slash { single = nil }
        pattern = rest
        text = text.dropFirst()
        continue
      }
      if let mark = single, let byte = mark.text.first, byte != slash {
        text = mark.text.dropFirst()
        pattern = mark.pattern
        single = (pattern, text)
        continue
      }
      guard let mark = double, let next = mark.text.firstIndex(of: slash) else { return false }
      text = mark.text[(next + 1)...]
      pattern = mark.pattern
      double = (pattern, text)
      single = nil
    }
  }

  /// Matches one byte against the front of the pattern. Returns the rest of the pattern when it fits.
  private static func step(_ pattern: ArraySlice<UInt8>, _ byte: UInt8) -> ArraySlice<UInt8>? {
    guard let first = pattern.first else { return nil }
    let rest = pattern.dropFirst()
    switch first {
    case UInt8(ascii: "?"): return byte == slash ? nil : rest
    case UInt8(ascii: "["): return byte == slash ? nil : bracket(rest, byte)
    // A backslash at the end never matches.
    case backslash: return rest.first == byte ? rest.dropFirst() : nil
    default: return first == byte ? rest : nil
    }
  }

  /// - Parameter pattern: what follows `[`; a bracket that is never closed matches nothing.
  private static func bracket(_ pattern: ArraySlice<UInt8>, _ byte: UInt8) -> ArraySlice<UInt8>? {
    let isNegated = pattern.first == UInt8(ascii: "!") || pattern.first == UInt8(ascii: "^")
    var rest = isNegated ? pattern.dropFirst() : pattern
    var found = false
    /// The byte that a range can begin with: the previous one, unless it ended a range or was a class.
    var low: UInt8?
    var isFirst = true
    while let next = rest.first {
      if next == UInt8(ascii: "]"), !isFirst { return found != isNegated ? rest.dropFirst() : nil }
      isFirst = false
      if let known = low, next == UInt8(ascii: "-"), let end = rest.dropFirst().first,
        end != UInt8(ascii: "]")
      {
        rest = rest.dropFirst()
        guard let high = member(&rest) else { return nil }
        if known <= byte, byte <= high { found = true }
        low = nil
      } else if next == UInt8(ascii: "["), let (name, behind) = className(rest) {
        guard let isMember = classes[name] else { return nil }
        if isMember(byte) { found = true }
        rest = behind
        low = nil
      } else {
        guard let value = member(&rest) else { return nil }
        if value == byte { found = true }
        low = value
      }
    }
    return nil
  }

  /// Returns why the pattern can never match, and at which byte; `nil` for a valid pattern.
  static func fault(in pattern: [UInt8]) -> (offset: Int, reason: String)? {
    var index = 0
    while index < pattern.count {
      switch pattern[index] {
      case backslash:
        guard index + 1 < pattern.count else { return (index, "nothing follows the backslash") }
        index += 2
      case UInt8(ascii: "["):
        switch bracketEnd(pattern, from: index) {
        case .success(let end): index = end
        case .failure(let fault): return (index, fault.reason)
        }
      default: index += 1
      }
    }
    return nil
  }

  private struct Fault: Error {
    var reason: String
  }

  /// Returns the index behind the bracket that begins at `start`.
  private static func bracketEnd(_ pattern: [UInt8], from start: Int) -> Result<Int, Fault> {
    var rest = pattern[(start + 1)...]
    if rest.first == UInt8(ascii: "!") || rest.first == UInt8(ascii: "^") { rest = rest.dropFirst() }
    var low: UInt8?
    var isFirst = true
    while let next = rest.first {
      if next == UInt8(ascii: "]"), !isFirst { return .success(rest.startIndex + 1) }
      isFirst = false
      if let known = low, next == UInt8(ascii: "-"), let end = rest.dropFirst().first,
        end != UInt8(ascii: "]")
      {
        rest = rest.dropFirst()
        guard let high = member(&rest) else { break }
        guard known <= high else { return .failure(Fault(reason: "a range of the bracket runs backwards")) }
        low = nil
      } else if next == UInt8(ascii: "["), let (name, behind) = className(rest) {
        guard classes[name] != nil else {
          return .failure(Fault(reason: "the bracket names no class [:\(name):]"))
        }
        rest = behind
        low = nil
      } else {
        low = member(&rest)
      }
    }
    return .failure(Fault(reason: "the bracket is never closed; with a backslash in front it means itself"))
  }

  /// Takes one byte of a bracket; a backslash makes the next byte literal.
  private static func member(_ rest: inout ArraySlice<UInt8>) -> UInt8? {
    guard let first = rest.popFirst() else { return nil }
    return first == backslash ? rest.popFirst() : first
  }

  /// Returns the name in `[:name:]` and what follows it.
  private static func className(_ rest: ArraySlice<UInt8>) -> (String, ArraySlice<UInt8>)? {
    let inner = rest.dropFirst()
    guard inner.first == UInt8(ascii: ":"), let end = inner.firstIndex(of: UInt8(ascii: "]")),
      end - inner.startIndex > 1, inner[end - 1] == UInt8(ascii: ":")
    else { return nil }
    let name = inner[(inner.startIndex + 1)..<(end - 1)]
    return (String(decoding: name, as: UTF8.self), inner[(end + 1)...])
  }

  private static let classes: [String: @Sendable (UInt8) -> Bool] = [
    "alnum": { $0.isASCIILetter || $0.isASCIIDigit },
    "alpha": { $0.isASCIILetter },
    "blank": { $0 == 0x20 || $0 == 0x09 },
    "cntrl": { $0 < 0x20 || $0 == 0x7F },
    "digit": { $0.isASCIIDigit },
    "graph": { (0x21...0x7E).contains($0) },
    "lower": { (0x61...0x7A).contains($0) },
    "print": { (0x20...0x7E).contains($0) },
    "punct": { (0x21...0x7E).contains($0) && !$0.isASCIILetter && !$0.isASCIIDigit },
    "space": { $0 == 0x20 || (0x09...0x0D).contains($0) },
    "upper": { (0x41...0x5A).contains($0) },
    "xdigit": { $0.hexDigitValue != nil },
  ]
}
