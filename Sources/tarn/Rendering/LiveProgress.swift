import TarnCore
import TarnEngine
import TarnRuntime

/// Shows the progress of a pass, on a thread of its own. Updates ten times a second at the bottom of a
/// terminal, once a second as JSON, once a minute as a dated line.
final class LiveProgress: Sendable {
  private let narrator: Narrator
  private let snapshot: @Sendable () -> PassProgress.Snapshot
  private let clock: any Clock
  private let began: Instant
  private let ended = Gate()
  private let thread = Locked<WorkerThread?>(nil)

  init(narrator: Narrator, clock: any Clock, snapshot: @escaping @Sendable () -> PassProgress.Snapshot) {
    self.narrator = narrator
    self.snapshot = snapshot
    self.clock = clock
    began = clock.monotonic()
  }

  /// Starts the thread. If there is none to be had, the pass goes on without progress.
  func start() {
    guard let interval else { return }
    let thread = try? WorkerThread.start(name: "tarn-screen", stackSize: 512 << 10) { [self] in
      while !ended.wait(atMost: interval) { show() }
    }
    self.thread.withLock { $0 = thread }
  }

  /// Ends the thread and clears the block.
  func end() {
    ended.open()
    thread.withLock { $0 }?.join()
    narrator.console.draw([])
  }

  /// Prints one line now (SIGUSR1), whatever is drawn.
  func report() {
    narrator.message(ProgressText.total(snapshot(), elapsed: elapsed))
  }

  private var interval: Duration? {
    switch narrator.mode {
    case .terminal: .milliseconds(100)
    case .json: .seconds(1)
    case .dated: .seconds(60)
    case .silent: nil
    }
  }

  private var elapsed: Double { (clock.monotonic() - began).seconds }

  private func show() {
    let snapshot = snapshot()
    switch narrator.mode {
    case .terminal:
      let terminal = Terminal.messages
      guard terminal.isForeground else { return }
      narrator.console.draw(ProgressText.block(snapshot, elapsed: elapsed, width: terminal.size.columns))
    case .json: narrator.tell(snapshot, elapsed: elapsed)
    case .dated: report()
    case .silent: break
    }
  }
}
