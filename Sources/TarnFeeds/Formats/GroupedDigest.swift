import TarnCore

/// A digest in groups of digits, as `gpg --print-md` and `--print-mds` write it: `name: CA978112 CA1BBDCA ...`, continued by
/// indented lines. A long name has a line of its own.
struct GroupedDigest {
  /// The length of a name from which gpg begins a new line after `name: `.
  private static let longName = 39

  private let name: [UInt8]
  /// The line that it began with.
  let begin: ListLine
  /// The tag, such as `SHA512` in `name: SHA512 = ...`.
  private var tag: ArraySlice<UInt8>?
  private var digits: [UInt8] = []
  /// The number of digits in each group.
  private var groupLength = 0

  /// - Returns: `nil` when no digest begins with this line.
  init?(_ begin: ListLine) {
    let line = begin.bytes
    guard let colon = line.lastIndex(of: UInt8(ascii: ":")), colon > line.startIndex,
      line.first.map({ !isBlank($0) }) ?? false, !line.contains(0)
    else { return nil }
    name = Array(line[..<colon])
    self.begin = begin
    let rest = line[(colon + 1)...]
    // The name of a kind is not a file name: that digest stands alone.
    guard rest.first.map(isBlank) ?? true, DigestKind(title: name) == nil else { return nil }
    if rest.allSatisfy(isBlank) {
      guard name.count >= Self.longName else { return nil }
    } else {
      guard add(value: rest), tag != nil || digits.count > groupLength else { return nil }
    }
  }

  /// - Returns: false when the line does not continue the digest.
  mutating func add(_ line: ArraySlice<UInt8>) -> Bool {
    guard let first = line.first, digits.isEmpty || isBlank(first) else { return false }
    return add(value: line)
  }

  /// Adds groups of digits, with `SHA512 = ` in front at the beginning.
  private mutating func add(value: ArraySlice<UInt8>) -> Bool {
    var text = value
    var tag = tag
    if digits.isEmpty, let equals = text.firstIndex(of: UInt8(ascii: "=")) {
      tag = trimmed(text[..<equals])[...]
      text = text[(equals + 1)...]
    }
    let groups = text.split(whereSeparator: isBlank)
    guard let length = groups.first?.count, digits.isEmpty || length == groupLength,
      [2, 4, 8].contains(length) || digits.isEmpty && tag != nil && groups.count == 1,
      groups.allSatisfy({ $0.count == length && $0.allSatisfy { $0.hexDigitValue != nil } }),
      digits.count + length * groups.count <= 256
    else { return false }
    groupLength = length
    self.tag = tag
    digits += groups.joined()
    return true
  }

  /// Returns the number of digits in each group of a digest of this length. With other groups, some are missing.
  static func groupLength(ofDigits count: Int) -> Int {
    count == 32 ? 2 : count == 40 ? 4 : 8
  }

  /// The parsed line that all its lines make up.
  var line: ChecksumLine {
    let isWhole = groupLength == digits.count || groupLength == Self.groupLength(ofDigits: digits.count)
    guard isWhole, let algorithm = DigestWord.algorithms[digits.count] else {
      return digits.isEmpty
        ? ChecksumLine(begin.bytes) : ChecksumLine.holdsDigest(digits) ? .malformed : .text
    }
    var known = algorithm
    if let tag {
      guard let named = tag.withUnsafeBytes({ DigestAlgorithm(name: $0) }) else {
        return .unsupported(name: name)
      }
      known = named
    }
    return Digest(known, hex: digits).map { .file(ChecksumLine.ListedDigest(name: name, digest: $0)) }
      ?? .malformed
  }
}

/// A line of a list without the carriage returns at its end.
struct ListLine {
  let number: Int
  /// True when a line feed ends it.
  let isEnded: Bool
  let bytes: ArraySlice<UInt8>
  /// True when it ended with carriage returns.
  let isFromWindows: Bool

  init(_ raw: some BidirectionalCollection<UInt8>, number: Int = 0, isEnded: Bool = true) {
    bytes = ListedFile.withoutReturns(raw)
    isFromWindows = raw.last == 0x0D
    self.number = number
    self.isEnded = isEnded
  }
}

/// Reads the lines of a checksum list in order, with what one line says about the next ones.
struct ChecksumLines {
  private let isNameFirst: Bool
  private var untagged: DigestKind?
  private var group: GroupedDigest?

  /// - Parameters:
  ///   - name: the name of the list.
  ///   - isNameFirst: true when the name precedes the digest in all lines.
  init(name: some Sequence<UInt8>, isNameFirst: Bool = false) {
    self.isNameFirst = isNameFirst
    untagged = DigestKind(listName: name)
  }

  /// - Parameter body: called with what is known so far: this line, what earlier lines were, both, or nothing yet.
  mutating func add(_ line: ListLine, _ body: (ChecksumLine, ListLine) throws -> Void) rethrows {
    if var begun = group {
      if begun.add(line.bytes) {
        group = begun
        return
      }
      group = nil
      try body(begun.line, begun.begin)
    }
    let parsed = parse(line)
    switch parsed {
    case .text, .malformed:
      group = GroupedDigest(line)
      if group != nil { return }
    case .title(let kind): untagged = kind
    default: break
    }
    try body(parsed, line)
  }

  /// Reports what the last lines were.
  mutating func finish(_ body: (ChecksumLine, ListLine) throws -> Void) rethrows {
    if let begun = group { try body(begun.line, begun.begin) }
    group = nil
  }

  private func parse(_ line: ListLine) -> ChecksumLine {
    isNameFirst
      ? ChecksumLine(nameFirst: line.bytes, untagged: untagged)
      : ChecksumLine(line.bytes, untagged: untagged, isFromWindows: line.isFromWindows)
  }
}
