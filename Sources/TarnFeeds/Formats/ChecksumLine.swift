import TarnCore

/// A line of a checksum list.
enum ChecksumLine: Equatable {
  /// An empty line, or one that is known to concern no file.
  case nothing
  /// A title such as `# BLAKE2B HASH` or `sha256sum:`: the kind of the bare digests that follow.
  case title(DigestKind)
  /// A size: `# name: N bytes`, the same without the mark, or `SIZE (name) = N`.
  case size(name: [UInt8], UInt64, isComment: Bool)
  case file(ListedDigest)
  /// A digest that Tarn cannot check.
  case unsupported(name: [UInt8])
  /// A line without a digest, complete or damaged, that may name no file.
  case text
  case malformed

  struct ListedDigest: Equatable {
    var name: [UInt8]
    var digest: Digest
    var size: UInt64?
    /// The URL that the list gives for the file; empty when the file lies beside the list.
    var url: [UInt8] = []
  }

  /// - Parameters:
  ///   - untagged: the kind of bare digests by the list's name or a title above the line; `nil` when nothing gives it.
  ///   - isFromWindows: true when the line ends with a carriage return.
  init(_ line: ArraySlice<UInt8>, untagged: DigestKind? = nil, isFromWindows: Bool = false) {
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
      guard let parsed = Self.plain(text, untagged) ?? Self.sized(text, untagged) ?? Self.tagged(text) else {
        self = Self.other(line)
        return
      }
      self =
        line.contains(0) || parsed.holdsTwo
        ? .malformed : isEscaped ? parsed.unescaped : isFromWindows ? parsed.withSlashes : parsed
    }
  }

  /// The number of successive digits that no word has, but a damaged digest does.
  private static let digitsOfDigest = 24

  /// Classifies a line that is not a comment and has no readable digest.
  private static func other(_ line: ArraySlice<UInt8>) -> ChecksumLine {
    if let size = sizeNote(line, isComment: false) { return size }
    if let kind = DigestKind(title: line) { return .title(kind) }
    if line.begins(with: "TIMESTAMP = ") { return .nothing }
    // A keyword of CVS, as in NetBSD's distinfo.
    if line.begins(with: "$"), line.last == UInt8(ascii: "$") { return .nothing }
    return holdsDigest(line) || beginsLikeOne(line) || isCut(line) ? .malformed : .text
  }

  /// True when the name continues with a digest and another name: the end of a line was lost.
  private var holdsTwo: Bool {
    guard case .file(let listed) = self else { return false }
    var run = 0
    for (index, byte) in listed.name.enumerated() {
      if byte.hexDigitValue != nil {
        run += 1
        continue
      }
      let isGap = [[0x20, 0x20], [0x20, 0x2A]].contains { listed.name[index...].starts(with: $0) }
      if run >= listed.digest.bytes.count * 2, isGap { return true }
      run = 0
    }
    return false
  }

  /// Returns whether the end of the line or its digest was lost: digits alone, `SHA256 (name`, or a long word with digits in the
  /// place of the digest.
  private static func isCut(_ line: ArraySlice<UInt8>) -> Bool {
    let word = line.prefix { $0 != 0x20 && $0 != 0x09 }
    let rest = line[word.endIndex...]
    let hasDigits = word.contains(where: \.isASCIIDigit)
    if rest.isEmpty {
      let isHex = word.allSatisfy { $0.hexDigitValue != nil }
      return isHex && hasDigits && word.contains(where: \.isASCIILetter) && word.count >= leastCut
    }
    if word.withUnsafeBytes({ DigestAlgorithm(name: $0) }) != nil, rest.begins(with: " (") {
      return !rest.contains(UInt8(ascii: ")"))
    }
    let isWord = word.allSatisfy { $0.isASCIIDigit || $0.isASCIILetter }
    return isWord && hasDigits && word.count >= leastWord && ["  ", " *"].contains { rest.begins(with: $0) }
  }

  /// The least number of digits of a cut digest. Fewer may be a date, or the number of a commit in a text.
  private static let leastCut = 9
  /// The least length of a word in the place of a digest.
  private static let leastWord = 16

  /// Recognises `hex  name`, `hex *name` and `hex<tab>name` with a digest of an unknown length.
  private static func beginsLikeOne(_ line: ArraySlice<UInt8>) -> Bool {
    let digits = line.prefix { $0.hexDigitValue != nil }
    let rest = line[digits.endIndex...]
    let marks = ["  ", " *", "\t"].first { rest.begins(with: $0) }
    return !digits.isEmpty && marks.map { rest.count > $0.utf8.count } ?? false
  }

  static func holdsDigest(_ line: some Sequence<UInt8>) -> Bool {
    var run = 0
    for byte in line {
      run = byte.hexDigitValue == nil ? 0 : run + 1
      if run == digitsOfDigest { return true }
    }
    return false
  }

  private static func comment(_ text: ArraySlice<UInt8>) -> ChecksumLine {
    sizeNote(text, isComment: true) ?? DigestKind(title: text).map { .title($0) } ?? .nothing
  }

  /// Reads `name: N bytes`.
  private static func sizeNote(_ text: ArraySlice<UInt8>, isComment: Bool) -> ChecksumLine? {
    let text = trimmed(text)
    guard let colon = text.lastIndex(of: UInt8(ascii: ":")), colon > text.startIndex,
      let size = bytes(text[(colon + 1)...], isUnitNeeded: true)
    else { return nil }
    return .size(name: Array(text[..<colon]), size, isComment: isComment)
  }

  /// Reads `N bytes`, or `N` alone where that is allowed.
  private static func bytes(_ text: some BidirectionalCollection<UInt8>, isUnitNeeded: Bool) -> UInt64? {
    let words = trimmed(text).split(separator: 0x20)
    let isUnit =
      words.count == 2 && (words[1].elementsEqual("bytes".utf8) || words[1].elementsEqual("byte".utf8))
    guard isUnit || words.count == 1 && !isUnitNeeded,
      let size = Percent.wholeNumber(Array(words[0])), size <= Int64.max
    else { return nil }
    return size
  }

  /// Reads `hex  name`, `hex *name`, `hex name` and `hex<tab>name`, each also as `sha256:hex`; `nil` for another beginning.
  private static func plain(_ text: ArraySlice<UInt8>, _ untagged: DigestKind?) -> ChecksumLine? {
    let end = text.firstIndex { $0 == 0x20 || $0 == 0x09 } ?? text.endIndex
    guard let digest = DigestWord(text[..<end], untagged: untagged) else { return nil }
    var name = text[end...]
    let gap = name.prefix { $0 == 0x20 || $0 == 0x09 }
    if gap.contains(0x09) {
      // No accepted name holds a tab, so all of it is the separator.
      name = name.dropFirst(gap.count)
      if name.first == UInt8(ascii: "*") { name = name.dropFirst() }
    } else {
      name = name.dropFirst()
      if name.first == 0x20 || name.first == UInt8(ascii: "*") { name = name.dropFirst() }
    }
    return name.isEmpty ? nil : digest.line(of: Array(name))
  }

  /// Reads `   size  hex  name`, as md5deep -z prints it; `nil` for anything else.
  private static func sized(_ text: ArraySlice<UInt8>, _ untagged: DigestKind?) -> ChecksumLine? {
    let digits = text.prefix(19).prefix { $0.isASCIIDigit }
    let rest = text[digits.endIndex...]
    guard !digits.isEmpty, rest.begins(with: "  "),
      let size = UInt64(String(decoding: digits, as: UTF8.self)),
      let line = plain(rest.drop { $0 == 0x20 }, untagged)
    else { return nil }
    guard case .file(var listed) = line else { return line }
    listed.size = size
    return .file(listed)
  }

  /// Reads `ALG (name) = hex`, openssl's `ALG(name)= hex`, and Base64 in place of hexadecimal; `nil` for anything else.
  private static func tagged(_ text: ArraySlice<UInt8>) -> ChecksumLine? {
    let tag = text.prefix {
      $0.isASCIILetter || $0.isASCIIDigit || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "/")
    }
    let rest = text[tag.endIndex...].drop { $0 == 0x20 }
    guard let first = tag.first, first.isASCIILetter, rest.first == UInt8(ascii: "("),
      let (name, value) = parted(rest.dropFirst()), !name.isEmpty
    else { return nil }
    if lowercased(tag).elementsEqual("size".utf8), let size = bytes(value, isUnitNeeded: false) {
      return .size(name: Array(name), size, isComment: false)
    }
    let algorithm = tag.withUnsafeBytes { DigestAlgorithm(name: $0) }
    let isHex = value.count >= 8 && value.allSatisfy { $0.hexDigitValue != nil }
    let bytes = Base64.decode(value).flatMap { (16...64).contains($0.count) ? $0 : nil }
    guard let algorithm else { return isHex || bytes != nil ? .unsupported(name: Array(name)) : nil }
    let digest =
      (isHex ? Digest(algorithm, hex: value) : nil) ?? bytes.flatMap { Digest(algorithm, bytes: $0) }
    return digest.map { .file(ListedDigest(name: Array(name), digest: $0)) } ?? .malformed
  }

  /// Splits `name) = value` at the last such place.
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

  /// Returns the line with another name; malformed for `nil`.
  private func naming(_ change: ([UInt8]) -> [UInt8]?) -> ChecksumLine {
    switch self {
    case .file(var listed):
      guard let name = change(listed.name) else { return .malformed }
      listed.name = name
      return .file(listed)
    case .unsupported(let name): return change(name).map { .unsupported(name: $0) } ?? .malformed
    default: return self
    }
  }

  /// Decodes `\\`, `\n` and `\r` in the name; malformed for any other backslash.
  private var unescaped: ChecksumLine { naming(Self.unescape) }

  /// Turns the separators of Windows into slashes. Tools of other systems escape a backslash, so in a line with the line end of
  /// Windows it can only be a separator.
  private var withSlashes: ChecksumLine {
    naming { $0.contains(0x2F) ? $0 : $0.map { $0 == UInt8(ascii: "\\") ? 0x2F : $0 } }
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

// MARK: The name before the digest

extension ChecksumLine {
  /// Reads `name hex`, `name: hex` and `name sha256:hex`, also with a URL behind it, as in the registries of pooch.
  ///
  /// Use it only where all lines of a document have this form: a single one may be any text.
  init(nameFirst line: ArraySlice<UInt8>, untagged: DigestKind?) {
    var rest = trimmed(line)[...]
    guard let first = rest.first, first != UInt8(ascii: "#"), first != UInt8(ascii: ";") else {
      self = ChecksumLine(line)
      return
    }
    var word = Self.takeLastWord(of: &rest)
    var url: [UInt8] = []
    if URLScheme.remotePrefixes.contains(where: { word.begins(with: $0) }) {
      url = Array(word)
      word = Self.takeLastWord(of: &rest)
    }
    let name = Self.bareName(rest)
    guard let digest = DigestWord(word, untagged: untagged), !name.isEmpty, !Self.holdsDigest(name),
      !name.contains(0)
    else {
      self = Self.holdsDigest(line) ? .malformed : .text
      return
    }
    self = digest.line(of: name)
    if case .file(var listed) = self, !url.isEmpty {
      listed.url = url
      self = .file(listed)
    }
  }

  private static func takeLastWord(of text: inout ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    let start = text.lastIndex(where: isBlank).map { $0 + 1 } ?? text.startIndex
    let word = text[start...]
    text = text[..<start]
    while let last = text.last, isBlank(last) { text.removeLast() }
    return word
  }

  /// Returns the name without a colon, quotes, or the backslashes before its blanks. Empty for the title of a digest: `sha256:
  /// hex`.
  private static func bareName(_ text: ArraySlice<UInt8>) -> [UInt8] {
    var name = text
    if name.last == UInt8(ascii: ":") { name = name.dropLast() }
    guard DigestKind(title: name) == nil else { return [] }
    let quote = UInt8(ascii: "\"")
    if name.count > 2, name.first == quote, name.last == quote { return Array(name.dropFirst().dropLast()) }
    var bare: [UInt8] = []
    for byte in name {
      if byte == 0x20 {
        guard bare.last == UInt8(ascii: "\\") else { return Array(name) }
        bare.removeLast()
      }
      bare.append(byte)
    }
    return bare
  }
}
