import Glibc

/// The terminal that a descriptor leads to.
struct Terminal: Sendable {
  let descriptor: Int32
  let isTerminal: Bool
  /// True when it has neither colours nor cursor movement: `TERM=dumb`.
  let isDumb: Bool

  static let output = Terminal(STDOUT_FILENO)
  static let messages = Terminal(STDERR_FILENO)
  static let input = Terminal(STDIN_FILENO)

  init(_ descriptor: Int32) {
    self.descriptor = descriptor
    isTerminal = isatty(descriptor) == 1
    isDumb = environment("TERM") == "dumb"
  }

  /// True when lines can be redrawn on it.
  var canRedraw: Bool { isTerminal && !isDumb }

  /// False while the process is in the background of its terminal.
  var isForeground: Bool { tcgetpgrp(descriptor) == getpgrp() }

  /// The current columns and rows; 80 by 24 when the terminal does not tell.
  var size: (columns: Int, rows: Int) {
    var size = winsize()
    guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0 else {
      return (80, 24)
    }
    return (Int(size.ws_col), Int(size.ws_row))
  }

  /// The columns of a terminal; `nil` for a file or a pipe, where lines have any length.
  var width: Int? { isTerminal ? size.columns : nil }

  func style(_ choice: ColorChoice) -> Style {
    switch choice {
    case .always: Style(isOn: true)
    case .never: Style(isOn: false)
    case .auto: Style(isOn: canRedraw && (environment("NO_COLOR") ?? "").isEmpty)
    }
  }
}

/// Returns an environment variable; `nil` when it is unset.
func environment(_ name: String) -> String? {
  getenv(name).map { String(cString: $0) }
}
