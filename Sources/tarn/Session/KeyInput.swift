import Glibc
import TarnRuntime

/// The keys of a terminal, one by one and unseen, while something is shown on it. What Ctrl-C does stays; Ctrl-Z and Ctrl-\ do
/// nothing, for they would leave the terminal as it is now.
///
/// One thread waits; any thread wakes it, or restores the terminal.
final class KeyInput: Sendable {
  private let terminal: Terminal
  /// A pipe, written to by `wake`.
  private let bell: (hears: Int32, rings: Int32)
  private let modes: termios
  private let isBegun = Locked(false)
  private let sequences = Locked(KeySequences())

  /// - Returns: nil when the terminal is none, or another process has its keys.
  init?(_ terminal: Terminal) {
    var modes = termios()
    guard terminal.isTerminal, terminal.isForeground, tcgetattr(terminal.descriptor, &modes) == 0 else {
      return nil
    }
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { return nil }
    self.terminal = terminal
    bell = (ends[0], ends[1])
    self.modes = modes
  }

  /// From now on until `restore` keys come one by one.
  func begin() {
    var modes = modes
    modes.c_lflag &= ~tcflag_t(ICANON | ECHO)
    withUnsafeMutableBytes(of: &modes.c_cc) { characters in
      characters[Int(VMIN)] = 1
      characters[Int(VTIME)] = 0
      // _POSIX_VDISABLE, which is 0 on Linux.
      characters[Int(VSUSP)] = 0
      characters[Int(VQUIT)] = 0
    }
    isBegun.withLock { isBegun in
      isBegun = true
      tcsetattr(terminal.descriptor, TCSANOW, &modes)
    }
  }

  deinit {
    restore()
    close(bell.hears)
    close(bell.rings)
  }

  /// Puts the terminal back; nothing when it is so already.
  func restore() {
    var modes = modes
    isBegun.withLock { isBegun in
      if isBegun { tcsetattr(terminal.descriptor, TCSANOW, &modes) }
      isBegun = false
    }
  }

  /// Ends a `wait`.
  func wake() {
    _ = write(bell.rings, "!", 1)
  }

  enum Event: Equatable {
    /// In the order they were typed; none where a sequence came.
    case keys([UInt8])
    case woken
    /// The terminal is gone.
    case closed
    case timedOut
  }

  /// Waits for keys. Sequences such as those of arrow keys are none.
  func wait(milliseconds: Int32) -> Event {
    var polls = [
      pollfd(fd: terminal.descriptor, events: Int16(POLLIN), revents: 0),
      pollfd(fd: bell.hears, events: Int16(POLLIN), revents: 0),
    ]
    guard poll(&polls, 2, milliseconds) > 0 else { return .timedOut }
    if polls[1].revents != 0 { return .woken }
    var bytes = [UInt8](repeating: 0, count: 64)
    let count = read(terminal.descriptor, &bytes, bytes.count)
    guard count > 0 else { return count < 0 && errno == EINTR ? .timedOut : .closed }
    return .keys(sequences.withLock { $0.keys(in: bytes[..<count]) })
  }
}
