import Glibc
import TarnRuntime

/// Reads the keys of a terminal one by one, without echo, while something is shown on it. Ctrl-C works as
/// usual. Ctrl-Z and Ctrl-\ do nothing, for they would leave the terminal in this mode.
///
/// One thread waits; any thread may wake it, or restore the terminal.
final class KeyInput: Sendable {
  private let terminal: Terminal
  /// The pipe that `wake` writes to.
  private let bell: (hears: Int32, rings: Int32)
  private let modes: termios
  private let isBegun = Locked(false)
  private let sequences = Locked(KeySequences())

  /// - Returns: `nil` when this is no terminal, or another process has its keys.
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

  /// Sets the terminal to deliver keys one by one, until `restore`.
  func begin() {
    var modes = modes
    modes.c_lflag &= ~tcflag_t(ICANON | ECHO)
    withUnsafeMutableBytes(of: &modes.c_cc) { characters in
      characters[Int(VMIN)] = 1
      characters[Int(VTIME)] = 0
      // The value _POSIX_VDISABLE, which is 0 on Linux.
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

  /// Restores the terminal, unless that was done already.
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
    /// The keys in the order they were typed; empty when there was only a sequence.
    case keys([UInt8])
    case woken
    /// The terminal is gone.
    case closed
    case timedOut
  }

  /// Waits for keys. Sequences such as those of arrow keys do not count.
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
