import Glibc
import LinuxShim
import TarnCore

/// Another process holds the folder.
package struct FolderBusy: Error, Sendable, Equatable {
  /// 0 when it cannot be told.
  package var process: Int32
  /// Its command line; empty when it cannot be told.
  package var command: String
}

/// One writer per folder (I12): flock on `lock` in the state directory, so by whatever path the folder is reached.
/// Held until released or until the process ends.
// Safe because it is released by its one owner; the descriptor is otherwise only kept.
package final class FolderLock: @unchecked Sendable {
  private var descriptor: Descriptor?

  init(_ descriptor: Descriptor) {
    self.descriptor = descriptor
  }

  package func release() {
    descriptor = nil
  }
}

extension FolderHome {
  /// Waits for a fifth of a second at most: `holder` of another process has it for a moment.
  ///
  /// - Throws: `FolderBusy`, or a `FolderFailure`.
  package func lock() throws -> FolderLock {
    let path = stateDirectory + "/lock"
    let flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC
    let number = tarn_open_at(AT_FDCWD, cString(path), flags, 0o600)
    let file = Descriptor(try kernel("open", Array(path.utf8), number))
    var result = tarn_lock(file.number)
    for _ in 0..<10 where result == -EWOULDBLOCK || result == -EAGAIN {
      usleep(20_000)
      result = tarn_lock(file.number)
    }
    if result == -EWOULDBLOCK || result == -EAGAIN {
      let process = Self.readProcess(path)
      throw FolderBusy(process: process, command: Self.command(of: process))
    }
    try kernel("lock", Array(path.utf8), result)
    let text = Array("\(getpid())\n".utf8)
    try kernel("shorten", Array(path.utf8), tarn_truncate(file.number, 0))
    _ = try kernel("write", Array(path.utf8), tarn_write_at(file.number, text, text.count, 0))
    return FolderLock(file)
  }

  /// The process that holds the lock now; nil when nobody does, or when it cannot be told.
  package func holder() -> Int32? {
    let path = stateDirectory + "/lock"
    let number = tarn_open_at(AT_FDCWD, cString(path), O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0)
    guard number >= 0 else { return nil }
    let file = Descriptor(number)
    let result = tarn_lock(file.number)
    guard result == -EWOULDBLOCK || result == -EAGAIN else { return nil }
    return Self.readProcess(path)
  }

  private static func readProcess(_ path: String) -> Int32 {
    Int32((SmallFile.read(path) ?? "").prefix { $0.isNumber }) ?? 0
  }

  private static func command(of process: Int32) -> String {
    guard process > 0, let text = SmallFile.readProc("/proc/\(process)/cmdline") else { return "" }
    return text.split(separator: "\0").joined(separator: " ")
  }
}

extension SmallFile {
  /// A file of /proc, whose size is not told.
  static func readProc(_ path: String) -> String? {
    let number = tarn_open_at(AT_FDCWD, cString(path), O_RDONLY | O_CLOEXEC, 0)
    guard number >= 0 else { return nil }
    let file = Descriptor(number)
    var buffer = [UInt8](repeating: 0, count: 4096)
    let count = tarn_read_at(file.number, &buffer, buffer.count, 0)
    return count < 0 ? nil : String(decoding: buffer[..<Int(count)], as: UTF8.self)
  }
}
