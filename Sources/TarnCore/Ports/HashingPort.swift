/// Makes hashers. Usable from any thread.
package protocol Hashing: Sendable {
  func hasher(_ algorithm: DigestAlgorithm) -> any Hasher
}

/// A running digest. Used by one thread at a time.
package protocol Hasher: AnyObject {
  var algorithm: DigestAlgorithm { get }
  func update(_ bytes: UnsafeRawBufferPointer)
  /// Returns the digest of all bytes so far. Call it once, as the last call.
  func finish() -> Digest
}

extension Hasher {
  /// Adds all remaining bytes of a source.
  ///
  /// - Returns: the number of these bytes.
  /// - Throws: `FeedFailure` when the bytes cannot be read.
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
  /// Returns the digest of the given bytes.
  package func digest(_ algorithm: DigestAlgorithm, of bytes: [UInt8]) -> Digest {
    let hasher = hasher(algorithm)
    bytes.withUnsafeBytes { hasher.update($0) }
    return hasher.finish()
  }
}
