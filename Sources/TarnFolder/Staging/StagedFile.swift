import Glibc
import LinuxShim
package import TarnCore
import TarnRuntime

/// A file in `partial/`, written and hashed front to back.
// Safe because all but `sync` and `length` is confined to one thread at a time (the port's contract), and
// those two read only the immutable descriptor and the locked length.
package final class StagedFile: PartialFile, @unchecked Sendable {
  package let name: String
  private let directory: Descriptor
  private var descriptor: Descriptor?
  private let written = Locked<UInt64>(0)
  private let hashing: any Hashing
  private var check = ContentCheck()
  private var hasher: (any Hasher)?
  private var pieces: PieceCheck?
  private var writtenBack: UInt64 = 0

  /// Bytes after which the kernel is asked to start writing, so that the last fsync finds little to do.
  private static let writeBackStep: UInt64 = 8 << 20

  init(name: String, directory: Descriptor, descriptor: Descriptor, hashing: any Hashing) {
    self.name = name
    self.directory = directory
    self.descriptor = descriptor
    self.hashing = hashing
  }

  package var length: UInt64 { written.withLock { $0 } }

  /// For the publisher; nil once closed.
  var open: Descriptor? { descriptor }

  package func begin(keeping keep: UInt64, check: ContentCheck) throws(FolderFailure) -> UInt64 {
    let file = try opened()
    self.check = check
    let present = try FileStat.of(file, nameBytes).size
    var kept = min(keep, present, check.size ?? .max)
    restartHashing()
    kept = try rehash(kept, of: file)
    try kernel("shorten", nameBytes, tarn_truncate(file.number, kept))
    written.withLock { $0 = kept }
    writtenBack = kept
    if let size = check.size, size > kept {
      let result = tarn_reserve(file.number, size)
      if result != -EOPNOTSUPP, result != -ENOSYS, result != -EINVAL {
        try kernel("reserve \(size) bytes for", nameBytes, result)
      }
    }
    return kept
  }

  package func append(_ bytes: UnsafeRawBufferPointer) throws(FolderFailure) {
    let file = try opened()
    let start = length
    if let size = check.size, UInt64(bytes.count) > size - min(size, start) {
      throw FolderFailure(.sizeMismatch, "the server sends more than the \(size) bytes that the feed says")
    }
    try write(bytes, to: file, at: start)
    hasher?.update(bytes)
    if var pieces {
      let bad = pieces.update(bytes)
      self.pieces = pieces
      if let bad { try rejectPiece(bad, file) }
    }
    let end = start + UInt64(bytes.count)
    written.withLock { $0 = end }
    if end - writtenBack >= Self.writeBackStep {
      _ = tarn_start_writeback(file.number, writtenBack, end - writtenBack)
      writtenBack = end
    }
  }

  package func sync() throws(FolderFailure) -> UInt64 {
    let length = self.length
    let file = try opened()
    try kernel("make durable", nameBytes, tarn_sync_data(file.number))
    return length
  }

  package func seal(modified: Timestamp?) throws(FolderFailure) -> Sealed {
    let file = try opened()
    let length = self.length
    if let size = check.size, size != length {
      throw FolderFailure(.sizeMismatch, "it has \(length) bytes, the feed says \(size)")
    }
    if var pieces, let bad = pieces.finish() { try rejectPiece(bad, file) }
    guard let digest = hasher?.finish() else {
      throw FolderFailure(.other, "the file was not begun")
    }
    hasher = nil
    if let wanted = check.digest, wanted != digest {
      throw FolderFailure(
        .digestMismatch, "its \(digest.algorithm.name) is \(digest.hex), the feed says \(wanted.hex)")
    }
    try kernel("set the mode of", nameBytes, tarn_set_mode(file.number, 0o644))
    if let modified {
      let seconds = modified.seconds
      let rest = modified.nanoseconds - seconds * 1_000_000_000
      try kernel("set the time of", nameBytes, tarn_set_modified(file.number, seconds, rest))
    }
    let stat = try FileStat.of(file, nameBytes)
    guard stat.size == length else {
      throw FolderFailure(.sizeMismatch, "it has \(stat.size) bytes on disk, \(length) were written")
    }
    return Sealed(identity: stat.identity, digest: digest, isVerified: check.digest != nil)
  }

  package func close() {
    descriptor = nil
  }

  package func discard() {
    descriptor = nil
    _ = tarn_unlink(directory.number, cString(name))
  }

  private var nameBytes: [UInt8] { Array(name.utf8) }

  private func opened() throws(FolderFailure) -> Descriptor {
    guard let descriptor else { throw FolderFailure(.missing, "the partial file is closed") }
    return descriptor
  }

  private func restartHashing() {
    hasher = hashing.hasher(check.digest?.algorithm ?? .sha256)
    pieces = check.pieces.flatMap { PieceCheck($0, size: check.size, hashing: hashing) }
  }

  /// Reads what is kept again, and hashes it.
  ///
  /// - Returns: the bytes that are good: less than asked when a piece is wrong.
  private func rehash(_ count: UInt64, of file: Descriptor) throws(FolderFailure) -> UInt64 {
    guard count > 0 else { return 0 }
    _ = tarn_advise_sequential(file.number)
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4096)
    defer { buffer.deallocate() }
    var done: UInt64 = 0
    while done < count {
      let want = min(UInt64(buffer.count), count - done)
      let got = try kernel("read", nameBytes, tarn_read_at(file.number, buffer.baseAddress, Int(want), done))
      if got == 0 { break }
      let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<Int(got)])
      hasher?.update(bytes)
      if var pieces {
        let bad = pieces.update(bytes)
        self.pieces = pieces
        if let bad {
          restartHashing()
          return try rehash(bad, of: file)
        }
      }
      done += UInt64(got)
    }
    return done
  }

  private func write(_ bytes: UnsafeRawBufferPointer, to file: Descriptor, at offset: UInt64)
    throws(FolderFailure)
  {
    var done = 0
    while done < bytes.count {
      let rest = UnsafeRawBufferPointer(rebasing: bytes[done...])
      let count = tarn_write_at(file.number, rest.baseAddress, rest.count, offset + UInt64(done))
      done += Int(try kernel("write", nameBytes, count))
      if count == 0 { throw FolderFailure(cannot: "write", nameBytes, errno: EIO) }
    }
  }

  /// Cuts the file back to the pieces that are good.
  private func rejectPiece(_ good: UInt64, _ file: Descriptor) throws(FolderFailure) {
    try kernel("shorten", nameBytes, tarn_truncate(file.number, good))
    written.withLock { $0 = good }
    writtenBack = min(writtenBack, good)
    restartHashing()
    _ = try rehash(good, of: file)
    throw FolderFailure(.pieceMismatch, "the piece at byte \(good) is wrong", goodPrefix: good)
  }
}

/// Digests of consecutive pieces, checked as they fill.
struct PieceCheck {
  private let pieces: Pieces
  private let size: UInt64?
  private let hashing: any Hashing
  private var index = 0
  private var inPiece: UInt64 = 0
  private var hasher: any Hasher

  init?(_ pieces: Pieces, size: UInt64?, hashing: any Hashing) {
    guard pieces.length > 0, let first = pieces.digests.first else { return nil }
    self.pieces = pieces
    self.size = size
    self.hashing = hashing
    hasher = hashing.hasher(first.algorithm)
  }

  /// - Returns: where the first wrong piece begins; nil when all so far are good.
  mutating func update(_ bytes: UnsafeRawBufferPointer) -> UInt64? {
    var rest = bytes[...]
    while !rest.isEmpty {
      let room = pieces.length - inPiece
      let part = rest.prefix(Int(min(room, UInt64(rest.count))))
      hasher.update(UnsafeRawBufferPointer(rebasing: part))
      inPiece += UInt64(part.count)
      rest = rest.dropFirst(part.count)
      if inPiece == pieces.length, let bad = close() { return bad }
    }
    return nil
  }

  /// The last piece may be short.
  mutating func finish() -> UInt64? {
    inPiece > 0 ? close() : nil
  }

  private mutating func close() -> UInt64? {
    let digest = hasher.finish()
    guard index < pieces.digests.count, pieces.digests[index] == digest else {
      return UInt64(index) * pieces.length
    }
    index += 1
    inPiece = 0
    hasher = hashing.hasher(digest.algorithm)
    return nil
  }
}
