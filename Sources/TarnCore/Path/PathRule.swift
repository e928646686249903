/// Why a name from outside is refused. The raw value is the stable code that users see.
package enum PathRefusal: String, Error, Sendable, CaseIterable {
  case empty = "path-empty"
  case emptySegment = "path-empty-segment"
  case dotSegment = "path-dot-segment"
  case absolute = "path-absolute"
  case nul = "path-nul"
  case tooLong = "path-too-long"
  case segmentTooLong = "path-segment-too-long"
  case tooDeep = "path-too-deep"
  case control = "path-control-character"
  case bidi = "path-bidi-character"
  case reserved = "path-reserved"
  case notPortable = "path-not-portable"

  /// The reason in words for people.
  package var reason: String {
    switch self {
    case .empty: "the name is empty"
    case .emptySegment: "the path has an empty segment"
    case .dotSegment: "the path has a '.' or '..' segment"
    case .absolute: "the path is absolute"
    case .nul: "the path holds a NUL byte"
    case .tooLong: "the path is longer than \(PathRule.maximumLength) bytes"
    case .segmentTooLong: "a segment is longer than \(PathRule.maximumSegment) bytes"
    case .tooDeep: "the path has more than \(PathRule.maximumDepth) segments"
    case .control: "the path holds a control character"
    case .bidi: "the path holds a character that reverses text (bidi control)"
    case .reserved: "the path holds .tarn, a name that is Tarn's own in every directory"
    case .notPortable: "the name does not exist on other systems (--portable-names)"
    }
  }
}

/// The names that are accepted (limits of path_resolution(7)).
package struct PathRule: Sendable, Equatable {
  /// NAME_MAX of Linux file systems, in bytes.
  package static let maximumSegment = 255
  /// PATH_MAX less the terminating NUL, in bytes.
  package static let maximumLength = 4095
  package static let maximumDepth = 512
  /// The name of Tarn's own directory in a folder. No segment may have it: any directory that holds it would be taken for a mirror.
  package static let reservedName: [UInt8] = Array(".tarn".utf8)

  /// True when names that Windows and macOS cannot hold are refused, too (`--portable-names`).
  package var portable: Bool

  package init(portable: Bool = false) {
    self.portable = portable
  }

  package static let linux = PathRule()

  package func check(_ bytes: [UInt8]) throws(PathRefusal) {
    guard portable || !Self.isPlain(bytes) else { return }
    guard !bytes.isEmpty else { throw .empty }
    guard !bytes.contains(0) else { throw .nul }
    guard bytes[0] != UInt8(ascii: "/") else { throw .absolute }
    guard bytes.count <= Self.maximumLength else { throw .tooLong }
    var (depth, start) = (0, 0)
    while start <= bytes.count {
      var stop = start
      while stop < bytes.count, bytes[stop] != UInt8(ascii: "/") { stop += 1 }
      try check(segment: bytes[start..<stop])
      depth += 1
      start = stop + 1
    }
    guard depth <= Self.maximumDepth else { throw .tooDeep }
    try checkCharacters(bytes)
  }

  /// Returns whether a name keeps every rule for Linux at first sight, as most paths do. It is ASCII without control characters, no
  /// segment begins with a dot, and it is no longer than one segment may be.
  private static func isPlain(_ bytes: [UInt8]) -> Bool {
    guard bytes.count <= maximumSegment else { return false }
    return bytes.withUnsafeBufferPointer { bytes in
      var isAtStart = true
      for byte in bytes {
        let isSlash = byte == UInt8(ascii: "/")
        if byte < 0x20 || byte > 0x7E || isAtStart && (isSlash || byte == UInt8(ascii: ".")) { return false }
        isAtStart = isSlash
      }
      return !isAtStart
    }
  }

  private func check(segment: ArraySlice<UInt8>) throws(PathRefusal) {
    let dot = UInt8(ascii: ".")
    guard !segment.isEmpty else { throw .emptySegment }
    if segment.count == 1, segment.first == dot { throw .dotSegment }
    if segment.count == 2, segment.allSatisfy({ $0 == dot }) { throw .dotSegment }
    guard segment.count <= Self.maximumSegment else { throw .segmentTooLong }
    if segment.first == dot, segment.elementsEqual(Self.reservedName) { throw .reserved }
    if portable { try checkPortable(segment) }
  }

  /// Refuses control characters (C0, DEL, C1 as U+0080 to U+009F) and the controls of bidirectional text: no terminal ever gets
  /// one.
  private func checkCharacters(_ bytes: [UInt8]) throws(PathRefusal) {
    for index in bytes.indices {
      let byte = bytes[index]
      if byte < 0x20 || byte == 0x7F { throw .control }
      if byte < 0x80 { continue }
      if byte == 0xC2, index + 1 < bytes.count, (0x80...0x9F).contains(bytes[index + 1]) { throw .control }
      if byte == 0xE2, index + 2 < bytes.count {
        let second = bytes[index + 1]
        let third = bytes[index + 2]
        if second == 0x80, (0xAA...0xAE).contains(third) { throw .bidi }
        if second == 0x81, (0xA6...0xA9).contains(third) { throw .bidi }
      }
    }
  }

  private func checkPortable(_ segment: ArraySlice<UInt8>) throws(PathRefusal) {
    // Windows and macOS accept only text.
    guard String(validating: segment, as: UTF8.self) != nil else { throw .notPortable }
    let forbidden = Array("\\:*?\"<>|".utf8)
    if segment.contains(where: { forbidden.contains($0) }) { throw .notPortable }
    if let first = segment.first, first == UInt8(ascii: "~") || first == UInt8(ascii: "-") {
      throw .notPortable
    }
    if let last = segment.last, last == UInt8(ascii: ".") || last == UInt8(ascii: " ") { throw .notPortable }
    // Windows takes `nul`, `nul.txt` and `nul .txt` for the device.
    let base = segment.prefix { $0 != UInt8(ascii: ".") }
    let blanks = base.reversed().prefix { $0 == UInt8(ascii: " ") }.count
    let stem = String(decoding: base.dropLast(blanks), as: UTF8.self).uppercased()
    let devices: Set<String> = ["CON", "PRN", "AUX", "NUL"]
    // Scalars, not characters: a mark that joins the digit makes it another name.
    let scalars = stem.unicodeScalars
    let numbered =
      scalars.count == 4 && (stem.hasPrefix("COM") || stem.hasPrefix("LPT"))
      && scalars.last.map("0123456789\u{B9}\u{B2}\u{B3}".unicodeScalars.contains) == true
    if devices.contains(stem) || numbered { throw .notPortable }
  }
}
