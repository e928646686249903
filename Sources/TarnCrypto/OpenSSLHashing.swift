import CCrypto
package import TarnCore

/// Computes digests with libcrypto's EVP interface.
package struct OpenSSLHashing: Hashing {
  package init() {}

  package func hasher(_ algorithm: DigestAlgorithm) -> any Hasher {
    OpenSSLHasher(algorithm)
  }
}

/// A running digest.
///
/// When libcrypto refuses (out of memory, or MD5 under a FIPS policy), the digest is all zeros, which matches no file: a check then
/// fails instead of passing.
private final class OpenSSLHasher: Hasher {
  let algorithm: DigestAlgorithm
  private let context: OpaquePointer?
  private var isGood: Bool

  init(_ algorithm: DigestAlgorithm) {
    self.algorithm = algorithm
    context = EVP_MD_CTX_new()
    isGood = context != nil && EVP_DigestInit_ex(context, algorithm.method, nil) == 1
  }

  deinit {
    EVP_MD_CTX_free(context)
  }

  func update(_ bytes: UnsafeRawBufferPointer) {
    guard isGood, !bytes.isEmpty else { return }
    isGood = EVP_DigestUpdate(context, bytes.baseAddress, bytes.count) == 1
  }

  func finish() -> Digest {
    var bytes = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
    var length: UInt32 = 0
    if isGood, EVP_DigestFinal_ex(context, &bytes, &length) == 1, Int(length) == algorithm.length {
      isGood = false
    } else {
      bytes = [UInt8](repeating: 0, count: algorithm.length)
    }
    return Digest(algorithm, padding: bytes)
  }
}

extension DigestAlgorithm {
  fileprivate var method: OpaquePointer? {
    switch self {
    case .md5: EVP_md5()
    case .sha1: EVP_sha1()
    case .sha224: EVP_sha224()
    case .sha256: EVP_sha256()
    case .sha384: EVP_sha384()
    case .sha512: EVP_sha512()
    }
  }
}
