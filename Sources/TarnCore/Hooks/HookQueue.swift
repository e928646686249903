/// The documents that hooks have still to be told. A value: its owner does what it says and reports the outcomes.
///
/// Each hook has a queue of its own and is told one item at a time, in order. A hook that fails is tried again after a growing
/// pause and does not hold up the others.
package struct HookQueue: Sendable {
  /// A document to be told to one hook.
  package struct Item: Codable, Sendable, Equatable {
    package var hook: String
    package var document: HookDocument
    /// The number of attempts that failed.
    package var attempts = 0
    /// When the hook began to fail, in RFC 3339; `nil` while it works. A later process goes on with it.
    fileprivate var failingSince: String?
  }

  package enum Result: Sendable, Equatable {
    case delivered
    /// - message: the reason, without secrets.
    /// - isTransient: true when another attempt may help.
    /// - retryAfter: the seconds that the other end asked for.
    case failed(String, isTransient: Bool, retryAfter: Int64? = nil)
  }

  package enum Verdict: Sendable, Equatable {
    /// - Parameter isBack: true when the hook had failed before.
    case delivered(isBack: Bool)
    /// - Parameters:
    /// - seconds: the time until the next attempt.
    /// - isFirst: true when the hook had worked before, or had not been tried.
    case again(in: Double, isFirst: Bool)
    /// The item is dropped.
    case gaveUp
    /// The hook no longer exists.
    case unknown
  }

  /// The state of one hook.
  package struct Health: Sendable, Equatable {
    /// The number of attempts in a row that failed, the time of the first, and the message of the last.
    package var failures = 0
    package var since: Timestamp?
    package var message: String?
    /// Items that were lost: the queue was full, or attempts were given up.
    package var dropped: UInt64 = 0
    /// Items that wait, including the one at work.
    package var waiting = 0
  }

  private enum Phase: Equatable {
    case idle
    /// The first item is being told.
    case atWork
    case resting(until: Instant)
  }

  private struct Line {
    var items: [Item] = []
    var phase = Phase.idle
    var health = Health()

    func isDue(_ now: Instant) -> Bool {
      switch phase {
      case .idle: true
      case .atWork: false
      case .resting(let until): until <= now
      }
    }
  }

  /// The most items of all hooks together.
  package static let most = 1000
  /// The most hooks that are told something at the same time.
  package static let mostAtWork = 8
  /// The pauses of a hook that fails: 5 s, doubled up to 15 min.
  package static let backOff = BackOff(base: 5, most: 900)
  /// The longest pause that the other end may ask for, in seconds.
  package static let mostAsked: Int64 = 3600

  private var lines: [String: Line] = [:]
  /// A number that changes with each item that comes or goes.
  package private(set) var generation: UInt64 = 0

  package init() {}

  /// Continues with the items that an earlier process left.
  package init(_ items: [Item]) {
    for item in items.suffix(Self.most) { lines[item.hook, default: Line()].items.append(item) }
    for (hook, line) in lines {
      guard let first = line.items.first, let since = first.failingSince.flatMap({ Timestamp(rfc3339: $0) })
      else { continue }
      var health = Health()
      (health.failures, health.since) = (max(1, first.attempts), since)
      health.message = "an earlier process of the agent tried last"
      lines[hook]?.health = health
    }
  }

  /// All items, including those at work, which may not have been delivered.
  package var items: [Item] { lines.sorted { $0.key < $1.key }.flatMap(\.value.items) }

  package var count: Int { lines.values.reduce(0) { $0 + $1.items.count } }

  private var atWork: Int { lines.values.count { $0.phase == .atWork } }

  /// True when nothing is being told.
  package var isResting: Bool { atWork == 0 }

  /// - Returns: the item that was dropped to make room, the oldest of the hook with the most items; `nil` when there was room.
  package mutating func add(_ document: HookDocument, to hook: String) -> Item? {
    var dropped: Item?
    if count >= Self.most,
      let longest = lines.max(by: { ($0.value.items.count, $1.key) < ($1.value.items.count, $0.key) })?.key
    {
      // The first item may be on its way.
      let index = lines[longest]?.phase == .atWork ? 1 : 0
      if let line = lines[longest], line.items.indices.contains(index) {
        dropped = lines[longest]?.items.remove(at: index)
        lines[longest]?.health.dropped += 1
      }
    }
    lines[hook, default: Line()].items.append(Item(hook: hook, document: document))
    generation += 1
    return dropped
  }

  /// Returns the items to be told now, and marks them as at work.
  package mutating func begin(now: Instant) -> [Item] {
    var begun: [Item] = []
    var room = Self.mostAtWork - atWork
    for name in lines.keys.sorted() where room > 0 {
      guard let line = lines[name], let first = line.items.first, line.isDue(now) else { continue }
      lines[name]?.phase = .atWork
      begun.append(first)
      room -= 1
    }
    return begun
  }

  /// Takes the outcome of a hook's first item.
  ///
  /// - Parameters:
  ///   - item: the id of its document. An outcome of an item that is gone, as after two reloads, is `unknown`.
  ///   - random: a number in 0..<1.
  package mutating func ended(
    _ hook: String, _ item: String, _ result: Result, retries: Int, now: Moment, random: Double
  ) -> Verdict {
    guard let line = lines[hook], line.phase == .atWork, line.items.first?.document.id == item else {
      return .unknown
    }
    generation += 1
    switch result {
    case .delivered:
      lines[hook]?.items.removeFirst()
      lines[hook]?.phase = .idle
      lines[hook]?.health.clear()
      return .delivered(isBack: line.health.failures > 0)
    case .failed(let message, let isTransient, let asked):
      lines[hook]?.health.add(message, now: now.wall)
      let attempts = line.items[0].attempts + 1
      guard isTransient, attempts <= retries else {
        lines[hook]?.items.removeFirst()
        lines[hook]?.health.dropped += 1
        lines[hook]?.phase = .idle
        return .gaveUp
      }
      lines[hook]?.items[0].attempts = attempts
      let since = lines[hook]?.health.since?.rfc3339
      lines[hook]?.items[0].failingSince = since
      let pause = Self.backOff.ceiling(attempts) * (1 + random) / 2
      let seconds = max(pause, Double(min(asked ?? 0, Self.mostAsked)))
      lines[hook]?.phase = .resting(until: now.monotonic + .bounded(seconds: seconds))
      return .again(in: seconds, isFirst: line.health.failures == 0)
    }
  }

  /// Returns the time until something is due: zero where it is due already, `nil` where that depends on what is at work.
  package func wait(now: Instant) -> Duration? {
    guard atWork < Self.mostAtWork else { return nil }
    return lines.values.compactMap { line -> Duration? in
      switch line.phase {
      case _ where line.items.isEmpty: nil
      case .atWork: nil
      case .idle: .zero
      case .resting(let until): until.remaining(at: now)
      }
    }.min()
  }

  /// Keeps only these hooks and ends their pauses, since the settings may have fixed what failed.
  ///
  /// - Returns: the items that are dropped.
  package mutating func keep(_ hooks: Set<String>) -> [Item] {
    let gone = lines.filter { !hooks.contains($0.key) }
    for name in gone.keys { lines[name] = nil }
    for name in lines.keys {
      if case .resting = lines[name]?.phase { lines[name]?.phase = .idle }
    }
    if !gone.isEmpty { generation += 1 }
    return gone.values.flatMap(\.items)
  }

  /// Forgets the failures of a hook that the settings have changed.
  package mutating func renew(_ hook: String) {
    guard lines[hook]?.health.failures ?? 0 > 0 else { return }
    lines[hook]?.health.clear()
    generation += 1
  }

  package func health(of hook: String) -> Health {
    guard let line = lines[hook] else { return Health() }
    var health = line.health
    health.waiting = line.items.count
    return health
  }
}

extension HookQueue.Health {
  fileprivate mutating func add(_ message: String, now: Timestamp) {
    failures += 1
    since = since ?? now
    self.message = message
  }

  fileprivate mutating func clear() { (failures, since, message) = (0, nil, nil) }
}
