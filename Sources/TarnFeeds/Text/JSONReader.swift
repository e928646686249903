import TarnCore

/// A set of known keys of an object.
struct JSONKeys {
  private let names: [StaticString]

  init(_ names: StaticString...) {
    self.names = names
  }

  /// - Returns: the place of the key among the names, or the number of names when it is none of them.
  func place(of key: UnsafeRawBufferPointer) -> Int {
    var place = 0
    while place < names.count {
      let name = names[place]
      if name.utf8CodeUnitCount == key.count,
        holdSameBytes(UnsafeRawBufferPointer(start: name.utf8Start, count: key.count), key)
      {
        return place
      }
      place += 1
    }
    return place
  }
}

/// Reads JSON (RFC 8259) value by value, in bounded memory.
///
/// Strings are bytes: what is not UTF-8 stays as it is. The caller has to notice duplicate keys.
struct JSONReader {
  static let maximumDepth = 32
  static let maximumString = 1 << 20
  private static let maximumNumber = 64

  enum Kind { case object, array, string, number, literal }

  private let input: FeedInput?
  private var buffer: [UInt8]
  private var position = 0
  /// The number of bytes before the buffer, and the start of the current line in the document.
  private var passed = 0
  private var lineStart = 0
  private var line: Int
  private var depth = 0
  /// Whether the object or array of each level has had an element, one bit per level, the innermost lowest.
  private var hasElement: UInt64 = 0

  /// Makes a reader for a whole document.
  init(_ input: FeedInput) {
    self.input = input
    buffer = []
    line = 1
  }

  /// Makes a reader for bytes in memory, which are the given line of the document.
  init(_ bytes: [UInt8], line: Int = 1) {
    input = nil
    buffer = bytes
    self.line = line
  }

  /// Applies a rule to the keys of the object at the beginning of a document, and returns the first answer. False when the rule
  /// answers for none, when the head ends, or when it is not an object. The rule may read the value of the key.
  static func tells(
    _ head: [UInt8], _ rule: ([UInt8], inout JSONReader) throws(FeedFailure) -> Bool?
  ) -> Bool {
    guard head.first(where: { !isBlank($0) }) == UInt8(ascii: "{") else { return false }
    var reader = JSONReader(head)
    do throws(FeedFailure) {
      try reader.beginObject()
      while let key = try reader.nextKey() {
        if let answer = try rule(key, &reader) { return answer }
        try reader.skip()
      }
    } catch {
      return false
    }
    return false
  }

  // MARK: Values

  mutating func kind() throws(FeedFailure) -> Kind {
    switch try significant() {
    case UInt8(ascii: "{"): return .object
    case UInt8(ascii: "["): return .array
    case UInt8(ascii: "\""): return .string
    case UInt8(ascii: "-"), 0x30...0x39: return .number
    case UInt8(ascii: "t"), UInt8(ascii: "f"), UInt8(ascii: "n"): return .literal
    default: throw malformed("a value is expected here")
    }
  }

  mutating func beginObject() throws(FeedFailure) { try begin(UInt8(ascii: "{"), "an object") }
  mutating func beginArray() throws(FeedFailure) { try begin(UInt8(ascii: "["), "an array") }

  /// Returns the next key of the innermost object; `nil` at its end.
  mutating func nextKey() throws(FeedFailure) -> [UInt8]? {
    guard try nextElement(closing: UInt8(ascii: "}")) else { return nil }
    let key = try string()
    guard try significant() == UInt8(ascii: ":") else { throw malformed("':' is expected behind a key") }
    position += 1
    return key
  }

  /// Returns true when the innermost array has one more element, which is read next.
  mutating func nextElement() throws(FeedFailure) -> Bool {
    try nextElement(closing: UInt8(ascii: "]"))
  }

  /// Returns which of the given keys comes next in the innermost object: its place among them, or their number for another key.
  /// `nil` at the end of the object.
  mutating func nextKey(of keys: JSONKeys) throws(FeedFailure) -> Int? {
    try nextKey { keys.place(of: $0) }
  }

  /// Returns what `make` makes of the bytes of the next key in the innermost object; `nil` at its end.
  mutating func nextKey<Result>(as make: (UnsafeRawBufferPointer) -> Result) throws(FeedFailure) -> Result? {
    guard try nextElement(closing: UInt8(ascii: "}")) else { return nil }
    let result = try string(as: make)
    guard try significant() == UInt8(ascii: ":") else { throw malformed("':' is expected behind a key") }
    position += 1
    return result
  }

  /// Returns what `make` makes of the bytes of the next string.
  mutating func string<Result>(as make: (UnsafeRawBufferPointer) -> Result) throws(FeedFailure) -> Result {
    guard let plain = try plainString() else { return try anyString().withUnsafeBytes(make) }
    return buffer.withUnsafeBytes { make(UnsafeRawBufferPointer(rebasing: $0[plain])) }
  }

  mutating func string() throws(FeedFailure) -> [UInt8] {
    if let plain = try plainString() { return Array(buffer[plain]) }
    return try anyString()
  }

  /// Takes the next string and returns its place in the buffer. `nil`, without taking anything, when it has escapes or does not end
  /// in the buffer.
  private mutating func plainString() throws(FeedFailure) -> Range<Int>? {
    guard try significant() == UInt8(ascii: "\"") else { throw malformed("a string is expected here") }
    let start = position + 1
    let stop = endOfRun(from: start)
    guard stop < buffer.count, buffer[stop] == 0x22, stop - start <= Self.maximumString else { return nil }
    position = stop + 1
    return start..<stop
  }

  /// Returns the end of a run of literal bytes in a string: a quote, a backslash, a control character, or the end of the buffer.
  private func endOfRun(from start: Int) -> Int {
    buffer.withUnsafeBytes { bytes in
      var stop = start
      while stop + 8 <= bytes.count {
        let marks = Self.marks(of: bytes.loadUnaligned(fromByteOffset: stop, as: UInt64.self).littleEndian)
        if marks != 0 { return stop + marks.trailingZeroBitCount / 8 }
        stop += 8
      }
      while stop < bytes.count, bytes[stop] >= 0x20, bytes[stop] != 0x22, bytes[stop] != 0x5C { stop += 1 }
      return stop
    }
  }

  /// Returns the high bit of the first byte that ends a run, where the first byte is the lowest; higher bits mean nothing.
  private static func marks(of word: UInt64) -> UInt64 {
    let ones: UInt64 = 0x0101_0101_0101_0101
    let (quote, backslash) = (word ^ (ones &* 0x22), word ^ (ones &* 0x5C))
    let found =
      (quote &- ones) & ~quote | (backslash &- ones) & ~backslash | (word &- ones &* 0x20) & ~word
    return found & (ones << 7)
  }

  private mutating func anyString() throws(FeedFailure) -> [UInt8] {
    position += 1
    var result: [UInt8] = []
    while true {
      guard try hasByte() else { throw truncated() }
      // The run up to the next special byte is copied at once.
      let stop = endOfRun(from: position)
      result += buffer[position..<stop]
      position = stop
      guard result.count <= Self.maximumString else { throw malformed("a string is longer than 1 MiB") }
      guard stop < buffer.count else { continue }
      switch buffer[stop] {
      case 0x22:
        position += 1
        return result
      case 0x5C:
        position += 1
        try escape(into: &result)
      default: throw malformed("a control character in a string")
      }
    }
  }

  /// Returns the text of a number.
  mutating func number() throws(FeedFailure) -> [UInt8] {
    guard try kind() == .number else { throw malformed("a number is expected here") }
    var text: [UInt8] = []
    while try hasByte() {
      let byte = buffer[position]
      guard byte.isASCIIDigit || Self.isNumberMark(byte) else { break }
      text.append(byte)
      position += 1
      guard text.count <= Self.maximumNumber else { throw malformed("a number is too long") }
    }
    guard Self.isNumber(text) else { throw malformed("this is not a number") }
    return text
  }

  /// Returns a whole number of at least 0. `nil` for any other number and above 2^64-1, which is taken as well.
  mutating func wholeNumber() throws(FeedFailure) -> UInt64? {
    if let plain = try plainWhole() { return plain }
    return UInt64(String(decoding: try number(), as: UTF8.self))
  }

  /// Takes and returns the next number when it has at most 18 digits and ends in the buffer. `nil`, without taking anything, for
  /// any other.
  private mutating func plainWhole() throws(FeedFailure) -> UInt64? {
    guard (0x31...0x39).contains(try significant()) else { return nil }
    var (value, stop) = (UInt64(0), position)
    while stop < buffer.count, buffer[stop].isASCIIDigit, stop - position < 18 {
      value = value * 10 + UInt64(buffer[stop] & 15)
      stop += 1
    }
    guard stop < buffer.count, !buffer[stop].isASCIIDigit, !Self.isNumberMark(buffer[stop]) else {
      return nil
    }
    position = stop
    return value
  }

  /// Returns true or false; `nil` for null.
  mutating func literal() throws(FeedFailure) -> Bool? {
    let first = try significant()
    let word = first == UInt8(ascii: "t") ? "true" : first == UInt8(ascii: "f") ? "false" : "null"
    for expected in word.utf8 {
      guard try hasByte() else { throw truncated() }
      guard buffer[position] == expected else { throw malformed("a value is expected here") }
      position += 1
    }
    return word == "null" ? nil : word == "true"
  }

  mutating func skip() throws(FeedFailure) {
    switch try kind() {
    case .string: _ = try string()
    case .number: _ = try number()
    case .literal: _ = try literal()
    case .array:
      try beginArray()
      while try nextElement() { try skip() }
    case .object:
      try beginObject()
      while try nextKey() != nil { try skip() }
    }
  }

  /// - Throws: `feed-malformed` when anything but blanks is left.
  mutating func end() throws(FeedFailure) {
    while try hasByte() {
      guard isBlank(buffer[position]) else {
        throw malformed("something follows the end of the document")
      }
      step()
    }
  }

  /// Returns an error that points at this place.
  func malformed(_ message: String, code: String = "feed-malformed") -> FeedFailure {
    FeedFailure(code: code, message: message, line: line, column: passed + position - lineStart + 1)
  }

  // MARK: Parts

  private func truncated() -> FeedFailure {
    malformed("the document ends too early", code: "feed-truncated")
  }

  /// Replaces the buffer with the next block; false at the end.
  private mutating func fill() throws(FeedFailure) -> Bool {
    guard let input else { return false }
    passed += buffer.count
    position = 0
    buffer.removeAll(keepingCapacity: true)
    return try input.read(into: &buffer)
  }

  private mutating func hasByte() throws(FeedFailure) -> Bool {
    if position < buffer.count { return true }
    return try fill()
  }

  /// Returns the next byte that is not a blank, without taking it.
  private mutating func significant() throws(FeedFailure) -> UInt8 {
    if position < buffer.count, buffer[position] > 0x20 { return buffer[position] }
    return try significantBehindBlanks()
  }

  private mutating func significantBehindBlanks() throws(FeedFailure) -> UInt8 {
    while try hasByte() {
      switch buffer[position] {
      case 0x20, 0x09, 0x0D, 0x0A: step()
      case let byte: return byte
      }
    }
    throw truncated()
  }

  private mutating func step() {
    let isNewline = buffer[position] == 0x0A
    position += 1
    if isNewline {
      line += 1
      lineStart = passed + position
    }
  }

  private mutating func begin(_ byte: UInt8, _ what: String) throws(FeedFailure) {
    guard try significant() == byte else { throw malformed("\(what) is expected here") }
    guard depth < Self.maximumDepth else { throw malformed("nested deeper than \(Self.maximumDepth) levels") }
    position += 1
    depth += 1
    hasElement <<= 1
  }

  private mutating func nextElement(closing: UInt8) throws(FeedFailure) -> Bool {
    let byte = try significant()
    if byte == closing {
      position += 1
      depth -= 1
      hasElement >>= 1
      return false
    }
    if hasElement & 1 == 1 {
      guard byte == UInt8(ascii: ",") else { throw malformed("',' or the end is expected here") }
      position += 1
      guard try significant() != closing else { throw malformed("a value is expected behind ','") }
    }
    hasElement |= 1
    return true
  }

  private mutating func escape(into result: inout [UInt8]) throws(FeedFailure) {
    guard try hasByte() else { throw truncated() }
    let byte = buffer[position]
    position += 1
    switch byte {
    case 0x22, 0x5C, 0x2F: result.append(byte)
    case UInt8(ascii: "b"): result.append(0x08)
    case UInt8(ascii: "f"): result.append(0x0C)
    case UInt8(ascii: "n"): result.append(0x0A)
    case UInt8(ascii: "r"): result.append(0x0D)
    case UInt8(ascii: "t"): result.append(0x09)
    case UInt8(ascii: "u"): result += Array(String(try unicode()).utf8)
    default: throw malformed("an unknown escape in a string")
    }
  }

  /// Returns the character of a `\u` escape (RFC 8259, 7) or of a surrogate pair, after the first `u`.
  private mutating func unicode() throws(FeedFailure) -> Unicode.Scalar {
    var value = try hexDigits()
    if (0xD800..<0xDC00).contains(value) {
      for expected in [UInt8(ascii: "\\"), UInt8(ascii: "u")] {
        guard try hasByte() else { throw truncated() }
        guard buffer[position] == expected else { throw malformed("half a surrogate pair in a string") }
        position += 1
      }
      let low = try hexDigits()
      guard (0xDC00..<0xE000).contains(low) else { throw malformed("half a surrogate pair in a string") }
      value = 0x10000 + (value - 0xD800) << 10 + (low - 0xDC00)
    }
    guard let scalar = Unicode.Scalar(value) else { throw malformed("half a surrogate pair in a string") }
    return scalar
  }

  private mutating func hexDigits() throws(FeedFailure) -> UInt32 {
    var value: UInt32 = 0
    for _ in 0..<4 {
      guard try hasByte() else { throw truncated() }
      guard let digit = buffer[position].hexDigitValue else {
        throw malformed("four hexadecimal digits expected")
      }
      value = value << 4 | UInt32(digit)
      position += 1
    }
    return value
  }

  private static func isNumberMark(_ byte: UInt8) -> Bool {
    byte == 0x2B || byte == 0x2D || byte == 0x2E || byte | 0x20 == UInt8(ascii: "e")
  }

  /// Checks the grammar of RFC 8259 6.
  private static func isNumber(_ text: [UInt8]) -> Bool {
    var rest = text[...]
    func digits() -> Int {
      let run = rest.prefix { $0.isASCIIDigit }
      rest = rest[run.endIndex...]
      return run.count
    }
    if rest.first == 0x2D { rest = rest.dropFirst() }
    let isZero = rest.first == 0x30
    let whole = digits()
    guard whole > 0, !isZero || whole == 1 else { return false }
    if rest.first == 0x2E {
      rest = rest.dropFirst()
      guard digits() > 0 else { return false }
    }
    if let mark = rest.first, mark | 0x20 == UInt8(ascii: "e") {
      rest = rest.dropFirst()
      if let sign = rest.first, sign == 0x2B || sign == 0x2D { rest = rest.dropFirst() }
      guard digits() > 0 else { return false }
    }
    return rest.isEmpty
  }
}
