import CCrypto
package import TarnCore

/// Computes HMAC with SHA-256 (RFC 2104).
package enum HMACSignature {
  /// - Returns: `nil` when libcrypto refuses.
  package static func sha256(of message: [UInt8], key: [UInt8]) -> Digest? {
    var code = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
    var length: UInt32 = 0
    // An empty array has no address, which libcrypto requires. A zero byte is the same key (RFC 2104 2).
    let key = key.isEmpty ? [0] : key
    let made = HMAC(
      EVP_sha256(), key, Int32(clamping: key.count), message, message.count, &code, &length)
    return made != nil && length == 32 ? Digest(.sha256, padding: code) : nil
  }
}
