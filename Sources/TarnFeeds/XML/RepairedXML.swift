import TarnCore

/// Turns XML in UTF-8, as feeds write it in practice, into XML that libxml2 reads without loss.
///
/// The entities of HTML become characters. A `&` or `<` that begins nothing becomes text. Control characters, comments, processing
/// instructions, the XML declaration and the DOCTYPE are left out. Line feeds stay, so that lines are counted correctly. No entity
/// is ever looked up elsewhere.
final class RepairedXML: ByteSource {
  /// The number of bytes by which a construct is looked ahead.
  private static let lookahead = 64
  private static let blockSize = 16_384

  private enum State { case text, comment, instruction, cdata }

  private var upstream: any ByteSource
  private var block = [UInt8](repeating: 0, count: blockSize)
  private var buffer: [UInt8] = []
  private var position = 0
  private var isAtEnd = false
  private var output: [UInt8] = []
  private var outputPosition = 0
  private var state = State.text
  private var sawElement = false
  /// True when the bytes returned so far end inside a tag.
  private(set) var endsInTag = false
  /// The number of items and entries whose end tags were passed so far.
  private(set) var endedItems = 0

  /// - Parameter lines: the number of lines before the document that were left out, for correct positions.
  init(_ upstream: any ByteSource, behind lines: Int = 0) {
    self.upstream = upstream
    output = Array(repeating: 0x0A, count: lines)
  }

  func read(into target: UnsafeMutableRawBufferPointer) throws(FeedFailure) -> Int {
    while outputPosition == output.count {
      output.removeAll(keepingCapacity: true)
      outputPosition = 0
      guard try work() else { return 0 }
    }
    let count = min(target.count, output.count - outputPosition)
    let handed = output[outputPosition..<(outputPosition + count)]
    target.copyBytes(from: handed)
    if let mark = handed.last(where: { $0 == UInt8(ascii: "<") || $0 == UInt8(ascii: ">") }) {
      endsInTag = mark == UInt8(ascii: "<")
    }
    outputPosition += count
    return count
  }

  /// Repairs the bytes in the buffer; false at the end.
  private func work() throws(FeedFailure) -> Bool {
    try fill(Self.lookahead + 1)
    guard position < limit else { return false }
    while position < limit { try step() }
    return true
  }

  /// The index from which too few bytes are left to decide. A step that reads more moves it.
  private var limit: Int { isAtEnd ? buffer.count : buffer.count - Self.lookahead }

  /// Reads until so many bytes are ahead, or the document ends.
  private func fill(_ count: Int) throws(FeedFailure) {
    guard buffer.count - position < count, !isAtEnd else { return }
    buffer.removeFirst(position)
    position = 0
    while buffer.count < count, !isAtEnd {
      var failure: FeedFailure?
      let read = block.withUnsafeMutableBytes { bytes in
        do throws(FeedFailure) {
          return try upstream.read(into: bytes)
        } catch {
          failure = error
          return 0
        }
      }
      if let failure { throw failure }
      isAtEnd = read <= 0
      buffer += block[..<max(read, 0)]
    }
  }

  private func step() throws(FeedFailure) {
    switch state {
    case .text: try text()
    case .comment: pass(until: "-->", keeping: false)
    case .instruction: pass(until: "?>", keeping: false)
    case .cdata: pass(until: "]]>", keeping: true)
    }
  }

  private func text() throws(FeedFailure) {
    guard sawElement else {
      if buffer[position] == UInt8(ascii: "<") { return try markup() }
      return pass(keeping: false)
    }
    var end = position
    while end < buffer.count, Self.isPlain(buffer[end]) { end += 1 }
    if end > position {
      output += buffer[position..<end]
      position = end
      return
    }
    switch buffer[position] {
    case UInt8(ascii: "<"): try markup()
    case UInt8(ascii: "&"): reference()
    default: pass(keeping: true)
    }
  }

  /// Returns whether a byte is neither markup nor forbidden by XML; 0xEF also begins U+FFFE.
  private static func isPlain(_ byte: UInt8) -> Bool {
    byte >= 0x20
      ? byte != UInt8(ascii: "<") && byte != UInt8(ascii: "&") && byte != 0xEF
      : byte == 0x09 || byte == 0x0A || byte == 0x0D
  }

  /// Takes one byte, and outputs it when it is wanted and allowed.
  private func pass(keeping isKept: Bool) {
    let byte = buffer[position]
    if byte == 0xEF,
      buffer[position...].starts(with: [0xEF, 0xBF, 0xBE])
        || buffer[position...].starts(with: [0xEF, 0xBF, 0xBF])
    {
      position += 3
      return
    }
    position += 1
    let isAllowed = byte >= 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D
    if isKept ? isAllowed : byte == 0x0A { output.append(byte) }
  }

  private func pass(until ending: String, keeping isKept: Bool) {
    guard buffer[position...].starts(with: ending.utf8) else { return pass(keeping: isKept) }
    if isKept { output += ending.utf8 }
    position += ending.utf8.count
    state = .text
  }

  private func markup() throws(FeedFailure) {
    let rest = buffer[position...]
    if rest.begins(with: "<!--") {
      state = .comment
      position += 4
    } else if rest.begins(with: "<?") {
      state = .instruction
      position += 2
    } else if sawElement, rest.begins(with: "<![CDATA[") {
      state = .cdata
      output += rest.prefix(9)
      position += 9
    } else if !sawElement, lowercased(rest.prefix(9)).begins(with: "<!doctype") {
      try readDoctype()
    } else {
      tag()
    }
  }

  private func tag() {
    let rest = buffer[position...].dropFirst()
    let isEnd = rest.first == UInt8(ascii: "/")
    let name = isEnd ? rest.dropFirst() : rest
    let begins = name.first.map { $0.isASCIILetter || $0 == 0x5F || $0 == 0x3A || $0 >= 0x80 } ?? false
    position += 1
    guard begins else {
      if sawElement { output += "&lt;".utf8 }
      return
    }
    output.append(UInt8(ascii: "<"))
    sawElement = true
    let near = name.prefix(Self.lookahead - 2)
    let full = near.prefix { !isBlank($0) && $0 != UInt8(ascii: ">") && $0 != UInt8(ascii: "/") }
    // An element without content is its own end.
    guard isEnd || trimmed(near[full.endIndex...].prefix { $0 != UInt8(ascii: ">") }).elementsEqual([0x2F])
    else {
      return
    }
    let local = lowercased(full.split(separator: UInt8(ascii: ":")).last ?? [])
    if local.elementsEqual("item".utf8) || local.elementsEqual("entry".utf8) { endedItems += 1 }
  }

  private func reference() {
    let rest = buffer[position...]
    let end = rest.prefix(PlainText.maximumReference).firstIndex(of: UInt8(ascii: ";"))
    guard let end, let character = PlainText.character(named: rest[(position + 1)..<end]) else {
      output += "&amp;".utf8
      position += 1
      return
    }
    for byte in character {
      switch byte {
      case UInt8(ascii: "&"): output += "&amp;".utf8
      case UInt8(ascii: "<"): output += "&lt;".utf8
      case UInt8(ascii: ">"): output += "&gt;".utf8
      case UInt8(ascii: "\""): output += "&quot;".utf8
      case UInt8(ascii: "'"): output += "&apos;".utf8
      default: output.append(byte)
      }
    }
    position = end + 1
  }

  private func readDoctype() throws(FeedFailure) {
    var wanted = 4096
    while true {
      try fill(wanted)
      let length = try Doctype.length(in: buffer[position...])
      if let length, length <= Doctype.maximumLength {
        output += buffer[position..<(position + length)].filter { $0 == 0x0A }
        position += length
        return
      }
      guard length != nil || !isAtEnd else {
        throw FeedFailure.truncated("the document ends inside its DOCTYPE")
      }
      guard length == nil, wanted < Doctype.maximumLength else {
        throw Doctype.refused("is longer than \(Doctype.maximumLength >> 10) KiB")
      }
      wanted *= 2
    }
  }
}

/// The document type declaration of a feed, which is skipped. What it refers to is never fetched: a DTD (RSS 0.91), or the entities
/// of HTML (RSS 1.0), which are known here.
enum Doctype {
  static let maximumLength = 16_384

  static func refused(_ what: String) -> FeedFailure {
    FeedFailure(code: "doctype-refused", message: "the feed's DOCTYPE \(what)")
  }

  /// Returns the length of a declaration that begins the text.
  ///
  /// - Returns: `nil` when more of it is needed.
  /// - Throws: `doctype-refused` for one that defines entities.
  static func length(in text: ArraySlice<UInt8>) throws(FeedFailure) -> Int? {
    var rest = text.dropFirst("<!DOCTYPE".utf8.count)
    var isInside = false
    while let byte = rest.first {
      var last = rest.startIndex
      switch byte {
      case UInt8(ascii: ">") where !isInside: return last + 1 - text.startIndex
      case UInt8(ascii: "["): isInside = true
      case UInt8(ascii: "]"): isInside = false
      case UInt8(ascii: "\"") where !isInside, UInt8(ascii: "'") where !isInside:
        guard let end = rest.dropFirst().firstIndex(of: byte) else { return nil }
        last = end
      case UInt8(ascii: "<") where isInside:
        guard let end = try endOfDeclaration(rest) else { return nil }
        last = end
      default: break
      }
      rest = rest[(last + 1)...]
    }
    return nil
  }

  /// Returns the index of the last byte of a declaration, comment or instruction inside the brackets; `nil` when more of it is
  /// needed.
  private static func endOfDeclaration(_ text: ArraySlice<UInt8>) throws(FeedFailure) -> Int? {
    for (start, end) in [("<!--", "-->"), ("<?", "?>")] where text.begins(with: start) {
      let rest = text.dropFirst(start.utf8.count)
      return rest.place(of: end).map { $0 + end.utf8.count - 1 }
    }
    var quote: UInt8?
    for index in text.indices {
      let byte = text[index]
      if let open = quote {
        if byte == open { quote = nil }
      } else if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") {
        quote = byte
      } else if byte == UInt8(ascii: ">") {
        guard isHarmless(text[..<index]) else {
          throw refused(
            "defines entities of its own, which Tarn does not read; ask its publisher to leave them out")
        }
        return index
      }
    }
    return nil
  }

  /// Returns whether it defines no entity, or only refers to parts of the DTD elsewhere.
  private static func isHarmless(_ declaration: ArraySlice<UInt8>) -> Bool {
    guard declaration.begins(with: "<!ENTITY") else { return true }
    let words = declaration.split(whereSeparator: isBlank)
    guard words.count > 3, words[1].elementsEqual("%".utf8) else { return false }
    return words[3].elementsEqual("SYSTEM".utf8) || words[3].elementsEqual("PUBLIC".utf8)
  }
}
