/// Writes values one after another. Numbers are LEB128 (seven bits a byte, the lowest first), and byte strings follow their length.
struct ByteWriter: ColumnSink {
  private(set) var bytes: [UInt8] = []

  mutating func removeAll() {
    bytes.removeAll(keepingCapacity: true)
  }

  mutating func put(byte: UInt8) {
    bytes.append(byte)
  }

  mutating func put(_ number: UInt64) {
    var rest = number
    while rest >= 0x80 {
      bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    bytes.append(UInt8(truncatingIfNeeded: rest))
  }

  /// Uses zigzag encoding: numbers near zero are short, whatever their sign.
  mutating func put(_ number: Int64) {
    put(UInt64(bitPattern: number << 1 ^ number >> 63))
  }

  mutating func put(_ string: [UInt8]) {
    put(UInt64(string.count))
    bytes.append(contentsOf: string)
  }

  mutating func put(_ text: String) {
    put(UInt64(text.utf8.count))
    bytes.append(contentsOf: text.utf8)
  }

  mutating func put(_ flag: Bool) { put(byte: flag ? 1 : 0) }

  mutating func put(optional number: UInt64?) {
    put(number != nil)
    if let number { put(number) }
  }

  mutating func put(optional bytes: [UInt8]?) {
    put(bytes != nil)
    if let bytes { put(bytes) }
  }

  mutating func put(optional text: String?) {
    put(text != nil)
    if let text { put(text) }
  }

  mutating func put<Element>(list: [Element], _ body: (inout ByteWriter, Element) -> Void) {
    put(UInt64(list.count))
    for element in list { body(&self, element) }
  }
}

/// The error for bytes that no `ByteWriter` wrote, or that are not this value's.
struct DamagedBytes: Error {}

/// Reads the values that a `ByteWriter` wrote. Any other bytes throw. None trap, and none take more memory than a small multiple of
/// their own size.
struct ByteReader: ColumnSource {
  private let bytes: [UInt8]
  private var position = 0

  init(_ bytes: [UInt8]) {
    self.bytes = bytes
  }

  mutating func byte() throws(DamagedBytes) -> UInt8 {
    guard position < bytes.count else { throw DamagedBytes() }
    defer { position += 1 }
    return bytes[position]
  }

  mutating func unsigned() throws(DamagedBytes) -> UInt64 {
    var number: UInt64 = 0
    var shift: UInt64 = 0
    while true {
      let next = try byte()
      let bits = UInt64(next & 0x7F)
      guard shift < 63 || (shift == 63 && bits <= 1) else { throw DamagedBytes() }
      number |= bits << shift
      if next < 0x80 { return number }
      shift += 7
    }
  }

  mutating func signed() throws(DamagedBytes) -> Int64 {
    let number = try unsigned()
    return Int64(bitPattern: number >> 1) ^ -Int64(bitPattern: number & 1)
  }

  mutating func string() throws(DamagedBytes) -> [UInt8] {
    Array(try slice())
  }

  mutating func text() throws(DamagedBytes) -> String {
    let slice = try slice()
    guard let text = slice.withUnsafeBufferPointer(String.init(checked:)) else { throw DamagedBytes() }
    return text
  }

  mutating func flag() throws(DamagedBytes) -> Bool {
    switch try byte() {
    case 0: false
    case 1: true
    default: throw DamagedBytes()
    }
  }

  mutating func optionalUnsigned() throws(DamagedBytes) -> UInt64? { try flag() ? try unsigned() : nil }

  mutating func optionalString() throws(DamagedBytes) -> [UInt8]? { try flag() ? try string() : nil }

  mutating func optionalText() throws(DamagedBytes) -> String? { try flag() ? try text() : nil }

  func impossible() -> DamagedBytes { DamagedBytes() }

  /// Reads a list.
  ///
  /// - Parameter body: reads one element, which takes at least one byte.
  mutating func list<Element>(
    _ body: (inout ByteReader) throws(DamagedBytes) -> Element
  ) throws(DamagedBytes) -> [Element] {
    let count = try length()
    var list: [Element] = []
    list.reserveCapacity(count)
    for _ in 0..<count { list.append(try body(&self)) }
    return list
  }

  var isAtEnd: Bool { position == bytes.count }

  /// Checks that all bytes were read.
  ///
  /// - Throws: when bytes are left over.
  func end() throws(DamagedBytes) {
    guard position == bytes.count else { throw DamagedBytes() }
  }

  private mutating func slice() throws(DamagedBytes) -> ArraySlice<UInt8> {
    let count = try length()
    defer { position += count }
    return bytes[position..<(position + count)]
  }

  /// Reads a count of items that take at least one byte each. It is never more than the bytes that are left.
  private mutating func length() throws(DamagedBytes) -> Int {
    guard let count = Int(exactly: try unsigned()), count <= bytes.count - position else {
      throw DamagedBytes()
    }
    return count
  }
}

extension String {
  /// Decodes UTF-8; `nil` when it is invalid. Most texts are ASCII, for which the general way takes ten times as long.
  init?(checked bytes: UnsafeBufferPointer<UInt8>) {
    var all: UInt8 = 0
    for byte in bytes { all |= byte }
    if all < 0x80 {
      self.init(decoding: bytes, as: UTF8.self)
    } else {
      self.init(validating: bytes, as: UTF8.self)
    }
  }
}
