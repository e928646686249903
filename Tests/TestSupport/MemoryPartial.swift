package import TarnCore

/// A file in the `partial/` of a `MemoryFolder`; the same refusals as a file on disk.
package final class MemoryPartial: PartialFile, @unchecked Sendable {
  // Safe because the port confines it to one thread at a time; `sync` and the folder read what is behind the
  // folder's lock.
  package let name: String
  private let folder: MemoryFolder
  private let file: MemoryFile
  private var isClosed = false
  private var sealed: FileIdentity?
  private var running: Running?

  private struct Running {
    var check: ContentCheck
    var hasher: any Hasher
  }

  init(name: String, folder: MemoryFolder, file: MemoryFile) {
    self.name = name
    self.folder = folder
    self.file = file
  }

  /// Called with the folder's lock held.
  var isOpen: Bool { !isClosed }
  var sealedIdentity: FileIdentity? { sealed }

  package var length: UInt64 { folder.reading { _ in UInt64(file.bytes.count) } }

  package func opening(most: Int) -> [UInt8] { folder.reading { _ in Array(file.bytes.prefix(most)) } }

  package func begin(keeping keep: UInt64, check: ContentCheck) throws(FolderFailure) -> UInt64 {
    try folder.withState { state throws(FolderFailure) in
      try state.run(.begin)
      try refuseClosed()
      let own = state.capacity == nil ? 0 : UInt64(file.bytes.count)
      if let size = check.size, size - min(size, own) > state.free {
        throw FolderFailure(.noSpace, "no room for \(size) bytes")
      }
      sealed = nil
      let limit = min(keep, UInt64(file.bytes.count), check.size ?? .max)
      let kept = goodPrefix(Array(file.bytes.prefix(Int(limit))), check.pieces) ?? limit
      file.bytes.removeLast(file.bytes.count - Int(kept))
      file.modified = state.tick()
      let hasher = folder.hashing.hasher(check.digest?.algorithm ?? .sha256)
      file.bytes.withUnsafeBytes { hasher.update($0) }
      running = Running(check: check, hasher: hasher)
      return kept
    }
  }

  package func append(_ bytes: UnsafeRawBufferPointer) throws(FolderFailure) {
    try folder.withState { state throws(FolderFailure) in
      try state.run(.append)
      try refuseClosed()
      guard let running else { throw FolderFailure(.other, "partial/\(name) is not begun") }
      if let size = running.check.size, UInt64(bytes.count) > size - min(size, UInt64(file.bytes.count)) {
        throw FolderFailure(.sizeMismatch, "more than \(size) bytes")
      }
      if state.capacity != nil, UInt64(bytes.count) > state.free {
        throw FolderFailure(.noSpace, "no room for \(bytes.count) more bytes")
      }
      file.bytes += bytes
      file.modified = state.tick()
      running.hasher.update(bytes)
      if let good = goodPrefix(file.bytes, running.check.pieces) { try reject(good) }
    }
  }

  package func sync() throws(FolderFailure) -> UInt64 {
    try folder.withState { state throws(FolderFailure) in
      try state.run(.sync)
      try refuseClosed()
      return UInt64(file.bytes.count)
    }
  }

  package func seal(modified: Timestamp?) throws(FolderFailure) -> Sealed {
    try folder.withState { state throws(FolderFailure) in
      try state.run(.seal)
      try refuseClosed()
      guard let running else { throw FolderFailure(.other, "partial/\(name) is not begun") }
      if let size = running.check.size, size != UInt64(file.bytes.count) {
        throw FolderFailure(.sizeMismatch, "\(file.bytes.count) bytes instead of \(size)")
      }
      if let good = goodPrefix(file.bytes, running.check.pieces, isWhole: true) { try reject(good) }
      self.running = nil
      let digest = running.hasher.finish()
      if let wanted = running.check.digest, wanted != digest {
        throw FolderFailure(.digestMismatch, "\(digest) instead of \(wanted)")
      }
      if let modified { file.modified = modified }
      file.touch(&state)
      sealed = file.identity
      return Sealed(identity: file.identity, digest: digest, isVerified: running.check.digest != nil)
    }
  }

  package func close() {
    folder.reading { state in
      isClosed = true
      state.unnamed[file.inode] = nil
    }
  }

  package func discard() {
    folder.reading { state in
      isClosed = true
      state.unnamed[file.inode] = nil
      if state.partial[name]?.file === file { state.partial[name] = nil }
    }
  }

  private func refuseClosed() throws(FolderFailure) {
    if isClosed { throw FolderFailure(.other, "partial/\(name) is closed") }
  }

  private func reject(_ good: UInt64) throws(FolderFailure) {
    file.bytes.removeLast(file.bytes.count - Int(good))
    if let check = running?.check {
      // What is good is hashed again, and the next bytes go on from there.
      let hasher = folder.hashing.hasher(check.digest?.algorithm ?? .sha256)
      file.bytes.withUnsafeBytes { hasher.update($0) }
      running = Running(check: check, hasher: hasher)
    }
    throw FolderFailure(.pieceMismatch, "the piece at \(good) is wrong", goodPrefix: good)
  }

  /// - Returns: where the first wrong piece begins; nil when all complete ones are good.
  private func goodPrefix(_ bytes: [UInt8], _ pieces: Pieces?, isWhole: Bool = false) -> UInt64? {
    guard let pieces, pieces.length > 0 else { return nil }
    let length = Int(clamping: pieces.length)
    for (index, digest) in pieces.digests.enumerated() {
      let (start, isPast) = index.multipliedReportingOverflow(by: length)
      if isPast || start >= bytes.count { break }
      let piece = Array(bytes[start...].prefix(length))
      if piece.count < length, !isWhole { break }
      if folder.hashing.digest(digest.algorithm, of: piece) != digest { return UInt64(start) }
    }
    return nil
  }
}
