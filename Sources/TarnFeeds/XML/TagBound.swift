import TarnCore

/// Refuses tags that no feed has, before libxml2 reads them: its work for a tag grows with the square of the attributes.
struct TagBound {
  static let mostAttributes = 1000
  static let longestTag = 4 << 20

  private enum State {
    case text
    /// Behind `<`.
    case open
    /// Behind `<!`.
    case mark
    case comment, cdata, instruction
    case tag
    case quoted(UInt8)
  }

  private var state = State.text
  /// The last bytes behind `<!`, or inside a comment or the like.
  private var recent: UInt64 = 0
  private var attributes = 0
  private var length = 0

  /// Follows the next bytes of the document.
  mutating func follow(_ bytes: UnsafeRawBufferPointer) throws(FeedFailure) {
    for byte in bytes {
      // libxml2 would read this as UTF-16 or UTF-32, where `<` is more than one byte.
      guard byte != 0 else { throw FeedFailure.malformed("the XML has a zero byte") }
      switch state {
      case .text: if byte == UInt8(ascii: "<") { state = .open }
      case .tag: try inTag(byte)
      case .quoted(let quote):
        try grow()
        // No value holds this character: the quotes are odd.
        if byte == quote { state = .tag } else if byte == UInt8(ascii: "<") { state = .open }
      default: aside(byte)
      }
    }
  }

  private mutating func inTag(_ byte: UInt8) throws(FeedFailure) {
    switch byte {
    case UInt8(ascii: ">"): state = .text
    case UInt8(ascii: "<"): state = .open
    case UInt8(ascii: "\""), UInt8(ascii: "'"): state = .quoted(byte)
    case UInt8(ascii: "="):
      attributes += 1
      guard attributes <= Self.mostAttributes else {
        throw FeedFailure.malformed("a tag has more than \(Self.mostAttributes) attributes")
      }
    default: break
    }
    try grow()
  }

  private mutating func grow() throws(FeedFailure) {
    length += 1
    guard length <= Self.longestTag else {
      throw FeedFailure.malformed("a tag is longer than \(Self.longestTag >> 20) MiB")
    }
  }

  /// Finds the ends of what is neither text nor tag.
  private mutating func aside(_ byte: UInt8) {
    recent = recent << 8 | UInt64(byte)
    switch state {
    case .open:
      (attributes, length, recent) = (0, 0, 0)
      switch byte {
      case UInt8(ascii: "!"): state = .mark
      case UInt8(ascii: "?"): state = .instruction
      case UInt8(ascii: "<"): state = .open
      default: state = byte.isASCIILetter || byte >= 0x80 || byte == 0x5F || byte == 0x3A ? .tag : .text
      }
    // These are `--` and `[CDATA[`. Where they are cut short, libxml2 goes on as in text.
    case .mark where recent == 0x2D2D: (state, recent) = (.comment, 0)
    case .mark where recent == 0x5B_4344_4154_415B: (state, recent) = (.cdata, 0)
    case .mark: if byte == UInt8(ascii: "<") { state = .open }
    // The ends are `-->`, `]]>` and `?>`.
    case .comment where recent & 0xFF_FFFF == 0x2D_2D3E: state = .text
    case .cdata where recent & 0xFF_FFFF == 0x5D_5D3E: state = .text
    case .instruction where recent & 0xFFFF == 0x3F3E: state = .text
    default: break
    }
  }
}
