import TarnCore
import TarnEngine
import TarnRuntime

/// Notices when an agent that once answered is gone.
struct AgentPresence {
  private var wasThere = false
  /// The time when it was first missed; `nil` while there is one, and when there never was.
  private(set) var goneSince: Timestamp?

  /// Notes whether an agent is there. One that does not answer counts as there.
  mutating func see(_ reading: StatusCommand.Reading, now: Timestamp) {
    let isThere = reading.agent != nil || reading.agentFailure?.code == PassFailure.silentAgent
    if isThere {
      wasThere = true
      goneSince = nil
    } else if wasThere, goneSince == nil {
      goneSince = now
    }
  }
}

/// `status --watch`: shows the status each second until `q` or Ctrl-C, on a separate screen when standard
/// output is a terminal.
struct StatusWatch {
  let session: Session
  /// The sequences to the alternate screen without a cursor, and back again, even after a frame that was cut
  /// short.
  static let enter = "\u{1B}[?1049h\u{1B}[?25l"
  static let leave = "\u{1B}[?7h\u{1B}[?25h\u{1B}[?1049l"

  /// Watches until the user ends it, no mirror can be read any more, or nothing can be written.
  func run(_ read: () -> StatusCommand.Reading) -> ExitStatus {
    var reading = read()
    var agent = AgentPresence()
    agent.see(reading, now: session.now)
    let isScreen = Terminal.output.canRedraw && !session.isJSON && reading.isWorthWatching
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
    while reading.isWorthWatching, !ended.isOpen {
      show(reading, agent, isScreen: isScreen)
      guard !session.console.isBroken, !isOver(ended, keys) else { break }
      reading = read()
      agent.see(reading, now: session.now)
    }
    keys?.restore()
    if isScreen { session.console.frame(Self.leave) }
    Interruption.shared.beforeEnding(nil)
    Interruption.shared.disarm()
    // Told at the end, where it stays on the screen.
    let status = reading.tellFailures(session)
    return ended.isOpen ? ExitStatus.stopped(by: Interruption.shared.received) : status
  }

  /// Waits for a second.
  ///
  /// - Returns: true when a signal, a key or the terminal's end came first.
  private func isOver(_ ended: Gate, _ keys: KeyInput?) -> Bool {
    guard let keys else { return ended.wait(atMost: .seconds(1)) }
    switch keys.wait(milliseconds: 1000) {
    case .timedOut: return ended.isOpen
    case .keys(let keys):
      return ended.isOpen || keys.contains { $0 == UInt8(ascii: "q") || $0 == UInt8(ascii: "Q") }
    case .woken, .closed: return true
    }
  }

  private func show(_ reading: StatusCommand.Reading, _ agent: AgentPresence, isScreen: Bool) {
    if session.isJSON {
      session.console.data(JSONText.line(StatusAnswer(agent: reading.agent, mirrors: reading.documents)))
      return
    }
    let size = Terminal.output.size
    var page = StatusText.live(
      reading.here, now: session.now, style: session.style, width: isScreen ? size.columns : nil)
    // The details follow at the end, where they stay on the screen.
    let fault = reading.faulty?.failure.map {
      [session.style.paint("settings:", .bad) + " \(Message.safe($0.message))"]
    }
    let head =
      agent.goneSince.map { [AgentText.gone(since: $0, session.style)] }
      ?? StatusCommand.head(reading, session)
    page.head = head + (fault ?? []) + reading.goneLines(session.style) + page.head
    guard isScreen else {
      session.console.data(page.lines(rows: .max).joined(separator: "\n") + "\n")
      return
    }
    let lines = page.folded(size.columns).lines(rows: size.rows - 1)
    session.console.frame(Self.frame(lines, size: size))
  }

  /// Returns a whole screen: what does not fit is cut off, and earlier contents are cleared.
  static func frame(_ lines: [String], size: (columns: Int, rows: Int)) -> String {
    let shown = lines.prefix(max(1, size.rows - 1)).map { Columns.styledFront($0, size.columns) }
    // Lines are not wrapped (?7l), so that each takes one row whatever the terminal's character widths are.
    // Each row is cleared first: after a line of full width the cursor is on its last character.
    return "\u{1B}[?7l\u{1B}[H" + shown.map { "\u{1B}[K\($0)\n" }.joined() + "\u{1B}[J\u{1B}[?7h"
  }
}
