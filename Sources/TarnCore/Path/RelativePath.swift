/// A path below a mirror's folder: the bytes as the kernel takes them, with segments separated by `/`.
///
/// Never a `String`: Swift's `String` treats two different names as equal (NFC and NFD) and cannot hold names that are not UTF-8.
/// Two paths are equal when their bytes are, and are sorted by `memcmp`, the order of every stream that the comparison merges.
package struct RelativePath: Hashable, Sendable {
  package let bytes: [UInt8]

  /// Checks a name from outside.
  ///
  /// - Throws: the first rule that the name breaks. The caller adds which entry it is about.
  package init(_ bytes: [UInt8], rule: PathRule = .linux) throws(PathRefusal) {
    try rule.check(bytes)
    self.bytes = bytes
  }

  /// Takes a path that was checked before: one from the ledger, or one that the scan of the folder found.
  package init(trusted bytes: [UInt8]) {
    self.bytes = bytes
  }

  package static func == (left: RelativePath, right: RelativePath) -> Bool {
    left.bytes.withUnsafeBytes { left in right.bytes.withUnsafeBytes { holdSameBytes(left, $0) } }
  }

  /// Hashes all bytes at once. Hashing them one by one, as arrays do, takes ten times as long.
  package func hash(into hasher: inout Swift.Hasher) {
    bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
  }

  /// The segments of the path; none is empty.
  package var segments: [ArraySlice<UInt8>] {
    bytes.split(separator: UInt8(ascii: "/"))
  }

  /// The last segment.
  package var name: ArraySlice<UInt8> {
    guard let slash = bytes.lastIndex(of: UInt8(ascii: "/")) else { return bytes[...] }
    return bytes[(slash + 1)...]
  }

  /// The path of the directory that holds this one; `nil` for an entry of the folder itself.
  package var parent: RelativePath? {
    guard let slash = bytes.lastIndex(of: UInt8(ascii: "/")) else { return nil }
    return RelativePath(trusted: Array(bytes[..<slash]))
  }

  /// True when `other` lies below this path taken as a directory.
  package func isAncestor(of other: RelativePath) -> Bool {
    other.bytes.count > bytes.count + 1 && other.bytes[bytes.count] == UInt8(ascii: "/")
      && other.begins(with: self)
  }

  /// True when this path begins with the bytes of `other`. Paths that do follow it directly in path order, below it or not.
  package func begins(with other: RelativePath) -> Bool {
    guard other.bytes.count <= bytes.count else { return false }
    return bytes.withUnsafeBytes { bytes in
      other.bytes.withUnsafeBytes { holdSameBytes(UnsafeRawBufferPointer(rebasing: bytes[..<$0.count]), $0) }
    }
  }

  /// The path as text that is safe on a terminal and in a log; see `Printable`.
  package var printable: String { Printable.escape(bytes) }
}

extension RelativePath: Comparable {
  package static func < (left: RelativePath, right: RelativePath) -> Bool {
    compareBytes(left.bytes, right.bytes) < 0
  }
}

/// Returns whether two byte strings are equal. Compares eight bytes at a time, since paths and names are short and compared often.
package func holdSameBytes(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Bool {
  let count = left.count
  guard count == right.count else { return false }
  var index = 0
  while index + 8 <= count {
    let word = left.loadUnaligned(fromByteOffset: index, as: UInt64.self)
    if word != right.loadUnaligned(fromByteOffset: index, as: UInt64.self) { return false }
    index += 8
  }
  while index < count {
    if left[index] != right[index] { return false }
    index += 1
  }
  return true
}

/// Orders two byte strings as `memcmp` and SQLite's BLOB comparison do: negative, zero or positive.
package func compareBytes(_ left: [UInt8], _ right: [UInt8]) -> Int {
  let shared = min(left.count, right.count)
  return left.withUnsafeBufferPointer { left in
    right.withUnsafeBufferPointer { right in
      var index = 0
      while index < shared {
        let difference = Int(left[index]) - Int(right[index])
        if difference != 0 { return difference }
        index += 1
      }
      return left.count - right.count
    }
  }
}
