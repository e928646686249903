import NIOCore

/// A queue of the events that one reader has not taken yet. It is a value.
struct EventQueue {
  /// The events that may wait. At this number the reader is left out until it has taken half of them.
  static let most = 1024

  typealias Sleeper = CheckedContinuation<DownloadEvent?, any Error>

  let session: BackgroundSession
  /// The task that is read; `nil` for the whole session.
  let task: Int64?
  /// The number of the last event that was taken in, or skipped because it is about another task.
  private(set) var reached: Int64
  /// True once no event is missed any more.
  private(set) var hasBegun = false
  private(set) var isLeftOut = false
  private(set) var end: Result<Void, TarnError>?

  private var events = CircularBuffer<DownloadEvent>()
  private var sleepers: [Sleeper] = []
  private var beginners: [CheckedContinuation<Void, Never>] = []
  /// True when the next reading throws `Cut`.
  private var wasCut = false

  /// Thrown once to a reader of one task after a gap in the events or a break in the connection. Another reader may have
  /// acknowledged the task's end, and then no event tells it.
  struct Cut: Error {}

  init(_ session: BackgroundSession, _ task: Int64?, after number: Int64) {
    (self.session, self.task, reached) = (session, task, number)
  }

  /// The continuations to resume, and their value. They must be resumed outside of locks.
  struct Wake {
    var sleepers: [Sleeper] = []
    var value: Result<DownloadEvent?, any Error> = .success(nil)
    var beginners: [CheckedContinuation<Void, Never>] = []

    func resume() {
      for sleeper in sleepers { sleeper.resume(with: value) }
      for beginner in beginners { beginner.resume() }
    }
  }

  /// - Parameter isAfterBreak: true when no connection served the reader for a while.
  mutating func begin(isAfterBreak: Bool) -> Wake {
    var wake = Wake(beginners: beginners)
    let isBreak = isAfterBreak && hasBegun
    (hasBegun, beginners) = (true, [])
    guard isBreak else { return wake }
    let broken = cut()
    (wake.sleepers, wake.value) = (broken.sleepers, broken.value)
    return wake
  }

  /// Skips events that do not come because they are gone.
  mutating func skip(to number: Int64) -> Wake {
    guard number > reached, end == nil, !isLeftOut else { return Wake() }
    // Whoever reads all from the beginning wants what nobody has acknowledged.
    if task == nil, reached > 0 { return take(DownloadEvent(lostUpTo: number)) }
    reached = number
    return cut()
  }

  /// Goes back to the beginning of a session that was made anew under its name. Nothing that came before is of that session.
  mutating func goBack(to number: Int64) -> Wake {
    guard end == nil, !isLeftOut else { return Wake() }
    reached = number - 1
    if task == nil { return take(DownloadEvent(lostUpTo: number)) }
    reached = number
    return cut()
  }

  private mutating func cut() -> Wake {
    guard task != nil, end == nil else { return Wake() }
    wasCut = sleepers.isEmpty
    return wasCut ? Wake() : Wake(sleepers: [sleepers.removeFirst()], value: .failure(Cut()))
  }

  /// Takes in an event. An event that came before is skipped.
  mutating func take(_ event: DownloadEvent) -> Wake {
    guard event.number > reached, end == nil, !isLeftOut else { return Wake() }
    reached = event.number
    if !sleepers.isEmpty { return Wake(sleepers: [sleepers.removeFirst()], value: .success(event)) }
    events.append(event)
    isLeftOut = events.count >= Self.most
    return Wake()
  }

  /// Skips the events up to this number, none of which is for this reader.
  mutating func pass(to number: Int64) { reached = max(reached, number) }

  /// Ends the queue. Waiting events are still delivered before the end.
  mutating func finish(_ result: Result<Void, TarnError>) -> Wake {
    guard end == nil else { return Wake() }
    end = result
    defer { (sleepers, beginners) = ([], []) }
    return Wake(sleepers: sleepers, value: ending, beginners: beginners)
  }

  private var ending: Result<DownloadEvent?, any Error> {
    if case .failure(let error) = end { .failure(error) } else { .success(nil) }
  }

  /// - Returns: the next event, or the end; `nil` when the sleeper now waits.
  mutating func next(_ sleeper: Sleeper) -> Wake? {
    if let event = events.popFirst() {
      return Wake(sleepers: [sleeper], value: .success(event))
    }
    if end != nil { return Wake(sleepers: [sleeper], value: ending) }
    if wasCut {
      wasCut = false
      return Wake(sleepers: [sleeper], value: .failure(Cut()))
    }
    sleepers.append(sleeper)
    return nil
  }

  mutating func waitForBegin(_ beginner: CheckedContinuation<Void, Never>) -> Wake? {
    if hasBegun || end != nil { return Wake(beginners: [beginner]) }
    beginners.append(beginner)
    return nil
  }

  /// - Returns: true when the reader was left out and has room again.
  mutating func comesBack() -> Bool {
    guard isLeftOut, events.count <= Self.most / 2 else { return false }
    isLeftOut = false
    return true
  }
}
