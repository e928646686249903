import TarnCore

/// Simple file verification: a name with its CRC-32 on each line, as cksfv and RHash write it.
///
/// Tarn does not check a CRC-32, which is not a digest. It tells one version from the next, as an index's text does, and sizes in
/// comments are checked.
struct SFVList: FeedFormat {
  var name: String { "SFV list" }
  var kind: FeedKind { .list }
  var isKept: Bool { true }

  func recognises(_ head: [UInt8]) -> Bool { recognises(head, named: []) }

  /// Recognises a list by its name, or by a comment at the beginning, as the tools write it, when at least half of the other lines
  /// are files. Many texts have lines that end in eight digits.
  func recognises(_ head: [UInt8], named name: [UInt8]) -> Bool {
    guard !head.contains(0) else { return false }
    let isNamed = lowercased(name.suffix(4)).elementsEqual(".sfv".utf8)
    guard let first = head.first(where: { !isBlank($0) }), isNamed || first == UInt8(ascii: ";") else {
      return false
    }
    var files = 0
    var lines = 0
    var areDates = true
    for raw in head.split(separator: 0x0A) {
      switch SFVLine(ListedFile.withoutReturns(raw)) {
      case .nothing, .size: continue
      case .file(let name, let crc):
        files += 1
        areDates = areDates && crc.allSatisfy(\.isASCIIDigit)
        // These are the groups of another digest.
        guard isNamed || !Self.endsWithGroup(name) else { return false }
      case .malformed: break
      }
      lines += 1
    }
    return files > 0 && 2 * files >= lines && (isNamed || !areDates)
  }

  private static func endsWithGroup(_ name: [UInt8]) -> Bool {
    let word = name[(name.lastIndex(where: isBlank).map { $0 + 1 } ?? 0)...]
    return word.count == 8 && word.count < name.count && word.allSatisfy { $0.hexDigitValue != nil }
  }

  func read(_ input: FeedInput, in context: FeedContext, sink: FeedSink) throws -> FeedEnd {
    var reason: String?
    var names = ListedNames()
    while let (raw, isEnded) = try input.readLine() {
      switch SFVLine(ListedFile.withoutReturns(raw)) {
      case .nothing: break
      case .size(let name, let size): names.note(size: size, of: name, isComment: true)
      case .file(let name, let crc):
        let listing = Array("crc32 ".utf8) + crc
        if context.isDocument(ListedFile.withoutDot(name)) { break }
        try sink(ListedFile.item(name, size: names.size(of: name), listing: listing, in: context))
      case .malformed:
        try sink(
          Refusal.of(
            text: raw, code: "line-malformed", reason: "line \(input.line) is not a name with a CRC-32")
        )
        if reason == nil { reason = "line \(input.line) is not understood" }
      }
      if !isEnded, reason == nil { reason = "line \(input.line), the last one, has no end: it may be cut" }
    }
    reason = reason ?? context.doubt
    return FeedEnd(format: name, isComplete: reason == nil, incompleteReason: reason ?? "")
  }
}

/// A line of an SFV list.
private enum SFVLine {
  /// An empty line or a comment.
  case nothing
  /// The comment `;  348894  12:00.00 2020-02-29 name` of cksfv and RHash.
  case size(name: [UInt8], UInt64)
  /// A file, with `crc` in capitals.
  case file(name: [UInt8], crc: [UInt8])
  case malformed

  init(_ line: ArraySlice<UInt8>) {
    if line.allSatisfy(isBlank) {
      self = .nothing
    } else if line.first == UInt8(ascii: ";") {
      self = Self.comment(line.dropFirst())
    } else {
      self = Self.file(line)
    }
  }

  /// Reads a file. The name ends at the blanks before the last eight digits; leading blanks belong to it.
  private static func file(_ line: ArraySlice<UInt8>) -> SFVLine {
    var line = line
    while let last = line.last, isBlank(last) { line.removeLast() }
    let crc = line.suffix(8)
    var name = line.dropLast(8)
    guard crc.count == 8, crc.allSatisfy({ $0.hexDigitValue != nil }), let last = name.last,
      last == 0x20 || last == 0x09, !line.contains(0)
    else { return .malformed }
    while let last = name.last, isBlank(last) { name.removeLast() }
    let quote = UInt8(ascii: "\"")
    if name.count > 2, name.first == quote, name.last == quote { name = name.dropFirst().dropLast() }
    guard !name.isEmpty else { return .malformed }
    return .file(name: Array(name), crc: crc.map { $0 >= 0x61 ? $0 - 0x20 : $0 })
  }

  private static func comment(_ text: ArraySlice<UInt8>) -> SFVLine {
    let parts = text.drop { $0 == 0x20 }.split(
      separator: 0x20, maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, let size = UInt64(String(decoding: parts[0], as: UTF8.self)), size <= Int64.max
    else { return .nothing }
    // The time `hh:mm.ss yyyy-mm-dd`, in whatever zone.
    let rest = Array(parts[1].drop { $0 == 0x20 })
    let time = Array("dd:dd.dd dddd-dd-dd ".utf8)
    guard rest.count > time.count,
      zip(time, rest).allSatisfy({ $0 == UInt8(ascii: "d") ? $1.isASCIIDigit : $0 == $1 })
    else { return .nothing }
    return .size(name: Array(rest.dropFirst(time.count)), size)
  }
}
