import CXML
import TarnCore

/// Turns the texts of feeds into plain text for people.
enum PlainText {
  /// The most bytes of a character reference with its delimiters.
  static let maximumReference = 40

  /// Returns one line: each run of blanks, including no-break spaces, becomes one space, and control characters are left out.
  static func line(_ text: [UInt8]) -> [UInt8] {
    var result: [UInt8] = []
    result.reserveCapacity(text.count)
    var index = 0
    var isGap = false
    while index < text.count {
      let byte = text[index]
      let isNoBreak = byte == 0xC2 && index + 1 < text.count && text[index + 1] == 0xA0
      if isBlank(byte) || isNoBreak {
        isGap = true
      } else if byte >= 0x20 && byte != 0x7F {
        if isGap, !result.isEmpty { result.append(0x20) }
        isGap = false
        result.append(byte)
      }
      index += isNoBreak ? 2 : 1
    }
    return result
  }

  /// Decodes entities once; anything else stays as it is.
  static func decoded(_ text: [UInt8]) -> [UInt8] {
    text.contains(UInt8(ascii: "&")) ? decoded(text[...], by: character(named:)) : text
  }

  /// Decodes references once by a rule of the caller's, which gets the text between `&` and `;`. What it does not know stays.
  static func decoded(_ text: ArraySlice<UInt8>, by character: (ArraySlice<UInt8>) -> [UInt8]?) -> [UInt8] {
    var result: [UInt8] = []
    result.reserveCapacity(text.count)
    var rest = text
    while let byte = rest.first {
      if byte == UInt8(ascii: "&"),
        let end = rest.prefix(maximumReference).firstIndex(of: UInt8(ascii: ";")),
        let character = character(rest[(rest.startIndex + 1)..<end])
      {
        result += character
        rest = rest[(end + 1)...]
      } else {
        result.append(byte)
        rest = rest.dropFirst()
      }
    }
    return result
  }

  /// Removes the tags and comments of HTML, and decodes entities.
  static func ofHTML(_ text: [UInt8]) -> [UInt8] {
    var result: [UInt8] = []
    var rest = text[...]
    while let byte = rest.first {
      let next = rest.dropFirst().first ?? 0x20
      let isTag = next.isASCIILetter || next == UInt8(ascii: "/") || next == UInt8(ascii: "!")
      guard byte == UInt8(ascii: "<"), isTag else {
        result.append(byte)
        rest = rest.dropFirst()
        continue
      }
      let tag = tagLength(rest)
      if breaksLine(rest[rest.startIndex..<tag]) { result.append(0x20) }
      rest = rest[tag...]
    }
    return decoded(result)
  }

  /// Removes the HTML tags and entities that many feeds have in texts declared as plain. Other words in angle brackets stay.
  static func cleaned(_ text: [UInt8]) -> [UInt8] {
    guard text.contains(UInt8(ascii: "<")) else { return decoded(text) }
    var result: [UInt8] = []
    var rest = text[...]
    while let byte = rest.first {
      if byte == UInt8(ascii: "<"), let end = endOfHTMLTag(rest) {
        if breaksLine(rest[..<end]) { result.append(0x20) }
        rest = rest[end...]
      } else {
        result.append(byte)
        rest = rest.dropFirst()
      }
    }
    return decoded(result)
  }

  /// - Parameter name: the name in lower case.
  static func isHTML(_ name: some Collection<UInt8>) -> Bool {
    tags.contains(String(decoding: name, as: UTF8.self))
  }

  private static let tags: Set<String> = [
    "a", "abbr", "b", "big", "blockquote", "br", "center", "cite", "code", "del", "div", "em", "font", "h1",
    "h2",
    "h3", "h4", "h5", "h6", "hr", "i", "img", "ins", "kbd", "li", "mark", "ol", "p", "pre", "q", "s", "small",
    "span", "strike", "strong", "sub", "sup", "table", "tbody", "td", "th", "thead", "tr", "tt", "u", "ul",
    "var",
    "wbr",
  ]

  /// Returns the index behind an HTML tag, with its attributes, that begins the text; `nil` where none does.
  private static func endOfHTMLTag(_ text: ArraySlice<UInt8>) -> Int? {
    let isEnd = text.dropFirst().first == UInt8(ascii: "/")
    let name = text.dropFirst(isEnd ? 2 : 1).prefix { $0.isASCIILetter || $0.isASCIIDigit }
    let inner = text[name.endIndex...].prefix { $0 != UInt8(ascii: "<") && $0 != UInt8(ascii: ">") }
    let end = inner.endIndex
    guard isHTML(lowercased(name)), end < text.endIndex, text[end] == UInt8(ascii: ">") else { return nil }
    let inside = trimmed(inner)
    let isEmpty = inside.isEmpty || inside.elementsEqual([0x2F])
    return isEmpty || (isBlank(text[name.endIndex]) && inside.contains(UInt8(ascii: "="))) ? end + 1 : nil
  }

  /// Returns the character of an HTML entity or of a number, as UTF-8; `nil` when there is none.
  static func character(named name: ArraySlice<UInt8>) -> [UInt8]? {
    if name.first == UInt8(ascii: "#") { return character(numbered: name.dropFirst()) }
    guard !name.isEmpty, name.count < maximumReference,
      name.allSatisfy({ $0.isASCIILetter || $0.isASCIIDigit })
    else { return nil }
    if name.elementsEqual("apos".utf8) { return [0x27] }
    let description = (Array(name) + [0]).withUnsafeBufferPointer { htmlEntityLookup($0.baseAddress) }
    return description.flatMap { Unicode.Scalar($0.pointee.value) }.map { Array(String($0).utf8) }
  }

  /// Reads `8217` or `x2019`; the numbers 128 to 159 have the meaning that browsers give them. Empty for a character that no text
  /// may hold.
  static func character(numbered digits: ArraySlice<UInt8>) -> [UInt8]? {
    let isHex = digits.first.map { $0 | 0x20 == UInt8(ascii: "x") } ?? false
    let digits = isHex ? digits.dropFirst() : digits
    guard (1...8).contains(digits.count),
      digits.allSatisfy({ isHex ? $0.hexDigitValue != nil : $0.isASCIIDigit }),
      let value = UInt32(String(decoding: digits, as: UTF8.self), radix: isHex ? 16 : 10)
    else { return nil }
    if (0x80...0x9F).contains(value) { return Charset.windows1252(UInt8(value)) }
    guard let scalar = Unicode.Scalar(value), isText(value) else { return [] }
    return Array(String(scalar).utf8)
  }

  /// Returns whether XML allows the character (XML 1.0 2.2).
  private static func isText(_ value: UInt32) -> Bool {
    value >= 0x20 ? value != 0xFFFE && value != 0xFFFF : value == 0x09 || value == 0x0A || value == 0x0D
  }

  /// Returns the index behind a tag or comment that begins the text.
  private static func tagLength(_ text: ArraySlice<UInt8>) -> Int {
    if text.begins(with: "<!--") {
      var rest = text.dropFirst(4)
      while let dash = rest.firstIndex(of: UInt8(ascii: "-")) {
        if rest[dash...].begins(with: "-->") { return dash + 3 }
        rest = rest[(dash + 1)...]
      }
      return text.endIndex
    }
    return text.firstIndex(of: UInt8(ascii: ">")).map { $0 + 1 } ?? text.endIndex
  }

  private static func breaksLine(_ tag: ArraySlice<UInt8>) -> Bool {
    let name = lowercased(tag.dropFirst().drop { $0 == UInt8(ascii: "/") }.prefix { $0.isASCIILetter })
    return ["br", "p", "div", "li", "hr", "tr", "td"].contains { name.elementsEqual($0.utf8) }
  }
}
