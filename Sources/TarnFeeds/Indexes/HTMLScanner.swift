import TarnCore

/// Splits an HTML page into tags and the text between them, a block at a time.
struct HTMLScanner {
  static let maximumPage = 64 << 20
  private static let maximumTag = 65_536
  private static let keptText = 512

  private let input: FeedInput
  private var block: [UInt8] = []
  private var position = 0
  private var total = 0
  /// The element with raw text (`script`, `style`) whose start tag was read.
  private var raw: String?

  init(_ input: FeedInput) {
    self.input = input
  }

  /// Returns the next tag without its angle brackets, and the text before it, cut to `keptText` bytes. Of a run of spaces two are
  /// kept.
  ///
  /// - Returns: a `nil` tag at the end of the page, with the text before it.
  mutating func next() throws(FeedFailure) -> (text: [UInt8], tag: [UInt8]?) {
    if let raw { return ([], try skip(raw)) }
    var text: [UInt8] = []
    while let byte = try nextByte() {
      if byte == UInt8(ascii: "<"), try isTagNext() {
        let tag = try tag()
        if let name = tag.map(HTMLTag.name), name == "script" || name == "style" { raw = name }
        return (text, tag)
      }
      let isRun = byte == 0x20 && text.suffix(2).elementsEqual([0x20, 0x20])
      if text.count < Self.keptText, !isRun { text.append(byte) }
    }
    return (text, nil)
  }

  /// Returns whether a `<` begins a tag: before a letter, `/`, `!` or `?`. Before anything else it is text. At the end of the page
  /// it is a cut tag.
  private mutating func isTagNext() throws(FeedFailure) -> Bool {
    guard try hasByte() else { return true }
    let byte = block[position]
    return byte.isASCIILetter || byte == 0x2F || byte == UInt8(ascii: "!") || byte == UInt8(ascii: "?")
  }

  /// Skips the content of an element without markup, and its end tag.
  ///
  /// - Returns: the end tag; `nil` when the page ends before it.
  private mutating func skip(_ name: String) throws(FeedFailure) -> [UInt8]? {
    let end = Array("</\(name)".utf8)
    var matched = 0
    while let byte = try nextByte() {
      if matched == end.count {
        guard byte == UInt8(ascii: ">") else { continue }
        raw = nil
        return Array(end.dropFirst())
      }
      let folded = (0x41...0x5A).contains(byte) ? byte | 0x20 : byte
      matched = folded == end[matched] ? matched + 1 : folded == end[0] ? 1 : 0
    }
    return nil
  }

  /// - Returns: `nil` when the page ends inside the tag.
  private mutating func tag() throws(FeedFailure) -> [UInt8]? {
    var tag: [UInt8] = []
    var quote: UInt8?
    var last: UInt8 = 0
    while let byte = try nextByte() {
      let isComment = tag.begins(with: "!--")
      if byte == UInt8(ascii: ">"), quote == nil, !isComment || tag.suffix(2).elementsEqual("--".utf8) {
        return tag
      }
      if !isComment {
        if byte == quote {
          quote = nil
        } else if quote == nil, last == UInt8(ascii: "="), byte == UInt8(ascii: "\"") || byte == 0x27 {
          quote = byte
        }
        if !isBlank(byte) { last = byte }
      }
      tag.append(byte)
      guard tag.count <= Self.maximumTag else {
        throw FeedFailure(
          code: "line-too-long", message: "a tag of the page is longer than \(Self.maximumTag) bytes")
      }
    }
    return nil
  }

  private mutating func nextByte() throws(FeedFailure) -> UInt8? {
    guard try hasByte() else { return nil }
    defer { position += 1 }
    return block[position]
  }

  private mutating func hasByte() throws(FeedFailure) -> Bool {
    guard position == block.count else { return true }
    position = 0
    guard try input.read(into: &block) else { return false }
    total += block.count
    guard total <= Self.maximumPage else {
      throw FeedFailure(
        code: "feed-too-large", message: "the index page is larger than \(Self.maximumPage >> 20) MiB")
    }
    return true
  }
}

/// A tag without its angle brackets.
struct HTMLTag {
  let bytes: [UInt8]
  /// The name in lower case, with the slash of an end tag.
  let element: String

  init(_ bytes: [UInt8]) {
    self.bytes = bytes
    element = Self.name(bytes)
  }

  func attribute(_ name: String, isEscaped: Bool = true) -> [UInt8]? {
    Self.attribute(name, of: bytes, isEscaped: isEscaped)
  }

  /// Returns the name of the element in lower case, with the slash of an end tag.
  static func name(_ tag: [UInt8]) -> String {
    let slash = tag.prefix { $0 == 0x2F }.prefix(1)
    let name = tag.dropFirst(slash.count).prefix { !isBlank($0) && $0 != 0x2F }
    return String(decoding: lowercased(slash + name), as: UTF8.self)
  }

  /// Returns the value of an attribute with its entities decoded; `nil` when the tag has no such attribute.
  ///
  /// - Parameter isEscaped: false when the value has no entities.
  static func attribute(_ wanted: String, of tag: [UInt8], isEscaped: Bool = true) -> [UInt8]? {
    var rest = tag.drop { !isBlank($0) }
    while true {
      rest = rest.drop { isBlank($0) }
      guard !rest.isEmpty else { return nil }
      let name = rest.prefix { !isBlank($0) && $0 != UInt8(ascii: "=") }
      rest = rest[name.endIndex...].drop { isBlank($0) }
      guard rest.first == UInt8(ascii: "=") else {
        if name.isEmpty { rest = rest.dropFirst() }
        continue
      }
      rest = rest.dropFirst().drop { isBlank($0) }
      let value: ArraySlice<UInt8>
      if let quote = rest.first, quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") {
        value = rest.dropFirst().prefix { $0 != quote }
        rest = rest[value.endIndex...].dropFirst()
      } else {
        value = rest.prefix { !isBlank($0) }
        rest = rest[value.endIndex...]
      }
      if lowercased(name).elementsEqual(wanted.utf8) {
        return isEscaped ? decodeEntities(value) : Array(value)
      }
    }
  }

  /// Decodes the five predefined entities and numeric ones; others stay as they are.
  static func decodeEntities(_ text: ArraySlice<UInt8>) -> [UInt8] {
    PlainText.decoded(text, by: entity)
  }

  private static func entity(_ name: ArraySlice<UInt8>) -> [UInt8]? {
    let name = String(decoding: name, as: UTF8.self)
    switch name {
    case "amp": return [0x26]
    case "lt": return [0x3C]
    case "gt": return [0x3E]
    case "quot": return [0x22]
    case "apos": return [0x27]
    default:
      guard name.hasPrefix("#") else { return nil }
      let isHex = name.hasPrefix("#x") || name.hasPrefix("#X")
      guard let value = UInt32(name.dropFirst(isHex ? 2 : 1), radix: isHex ? 16 : 10),
        let scalar = Unicode.Scalar(value)
      else { return nil }
      return Array(String(scalar).utf8)
    }
  }
}
