import Glibc
import TarnRuntime

/// Standard output and standard error of the process, and the block at the bottom of a terminal. Any thread:
/// lines are written whole, in the order of the calls, and a slow reader holds the callers back.
final class Console: Sendable {
  static let shared = Console()

  private struct State {
    /// Data that is not yet written.
    var buffer: [UInt8] = []
    /// errno of the first write to standard output that failed; 0 before.
    var failure: Int32 = 0
    /// The lines that stand at the bottom of the terminal now.
    var block: [String] = []
    var outlivesReader = false
  }
  private let state = Locked(State())
  private let turns = Turns()
  private static let largestBuffer = 1 << 16

  /// Data: goes to standard output with a line end.
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

  /// A message: goes to standard error with a line end, above the block if there is one.
  func message(_ line: String) {
    turns.take {
      let block = state.withLock { $0.block }
      let text = Self.erasing(block) + line + "\n" + block.joined(separator: "\n")
      _ = writeAll(STDERR_FILENO, Array(text.utf8))
    }
  }

  /// Replaces the block at the bottom of the terminal that standard error is; none for no lines. The cursor
  /// stays visible all the time, so nothing has to be put right when the process is killed.
  func draw(_ lines: [String]) {
    turns.take {
      let before = state.withLock { state in
        defer { state.block = lines }
        return state.block
      }
      guard !before.isEmpty || !lines.isEmpty else { return }
      let text = Self.erasing(before) + lines.joined(separator: "\n")
      _ = writeAll(STDERR_FILENO, Array(text.utf8))
    }
  }

  /// Text without a line end, such as a question, on standard error.
  func prompt(_ text: String) {
    turns.take { _ = writeAll(STDERR_FILENO, Array(text.utf8)) }
  }

  /// Raw text on standard output, such as a screen of `status --watch`.
  func frame(_ text: String) {
    state.withLock { $0.buffer += text.utf8 }
    flush()
  }

  /// Standard output could not be written: what is shown on it is for nobody.
  var isBroken: Bool { state.withLock { $0.failure != 0 } }

  /// From now on a reader of standard output that goes away does not end the process: what runs changes
  /// things.
  func outliveReader() {
    state.withLock { $0.outlivesReader = true }
  }

  func flush() {
    turns.take {
      let (bytes, failure) = state.withLock { state in
        defer { state.buffer.removeAll(keepingCapacity: true) }
        return (state.buffer, state.failure)
      }
      guard failure == 0, !bytes.isEmpty else { return }
      // On a terminal the data takes the block's place, and the block stands below it then.
      let block = Terminal.output.isTerminal ? state.withLock { $0.block } : []
      if !block.isEmpty { _ = writeAll(STDERR_FILENO, Array(Self.erasing(block).utf8)) }
      let number = writeAll(STDOUT_FILENO, bytes)
      if !block.isEmpty { _ = writeAll(STDERR_FILENO, Array(block.joined(separator: "\n").utf8)) }
      guard number != 0 else { return }
      // The reader has seen enough: that is no failure, `tarn plan | head` is in order.
      if number == EPIPE, !state.withLock({ $0.outlivesReader }) { _exit(0) }
      state.withLock { $0.failure = number }
    }
  }

  /// Writes what is left.
  ///
  /// - Returns: the exit status: another one when the data could not be written.
  func finish(_ status: Int32) -> Int32 {
    draw([])
    flush()
    let failure = state.withLock { $0.failure }
    guard failure != 0, failure != EPIPE else { return status }
    message("tarn: cannot write to standard output: \(errorText(failure))")
    return status == 0 ? ExitStatus.inputOutput.rawValue : status
  }

  /// Goes up to the block's first line and clears from there.
  private static func erasing(_ block: [String]) -> String {
    guard !block.isEmpty else { return "" }
    return "\r" + (block.count > 1 ? "\u{1B}[\(block.count - 1)A" : "") + "\u{1B}[J"
  }
}

/// - Returns: errno, 0 when all is written.
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

/// What the C library says of an errno.
func errorText(_ number: Int32) -> String {
  strerror(number).map { String(cString: $0) } ?? "error \(number)"
}
