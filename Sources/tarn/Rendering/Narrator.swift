import TarnAgent
import TarnCore
import TarnEngine
import TarnRuntime

/// Tells what a pass does while it runs.
struct Narrator: PassObserver {
  enum Mode: Sendable {
    /// What needs attention, above the block.
    case terminal
    /// A line for each event with its time, for logs.
    case dated
    /// A JSON document for each event on standard output.
    case json
    case silent
  }
  let console: Console
  let style: Style
  let mode: Mode
  let isVerbose: Bool
  let schema: String
  /// The name in front of each line; `nil` when there is only one mirror.
  let mirror: String?
  let clock: any Clock
  /// The phases that were told. A pass that finds the folder changed repeats some, which is told once.
  private let toldPhases = Locked<Set<PassEvent.Phase>>([])
  /// True when no change is known before the servers are asked.
  private let onlyAsks = Locked(false)
  /// The causes of many problems, each told once; the summary counts the problems.
  private let toldCauses = Locked<Set<String>>([])
  /// The causes of retries, with the time when each was last told.
  private let toldRetries = Locked<[String: Instant]>([:])
  /// The causes of retries that the log has told, by file. The problem of a file would tell its cause twice
  /// more.
  private let toldOfFiles = Locked<[RelativePath: String]>([:])
  private static let mostTold = 10_000

  init(
    console: Console, style: Style, mode: Mode, isVerbose: Bool, schema: String, mirror: String?,
    clock: any Clock
  ) {
    (self.console, self.style, self.mode) = (console, style, mode)
    (self.isVerbose, self.schema, self.mirror, self.clock) = (isVerbose, schema, mirror, clock)
  }

  func pass(_ event: PassEvent) {
    switch mode {
    case .silent: return
    case .json:
      if let line = EventLine(event, isVerbose: isVerbose) { write(line) }
    case .terminal, .dated:
      if let text = text(event) { message(text) }
    }
  }

  func tell(_ snapshot: PassProgress.Snapshot, elapsed: Double) {
    write(EventLine(snapshot, elapsed: elapsed))
  }

  /// Writes a line to standard error, with its time unless it is a terminal.
  func message(_ text: String) {
    let place = mirror.map { "\($0): " } ?? ""
    console.message(mode == .terminal ? place + text : "\(now) \(place)\(text)")
  }

  private var now: String { clock.time.rfc3339 }

  private func write(_ line: EventLine) {
    var line = line
    line.schema = schema
    line.time = now
    line.mirror = mirror
    console.data(JSONText.line(line))
  }

  private func isNews(_ problem: Problem) -> Bool {
    guard let cause = SharedCause.of(problem) else { return true }
    return toldCauses.withLock { $0.insert(cause).inserted }
  }

  /// True when the cause of a problem was told; the summary names it, as on a terminal.
  private func wasTold(_ problem: Problem) -> Bool {
    guard let path = try? RelativePath(problem.name), let told = toldOfFiles.withLock({ $0[path] }) else {
      return false
    }
    return problem.message.contains(told)
  }

  /// True when a retry is to be told. When a host fails, all of its files retry for one cause, which is told
  /// once a minute.
  private func isDue(_ message: String) -> Bool {
    let cause = SharedCause.withoutURL(message)
    let now = clock.monotonic()
    return toldRetries.withLock { told in
      if let last = told[cause], now - last < .seconds(60) { return false }
      told[cause] = now
      return true
    }
  }

  private static func pause(_ seconds: Double) -> String {
    seconds < 1 ? "at once" : "in \(Units.length(seconds))"
  }

  /// The line of an event; `nil` for one that is not worth a line here.
  func text(_ event: PassEvent) -> String? {
    let isLog = mode == .dated
    switch event {
    case .phase(let phase):
      guard isLog, toldPhases.withLock({ $0.insert(phase).inserted }) else { return nil }
      return PassWords.name(phase, onlyAsks: onlyAsks.withLock { $0 })
    case .planned(let report):
      onlyAsks.withLock { $0 = report.counts.toChange == 0 }
      return isLog ? PassWords.planned(report) : nil
    case .action: return nil
    case .done(let code, let path, let bytes):
      return isVerbose ? "\(code) \(path.printable) (\(Units.show(bytes)))" : nil
    // On a terminal the total counts them, and the summary below names them.
    case .problem(let problem):
      guard isVerbose || isLog && !wasTold(problem) && isNews(problem) else { return nil }
      return style.paint(problem.kind.rawValue, .bad) + " " + problem.line
    case .retrying(let path, let message, let seconds):
      guard isVerbose || isLog && isDue(message) else { return nil }
      toldOfFiles.withLock { if $0.count < Self.mostTold { $0[path] = message } }
      return "again \(Self.pause(seconds)): \(path.printable): \(Brief.text(message))"
    case .feedRetrying(let message, let seconds, _):
      return "\(Message.safe(message)); trying again \(Self.pause(seconds)) [feed-retry]"
    case .notice(let code, let message): return "\(Message.safe(message)) [\(code)]"
    }
  }
}
