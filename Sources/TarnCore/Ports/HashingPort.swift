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

extension Hashing {
  /// The digest of bytes at hand.
  package func digest(_ algorithm: DigestAlgorithm, of bytes: [UInt8]) -> Digest {
    let hasher = hasher(algorithm)
    bytes.withUnsafeBytes { hasher.update($0) }
    return hasher.finish()
  }
}
