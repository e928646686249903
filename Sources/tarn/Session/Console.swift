import Glibc
import TarnCore
import TarnRuntime

/// Standard output and standard error of the process, and the block at the bottom of a terminal. Callable on
/// any thread. Lines are written whole, in the order of the calls, and a slow reader blocks the callers.
final class Console: Sendable {
  static let shared = Console()

  private struct State {
    /// The data that is not written yet.
    var buffer: [UInt8] = []
    /// The errno of the first failed write to standard output; 0 before that.
    var failure: Int32 = 0
    /// The lines of the block that is shown now.
    var block: [String] = []
    var outlivesReader = false
  }
  private let state = Locked(State())
  private let lock = SlowLock()
  private static let largestBuffer = 1 << 16

  /// Writes data to standard output with a line end.
  ///
  /// - Parameter now: false to gather up to 64 KiB before it is written.
  func data(_ line: String, now: Bool = true) {
    let isFull = state.withLock { state in
      state.buffer += line.utf8
      state.buffer.append(UInt8(ascii: "\n"))
      return state.buffer.count >= Self.largestBuffer
    }
    if now || isFull { flush() }
  }

  /// Writes a message to standard error with a line end, above the block if there is one.
  func message(_ line: String) {
    lock.withLock {
      let block = state.withLock { $0.block }
      let text = Self.erasing(block) + line + "\n" + block.joined(separator: "\n")
      _ = writeAll(STDERR_FILENO, Array(text.utf8))
    }
  }

  /// Replaces the block at the bottom of the terminal on standard error; without lines it is removed. The
  /// cursor stays visible, so nothing has to be restored when the process is killed.
  func draw(_ lines: [String]) {
    lock.withLock {
      let before = state.withLock { state in
        defer { state.block = lines }
        return state.block
      }
      guard !before.isEmpty || !lines.isEmpty else { return }
      let text = Self.erasing(before) + lines.joined(separator: "\n")
      _ = writeAll(STDERR_FILENO, Array(text.utf8))
    }
  }

  /// Writes text without a line end, such as a question, to standard error.
  func prompt(_ text: String) {
    lock.withLock { _ = writeAll(STDERR_FILENO, Array(text.utf8)) }
  }

  /// Writes raw text to standard output, such as a screen of `status --watch`.
  func frame(_ text: String) {
    state.withLock { $0.buffer += text.utf8 }
    flush()
  }

  /// True when standard output could not be written: nobody sees what is shown there.
  var isBroken: Bool { state.withLock { $0.failure != 0 } }

  /// Lets the process survive when the reader of standard output goes away, for the command changes things.
  func outliveReader() {
    state.withLock { $0.outlivesReader = true }
  }

  func flush() {
    lock.withLock {
      let (bytes, failure) = state.withLock { state in
        defer { state.buffer.removeAll(keepingCapacity: true) }
        return (state.buffer, state.failure)
      }
      guard failure == 0, !bytes.isEmpty else { return }
      // On a terminal the data takes the block's place, and the block follows below.
      let block = Terminal.output.isTerminal ? state.withLock { $0.block } : []
      if !block.isEmpty { _ = writeAll(STDERR_FILENO, Array(Self.erasing(block).utf8)) }
      let number = writeAll(STDOUT_FILENO, bytes)
      if !block.isEmpty { _ = writeAll(STDERR_FILENO, Array(block.joined(separator: "\n").utf8)) }
      guard number != 0 else { return }
      // The reader has seen enough; that is no failure, as in `tarn plan | head`.
      if number == EPIPE, !state.withLock({ $0.outlivesReader }) { _exit(0) }
      state.withLock { $0.failure = number }
    }
  }

  /// Writes the remaining data.
  ///
  /// - Returns: the exit status, which changes when the data could not be written.
  func finish(_ status: Int32) -> Int32 {
    draw([])
    flush()
    let failure = state.withLock { $0.failure }
    guard failure != 0, failure != EPIPE else { return status }
    message("tarn: cannot write to standard output: \(errorText(failure))")
    return status == 0 ? ExitStatus.failed(.inputOutput).rawValue : status
  }

  /// Moves to the block's first line and clears from there.
  private static func erasing(_ block: [String]) -> String {
    guard !block.isEmpty else { return "" }
    return "\r" + (block.count > 1 ? "\u{1B}[\(block.count - 1)A" : "") + "\u{1B}[J"
  }
}

/// - Returns: the errno, or 0 when everything is written.
private func writeAll(_ descriptor: Int32, _ bytes: [UInt8]) -> Int32 {
  var offset = 0
  while offset < bytes.count {
    let count = bytes.withUnsafeBytes {
      write(descriptor, $0.baseAddress?.advanced(by: offset), bytes.count - offset)
    }
    if count >= 0 {
      offset += count
    } else if errno == EAGAIN {
      var wait = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
      _ = poll(&wait, 1, -1)
    } else if errno != EINTR {
      return errno
    }
  }
  return 0
}

/// Returns the text of strerror(3).
func errorText(_ number: Int32) -> String {
  strerror(number).map { String(cString: $0) } ?? "error \(number)"
}
