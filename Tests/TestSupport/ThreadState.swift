import Glibc

/// A thread of this process as the kernel sees it (proc(5), /proc/PID/task/TID/stat).
package struct ThreadState: Sendable {
  private let path: String

  /// The calling thread.
  package static var current: ThreadState {
    var name = [CChar](repeating: 0, count: 64)
    // `PID/task/TID`.
    let count = readlink("/proc/thread-self", &name, name.count)
    let text = String(decoding: name.prefix(max(0, count)).map(UInt8.init(bitPattern:)), as: UTF8.self)
    return ThreadState(path: "/proc/\(text)/stat")
  }

  /// It waits for something.
  package var isAsleep: Bool {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return false }
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: 512)
    let count = read(file, &bytes, bytes.count)
    guard count > 0, let end = bytes[..<count].lastIndex(of: UInt8(ascii: ")")) else { return false }
    return bytes[..<count].dropFirst(end + 2).first == UInt8(ascii: "S")
  }
}

/// Asks again and again, for two minutes at most: of what nobody signals.
package func isSoInTime(_ isSo: () throws -> Bool) rethrows -> Bool {
  let deadline = ContinuousClock.now + .seconds(120)
  while ContinuousClock.now < deadline {
    if try isSo() { return true }
    _ = poll(nil, 0, 1)
  }
  return false
}
