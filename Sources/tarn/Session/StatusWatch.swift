import TarnCore
import TarnEngine
import TarnRuntime

/// `status --watch`: the state each second until Ctrl-C, on a screen of its own where standard output is a
/// terminal.
struct StatusWatch {
  let session: Session
  private static let enter = "\u{1B}[?1049h"
  private static let leave = "\u{1B}[?1049l"

  /// Ends when no mirror can be read any more, too.
  func run(_ read: () -> StatusCommand.Reading) -> ExitStatus {
    let ended = Gate()
    Interruption.shared.arm(StopFlag()) {
      ended.open()
    } report: {
    }
    var reading = read()
    let isScreen = Terminal.output.canRedraw && !session.isJSON && !reading.documents.isEmpty
    if isScreen {
      let console = session.console
      console.frame(Self.enter)
      Interruption.shared.beforeEnding { console.frame(Self.leave) }
    }
    while !reading.documents.isEmpty {
      show(reading, isScreen: isScreen)
      guard !ended.wait(nanoseconds: 1_000_000_000) else { break }
      reading = read()
    }
    if isScreen { session.console.frame(Self.leave) }
    Interruption.shared.beforeEnding(nil)
    Interruption.shared.disarm()
    // Told only now, where it stays to be read.
    let statuses = reading.failures.map(session.tell)
    return ended.isOpen ? ExitStatus.stopped(by: Interruption.shared.received) : ExitStatus.worst(statuses)
  }

  private func show(_ reading: StatusCommand.Reading, isScreen: Bool) {
    if session.isJSON {
      session.console.data(JSONText.line(StatusAnswer(agent: reading.agent, mirrors: reading.documents)))
      return
    }
    let lines =
      StatusCommand.lines(reading.documents, session, agent: reading.agent)
      + StatusText.live(reading.documents, style: session.style)
    guard isScreen else {
      session.console.data(lines.joined(separator: "\n") + "\n")
      return
    }
    session.console.frame(Self.frame(lines, size: Terminal.output.size))
  }

  /// A whole screen: what does not fit is cut off, and what stood there before is cleared.
  static func frame(_ lines: [String], size: (columns: Int, rows: Int)) -> String {
    let shown = lines.prefix(max(1, size.rows - 1))
    // Lines are not wrapped (?7l), so that each takes one row whatever its length.
    return "\u{1B}[?7l\u{1B}[H" + shown.map { "\($0)\u{1B}[K\n" }.joined() + "\u{1B}[J\u{1B}[?7h"
  }
}
