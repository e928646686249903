import TarnCore
import TarnRuntime

/// What is known of the contents of a file that is being written: the running digest, and whether its pieces are good.
final class RunningCheck: @unchecked Sendable {
  // Safe because its owner lets one thread at a time have all but `wrongPiece`: the hash thread until it is settled there, or itself.

  let check: ContentCheck
  /// Bytes that the file may have.
  let limit: UInt64
  private let hasher: any Hasher
  private var pieces: PieceCheck?
  /// Nil where there are no pieces: most files have none, and need no lock.
  private let wrong: Locked<UInt64?>?

  init(_ check: ContentCheck, _ hashing: any Hashing) {
    self.check = check
    hasher = hashing.hasher(check.digest?.algorithm ?? .sha256)
    pieces = check.pieces.flatMap { PieceCheck($0, hashing: hashing) }
    wrong = pieces == nil ? nil : Locked(nil)
    limit = check.size ?? pieces?.reach ?? .max
  }

  /// Where the first piece begins that is not what it should be, as far as is known. Any thread.
  var wrongPiece: UInt64? { wrong.flatMap { $0.withLock(\.self) } }

  /// Bytes after a wrong piece are of no account.
  func update(_ bytes: UnsafeRawBufferPointer) {
    guard wrongPiece == nil else { return }
    hasher.update(bytes)
    if let at = pieces?.update(bytes) { wrong?.withLock { $0 = at } }
  }

  /// Checks the last piece, once all before are found good.
  ///
  /// - Returns: where the first wrong or missing piece begins.
  func finishPieces() -> UInt64? { pieces?.finish() }

  /// Once.
  func finishDigest() -> Digest { hasher.finish() }
}
