import Glibc
import LinuxShim
import TarnCore
import TarnRuntime

/// Another process holds the folder.
package struct FolderBusy: Error, Sendable, Equatable {
  /// 0 when it cannot be told.
  package var process: Int32
  /// Its command line; empty when it cannot be told.
  package var command: String
}

/// One writer per folder (I12): a lock on `lock` in the state directory, so by whatever path the folder is
/// reached. Held until released or until the process ends. Any thread.
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
    // Who looks between the next one's lock and its signature is not to be told of this process.
    _ = held.use { tarn_truncate($0, 0) }
    _ = held.use(tarn_unlock)
  }
}

extension FolderHome {
  var lockPath: String { stateDirectory + "/" + Self.lockName }

  /// Never waits for the lock; for its holder's signature, which may be being written, a tenth of a second.
  ///
  /// - Parameters:
  ///   - probe: see `open`.
  ///   - pause: between two looks for the signature.
  /// - Throws: `FolderBusy`, or a `FolderFailure`.
  package func lock(probe: FolderProbe? = nil, pause: () -> Void = shortPause) throws -> FolderLock {
    while true {
      let number = tarn_open_at(AT_FDCWD, cString(lockPath), O_RDWR | O_CREAT | O_NOFOLLOW, 0o600)
      let file = Descriptor(try kernel("open", lockPath.utf8, number))
      let result = probed(.lock, probe) { file.use(tarn_lock) }
      if result == -EAGAIN { throw Self.busy(lockPath, pause) }
      try kernel("lock", lockPath.utf8, result)
      // Removed between the opening and the lock (`tarn forget`): then this is a lock of nothing.
      guard let there = try FileStat.following(lockPath),
        there.isSameObject(as: try FileStat.of(file, lockPath.utf8))
      else { continue }
      let lock = FolderLock(file)
      do throws(FolderFailure) {
        try Self.sign(file, lockPath, probe)
      } catch {
        // To close it is not enough: a process that is being started has its descriptors, too, for a moment.
        lock.release()
        throw error
      }
      return lock
    }
  }

  /// The process that holds the lock now; nil when nobody does, or when it cannot be told: its signature may be being
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

  /// Who holds it, for the next one who asks: the process, and when it started, in the kernel's ticks.
  ///
  /// On a full disk the lock is held without: `tarn trash empty` needs it to make room.
  private static func sign(
    _ file: Descriptor, _ path: String, _ probe: FolderProbe?
  ) throws(FolderFailure) {
    let text = Array("\(getpid()) \(startTime(of: getpid()) ?? 0)\n".utf8)
    try kernel("shorten", path.utf8, file.use { tarn_truncate($0, 0) })
    let count = file.use { number in
      probed(.write, probe) { Int32(tarn_write_at(number, text, text.count, 0)) }
    }
    if count == -ENOSPC || count == -EDQUOT { return }
    try kernel("write", path.utf8, count)
    // Half a signature is none.
    if count < text.count { _ = file.use { tarn_truncate($0, 0) } }
  }

  /// The signature once it is whole and its process is there; else what was read last: that of a process that ended,
  /// or that lives in another container. nil when nothing can be read.
  private static func settled(_ path: String, _ pause: () -> Void) -> (process: Int32, started: UInt64)? {
    var last: (process: Int32, started: UInt64)?
    for look in 1...mostLooks {
      last = holder(in: path)
      if let last, startTime(of: last.process) == last.started { break }
      if look < mostLooks { pause() }
    }
    return last
  }

  private static func holder(in path: String) -> (process: Int32, started: UInt64)? {
    let words = ((try? SmallFile.read(path)) ?? "").split(whereSeparator: { $0 == " " || $0 == "\n" })
    guard words.count == 2, let process = Int32(words[0]), let started = UInt64(words[1]) else { return nil }
    return (process, started)
  }

  private static func busy(_ path: String, _ pause: () -> Void) -> FolderBusy {
    // Another start time: the number belongs to somebody else by now, or to another container.
    guard let holder = settled(path, pause) else { return FolderBusy(process: 0, command: "") }
    guard startTime(of: holder.process) == holder.started,
      let text = SmallFile.readProc("/proc/\(holder.process)/cmdline")
    else { return FolderBusy(process: holder.process, command: "") }
    return FolderBusy(process: holder.process, command: text.split(separator: "\0").joined(separator: " "))
  }

  /// Field 22 of /proc/PID/stat (proc(5)); the command in field 2 may hold blanks and brackets.
  private static func startTime(of process: Int32) -> UInt64? {
    guard let text = SmallFile.readProc("/proc/\(process)/stat"), let bracket = text.lastIndex(of: ")") else {
      return nil
    }
    let fields = text[text.index(after: bracket)...].split(separator: " ")
    return fields.count > 19 ? UInt64(fields[19]) : nil
  }
}
