import TarnCore

/// The layout of a whole checksum list.
enum ChecksumLayout: Equatable {
  /// Each line can be read by itself.
  case lines
  /// The name precedes the digest in all lines.
  case nameFirst
  /// One digest without a name, for the file whose name is that of the list without its ending.
  case digestAlone(ChecksumLine.ListedDigest)

  /// - Parameters:
  ///   - head: the first bytes of the document, at most `FeedInput.headSize`.
  ///   - name: the name of the document.
  /// - Returns: `nil` when it is not a checksum list.
  init?(_ head: [UInt8], name: [UInt8]) {
    guard head.first(where: { !isBlank($0) }) != UInt8(ascii: "<") else { return nil }
    var lines = head.split(separator: 0x0A)
    // The file lists of Fedora have digests of a few files at their end.
    guard !DebianControl.recognises(lines), !head.begins(with: "[Version]") else { return nil }
    let isWhole = head.count < FeedInput.headSize
    if isWhole, let listed = DigestAlone(lines)?.listed(in: name) ?? DigestAlone.moved(lines, in: name) {
      self = .digestAlone(listed)
      return
    }
    if Self.hasFile(lines, of: name) {
      self = .lines
      return
    }
    // The last line of a longer document may be cut.
    if !isWhole { _ = lines.popLast() }
    guard Self.areNameFirst(lines, of: name) else { return nil }
    self = .nameFirst
  }

  private static func hasFile(_ lines: [ArraySlice<UInt8>], of name: [UInt8]) -> Bool {
    var found = false
    var reading = ChecksumLines(name: name)
    func look(_ parsed: ChecksumLine, _ line: ListLine) {
      switch parsed {
      case .file(let listed): found = found || !isReference(listed.name)
      case .unsupported: found = true
      default: break
      }
    }
    for line in lines where !found { reading.add(ListLine(line), look) }
    reading.finish(look)
    return found
  }

  /// Returns whether a name is one of git's references, which git lists in the form of checksum lists.
  static func isReference(_ name: [UInt8]) -> Bool {
    name.begins(with: "refs/") || name.elementsEqual("HEAD".utf8)
  }

  private static func areNameFirst(_ lines: [ArraySlice<UInt8>], of name: [UInt8]) -> Bool {
    let isOfDigests = DigestFileName.isList(name)
    let kind = DigestKind(listName: name)
    var count = 0
    for line in lines {
      switch ChecksumLine(nameFirst: line, untagged: kind) {
      case .nothing, .title: break
      case .file(let listed) where isOfDigests || looksLikeFile(listed.name): count += 1
      case .unsupported(let name) where isOfDigests || looksLikeFile(name): count += 1
      default: return false
      }
    }
    return count > 0
  }

  /// Returns whether it looks like a path, or like a name with an ending: `version 1.2` and a digest may be anything else.
  private static func looksLikeFile(_ name: [UInt8]) -> Bool {
    guard !isReference(name) else { return false }
    if name.contains(0x2F) { return !name.contains(where: isBlank) }
    guard let dot = name.lastIndex(of: UInt8(ascii: ".")), dot > name.startIndex else { return false }
    let ending = name[(dot + 1)...]
    return (1...10).contains(ending.count) && ending.contains(where: \.isASCIILetter)
      && ending.allSatisfy { $0.isASCIILetter || $0.isASCIIDigit }
  }
}

/// A document with a single digest: `hex`, `sha256:hex`, `hex  -`, `SHA256(stdin)= hex`, or `hex` in gpg's groups.
struct DigestAlone {
  private let hex: [UInt8]
  /// The kind that the document gives.
  private let kind: DigestKind?

  private static let mostLines = 64

  /// - Returns: `nil` when there is anything else except comments.
  init?(_ lines: [ArraySlice<UInt8>]) {
    guard lines.count <= Self.mostLines else { return nil }
    let texts = lines.map { trimmed($0) }.filter { !$0.isEmpty && $0.first != UInt8(ascii: "#") }
    if texts.count == 1 {
      self.init(line: texts[0])
    } else {
      self.init(groups: texts)
    }
  }

  private init?(line: [UInt8]) {
    let mark = ["  -", " *-", " -"].first { line.suffix($0.utf8.count).elementsEqual($0.utf8) }
    let text = line.dropLast(mark?.utf8.count ?? 0)
    let label = text.prefix { $0 != UInt8(ascii: ":") && $0 != UInt8(ascii: "=") }
    let value = trimmed(text[label.endIndex...].dropFirst())
    if label.endIndex == text.endIndex, !text.contains(where: isBlank) {
      self.init(text, kind: nil)
    } else if let kind = Self.kind(of: label) {
      self.init(value[...], kind: kind)
    } else {
      self.init(groups: [line])
    }
  }

  private init?(groups lines: [[UInt8]]) {
    let groups = lines.flatMap { Array($0.split(whereSeparator: isBlank)) }
    let length = GroupedDigest.groupLength(ofDigits: groups.reduce(0) { $0 + $1.count })
    guard groups.allSatisfy({ $0.count == length }) else { return nil }
    self.init(Array(groups.joined())[...], kind: nil)
  }

  private init?(_ hex: ArraySlice<UInt8>, kind: DigestKind?) {
    guard DigestWord.algorithms[hex.count] != nil, hex.allSatisfy({ $0.hexDigitValue != nil }) else {
      return nil
    }
    self.hex = Array(hex)
    self.kind = kind
  }

  /// Reads `SHA256`, and openssl's `SHA2-256(stdin)` and `(stdin)`.
  private static func kind(of label: ArraySlice<UInt8>) -> DigestKind?? {
    let text = trimmed(label)
    let name = text.prefix { $0 != UInt8(ascii: "(") }
    let behind = trimmed(text[name.endIndex...])
    guard behind.isEmpty || behind.elementsEqual("(stdin)".utf8) || behind.elementsEqual("(-)".utf8) else {
      return nil
    }
    guard !name.isEmpty else { return .some(nil) }
    return DigestKind(title: name).map { .some($0) }
  }

  /// Reads the only line of `x.iso.sha256` when its name is the path of `x.iso` where the list was made: `/srv/dist/x.iso`,
  /// `..\x.iso`.
  ///
  /// - Returns: `nil` for anything else. A path below the document's directory is used as it is.
  static func moved(_ lines: [ArraySlice<UInt8>], in name: [UInt8]) -> ChecksumLine.ListedDigest? {
    guard lines.count == 1, let file = DigestFileName(name),
      case .file(var listed) = ChecksumLine(ListedFile.withoutReturns(lines[0]))
    else { return nil }
    let path = listed.name.map { $0 == UInt8(ascii: "\\") ? 0x2F : $0 }
    let isElsewhere =
      path.first == 0x2F || path.begins(with: "../") || path.dropFirst().begins(with: ":/")
    guard isElsewhere, path.split(separator: 0x2F).last?.elementsEqual(file.name) ?? false else { return nil }
    listed.name = file.name
    return listed
  }

  /// Returns the digest with the file that the name of the document gives.
  ///
  /// - Returns: `nil` when that name gives none, or another kind of digest than the document.
  func listed(in name: [UInt8]) -> ChecksumLine.ListedDigest? {
    guard let file = DigestFileName(name) else { return nil }
    let byLength = DigestWord.algorithms[hex.count]
    var told = file.algorithm
    if case .checked(let algorithm)? = kind {
      guard told == nil || told == algorithm else { return nil }
      told = algorithm
    } else if kind == .other {
      return nil
    }
    guard told == nil || told == byLength, let algorithm = byLength, file.mayHold(algorithm),
      let digest = Digest(algorithm, hex: hex)
    else { return nil }
    return ChecksumLine.ListedDigest(name: file.name, digest: digest)
  }
}

/// The name of a file that holds the digest of another file, such as `x.iso.sha256`.
struct DigestFileName: Equatable {
  /// The parts of names that checksum lists have.
  private static let marks = [
    "md5", "sha1", "sha2", "sha3", "sha5", "checksum", "digest", "sums", "hashes", ".sha", ".b2", "b2sum",
    "b3sum", ".sfv",
  ]

  /// The name of the other file.
  let name: [UInt8]
  /// The algorithm; `nil` for `.sha`, which may be any of its family.
  let algorithm: DigestAlgorithm?

  /// Returns whether checksum lists have such names: `SHA256SUMS`, `x_checksums.txt`, `x.iso.sha256`.
  static func isList(_ name: [UInt8]) -> Bool {
    let name = lowercased(name)
    return marks.contains { name.holds($0) } && !holdsDigest(name)
  }

  /// Returns whether the name holds a digest, as in a store that names files by their contents.
  private static func holdsDigest(_ name: [UInt8]) -> Bool {
    name.split { $0.hexDigitValue == nil }.contains { $0.count >= 32 }
  }

  /// - Returns: `nil` when the name has no such ending.
  init?(_ name: [UInt8]) {
    var rest = lowercased(name)[...]
    Self.drop(".txt", of: &rest)
    for ending in ["sums", "sum"] where rest.suffix(ending.utf8.count).elementsEqual(ending.utf8) {
      rest = rest.dropLast(ending.utf8.count)
      break
    }
    guard let dot = rest.lastIndex(of: UInt8(ascii: ".")), dot > rest.startIndex else { return nil }
    let kind = rest[(dot + 1)...]
    let algorithm = kind.withUnsafeBytes { DigestAlgorithm(name: $0) }
    guard kind.first.map(\.isASCIILetter) ?? false, let algorithm else { return nil }
    self.name = Array(name[..<dot])
    self.algorithm = kind.elementsEqual("sha".utf8) ? nil : algorithm
  }

  func mayHold(_ digest: DigestAlgorithm) -> Bool {
    algorithm == digest || algorithm == nil && digest != .md5
  }

  private static func drop(_ ending: String, of name: inout ArraySlice<UInt8>) {
    if name.suffix(ending.utf8.count).elementsEqual(ending.utf8) { name = name.dropLast(ending.utf8.count) }
  }
}

/// Recognises Debian's control files that list digests: `Release`, `.dsc`, `.changes`. Nothing else has lines of the form ` hex
/// size name`, and their files need not exist.
enum DebianControl {
  private static let titles = [
    "md5sum:", "sha1:", "sha256:", "sha512:", "files:", "checksums-sha1:", "checksums-sha256:",
    "checksums-sha512:",
  ]

  /// - Parameter lines: the lines of the document that are not empty.
  static func recognises(_ lines: [ArraySlice<UInt8>]) -> Bool {
    for (line, next) in zip(lines, lines.dropFirst()) {
      let title = lowercased(trimmed(line))
      guard line.first != 0x20, titles.contains(where: { title.elementsEqual($0.utf8) }) else { continue }
      let words = next.split(separator: 0x20)
      if next.first == 0x20, words.count >= 3, DigestWord.algorithms[words[0].count] != nil,
        words[0].allSatisfy({ $0.hexDigitValue != nil }), words[1].allSatisfy(\.isASCIIDigit)
      {
        return true
      }
    }
    return false
  }
}
