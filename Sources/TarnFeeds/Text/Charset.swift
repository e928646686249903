import Glibc
import TarnCore

/// The character encoding of an XML document.
enum Charset: Equatable {
  /// UTF-8, where a byte that is not UTF-8 is read as windows-1252.
  case utf8
  case windows1252
  /// A name that iconv knows, and the bytes of its smallest unit.
  case named(String, unit: Int)

  /// The number of bytes in which the declaration of a document is looked for.
  private static let declarationRange = 2048

  /// Finds the encoding that a document tells; UTF-8 when its beginning belies it.
  init(head: [UInt8], contentType: String?, hadByteOrderMark: Bool) {
    self = Self.told(by: head, contentType: contentType, hadByteOrderMark: hadByteOrderMark)
    if isBelied(by: head) { self = .utf8 }
  }

  /// Returns the encoding by byte order mark, zeros between the first letters, Content-Type, and XML declaration, in this order;
  /// UTF-8 when none of them gives it.
  static func told(by head: [UInt8], contentType: String?, hadByteOrderMark: Bool) -> Charset {
    if hadByteOrderMark { return .utf8 }
    if let wide = wide(head) { return wide }
    if let told = contentType.flatMap({ parameter(of: $0) }).flatMap({ named($0) }) { return told }
    return declared(in: head.prefix(declarationRange)).flatMap { named($0) } ?? .utf8
  }

  /// Returns whether a text declared as one byte for each letter is UTF-8 throughout: in these character sets UTF-8 makes no words.
  private func isBelied(by head: [UInt8]) -> Bool {
    switch self {
    case .utf8: return false
    case .windows1252: return UTF8Source.length(ofUTF8: head) == head.count
    case .named(let name, let unit):
      let isOfLetters = ["iso-8859-", "iso8859-", "windows-125", "cp125", "koi8-"].contains {
        name.lowercased().hasPrefix($0)
      }
      return unit == 1 && isOfLetters && head.contains { $0 >= 0x80 }
        && UTF8Source.length(ofUTF8: head) == head.count
    }
  }

  /// Returns the length of the byte order mark of this encoding at the beginning, which is not part of the text.
  func markLength(_ head: [UInt8]) -> Int {
    guard case .named(let name, _) = self else { return 0 }
    let mark: [UInt8] =
      switch name {
      case "UTF-16LE": [0xFF, 0xFE]
      case "UTF-16BE": [0xFE, 0xFF]
      case "UTF-32LE": [0xFF, 0xFE, 0, 0]
      case "UTF-32BE": [0, 0, 0xFE, 0xFF]
      default: []
      }
    return !mark.isEmpty && head.starts(with: mark) ? mark.count : 0
  }

  private static func wide(_ head: [UInt8]) -> Charset? {
    let marks: [([UInt8], Charset)] = [
      ([0xFF, 0xFE, 0, 0], .named("UTF-32LE", unit: 4)), ([0, 0, 0xFE, 0xFF], .named("UTF-32BE", unit: 4)),
      ([0x3C, 0, 0, 0], .named("UTF-32LE", unit: 4)), ([0, 0, 0, 0x3C], .named("UTF-32BE", unit: 4)),
      ([0xFF, 0xFE], .named("UTF-16LE", unit: 2)), ([0xFE, 0xFF], .named("UTF-16BE", unit: 2)),
      ([0x3C, 0], .named("UTF-16LE", unit: 2)), ([0, 0x3C], .named("UTF-16BE", unit: 2)),
    ]
    return marks.first { head.starts(with: $0.0) }?.1
  }

  /// Returns the charset parameter of a Content-Type.
  private static func parameter(of contentType: String) -> String? {
    for part in contentType.utf8.split(separator: 0x3B).dropFirst() {
      let pair = part.split(separator: 0x3D, maxSplits: 1, omittingEmptySubsequences: false)
      guard pair.count == 2, lowercased(trimmed(Array(pair[0]))).elementsEqual("charset".utf8) else {
        continue
      }
      return String(decoding: trimmed(Array(pair[1])).filter { $0 != 0x22 && $0 != 0x27 }, as: UTF8.self)
    }
    return nil
  }

  /// Returns the encoding of the XML declaration.
  private static func declared(in head: ArraySlice<UInt8>) -> String? {
    guard let start = head.indices.first(where: { head[$0...].starts(with: "<?xml".utf8) }),
      let end = head[start...].firstIndex(of: UInt8(ascii: ">"))
    else { return nil }
    let tag = Array(head[(start + 1)..<end].map { $0 == 0x3F ? 0x20 : $0 })
    return HTMLTag.attribute("encoding", of: tag).map { String(decoding: trimmed($0), as: UTF8.self) }
  }

  /// - Returns: `nil` for an unknown name, and for a wide encoding, which the bytes did not confirm.
  private static func named(_ name: String) -> Charset? {
    let folded = String(decoding: lowercased(name.utf8), as: UTF8.self)
    switch folded {
    case "utf-8", "utf8": return .utf8
    // As in browsers (WHATWG Encoding 4.2), the names below mean their Windows supersets.
    case "windows-1252", "cp1252", "x-cp1252", "iso-8859-1", "iso8859-1", "iso_8859-1", "latin1", "l1",
      "us-ascii", "ascii":
      return .windows1252
    case "gb2312", "gbk", "x-gbk", "gb_2312-80": return .named("GB18030", unit: 1)
    case "shift_jis", "shift-jis", "sjis", "x-sjis": return .named("CP932", unit: 1)
    case "euc-kr", "ks_c_5601-1987": return .named("CP949", unit: 1)
    case "tis-620", "iso-8859-11": return .named("CP874", unit: 1)
    case "iso-8859-9": return .named("CP1254", unit: 1)
    default: break
    }
    let isPlain = folded.utf8.allSatisfy {
      $0.isASCIILetter || $0.isASCIIDigit || [0x2D, 0x5F, 0x2E, 0x3A].contains($0)
    }
    guard isPlain, (1...40).contains(folded.utf8.count), !folded.hasPrefix("utf"), !folded.hasPrefix("ucs"),
      !folded.hasPrefix("iso-10646"), let converter = Converter(from: folded)
    else { return nil }
    // An encoding that does not write ASCII as ASCII (EBCDIC, UTF-7) cannot have been declared in ASCII.
    return converter.convert(Array("<?x>&+-".utf8)[...], isEnd: true).output.elementsEqual("<?x>&+-".utf8)
      ? .named(folded, unit: 1) : nil
  }

  /// The characters of the bytes 0x80 to 0x9F in windows-1252; undefined ones stay control characters.
  private static let upper: [UInt32] = [
    0x20AC, 0x81, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160, 0x2039, 0x0152,
    0x8D, 0x017D, 0x8F, 0x90, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014, 0x02DC, 0x2122,
    0x0161, 0x203A, 0x0153, 0x9D, 0x017E, 0x0178,
  ]

  /// Returns the character of a byte in windows-1252, as UTF-8.
  static func windows1252(_ byte: UInt8) -> [UInt8] {
    let code = (0x80...0x9F).contains(byte) ? upper[Int(byte - 0x80)] : UInt32(byte)
    return Unicode.Scalar(code).map { Array(String($0).utf8) } ?? [byte]
  }
}

/// Converts one character set to UTF-8 with iconv(3). Used by one thread.
final class Converter {
  private static let replacement: [UInt8] = [0xEF, 0xBF, 0xBD]
  private let handle: iconv_t
  private let unit: Int

  /// - Returns: `nil` when the name is not known.
  init?(from name: String, unit: Int = 1) {
    guard let handle = iconv_open("UTF-8", name), handle != iconv_t(bitPattern: -1) else { return nil }
    self.handle = handle
    self.unit = unit
  }

  deinit {
    iconv_close(handle)
  }

  /// Converts complete units; a unit without a meaning becomes U+FFFD.
  ///
  /// - Returns: the text, the number of bytes taken, and whether a unit had no meaning.
  func convert(_ bytes: ArraySlice<UInt8>, isEnd: Bool) -> (output: [UInt8], taken: Int, hasReplaced: Bool) {
    var source = Array(bytes)
    var output: [UInt8] = []
    var hasReplaced = false
    // UTF-8 needs at most four bytes for a unit of any length; iconv asks again for the rest.
    var block = [UInt8](repeating: 0, count: 4 * source.count + 16)
    var taken = 0
    while taken < source.count {
      let (read, written, isStuck) = step(&source, from: taken, into: &block)
      output += block[..<written]
      taken += read
      guard isStuck else { continue }
      let error = errno
      if error == EINVAL, !isEnd { break }
      if error == E2BIG, read + written > 0 { continue }
      output += Self.replacement
      hasReplaced = true
      taken = min(taken + unit, source.count)
    }
    return (output, taken, hasReplaced)
  }

  private func step(_ source: inout [UInt8], from start: Int, into block: inout [UInt8]) -> (Int, Int, Bool) {
    var left = source.count - start
    var room = block.count
    let before = (left, room)
    let isStuck = source.withUnsafeMutableBytes { source in
      block.withUnsafeMutableBytes { block in
        var input = source.baseAddress?.advanced(by: start).assumingMemoryBound(to: CChar.self)
        var output = block.baseAddress?.assumingMemoryBound(to: CChar.self)
        return iconv(handle, &input, &left, &output, &room) == -1
      }
    }
    return (before.0 - left, before.1 - room, isStuck)
  }
}

/// A source that returns the text of a document as UTF-8.
final class UTF8Source: ByteSource {
  private let input: FeedInput
  private let charset: Charset
  private let converter: Converter?
  private let isStrict: Bool
  private var raw: [UInt8] = []
  private var block: [UInt8] = []
  private var output: [UInt8] = []
  private var position = 0
  private var isAtEnd = false
  private var markLength: Int

  /// - Parameter isStrict: true to refuse what has no meaning in its encoding, instead of replacing it with U+FFFD.
  init(_ input: FeedInput, contentType: String?, isStrict: Bool = false) throws(FeedFailure) {
    (self.input, self.isStrict) = (input, isStrict)
    let head = try input.peek()
    charset = Charset(head: head, contentType: contentType, hadByteOrderMark: input.hadByteOrderMark)
    markLength = charset.markLength(head)
    if case .named(let name, let unit) = charset {
      converter = Converter(from: name, unit: unit)
      guard converter != nil else {
        throw FeedFailure.malformed("the characters of this feed (\(name)) cannot be read on this machine")
      }
    } else {
      converter = nil
    }
  }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws(FeedFailure) -> Int {
    while position == output.count, !isAtEnd { try convert() }
    let count = min(buffer.count, output.count - position)
    buffer.copyBytes(from: output[position..<(position + count)])
    position += count
    return count
  }

  private func convert() throws(FeedFailure) {
    isAtEnd = try !input.read(into: &block)
    raw += block
    let dropped = min(markLength, raw.count)
    raw.removeFirst(dropped)
    markLength -= dropped
    position = 0
    let taken: Int
    switch charset {
    case .utf8: (output, taken) = Self.repaired(raw, isEnd: isAtEnd)
    case .windows1252:
      output = []
      for byte in raw { if byte < 0x80 { output.append(byte) } else { output += Charset.windows1252(byte) } }
      taken = raw.count
    case .named(let name, _):
      let text =
        converter?.convert(raw[...], isEnd: isAtEnd) ?? (output: [], taken: raw.count, hasReplaced: false)
      if text.hasReplaced, isStrict {
        throw FeedFailure.malformed("a letter of the feed has no meaning in its encoding, \(name)")
      }
      (output, taken) = (text.output, text.taken)
    }
    raw.removeFirst(taken)
  }

  /// Keeps UTF-8 as it is, and reads every other byte as windows-1252.
  static func repaired(_ bytes: [UInt8], isEnd: Bool) -> (output: [UInt8], taken: Int) {
    var output: [UInt8] = []
    output.reserveCapacity(bytes.count)
    var index = 0
    while index < bytes.count {
      let lead = bytes[index]
      let length = lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0
      let end = min(index + max(length, 1), bytes.count)
      let isCut = end - index < length
      if isCut, !isEnd, bytes[(index + 1)..<end].allSatisfy({ $0 & 0xC0 == 0x80 }) { break }
      if length > 0, !isCut, isSequence(bytes[index..<end]) {
        output += bytes[index..<end]
        index = end
      } else {
        output += Charset.windows1252(lead)
        index += 1
      }
    }
    return (output, index)
  }

  /// Returns the number of leading bytes that are UTF-8; a cut sequence at the end counts as complete.
  static func length(ofUTF8 bytes: [UInt8]) -> Int {
    var index = 0
    while index < bytes.count {
      let lead = bytes[index]
      let length = lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0
      let end = min(index + length, bytes.count)
      let isCut = length > 1 && end - index < length
      guard length > 0,
        isCut ? bytes[(index + 1)..<end].allSatisfy({ $0 & 0xC0 == 0x80 }) : isSequence(bytes[index..<end])
      else { return index }
      index = end
    }
    return index
  }

  /// Returns whether these are a lead byte and its continuation bytes: no overlong form, no surrogate, nothing beyond U+10FFFF.
  private static func isSequence(_ bytes: ArraySlice<UInt8>) -> Bool {
    guard let lead = bytes.first, bytes.dropFirst().allSatisfy({ $0 & 0xC0 == 0x80 }) else { return false }
    guard let second = bytes.dropFirst().first else { return lead < 0x80 }
    switch lead {
    case 0xE0: return second >= 0xA0
    case 0xED: return second < 0xA0
    case 0xF0: return second >= 0x90
    case 0xF4: return second < 0x90
    default: return true
    }
  }
}
