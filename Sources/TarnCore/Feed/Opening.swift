/// What the first bytes of a body show, whatever it is called.
struct Opening {
  /// The bytes without what may precede a document, and without the zeros of UTF-16.
  private let text: [UInt8]
  /// The bytes as they came.
  private let raw: [UInt8]
  /// True when there is no byte that texts do not have.
  let isText: Bool

  init(_ bytes: some Collection<UInt8>) {
    var bytes = Array(bytes.prefix(ContentDoubt.opening))
    raw = bytes
    if bytes.starts(with: [0xFF, 0xFE]) || bytes.starts(with: [0xFE, 0xFF]) {
      bytes = bytes.dropFirst(2).filter { $0 != 0 }
    } else if Self.isWide(bytes) {
      bytes = bytes.filter { $0 != 0 }
    } else if bytes.starts(with: [0xEF, 0xBB, 0xBF]) {
      bytes.removeFirst(3)
    }
    text = Array(bytes.drop { Self.isBlank($0) })
    isText = Self.isText(bytes)
  }

  /// Recognises UTF-16 without a byte order mark: every other byte is zero, as for ASCII text.
  private static func isWide(_ bytes: [UInt8]) -> Bool {
    guard bytes.count >= 8 else { return false }
    return [0, 1].contains { zero in
      bytes.indices.prefix(64).allSatisfy { (bytes[$0] == 0) == ($0 % 2 == zero) }
    }
  }

  /// True for `<` and a byte that may follow it in a document.
  var isMarkup: Bool {
    // Other bytes may begin this way as well.
    guard isText, text.first == UInt8(ascii: "<"), text.count > 1 else { return false }
    return text[1] == UInt8(ascii: "!") || text[1] == UInt8(ascii: "?")
      || (0x61...0x7A).contains(text[1] | 0x20)
  }

  /// Returns whether this is an SVG drawing that the server declares as one, whatever its name.
  func isDrawing(_ contentType: String?) -> Bool {
    isMarkup && !isPage && ContentDoubt.mediaType(contentType) == "image/svg+xml"
  }

  /// True for `<Error>`, the answer of stores of the S3 kind.
  var isErrorDocument: Bool { start.hasPrefix("<error") }

  /// True for a Git LFS pointer, which stands in a repository for a file that is kept elsewhere.
  var isPointer: Bool { text.starts(with: "version https://git-lfs".utf8) }

  /// The first words behind comments, in lower case.
  private var start: String {
    var rest = text[...]
    while let end = Self.commentEnd(of: rest) { rest = rest[end...].drop { Self.isBlank($0) } }
    return String(decoding: rest.prefix(16), as: UTF8.self).lowercased()
  }

  /// True for a web page, by its first words; comments may precede them.
  var isPage: Bool {
    guard isText else { return false }
    let start = start
    return start.hasPrefix("<!doctype html")
      || Self.pageElements.contains { name in
        guard start.hasPrefix("<\(name)") else { return false }
        // `<metadata>` is not one of these.
        return !(start.dropFirst(name.utf8.count + 1).first?.isLetter ?? false)
      }
  }

  /// True for MIDI notes, of which a few bytes may be the whole file.
  var isMIDI: Bool { text.starts(with: "MThd".utf8) }

  var kind: FileSignature.Kind? { FileSignature.kind(of: raw) ?? FileSignature.kind(of: text) }

  /// True for a PDF or PostScript document, which other bytes may precede.
  var isDocument: Bool { FileSignature.mayBe(.document, raw) }

  /// True for the line that names the program to run a script.
  var isScript: Bool { text.starts(with: "#!".utf8) }

  /// True for bytes in letters, by the first line that is no comment. It is a record of Intel or Motorola, or an address of TI-TXT.
  /// Or it is one of several settings of a boot loader, or of several lines of Base64: an error of a server has one such line.
  var isRecords: Bool {
    let lines = text.split { $0 == 0x0A || $0 == 0x0D }
    guard let line = lines.first(where: { $0.first != UInt8(ascii: "#") }) else { return false }
    let rest = line.dropFirst()
    func isHex(_ bytes: ArraySlice<UInt8>) -> Bool { bytes.allSatisfy { $0.hexDigitValue != nil } }
    if line.first == UInt8(ascii: "@"), !rest.isEmpty, isHex(rest) { return true }
    let isOfRecords = line.first == UInt8(ascii: ":") || line.first == UInt8(ascii: "S")
    if isOfRecords, rest.count >= 8, isHex(rest.prefix(8)) { return true }
    // A line of Base64 that ends with `=` looks like a setting, too.
    if Self.isSetting(line), lines.count(where: Self.isSetting) > 1 { return true }
    return Self.isBase64(line) && lines.count(where: Self.isBase64) > 1
  }

  /// Returns whether a line is `name=value`, and no form such as `error=x&description=y`.
  private static func isSetting(_ line: ArraySlice<UInt8>) -> Bool {
    func isNamed(_ piece: ArraySlice<UInt8>) -> Bool {
      let name = piece.prefix { $0.isASCIIDigit || $0.isASCIILetter || $0 == UInt8(ascii: "_") }
      return !name.isEmpty && piece.dropFirst(name.count).first == UInt8(ascii: "=")
    }
    return isNamed(line) && !line.split(separator: UInt8(ascii: "&")).dropFirst().contains(where: isNamed)
  }

  /// Returns whether a line is one long word with a digit.
  private static func isBase64(_ line: ArraySlice<UInt8>) -> Bool {
    line.count >= 24 && line.contains(where: \.isASCIIDigit)
      && line.allSatisfy { $0.isASCIIDigit || $0.isASCIILetter || "+/=".utf8.contains($0) }
  }

  /// True for kinds of files whose beginning may look like a text.
  var hasMagic: Bool { Self.magics.contains { text.starts(with: $0.utf8) } }

  /// Heads that pass for texts. `FileSignature` tells the kinds of those that are no other file's by chance.
  private static let magics = [
    "%PDF-", "%!PS", "GIF8", "PK\u{3}\u{4}", "ID3", "RIFF", "OggS", "fLaC", "MThd", "!<arch>",
    // FITS, Y4M, Radiance, xfig and VirtualBox have heads of text.
    "SIMPLE  =", "YUV4MPEG2", "#?RADIANCE", "#?RGBE", "#FIG ", "<<< ", "#!AMR", "#!SILK",
  ]

  /// True when the text contains a digest in hexadecimal.
  var hasDigest: Bool {
    var length = 0
    for byte in text {
      length = byte.hexDigitValue != nil ? length + 1 : 0
      if length == 32 { return true }
    }
    return false
  }

  /// The elements that pages begin with, also pages that a program writes without a head.
  private static let pageElements = [
    "html", "head", "body", "title", "meta", "link", "style", "script", "base", "center", "h1", "h2", "h3",
    "p", "b", "br", "hr", "div", "font", "form", "table", "frameset", "iframe", "a href", "noscript",
  ]

  /// Returns the index behind the comment, or the XML declaration, that stands first; `nil` where there is none.
  private static func commentEnd(of text: ArraySlice<UInt8>) -> Int? {
    for (start, end) in [("<!--", "-->"), ("<?xml", "?>")] where text.starts(with: start.utf8) {
      let end = Array(end.utf8)
      return text.indices.first { text[$0...].starts(with: end) }.map { $0 + end.count }
    }
    return nil
  }

  /// True for a JSON object or list.
  var isJSON: Bool {
    guard isText else { return false }
    let solid = text.lazy.filter { !Self.isBlank($0) }.prefix(2)
    return ["{\"", "{}", "[{", "[\"", "[]", "[["].contains { solid.elementsEqual($0.utf8) }
  }

  private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }

  /// Returns whether there are no control characters: UTF-8, or an eight-bit code page. A short message in ASCII may have one.
  private static func isText(_ bytes: [UInt8]) -> Bool {
    let controls = bytes.lazy.filter { !($0 >= 0x20 && $0 != 0x7F || isBlank($0) || $0 == 0x1B) }.prefix(2)
      .count
    if controls == 0 { return true }
    return controls == 1 && (8..<ContentDoubt.opening).contains(bytes.count) && bytes.allSatisfy { $0 < 0x7F }
  }
}
