import TarnCore

/// Entries that did not fit beside others that were at work: those give space back when they fail, or turn out smaller
/// than was thought. On the pass's thread. Its memory is bounded, for while it is full nothing new is begun.
struct SpaceQueue {
  /// Until nothing is at work.
  private var waiting: [Job] = []
  /// May begin again, the last first.
  private var freed: [Job] = []
  /// One that is tried with nothing else beside it.
  private var lone: UInt64?
  private let most: Int

  init(most: Int) {
    self.most = max(1, most)
  }

  var isFull: Bool { waiting.count + freed.count >= most }

  var isWaiting: Bool { !waiting.isEmpty || !freed.isEmpty }

  mutating func add(_ job: Job) { waiting.append(job) }

  /// The next one that may begin beside others.
  mutating func next() -> Job? { freed.popLast() }

  /// Nothing is at work. Those that are tried a second time begin together; those that filled the space twice, one by one,
  /// so that each round ends the waiting of one of them at least.
  ///
  /// - Returns: whether anything waits no more, and the one that is to begin alone.
  mutating func letGo() -> (isMore: Bool, lone: Job?) {
    let second = waiting.filter { $0.squeezes < 2 }
    if !second.isEmpty {
      freed = second.reversed()
      waiting.removeAll { $0.squeezes < 2 }
      return (true, nil)
    }
    guard !waiting.isEmpty else { return (false, nil) }
    let job = waiting.removeFirst()
    lone = job.id
    return (true, job)
  }

  /// One of these runs alone: nothing else may begin.
  func isAlone(among jobs: [UInt64: Job]) -> Bool { lone.map { jobs[$0] != nil } ?? false }

  /// The pass ends: they were not begun.
  mutating func drop() {
    waiting = []
    freed = []
  }
}

/// What does not fit is reported only when nothing else is at work.
extension Conductor {
  /// Takes the space that a job needs.
  ///
  /// - Returns: false when that is not free now; the job is over then, reported or to be tried again.
  func takeSpace(_ job: inout Job) -> Bool {
    let needed = job.entry.size.map { $0 - min($0, held(for: job)) }
    let isLone = active == 0
    guard space.reserve(needed ?? 0) else {
      // No byte was fetched for it: as often as need be.
      if isLone {
        fail(job, code: "no-space", message: space.refusal(needed))
      } else if job.failure != nil {
        forlorn.append(job)
        tellForlorn(job)
      } else {
        wait(job)
      }
      return false
    }
    begun += 1
    job.reserved = needed ?? 0
    job.begunAlone = isLone ? begun : nil
    return true
  }

  /// Bytes of the disk that an unfinished download of it has already: they serve again, whatever becomes of its contents.
  private func held(for job: Job) -> UInt64 {
    guard let name = resumable[job.entry.path] else { return 0 }
    return (try? folder.partialAllocation(name)) ?? 0
  }

  /// A running transfer found no space. Its partial file is gone.
  ///
  /// - Returns: false when nothing else was at work with it: then it does not fit.
  func squeeze(_ id: UInt64) -> Bool {
    guard !stop.isSet, var job = jobs[id], job.begunAlone != begun, job.failure == nil, job.steered == nil
    else { return false }
    jobs[id] = nil
    space.giveBack(job.reserved)
    job.squeezes += 1
    wait(job)
    over(job)
    return true
  }

  private func wait(_ job: Job) {
    var again = makeJob(job.action, job.entry, ordinal: job.ordinal)
    again.squeezes = job.squeezes
    again.isUrgent = job.isUrgent
    spaceQueue.add(again)
  }

  /// - Returns: false when none may begin.
  func startCramped() -> Bool {
    guard let job = spaceQueue.next() else { return false }
    beginAgain(job)
    return true
  }

  /// Nothing is at work: what waited for space is tried again.
  ///
  /// - Returns: false when nothing waited.
  func tryCramped() -> Bool {
    guard !stop.isSet else { return false }
    let (isMore, lone) = spaceQueue.letGo()
    if let lone { beginAgain(lone) }
    return isMore
  }

  private func beginAgain(_ job: Job) {
    if isPaused(job.entry.path) { return hold(job.action, ordinal: job.ordinal) }
    begin(job, mustBegin: true)
  }
}
