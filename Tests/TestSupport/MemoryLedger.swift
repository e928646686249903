import Foundation
package import TarnCore
package import TarnRuntime

/// The ledger in memory, for tests of what stands above it. The same conformance suite runs over it and over
/// the real one.
package final class MemoryLedger: LedgerPort, @unchecked Sendable {
  // Safe because `state` is touched only with `lock` held.
  private let lock = NSLock()
  private var state = State()
  private let writes = LockedCondition(0)
  private let lifeline: Lifeline?
  /// How often all rows were counted, for which the real one reads a whole index.
  package let rowCounts = Locked(0)
  private let hook = Locked<(@Sendable ([LedgerChange]) -> Void)?>(nil)

  /// Everything at one moment; a copy is a snapshot.
  package struct State: Sendable, Equatable {
    package private(set) var rows: [RelativePath: Row] = [:]
    /// Of the rows, in their order.
    private var paths: [Digest: [RelativePath]] = [:]
    package var intents: [RelativePath: Intent] = [:]
    package var partials: [RelativePath: PartialRow] = [:]
    package var trash: [String: TrashRow] = [:]
    package var problems: [[UInt8]: Problem] = [:]
    package var events: [Event] = []
    package var lastNumber: Int64 = 0
    package var held: HeldPlan?
    package var heldPaths: [String: Set<RelativePath>] = [:]
    package var names: [RelativePath: NameRow] = [:]
    package var activity: [Activity] = []
    package var facts: [LedgerFact: String] = [:]
    /// Calls of `apply` and `applyVolatile` so far, the failed ones too.
    package var applies = 0
    /// The lists applied, durable and volatile, in order.
    package var history: [[LedgerChange]] = []
    package var isClosed = false
    /// The newest time that was told of.
    var latest = Timestamp(nanoseconds: 0)
    var failures: [Int: LedgerFailure] = [:]
  }

  package init(_ lifeline: Lifeline? = nil) { self.lifeline = lifeline }

  /// What is in it now.
  package var contents: State { lock.withLock { state } }

  /// The `number`th call from now of `apply` or `applyVolatile` (1 is the next) fails and changes nothing.
  package func failApply(_ number: Int, with failure: LedgerFailure = LedgerFailure(.noSpace, "as told")) {
    lock.withLock { state.failures[state.applies + number] = failure }
  }

  /// Called without a lock before each durable write.
  package func beforeApply(_ body: (@Sendable ([LedgerChange]) -> Void)?) {
    hook.withLock { $0 = body }
  }

  package func apply(_ changes: [LedgerChange]) throws(LedgerFailure) {
    hook.withLock { $0 }?(changes)
    try write(changes)
  }

  package func applyVolatile(_ changes: [LedgerChange]) throws(LedgerFailure) {
    try write(changes)
  }

  package func close() {
    lock.withLock { state.isClosed = true }
  }

  private func write(_ changes: [LedgerChange]) throws(LedgerFailure) {
    guard !changes.isEmpty else { return }
    lock.lock()
    defer { lock.unlock() }
    guard !state.isClosed else { throw LedgerFailure(.readOnly, "closed") }
    guard lifeline?.survives() != false else { throw LedgerFailure(.inputOutput, "killed") }
    state.applies += 1
    if let failure = state.failures[state.applies] { throw failure }
    // The only change that the ledger refuses; looked for first, because a copy of the state to go back to
    // would cost as much as all of it.
    for case .intent(let intent) in changes where intent.row.path != intent.path {
      throw LedgerFailure(.other, "an intent for one path has the row of another")
    }
    var news = ProblemNews()
    for change in changes {
      state.note(change, &news)
      state.apply(change)
    }
    for event in news.events(when: state.latest) { state.apply(.event(event)) }
    state.history.append(changes)
    writes.change { $0 += 1 }
  }

  /// Waits until something was written since `work` began; for so many milliseconds at most.
  package func awaitWrite(milliseconds: UInt64, after work: () -> Void = {}) {
    let before = writes.withLock { $0 }
    work()
    _ = writes.wait(atMost: .nanoseconds(milliseconds * 1_000_000)) { $0 > before ? () : nil }
  }

  func read<Result>(_ body: (State) -> Result) throws(LedgerFailure) -> Result {
    lock.lock()
    defer { lock.unlock() }
    guard !state.isClosed else { throw LedgerFailure(.other, "closed") }
    return body(state)
  }
}

extension MemoryLedger.State {
  /// What a change that comes says of problems.
  fileprivate mutating func note(_ change: LedgerChange, _ news: inout ProblemNews) {
    switch change {
    case .event(let event): latest = max(latest, event.when)
    case .problem(let problem):
      latest = max(latest, problem.seen)
      news.note(problem.name, from: problems[problem.name]?.kind, to: problem)
    case .dropProblem(let name, let isUnwanted):
      news.note(name, from: problems[name]?.kind, to: nil, isUnwanted: isUnwanted)
    case .dropProblems(let moment):
      for problem in problems.values where problem.seen < moment {
        news.note(problem.name, from: problem.kind, to: nil)
      }
    default: break
    }
  }

  private mutating func drop(_ path: RelativePath) {
    guard let row = rows.removeValue(forKey: path) else { return }
    let place = place(of: path, in: row.digest)
    paths[row.digest]?.remove(at: place)
    if paths[row.digest]?.isEmpty == true { paths[row.digest] = nil }
  }

  /// Where it stands among the paths of a digest, or would stand.
  private func place(of path: RelativePath, in digest: Digest) -> Int {
    guard let paths = paths[digest] else { return 0 }
    var (low, high) = (0, paths.count)
    while low < high {
      let middle = (low + high) / 2
      if paths[middle] < path { low = middle + 1 } else { high = middle }
    }
    return low
  }

  func rows(digest: Digest, after: RelativePath?, limit: Int) -> [Row] {
    guard let paths = paths[digest] else { return [] }
    var start = 0
    if let after {
      start = place(of: after, in: digest)
      if start < paths.count, paths[start] == after { start += 1 }
    }
    return paths[start...].prefix(max(0, limit)).compactMap { rows[$0] }
  }

  mutating func apply(_ change: LedgerChange) {
    switch change {
    case .row(let row):
      drop(row.path)
      rows[row.path] = row
      let place = place(of: row.path, in: row.digest)
      paths[row.digest, default: []].insert(row.path, at: place)
    case .dropRow(let path): drop(path)
    case .intent(let intent): intents[intent.path] = intent
    case .dropIntent(let path): intents[path] = nil
    case .partial(let partial): partials[partial.path] = partial
    case .durable(let path, let bytes): partials[path]?.durable = bytes
    case .dropPartial(let path): partials[path] = nil
    case .trash(let row): trash[row.name] = row
    case .dropTrash(let name): trash[name] = nil
    case .problem(let problem): note(problem)
    case .dropProblem(let name, _): problems[name] = nil
    case .dropProblems(let moment): problems = problems.filter { $0.value.seen >= moment }
    case .event(var event):
      lastNumber += 1
      event.number = lastNumber
      events.append(event)
    case .pruneEvents(let keeping, let before, let now): prune(keeping: keeping, before: before, now: now)
    case .hold(let plan):
      held = plan
      if plan.isForPerson { facts[.heldForPerson] = plan.id }
      heldPaths = heldPaths.filter { $0.key == plan.id }
    case .heldPath(let plan, let path): heldPaths[plan, default: []].insert(path)
    case .dropHeldPath(let path):
      guard let plan = held, heldPaths[plan.id]?.remove(path) != nil else { return }
      held?.count -= 1
      if plan.count <= 1 { held = nil }
    case .dropHolds:
      held = nil
      heldPaths = [:]
    case .name(let name): names[name.path] = name
    case .activity(let list): activity = list
    case .fact(let name, let value): facts[name] = value
    case .inPlace(let entries, let bytes):
      for (name, more) in [(LedgerFact.entriesCurrent, UInt64(entries)), (.bytesCurrent, bytes)] {
        if let known = facts[name].flatMap({ UInt64($0) }) { facts[name] = String(known + more) }
      }
    }
  }

  private mutating func note(_ problem: Problem) {
    var noted = problem
    if let known = problems[problem.name] {
      noted.seen = max(known.seen, problem.seen)
      if known.code == problem.code {
        noted.since = known.since
        noted.attempts = known.attempts + (known.seen < problem.seen ? problem.attempts : 0)
      }
    }
    problems[problem.name] = noted
  }

  private mutating func prune(keeping: Int, before: Timestamp, now: Timestamp) {
    let (start, overflow) = now.nanoseconds.subtractingReportingOverflow(86_400 * 1_000_000_000)
    let window = Timestamp(nanoseconds: overflow ? .min : start)
    let dropped = events.dropLast(max(0, keeping)).filter { $0.when < before }.filter {
      $0.code != "deleted" || $0.when < window
    }
    guard let last = dropped.last else { return }
    let numbers = Set(dropped.map(\.number))
    events.removeAll { numbers.contains($0.number) }
    let known = facts[.eventsDropped].flatMap { Int64($0) } ?? 0
    facts[.eventsDropped] = String(max(known, last.number))
  }
}
