import TarnCore
import TarnEngine
import TarnRuntime

/// `status --watch`: the state each second until `q` or Ctrl-C, on a screen of its own where standard output is a
/// terminal.
struct StatusWatch {
  let session: Session
  /// The other screen, without a cursor; and back again, whatever a frame that was cut short has left.
  static let enter = "\u{1B}[?1049h\u{1B}[?25l"
  static let leave = "\u{1B}[?7h\u{1B}[?25h\u{1B}[?1049l"

  /// Ends when no mirror can be read any more, or nothing written, too.
  func run(_ read: () -> StatusCommand.Reading) -> ExitStatus {
    var reading = read()
    let isScreen = Terminal.output.canRedraw && !session.isJSON && !reading.documents.isEmpty
    let keys = isScreen ? KeyInput(Terminal.input) : nil
    let ended = Gate()
    Interruption.shared.arm(StopFlag()) {
      ended.open()
      keys?.wake()
    } report: {
    }
    if isScreen {
      let console = session.console
      Interruption.shared.beforeEnding {
        keys?.restore()
        console.frame(Self.leave)
      }
      keys?.begin()
      console.frame(Self.enter)
    }
    while !reading.documents.isEmpty, !ended.isOpen {
      show(reading, isScreen: isScreen)
      guard !session.console.isBroken, !isOver(ended, keys) else { break }
      reading = read()
    }
    keys?.restore()
    if isScreen { session.console.frame(Self.leave) }
    Interruption.shared.beforeEnding(nil)
    Interruption.shared.disarm()
    // Told only now, where it stays to be read.
    let status = reading.tellFailures(session)
    return ended.isOpen ? ExitStatus.stopped(by: Interruption.shared.received) : status
  }

  /// Waits for a second.
  ///
  /// - Returns: true when a signal, a key or the terminal's end was first.
  private func isOver(_ ended: Gate, _ keys: KeyInput?) -> Bool {
    guard let keys else { return ended.wait(nanoseconds: 1_000_000_000) }
    switch keys.wait(milliseconds: 1000) {
    case .timedOut: return ended.isOpen
    case .key(let key): return ended.isOpen || [UInt8(ascii: "q"), UInt8(ascii: "Q")].contains(key)
    case .woken, .closed: return true
    }
  }

  private func show(_ reading: StatusCommand.Reading, isScreen: Bool) {
    if session.isJSON {
      session.console.data(JSONText.line(StatusAnswer(agent: reading.agent, mirrors: reading.documents)))
      return
    }
    var page = StatusText.live(reading.documents, now: session.now, style: session.style)
    // Told with all that belongs to it at the end, where it stays to be read.
    let fault = reading.faulty?.failure.map {
      [session.style.paint("settings:", .bad) + " \(Message.safe($0.message))"]
    }
    page.head = (fault ?? StatusCommand.head(reading, session)) + page.head
    guard isScreen else {
      session.console.data(page.lines(rows: .max).joined(separator: "\n") + "\n")
      return
    }
    let size = Terminal.output.size
    session.console.frame(Self.frame(page.lines(rows: size.rows - 1), size: size))
  }

  /// A whole screen: what does not fit is cut off, and what stood there before is cleared.
  static func frame(_ lines: [String], size: (columns: Int, rows: Int)) -> String {
    let shown = lines.prefix(max(1, size.rows - 1))
    // Lines are not wrapped (?7l), so that each takes one row whatever its length.
    return "\u{1B}[?7l\u{1B}[H" + shown.map { "\($0)\u{1B}[K\n" }.joined() + "\u{1B}[J\u{1B}[?7h"
  }
}
