import Glibc

/// Runs another program to its end and keeps its output.
package struct ChildProgram: Sendable {
  package let end: Subprocess.End
  /// The standard output, at most `limit` bytes.
  package let output: [UInt8]
  /// The standard error, at most `limit` bytes.
  package let messages: [UInt8]

  package var text: String { String(decoding: output, as: UTF8.self) }

  /// Finds a program by its path, or by a name in the system's directories, never in PATH.
  package static func find(_ name: String) -> String? {
    if name.hasPrefix("/") { return access(name, X_OK) == 0 ? name : nil }
    return ["/usr/bin", "/bin", "/usr/sbin", "/sbin"].lazy.map { "\($0)/\(name)" }
      .first { access($0, X_OK) == 0 }
  }

  /// Runs a program with an empty standard input.
  ///
  /// - Parameters:
  ///   - seconds: the time after which the program is killed.
  ///   - limit: the most bytes of each stream.
  /// - Returns: `nil` when it does not exist, or cannot be started.
  package static func run(
    _ name: String, _ arguments: [String], seconds: Int = 20, limit: Int = 8 << 20
  ) -> ChildProgram? {
    guard let program = find(name), let output = unnamedFile(), let messages = unnamedFile() else {
      return nil
    }
    defer {
      close(output)
      close(messages)
    }
    guard
      let process = try? Subprocess.start(
        [program] + arguments, environment: Subprocess.variables(variables), output: .descriptor(output),
        messages: .descriptor(messages))
    else { return nil }
    let end = wait(process, seconds: seconds)
    return ChildProgram(
      end: end, output: contents(output, limit), messages: contents(messages, limit))
  }

  /// The environment variables that are passed to such a program.
  private static let variables = [
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TZDIR", "TMPDIR", "XDG_CONFIG_HOME",
    "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "CONFIGURATION_DIRECTORY",
    "STATE_DIRECTORY",
    "RUNTIME_DIRECTORY", "CREDENTIALS_DIRECTORY", "TARN_SOCKET", "http_proxy", "https_proxy", "HTTPS_PROXY",
    "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY",
  ]

  /// Waits for the end, and kills the process after `seconds`.
  private static func wait(_ pid: pid_t, seconds: Int) -> Subprocess.End {
    var status: Int32 = 0
    for turn in 0... {
      let ended = waitpid(pid, &status, WNOHANG)
      if ended == pid || ended < 0 && errno != EINTR { break }
      if turn == seconds * 100 { kill(pid, SIGKILL) }
      usleep(10_000)
    }
    return Subprocess.End(waitStatus: status)
  }

  /// The directory for temporary files: `$TMPDIR`, or /tmp where that is not an absolute path.
  package static var temporaryDirectory: String {
    let named = getenv("TMPDIR").map { String(cString: $0) } ?? ""
    return named.hasPrefix("/") ? named : "/tmp"
  }

  private static func unnamedFile() -> Int32? {
    var name = Array("\(temporaryDirectory)/.tarn-XXXXXX".utf8CString)
    let descriptor = mkstemp(&name)
    guard descriptor >= 0 else { return nil }
    unlink(name)
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    return descriptor
  }

  private static func contents(_ descriptor: Int32, _ limit: Int) -> [UInt8] {
    guard lseek(descriptor, 0, SEEK_SET) == 0 else { return [] }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 64 << 10)
    while bytes.count < limit {
      let count = read(descriptor, &buffer, min(buffer.count, limit - bytes.count))
      guard count > 0 else { break }
      bytes += buffer[..<count]
    }
    return bytes
  }
}
