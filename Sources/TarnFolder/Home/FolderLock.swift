import Glibc
import LinuxShim
import TarnCore
import TarnRuntime

/// The error when another process holds the folder.
package struct FolderBusy: Error, Sendable, Equatable {
  /// The process; 0 when it is not known.
  package var process: Int32
  /// The command line of the process; empty when it is not known.
  package var command: String
}

/// The lock of a folder, which allows one writer (I12). It locks the file `lock` in the state directory, so that it works by
/// whatever path the folder is reached. Held until released or until the process ends. Any thread.
package final class FolderLock: Sendable {
  private let descriptor: Locked<Descriptor?>

  init(_ descriptor: Descriptor) {
    self.descriptor = Locked(descriptor)
  }

  deinit {
    release()
  }

  package func release() {
    guard let held = descriptor.withLock({ $0.take() }) else { return }
    // A process that looks between the next holder's lock and its signature must not be told of this process.
    _ = held.use { tarn_truncate($0, 0) }
    _ = held.use(tarn_unlock)
  }
}

extension FolderHome {
  var lockPath: String { stateDirectory + "/" + Self.lockName }

  /// Takes the lock without waiting for it. Waits at most a tenth of a second for the signature of the holder, which may be being
  /// written.
  ///
  /// - Parameters:
  ///   - probe: see `open`.
  ///   - pause: waits between two looks for the signature.
  /// - Throws: `FolderBusy`, or a `FolderFailure`.
  package func lock(probe: FolderProbe? = nil, pause: () -> Void = shortPause) throws -> FolderLock {
    while true {
      let number = tarn_open_at(AT_FDCWD, cString(lockPath), O_RDWR | O_CREAT | O_NOFOLLOW, 0o600)
      let file = Descriptor(try kernel("open", lockPath.utf8, number))
      let result = probed(.lock, probe) { file.use(tarn_lock) }
      if result == -EAGAIN { throw Self.busy(lockPath, pause) }
      try kernel("lock", lockPath.utf8, result)
      // The file was removed between the opening and the lock (`tarn forget`): then the lock is void.
      guard let there = try FileStat.following(lockPath),
        there.isSameObject(as: try FileStat.of(file, lockPath.utf8))
      else { continue }
      let lock = FolderLock(file)
      do throws(FolderFailure) {
        try Self.sign(file, lockPath, probe)
      } catch {
        // Closing is not enough: a process that is being started shares the descriptors for a moment.
        lock.release()
        throw error
      }
      return lock
    }
  }

  /// Returns the process that holds the lock now. `nil` when nobody does, and when it is not known: the signature may be being
  /// written, or have found no space. Takes no lock.
  package func holder() -> Int32? {
    let number = tarn_open_at(AT_FDCWD, cString(lockPath), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0)
    guard number >= 0 else { return nil }
    let file = Descriptor(number)
    guard file.use(tarn_is_locked) == 1 else { return nil }
    return Self.settled(lockPath, Self.shortPause)?.process
  }

  package static let shortPause: @Sendable () -> Void = { usleep(10_000) }
  private static let mostLooks = 10

  /// Writes who holds the lock, for the next process that asks: the process ID and its start time in the kernel's ticks.
  ///
  /// On a full disk the lock is held without a signature: `tarn trash empty` needs it to make room.
  private static func sign(
    _ file: Descriptor, _ path: String, _ probe: FolderProbe?
  ) throws(FolderFailure) {
    let text = Array(ProcessMark(of: getpid()).text.utf8)
    try kernel("shorten", path.utf8, file.use { tarn_truncate($0, 0) })
    let count = file.use { number in
      probed(.write, probe) { Int32(tarn_write_at(number, text, text.count, 0)) }
    }
    if count == -ENOSPC || count == -EDQUOT { return }
    try kernel("write", path.utf8, count)
    // Half a signature counts as none.
    if count < text.count { _ = file.use { tarn_truncate($0, 0) } }
  }

  /// Returns the signature once it is complete and its process exists; otherwise what was read last, of a process that ended or
  /// lives in another container. `nil` when nothing can be read.
  private static func settled(_ path: String, _ pause: () -> Void) -> ProcessMark? {
    var last: ProcessMark?
    for look in 1...mostLooks {
      last = (try? SmallFile.read(path)).flatMap { ProcessMark($0) }
      if last?.exists == true { break }
      if look < mostLooks { pause() }
    }
    return last
  }

  private static func busy(_ path: String, _ pause: () -> Void) -> FolderBusy {
    // With another start time the process ID belongs to another process by now, or to another container.
    guard let holder = settled(path, pause) else { return FolderBusy(process: 0, command: "") }
    guard holder.exists,
      let text = SmallFile.readProc("/proc/\(holder.process)/cmdline")
    else { return FolderBusy(process: holder.process, command: "") }
    return FolderBusy(process: holder.process, command: text.split(separator: "\0").joined(separator: " "))
  }
}
