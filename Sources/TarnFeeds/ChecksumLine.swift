import TarnCore

/// One line of a checksum list.
enum ChecksumLine: Equatable {
  /// An empty line or a comment.
  case nothing
  /// The comment `# name: N bytes` of Fedora's lists.
  case size(name: [UInt8], UInt64)
  case file(name: [UInt8], Digest)
  /// A digest that Tarn cannot check.
  case unsupported(name: [UInt8])
  case malformed

  /// - Parameter untaggedIsUnknown: the list's own name says that a bare digest is none of SHA-2, SHA-1, MD5.
  init(_ line: ArraySlice<UInt8>, untaggedIsUnknown: Bool = false) {
    let line = line.drop { $0 == 0x20 || $0 == 0x09 }
    guard let first = line.first else {
      self = .nothing
      return
    }
    switch first {
    case UInt8(ascii: "#"): self = Self.comment(line.dropFirst())
    case UInt8(ascii: ";"): self = .nothing
    default:
      let isEscaped = first == UInt8(ascii: "\\")
      let text = isEscaped ? line.dropFirst() : line
      let parsed = Self.plain(text, untaggedIsUnknown) ?? Self.tagged(text) ?? .malformed
      self = line.contains(0) ? .malformed : isEscaped ? parsed.unescaped : parsed
    }
  }

  /// ` name: N bytes`; every other comment says nothing.
  private static func comment(_ text: ArraySlice<UInt8>) -> ChecksumLine {
    let text = trimmed(text)
    let unit = Array(" bytes".utf8)
    guard text.suffix(unit.count).elementsEqual(unit) else { return .nothing }
    let rest = text.dropLast(unit.count)
    guard let colon = rest.lastIndex(of: UInt8(ascii: ":")), colon > rest.startIndex,
      let size = UInt64(String(decoding: trimmed(rest[(colon + 1)...]), as: UTF8.self)), size <= Int64.max
    else { return .nothing }
    return .size(name: Array(rest[..<colon]), size)
  }

  /// `hex  name`, `hex *name`, `hex name`; nil when it does not begin so.
  private static func plain(_ text: ArraySlice<UInt8>, _ isUnknown: Bool) -> ChecksumLine? {
    let hex = text.prefix { Percent.hexValue($0) != nil }
    guard let algorithm = algorithms[hex.count], let digest = Digest(algorithm, hex: hex) else { return nil }
    var name = text[hex.endIndex...]
    guard name.first == 0x20 else { return nil }
    name = name.dropFirst()
    if name.first == 0x20 || name.first == UInt8(ascii: "*") { name = name.dropFirst() }
    guard !name.isEmpty else { return nil }
    return isUnknown ? .unsupported(name: Array(name)) : .file(name: Array(name), digest)
  }

  private static let algorithms: [Int: DigestAlgorithm] = [
    32: .md5, 40: .sha1, 56: .sha224, 64: .sha256, 96: .sha384, 128: .sha512,
  ]

  /// `ALG (name) = hex`, openssl's `ALG(name)= hex`, and Base64 for hexadecimal; nil when it is not so.
  private static func tagged(_ text: ArraySlice<UInt8>) -> ChecksumLine? {
    let tag = text.prefix {
      Percent.isLetter($0) || Percent.isDigit($0) || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "/")
    }
    let rest = text[tag.endIndex...].drop { $0 == 0x20 }
    guard let first = tag.first, Percent.isLetter(first), rest.first == UInt8(ascii: "("),
      let (name, value) = parted(rest.dropFirst()), !name.isEmpty
    else { return nil }
    let algorithm = tag.withUnsafeBytes { DigestAlgorithm(name: $0) }
    if value.allSatisfy({ Percent.hexValue($0) != nil }) {
      guard let algorithm else { return .unsupported(name: Array(name)) }
      if let digest = Digest(algorithm, hex: value) { return .file(name: Array(name), digest) }
    }
    guard let bytes = Base64.decode(value), (16...64).contains(bytes.count) else { return nil }
    guard let algorithm else { return .unsupported(name: Array(name)) }
    return Digest(algorithm, bytes: bytes).map { .file(name: Array(name), $0) }
  }

  /// `name) = value` at its last such place.
  private static func parted(_ text: ArraySlice<UInt8>) -> (name: ArraySlice<UInt8>, value: [UInt8])? {
    var rest = text
    while let close = rest.lastIndex(of: UInt8(ascii: ")")) {
      let behind = text[(close + 1)...].drop { $0 == 0x20 }
      if behind.first == UInt8(ascii: "=") {
        let value = trimmed(behind.dropFirst())
        if !value.isEmpty { return (text[..<close], value) }
      }
      rest = rest[..<close]
    }
    return nil
  }

  /// The name with `\\`, `\n` and `\r` undone; malformed for any other backslash.
  private var unescaped: ChecksumLine {
    switch self {
    case .file(let name, let digest): Self.unescape(name).map { .file(name: $0, digest) } ?? .malformed
    case .unsupported(let name): Self.unescape(name).map { .unsupported(name: $0) } ?? .malformed
    default: self
    }
  }

  private static func unescape(_ name: [UInt8]) -> [UInt8]? {
    var result: [UInt8] = []
    var bytes = name.makeIterator()
    while let byte = bytes.next() {
      guard byte == UInt8(ascii: "\\") else {
        result.append(byte)
        continue
      }
      switch bytes.next() {
      case UInt8(ascii: "\\"): result.append(byte)
      case UInt8(ascii: "n"): result.append(0x0A)
      case UInt8(ascii: "r"): result.append(0x0D)
      default: return nil
      }
    }
    return result
  }
}
