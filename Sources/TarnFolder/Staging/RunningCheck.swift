import TarnCore
import TarnRuntime

/// The state of the check of a file that is being written: the running digest, and whether its pieces are good.
final class RunningCheck: @unchecked Sendable {
  // Safe because its owner lets one thread at a time use all but `wrongPiece`: the hash thread until it is settled there, or the
  // owner itself.

  let check: ContentCheck
  /// The most bytes that the file may have.
  let limit: UInt64
  private let hasher: any Hasher
  private var pieces: PieceCheck?
  /// The start of the wrong piece. `nil` where there are no pieces: most files have none, and need no lock.
  private let wrong: Locked<UInt64?>?

  init(_ check: ContentCheck, _ hashing: any Hashing) {
    self.check = check
    hasher = hashing.hasher(check.digest?.algorithm ?? .sha256)
    pieces = check.pieces.flatMap { PieceCheck($0, hashing: hashing) }
    wrong = pieces == nil ? nil : Locked(nil)
    limit = check.size ?? pieces?.reach ?? .max
  }

  /// The start of the first wrong piece, as far as is known. Any thread.
  var wrongPiece: UInt64? { wrong.flatMap { $0.withLock(\.self) } }

  /// Hashes bytes. Those after a wrong piece do not matter.
  func update(_ bytes: UnsafeRawBufferPointer) {
    guard wrongPiece == nil else { return }
    hasher.update(bytes)
    if let at = pieces?.update(bytes) { wrong?.withLock { $0 = at } }
  }

  /// Checks the last piece, once all previous ones are good.
  ///
  /// - Returns: the start of the first wrong or missing piece.
  func finishPieces() -> UInt64? { pieces?.finish() }

  /// Returns the digest. Must be called once.
  func finishDigest() -> Digest { hasher.finish() }
}
