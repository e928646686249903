/// Makes hashers. Any thread.
package protocol Hashing: Sendable {
  func hasher(_ algorithm: DigestAlgorithm) -> any Hasher
}

/// One running digest. One thread at a time.
package protocol Hasher: AnyObject {
  var algorithm: DigestAlgorithm { get }
  func update(_ bytes: UnsafeRawBufferPointer)
  /// The digest of all bytes so far; call it once, last.
  func finish() -> Digest
}

extension Hasher {
  /// All that a source still has.
  ///
  /// - Returns: how many bytes these were.
  /// - Throws: `FeedFailure` when the bytes cannot be had.
  @discardableResult
  package func update(_ source: any ByteSource) throws(FeedFailure) -> UInt64 {
    var source = source
    var size: UInt64 = 0
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 128 << 10, alignment: 16)
    defer { buffer.deallocate() }
    while true {
      let count = try source.read(into: buffer)
      if count == 0 { return size }
      size += UInt64(count)
      update(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
    }
  }
}

extension Hashing {
  /// The digest of bytes at hand.
  package func digest(_ algorithm: DigestAlgorithm, of bytes: [UInt8]) -> Digest {
    let hasher = hasher(algorithm)
    bytes.withUnsafeBytes { hasher.update($0) }
    return hasher.finish()
  }
}
