/// A file of a directory index whose name says that it holds digests of the files beside it: `SHA256SUMS`, `x.iso.sha256`.
package struct ChecksumFile: Sendable, Equatable {
  /// The entry of the listing.
  package var entry: Entry
  /// The one file whose digest it holds; `nil` for a list of several.
  package var file: RelativePath?
  /// The algorithm that its name gives; `nil` when the name gives none.
  package var algorithm: DigestAlgorithm?
  /// True when a file that is no checksum list may have this name, too.
  package var isGuess = false

  /// - Returns: `nil` when the name is not of that kind, or when the file is empty.
  package init?(_ entry: Entry) {
    let path = entry.path.bytes
    // For by far the most names this test is all.
    guard Self.mayBeOne(path), !entry.isRefused, entry.size != 0 else { return nil }
    let start = path.lastIndex(of: UInt8(ascii: "/")).map { $0 + 1 } ?? 0
    var name = path[start...]
    self.entry = entry
    // kernel.org signs its lists in clear; others put the signature of a file there.
    isGuess = Self.drop(".asc", of: &name)
    Self.drop(".txt", of: &name)
    if let (count, algorithm) = Self.ending(of: name),
      let file = try? RelativePath(Array(path[..<(start + count)]))
    {
      (self.file, self.algorithm) = (file, algorithm)
      return
    }
    guard let word = Self.listWord(of: name) else { return nil }
    algorithm = word.algorithm
    isGuess = isGuess || word.isGuess
  }

  /// Returns whether the path holds the beginning of one of the words.
  private static func mayBeOne(_ path: [UInt8]) -> Bool {
    guard path.count >= 3 else { return false }
    return path.withUnsafeBufferPointer { path in
      for index in 0..<(path.count - 2) {
        switch (path[index] | 0x20, path[index + 1] | 0x20, path[index + 2] | 0x20) {
        case (0x73, 0x68, 0x61), (0x6D, 0x64, 0x35), (0x63, 0x68, 0x65), (0x64, 0x69, 0x67):
          return true
        default: break
        }
      }
      return false
    }
  }

  @discardableResult private static func drop(_ ending: String, of name: inout ArraySlice<UInt8>) -> Bool {
    guard name.count > ending.utf8.count,
      folded(name.suffix(ending.utf8.count)) == ending
    else { return false }
    name = name.dropLast(ending.utf8.count)
    return true
  }

  /// Recognises an ending such as `.sha256` behind the name of another file.
  ///
  /// - Returns: the length of that file's name.
  private static func ending(of name: ArraySlice<UInt8>) -> (count: Int, DigestAlgorithm?)? {
    guard let dot = name.lastIndex(of: UInt8(ascii: ".")), dot > name.startIndex else { return nil }
    let word = folded(name[(dot + 1)...])
    let count = dot - name.startIndex
    if word == "digest" || word == "digests" || word == "sha" { return (count, nil) }
    return algorithm(withoutSum(word)).map { (count, $0) }
  }

  /// Recognises `SHA256SUMS`, `x_checksums` and `CHECKSUM.SHA256-FreeBSD-14.1-RELEASE-amd64` by the last word, or by the first two.
  private static func listWord(of name: ArraySlice<UInt8>) -> (algorithm: DigestAlgorithm?, isGuess: Bool)? {
    let words = name.split { !isWordByte($0) }.map { folded($0) }
    guard let last = words.last else { return nil }
    let named = words.lazy.compactMap { algorithm(withoutSum($0)) }.first
    if isList(last) { return (named, false) }
    if algorithm(last) != nil { return (named, words.count > 1 && !isList(words[words.count - 2])) }
    guard words.count > 2, isList(words[0]), algorithm(withoutSum(words[1])) != nil else { return nil }
    return (named, true)
  }

  /// Returns whether a word stands for several digests.
  private static func isList(_ word: String) -> Bool {
    if ["checksum", "checksums", "digests", "shasum", "shasums"].contains(word) { return true }
    if word.hasPrefix("shasums") { return algorithm("sha" + word.dropFirst(7)) != nil }
    let kind = withoutSum(word)
    return kind != word && algorithm(kind) != nil
  }

  private static func withoutSum(_ word: String) -> String {
    for ending in ["sums", "sum"] where word.hasSuffix(ending) { return String(word.dropLast(ending.count)) }
    return word
  }

  private static func algorithm(_ word: String) -> DigestAlgorithm? {
    // `sha` stands for any algorithm of its family.
    word == "sha" ? nil : DigestAlgorithm(name: word)
  }

  private static func isWordByte(_ byte: UInt8) -> Bool { byte.isASCIILetter || byte.isASCIIDigit }

  /// Returns the name with ASCII letters in lower case.
  private static func folded(_ name: some Sequence<UInt8>) -> String {
    String(decoding: name.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }, as: UTF8.self)
  }
}
