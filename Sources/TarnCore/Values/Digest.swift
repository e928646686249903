/// The digest algorithms that Tarn can check. The raw value is stored in the ledger; never renumber.
package enum DigestAlgorithm: UInt8, Sendable, CaseIterable, Comparable {
  case md5 = 1
  case sha1 = 2
  case sha224 = 3
  case sha256 = 4
  case sha384 = 5
  case sha512 = 6

  /// The length of a digest in bytes.
  package var length: Int {
    switch self {
    case .md5: 16
    case .sha1: 20
    case .sha224: 28
    case .sha256: 32
    case .sha384: 48
    case .sha512: 64
    }
  }

  /// The name of the IANA registry "Hash Function Textual Names" (RFC 5854 4.2.4).
  package var name: String {
    switch self {
    case .md5: "md5"
    case .sha1: "sha-1"
    case .sha224: "sha-224"
    case .sha256: "sha-256"
    case .sha384: "sha-384"
    case .sha512: "sha-512"
    }
  }

  /// Reads the spellings that occur in practice: `sha-256`, `SHA256`, `SHA2-256`, ` sha256 `.
  package init?(name: String) {
    let isPlain = name.utf8.allSatisfy { $0 < 0x80 }
    let folded = isPlain ? Self.folded(name.utf8) : name.lowercased().filter { $0.isLetter || $0.isNumber }
    switch folded {
    case "md5": self = .md5
    case "sha1", "sha": self = .sha1
    case "sha224", "sha2224": self = .sha224
    case "sha256", "sha2256": self = .sha256
    case "sha384", "sha2384": self = .sha384
    case "sha512", "sha2512": self = .sha512
    default: return nil
    }
  }

  /// Reads a name from bytes. The most frequent one is recognised without making it a string.
  package init?(name: UnsafeRawBufferPointer) {
    let usual: StaticString = "sha-256"
    if holdSameBytes(name, UnsafeRawBufferPointer(start: usual.utf8Start, count: usual.utf8CodeUnitCount)) {
      self = .sha256
    } else {
      self.init(name: String(decoding: name, as: UTF8.self))
    }
  }

  /// Returns the ASCII letters in lower case and the digits, and nothing else.
  private static func folded(_ name: String.UTF8View) -> String {
    var kept: [UInt8] = []
    for byte in name {
      let folded = (0x41...0x5A).contains(byte) ? byte | 0x20 : byte
      if (0x61...0x7A).contains(folded) || folded.isASCIIDigit { kept.append(folded) }
    }
    return String(decoding: kept, as: UTF8.self)
  }

  /// Orders by strength: the strongest digest of an entry decides.
  package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// A digest of a known algorithm, always of that algorithm's length.
package struct Digest: Hashable, Sendable {
  package let algorithm: DigestAlgorithm
  package let bytes: [UInt8]

  package static func == (left: Digest, right: Digest) -> Bool {
    left.algorithm == right.algorithm
      && left.bytes.withUnsafeBytes { left in right.bytes.withUnsafeBytes { holdSameBytes(left, $0) } }
  }

  package func hash(into hasher: inout Swift.Hasher) {
    hasher.combine(algorithm)
    bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
  }

  /// Reads the form that programs use, `sha256:HEX`.
  ///
  /// - Returns: nil for anything else.
  package init?(labelled text: String) {
    let parts = text.split(separator: ":", maxSplits: 1)
    guard parts.count == 2, let algorithm = DigestAlgorithm(name: String(parts[0])) else { return nil }
    self.init(algorithm, hex: Array(parts[1].utf8))
  }

  /// The digest in the form `sha256:HEX`.
  package var labelled: String { "\(algorithm.name.filter { $0 != "-" }):\(hex)" }

  /// - Returns: `nil` when the length is not that of the algorithm.
  package init?(_ algorithm: DigestAlgorithm, bytes: [UInt8]) {
    guard bytes.count == algorithm.length else { return nil }
    self.algorithm = algorithm
    self.bytes = bytes
  }

  /// Cuts the bytes, or pads them with zeros, to the algorithm's length.
  package init(_ algorithm: DigestAlgorithm, padding bytes: [UInt8]) {
    self.algorithm = algorithm
    let kept = bytes.prefix(algorithm.length)
    self.bytes = kept + [UInt8](repeating: 0, count: algorithm.length - kept.count)
  }

  /// Reads hexadecimal digits of either case, nothing else.
  package init?(_ algorithm: DigestAlgorithm, hex: some Collection<UInt8>) {
    self.init(algorithm, hex: Array(hex))
  }

  /// Reads hexadecimal digits of either case, nothing else.
  package init?(_ algorithm: DigestAlgorithm, hex: [UInt8]) {
    let digest = hex.withUnsafeBytes { Self(algorithm, hex: $0) }
    guard let digest else { return nil }
    self = digest
  }

  /// Reads hexadecimal digits of either case, nothing else.
  package init?(_ algorithm: DigestAlgorithm, hex: UnsafeRawBufferPointer) {
    let length = algorithm.length
    guard hex.count == length * 2 else { return nil }
    let bytes = withUnsafeTemporaryAllocation(byteCount: length, alignment: 1) { bytes -> [UInt8]? in
      var all: UInt8 = 0
      Self.hexValues.withUnsafeBufferPointer { values in
        var index = 0
        while index < length {
          let (high, low) = (values[Int(hex[2 * index])], values[Int(hex[2 * index + 1])])
          all |= high | low
          bytes[index] = high << 4 | low & 15
          index += 1
        }
      }
      return all < 16 ? Array(UnsafeRawBufferPointer(bytes)) : nil
    }
    guard let bytes else { return nil }
    self.algorithm = algorithm
    self.bytes = bytes
  }

  /// Lower-case hexadecimal digits.
  package var hex: String {
    let digits = Array("0123456789abcdef".utf8)
    var text: [UInt8] = []
    text.reserveCapacity(bytes.count * 2)
    for byte in bytes {
      text.append(digits[Int(byte >> 4)])
      text.append(digits[Int(byte & 15)])
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// The values by byte; 255 for a byte that is not a digit.
  private static let hexValues = (0..<256).map { UInt8($0).hexDigitValue ?? .max }
}

extension Digest: CustomStringConvertible {
  package var description: String { "\(algorithm.name):\(hex)" }
}
