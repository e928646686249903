import Glibc
import LinuxShim
package import TarnCore
import TarnRuntime

/// A file in `partial/`, written and hashed front to back.
///
/// After a write-back error (a failed fdatasync or fsync) the kernel's view of the file cannot be trusted. Every later call fails
/// with that error, and the bytes are fetched again into a new file.
package final class StagedFile: PartialFile, @unchecked Sendable {
  // Safe because the port confines a partial file to one thread at a time, the hash thread has nothing but a RunningCheck
  // and bytes that are lent, and all that `sync` and `length` touch is behind the lock of `shared`.

  /// The source of the digest and the size that a file is checked against.
  enum CheckOrigin: Equatable {
    case feed
    /// A request, whose file lies beside its destination under this path.
    case request(String)

    var says: String { self == .feed ? "the feed says" : "wanted:" }
    var thatItSays: String { self == .feed ? "that the feed says" : "that are wanted" }
    var whatItSays: String { self == .feed ? "what the feed says" : "what is wanted" }
  }

  /// The fields that `sync` reads while another thread appends.
  private struct Shared {
    var descriptor: Descriptor?
    var length: UInt64 = 0
    /// The number of times that the file was cut. Bytes that were durable may be different ones now.
    var cuts = 0
    var failure: FolderFailure?
  }

  package let name: String
  /// The source of the digest and the size, for messages.
  private let origin: CheckOrigin
  private let directory: Descriptor
  /// The file when it was opened; `nil` for a file that was just made.
  private let found: FileStat?
  private let hashing: any Hashing
  private let probe: FolderProbe?
  private let shared: Locked<Shared>
  private let hashThread: HashThread?
  /// The mode of the file under its final name.
  private let mode: UInt32
  /// The check of the contents that `begin` started.
  private var contents: RunningCheck?
  /// The check for the next bytes after a wrong piece, once the bytes before it are read again.
  private var rejected: ContentCheck?
  private(set) var sealed: Sealed?
  private var writtenBack: UInt64 = 0

  /// The number of bytes after which the kernel is asked to start writing, so that the last fsync has little to do.
  private static let writeBackStep: UInt64 = 8 << 20
  /// The smallest size for which room is reserved. For smaller files a lack of room shows early enough.
  private static let leastReserved: UInt64 = 1 << 20

  /// The smallest size from which a file is hashed while it is written. For smaller files both are over too soon.
  private static let leastShared: UInt64 = 4 << 20

  /// - Parameters:
  ///   - directory: the directory `partial/`.
  ///   - found: what stat says of the descriptor; `nil` for a file that was just made.
  ///   - hashThread: hashes the bytes of a large file concurrently; `nil` to hash in sequence.
  ///   - mode: the mode of the file under its final name.
  ///   - origin: the source of the digest and the size, for messages.
  init(
    name: String, directory: Descriptor, descriptor: Descriptor, found: FileStat?, hashing: any Hashing,
    probe: FolderProbe?, hashThread: HashThread? = nil, mode: UInt32 = LocalFolder.mode,
    origin: CheckOrigin = .feed
  ) {
    self.name = name
    self.origin = origin
    self.directory = directory
    self.hashing = hashing
    self.probe = probe
    self.hashThread = hashThread
    self.mode = mode
    self.found = found
    shared = Locked(Shared(descriptor: descriptor, length: found?.size ?? 0))
  }

  package var length: UInt64 { shared.withLock { $0.length } }

  package func opening(most: Int) -> [UInt8] {
    guard let file = try? opened() else { return [] }
    return readOpening(file, most: most) ?? []
  }

  /// The name of the file in messages.
  var label: [UInt8] { Array(shown.utf8) }

  private var shown: String {
    switch origin {
    case .feed: "partial/\(isUnnamed ? "(unnamed)" : name)"
    case .request(let path): path
    }
  }

  /// True when only this descriptor leads to the file, until it is installed.
  var isUnnamed: Bool { name.isEmpty }

  // MARK: Contents

  package func begin(keeping keep: UInt64, check: ContentCheck) throws(FolderFailure) -> UInt64 {
    let file = try opened()
    if let contents { finishHashing(contents) }
    (contents, rejected, sealed) = (nil, nil, nil)
    // A file that was never written to has nothing to keep and nothing to drop.
    var kept = isUntouched ? 0 : min(keep, try FileStat.of(file, label).size)
    while true {
      let fresh = RunningCheck(check, hashing)
      kept = min(kept, fresh.limit)
      let good = try rehash(file, kept, fresh)
      if good == kept {
        try cut(file, to: kept)
        try reserve(file, beyond: kept, check.size)
        contents = fresh
        return kept
      }
      kept = good
    }
  }

  package func append(_ bytes: UnsafeRawBufferPointer) throws(FolderFailure) {
    let contents = try appendUnhashed(bytes)
    finishHashing(contents)
    contents.update(bytes)
    try refuseWrongPiece(contents)
  }

  package func append(
    lent bytes: UnsafeRawBufferPointer, whenRead: @escaping @Sendable () -> Void
  ) throws(FolderFailure) {
    let contents: RunningCheck
    do throws(FolderFailure) {
      contents = try appendUnhashed(bytes)
    } catch {
      whenRead()
      throw error
    }
    let lent = Lent(bytes: bytes)
    let isHandedOver =
      length >= Self.leastShared
      && hashThread?.handOver(of: contents) {
        contents.update(lent.bytes)
        whenRead()
      } == true
    if !isHandedOver {
      contents.update(bytes)
      whenRead()
    }
    try refuseWrongPiece(contents)
  }

  /// - Returns: the check that these bytes go through next.
  private func appendUnhashed(_ bytes: UnsafeRawBufferPointer) throws(FolderFailure) -> RunningCheck {
    let file = try opened()
    let contents = try running()
    let (start, limit) = (length, contents.limit)
    guard UInt64(bytes.count) <= limit - min(limit, start) else {
      // An earlier piece may be wrong, which is the more useful failure.
      try settle()
      throw FolderFailure(
        .sizeMismatch, "there is more than the \(Units.count(limit, "byte")) \(origin.thatItSays)")
    }
    // Otherwise the beginning would be a hole.
    if start > 0, try FileStat.of(file, label).size < start {
      throw FolderFailure(.other, "\(shown) was shortened by somebody else while it was written")
    }
    do throws(FolderFailure) {
      try write(bytes, to: file, at: start)
    } catch {
      // Bytes beyond `length` would be taken for checked ones after a restart.
      _ = file.use { tarn_truncate($0, start) }
      throw error
    }
    let end = start + UInt64(bytes.count)
    shared.withLock { $0.length = end }
    try startWriteBack(file, upTo: end)
    return contents
  }

  /// Returns the check that the next bytes go through.
  private func running() throws(FolderFailure) -> RunningCheck {
    if let contents { return contents }
    guard let rejected else { throw FolderFailure(.other, "\(shown) is not begun") }
    let good = length
    let kept = try begin(keeping: good, check: rejected)
    guard kept == good, let contents else { throw wrongPiece(at: kept) }
    return contents
  }

  package func settle() throws(FolderFailure) {
    guard let contents else { return }
    finishHashing(contents)
    try refuseWrongPiece(contents)
  }

  /// Waits until no other thread hashes it and nothing is left to hash.
  private func finishHashing(_ contents: RunningCheck) { hashThread?.settle(contents) }

  private func refuseWrongPiece(_ contents: RunningCheck) throws(FolderFailure) {
    guard let good = contents.wrongPiece else { return }
    throw try rejectPiece(at: good, contents.check)
  }

  /// Bytes that another thread reads while their owner leaves them unchanged.
  private struct Lent: @unchecked Sendable {
    // Safe because they stay until `whenRead` is called.
    let bytes: UnsafeRawBufferPointer
  }

  package func seal(modified: Timestamp?) throws(FolderFailure) -> Sealed {
    let file = try opened()
    if let sealed { return sealed }
    let contents = try running()
    try settle()
    let length = self.length
    if let size = contents.check.size, size != length {
      throw FolderFailure(
        .sizeMismatch, "it has \(Units.count(length, "byte")), \(origin.says) \(Units.grouped(size))")
    }
    if let wrong = contents.finishPieces() { throw try rejectPiece(at: wrong, contents.check) }
    self.contents = nil
    let digest = contents.finishDigest()
    if let wanted = contents.check.digest, wanted != digest {
      let other =
        digest.algorithm == .sha512 ? " (or is that a BLAKE2b, of b2sum? Tarn does not check these)" : ""
      throw FolderFailure(
        .digestMismatch, "the \(digest.algorithm.name) is \(digest.hex), \(origin.says) \(wanted.hex)\(other)"
      )
    }
    let identity = try finishAttributes(file, modified)
    guard identity.size == length else {
      throw FolderFailure(
        .sizeMismatch,
        "\(shown) has \(Units.count(identity.size, "byte")), and Tarn wrote \(length): somebody changed it"
      )
    }
    let result = Sealed(identity: identity, digest: digest, isVerified: contents.check.digest != nil)
    sealed = result
    return result
  }

  private func finishAttributes(
    _ file: Descriptor, _ modified: Timestamp?
  ) throws(FolderFailure) -> FileIdentity {
    if let modified {
      let seconds = modified.seconds
      let rest = modified.nanoseconds - seconds * 1_000_000_000
      try kernel("set the time of", label, file.use { tarn_set_modified($0, seconds, rest) })
    }
    let stat = try FileStat.of(file, label)
    guard stat.permissions != mode else { return stat.identity }
    try kernel("set the mode of", label, file.use { tarn_set_mode($0, mode) })
    return try FileStat.of(file, label).identity
  }

  // MARK: Durability

  package func sync() throws(FolderFailure) -> UInt64 {
    while true {
      let file = try opened()
      let (length, cuts) = shared.withLock { ($0.length, $0.cuts) }
      try makeDurable(.syncData, file.use { number in probed(.syncData, probe) { tarn_sync_data(number) } })
      // If the file was cut and written again meanwhile, it is not known which bytes are durable.
      if shared.withLock({ $0.cuts == cuts }) { return length }
    }
  }

  /// Calls fsync.
  func syncAll() throws(FolderFailure) {
    let file = try opened()
    try makeDurable(.syncFile, file.use { number in probed(.syncFile, probe) { tarn_sync(number) } })
  }

  /// Checks whether writing back this file has failed since it was opened. Cheap once it is written back.
  func checkWriteback() throws(FolderFailure) {
    let file = try opened()
    let result = file.use { number in probed(.checkWriteback, probe) { tarn_check_writeback(number) } }
    guard result < 0, !Self.lostBytes.contains(-result) else {
      return try makeDurable(.checkWriteback, result)
    }
    try syncAll()
  }

  /// The errors of a failed write-back. Any other error means that the kernel could not be asked.
  private static let lostBytes: Set<Int32> = [EIO, ENOSPC, EDQUOT]

  private func makeDurable(_ step: FolderStep, _ result: Int32) throws(FolderFailure) {
    guard result < 0 else { return }
    let failure = FolderFailure(cannot: "make durable", label, errno: -result)
    shared.withLock { $0.failure = failure }
    throw failure
  }

  // MARK: The end

  package func close() {
    // It is closed when the lock is free again, and when a running `sync` has ended.
    _ = shared.withLock { $0.descriptor.take() }
  }

  package func discard() {
    // Once the file is published or in the trash, its name may stand for another file. A file that was made and closed is left to
    // the next pass.
    let known =
      isUnnamed ? nil : found ?? shared.withLock(\.descriptor).flatMap { try? FileStat.of($0, label) }
    if let known, let there = try? FileStat.at(directory, cString(name)), there.isSameObject(as: known) {
      _ = directory.use { tarn_unlink($0, cString(name)) }
    }
    close()
  }

  /// Returns the descriptor, also for the publisher. Throws when the file is closed or has failed.
  func opened() throws(FolderFailure) -> Descriptor {
    let (descriptor, failure) = shared.withLock { ($0.descriptor, $0.failure) }
    if let failure { throw failure }
    guard let descriptor else { throw FolderFailure(.other, "\(shown) is closed") }
    return descriptor
  }

  // MARK: Parts

  /// Reads the kept bytes again and hashes them.
  ///
  /// - Returns: the number of good bytes; less than asked when a piece is wrong or the file is shorter.
  private func rehash(
    _ file: Descriptor, _ count: UInt64, _ contents: RunningCheck
  ) throws(FolderFailure) -> UInt64 {
    var wrong: UInt64?
    let read = try readAll(file, label, limit: count) { bytes throws(FolderFailure) in
      guard wrong == nil else { return }
      contents.update(bytes)
      wrong = contents.wrongPiece
    }
    return wrong ?? read
  }

  private func write(
    _ bytes: UnsafeRawBufferPointer, to file: Descriptor, at offset: UInt64
  ) throws(FolderFailure) {
    if let probe { try kernel("write", label, probed(.write, probe) { 0 }) }
    var done = 0
    while done < bytes.count {
      let rest = UnsafeRawBufferPointer(rebasing: bytes[done...])
      let count = file.use { tarn_write_at($0, rest.baseAddress, rest.count, offset + UInt64(done)) }
      done += Int(try kernel("write", label, count))
      if count == 0 { throw FolderFailure(cannot: "write", label, errno: EIO) }
    }
  }

  /// Tells that bytes came in by another way than `append`: `begin` reads them.
  func wasFilled() { shared.withLock { $0.cuts += 1 } }

  /// True when the file was made empty and nothing was done to it since.
  private var isUntouched: Bool {
    (found?.size ?? 0) == 0 && shared.withLock { $0.length == 0 && $0.cuts == 0 }
  }

  private func cut(_ file: Descriptor, to length: UInt64) throws(FolderFailure) {
    let present = isUntouched ? 0 : try FileStat.of(file, label).size
    if present != length { try kernel("shorten", label, file.use { tarn_truncate($0, length) }) }
    shared.withLock {
      $0.length = length
      $0.cuts += 1
    }
    writtenBack = length
  }

  /// Reserves room for the whole file, so that a full disk shows before anything is fetched.
  private func reserve(_ file: Descriptor, beyond kept: UInt64, _ size: UInt64?) throws(FolderFailure) {
    guard let size, size > kept, size >= Self.leastReserved else { return }
    guard size <= UInt64(Int64.max) else {
      throw FolderFailure(cannot: "reserve room for", label, errno: EFBIG)
    }
    let result = file.use { number in probed(.reserve, probe) { tarn_reserve(number, size) } }
    switch -result {
    case ENOSPC, EDQUOT, EFBIG, EIO, EROFS:
      // Releases what was reserved.
      _ = file.use { tarn_truncate($0, kept) }
      try kernel("reserve \(Units.count(size, "byte")) for", label, result)
    default: break  // Not every file system can.
    }
  }

  /// Asks the kernel to start writing back. It is a hint: failures do not matter, except for lost bytes.
  private func startWriteBack(_ file: Descriptor, upTo end: UInt64) throws(FolderFailure) {
    guard end - writtenBack >= Self.writeBackStep else { return }
    let result = file.use { number in
      probed(.startWriteback, probe) { tarn_start_writeback(number, writtenBack, end - writtenBack) }
    }
    if result == -EIO { try makeDurable(.startWriteback, result) }
    writtenBack = end
  }

  /// Cuts the file back to the good pieces. The running digest has gone further, so the pieces are read again when more bytes come.
  ///
  /// - Returns: the failure to throw.
  private func rejectPiece(at good: UInt64, _ check: ContentCheck) throws(FolderFailure) -> FolderFailure {
    contents = nil
    try cut(try opened(), to: good)
    rejected = check
    return wrongPiece(at: good)
  }

  private func wrongPiece(at good: UInt64) -> FolderFailure {
    FolderFailure(.pieceMismatch, "the piece at byte \(good) is not \(origin.whatItSays)", goodPrefix: good)
  }
}
