import TarnCore

/// The kind of a digest as text names it.
enum DigestKind: Equatable {
  case checked(DigestAlgorithm)
  /// A kind that Tarn cannot check.
  case other

  /// Reads the kind of bare digests from the name of a list; `nil` when the name gives none, or only what their length shows.
  init?(listName name: some Sequence<UInt8>) {
    let name = lowercased(name)
    // A truncated SHA-512 is a kind of its own.
    let solid = name.filter { !"_-/".utf8.contains($0) }
    if Self.truncated.contains(where: { solid.holds($0) }) {
      self = .other
      return
    }
    let words = name.split { !$0.isASCIILetter && !$0.isASCIIDigit }
    let isKnown = ["sha1", "sha2", "sha5", "md5"].contains { name.holds($0) }
    let isOther = words.indices.contains { index in
      let word = Self.withoutSum(words[index])
      if Self.isPlainlyOther(word) { return true }
      // A word that may have another meaning counts only with `sum`, or as the ending of the name.
      let isEnding = index == words.indices.last && name.suffix(word.count + 1).first == UInt8(ascii: ".")
      return (isEnding || word.count < words[index].count)
        && Self.shortOthers.contains { word.elementsEqual($0.utf8) }
    }
    guard isOther, !isKnown else { return nil }
    self = .other
  }

  private static let truncated = ["sha512224", "sha512256"]
  private static let shortOthers = ["b2", "b3", "md4", "tiger", "sm3"]

  /// Returns whether a word is the name of another kind with its size and nothing else: `blake2b`, `sha3256`; not `blakes7`.
  private static func isPlainlyOther(_ word: ArraySlice<UInt8>) -> Bool {
    if word.begins(with: "blake") { return word.dropFirst(5).first.map { "23".utf8.contains($0) } ?? false }
    if word.begins(with: "sha3"), !word.dropFirst(4).allSatisfy({ $0.isASCIIDigit }) { return false }
    return !word.begins(with: "sm3") && isOther(word)
  }

  private static func isOther(_ word: ArraySlice<UInt8>) -> Bool {
    !word.begins(with: "sha384") && others.contains { word.begins(with: $0) }
  }

  /// Removes the ending, so that `b3sums` becomes `b3`.
  private static func withoutSum(_ word: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    for ending in ["sums", "sum"] where word.suffix(ending.utf8.count).elementsEqual(ending.utf8) {
      return word.dropLast(ending.utf8.count)
    }
    return word
  }

  private static let fillers = [
    "hash", "hashes", "sum", "sums", "checksum", "checksums", "digest", "digests",
  ]
  /// The beginnings of the names of kinds whose digests look like those of others.
  private static let others = [
    "blake", "b2sum", "b3sum", "whirlpool", "sha3", "keccak", "sm3", "rmd", "ripemd", "sha512256",
    "sha512224", "stribog", "streebog",
  ]

  /// Reads a title such as ` SHA512 HASH` or `sha256sum:`; `nil` when the text is not exactly the name of a kind.
  init?(title: some BidirectionalCollection<UInt8>) {
    let words = trimmed(title).split { isBlank($0) || $0 == UInt8(ascii: ":") }
    guard words.count <= 3 else { return nil }
    let names = words.map { lowercased($0) }.filter { word in
      !Self.fillers.contains { word.elementsEqual($0.utf8) }
    }
    guard names.count == 1, let name = names.first, name.count <= 16 else { return nil }
    self.init(word: name)
  }

  /// Reads one word in lower case, such as `sha256sum`.
  private init?(word: [UInt8]) {
    var folded = word.filter { $0.isASCIILetter || $0.isASCIIDigit }
    guard folded.count + 2 >= word.count else { return nil }
    if Self.isOther(folded[...]) {
      self = .other
      return
    }
    folded = Array(Self.withoutSum(folded[...]))
    guard let algorithm = folded.withUnsafeBytes({ DigestAlgorithm(name: $0) }) else { return nil }
    self = .checked(algorithm)
  }

  /// Reads the tag of a line, such as `SHA256`; `nil` for a word that names no kind.
  init?(tag: some Sequence<UInt8>) {
    self.init(word: lowercased(tag))
  }
}

/// A digest in one word: `hex`, or with its kind in front, `sha256:hex`.
enum DigestWord: Equatable {
  case digest(Digest)
  case unsupported

  /// - Parameter untagged: the kind of a digest that does not give it, where something else does.
  /// - Returns: `nil` when the word is not a digest of a known length.
  init?(_ word: ArraySlice<UInt8>, untagged: DigestKind?) {
    if let colon = word.firstIndex(of: UInt8(ascii: ":")) {
      let hex = word[(colon + 1)...]
      guard hex.count >= 8, hex.allSatisfy({ $0.hexDigitValue != nil }),
        let kind = DigestKind(tag: word[..<colon])
      else { return nil }
      guard case .checked(let algorithm) = kind else {
        self = .unsupported
        return
      }
      guard let digest = Digest(algorithm, hex: hex) else { return nil }
      self = .digest(digest)
      return
    }
    guard let algorithm = Self.algorithms[word.count], let digest = Digest(algorithm, hex: word) else {
      return nil
    }
    self = untagged == .other ? .unsupported : .digest(digest)
  }

  /// The algorithms by the number of digits.
  static let algorithms: [Int: DigestAlgorithm] = [
    32: .md5, 40: .sha1, 56: .sha224, 64: .sha256, 96: .sha384, 128: .sha512,
  ]

  func line(of name: [UInt8]) -> ChecksumLine {
    switch self {
    case .digest(let digest): .file(ChecksumLine.ListedDigest(name: name, digest: digest))
    case .unsupported: .unsupported(name: name)
    }
  }
}
