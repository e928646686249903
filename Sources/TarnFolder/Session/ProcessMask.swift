import TarnRuntime

/// Reads the umask of the process. umask(2) would change it for all threads meanwhile.
enum ProcessMask {
  /// Returns the umask; 022 where /proc does not show it (proc(5): Umask, since Linux 4.7).
  static func read() -> UInt32 {
    let lines = TextFile.read("/proc/self/status", limit: 1 << 16)?.split(separator: "\n") ?? []
    let text = lines.first { $0.hasPrefix("Umask:") }?.split(separator: "\t").last
    return text.flatMap { UInt32($0, radix: 8) } ?? 0o022
  }
}
