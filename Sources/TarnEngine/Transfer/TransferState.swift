import TarnCore

/// Which transfers of a folder are at work, and what the others wait for. A value: each event gives what is to be done. Whoever owns
/// it does that, in order, and tells it what came of it.
///
/// Its actions are all that is asked of the outside: of the folder, the ledger, the space of the disk and the servers.
struct TransferState: Hashable {
  typealias JobID = UInt64

  /// What a job waits for that was not begun: it holds no file, no connection and no space.
  enum Wait: Hashable {
    /// It may begin.
    case turn
    /// Another job brings the same contents.
    case duplicate
    /// It did not fit beside others, which give space back when they end.
    case space
    /// None of its sources is left: another job may still bring its contents.
    case contents
  }

  enum JobState: Hashable {
    case waiting(Wait)
    /// Bytes are looked for that are at hand.
    ///
    /// - Parameter mayAsk: a source is left.
    case looking(mayAsk: Bool)
    /// An exchange is at work.
    case asking
    case pausing(until: Instant)
    /// All bytes are there, and are checked.
    case sealing
    /// It gets its name.
    case publishing
  }

  /// What becomes of a job before its next step.
  enum Wish: Hashable {
    /// Another job has brought its contents: they are copied.
    case copy
    /// An order of a person's.
    case cancel
    case pause
    /// Nobody wants its bytes any more.
    case abandon
  }

  enum Ending: Hashable {
    /// What was fetched, or copied, has its name.
    case placed
    /// What stands there is what the server has.
    case unchanged
    /// What stands there is not what was expected.
    case stale
    case failed
    /// With nothing else at work there was no space.
    case noSpace
    case cancelled
    case paused
    case abandoned
    /// Nothing more is begun: what came of it is kept.
    case stopped
  }

  enum Action: Hashable {
    /// Take space for it; `reserved` or `refused` answers.
    case reserve(JobID)
    /// Look for its bytes; `looked` answers.
    case look(JobID)
    /// Ask a source; `answered` or `confirmed` answers.
    case ask(JobID)
    /// End its exchange; `answered` comes all the same.
    case cancelExchange(JobID)
    /// It gets the next connection.
    case prioritize(JobID)
    /// Check its bytes; `answered` answers.
    case seal(JobID)
    /// Give it its name; `published` or `confirmed` answers.
    case publish(JobID)
    /// Give bytes of the space back.
    case release(UInt64)
    /// It begins anew, as if nothing had been asked for.
    case putBack(JobID)
    /// No source is left: it has failed, unless another job brings its contents.
    case exhausted(JobID)
    /// Are its contents in the folder? `foundCopy` answers.
    case findCopy(JobID)
    /// There is no room to remember it: it is over here, and comes later.
    case postpone(JobID)
    /// The same, of one without a source.
    case setAside(JobID)
    /// It is over.
    case end(JobID, Ending)
  }

  struct Job: Hashable {
    let path: RelativePath
    let contents: Duplicates.Contents?
    fileprivate(set) var state = JobState.waiting(.turn)
    fileprivate(set) var wish: Wish?
    /// It gets the next connection.
    fileprivate(set) var isUrgent = false
    /// Bytes held of the space.
    fileprivate(set) var reserved: UInt64 = 0
    /// Times that it found no space while it ran beside others.
    fileprivate var squeezes = 0
    /// How many jobs had begun with it, when it began with nothing else at work; nil when it did not.
    fileprivate var begunAlone: Int?
    /// Its contents were in place when its bytes were last looked for.
    fileprivate var knewDuplicate = false

    /// An order, or whoever wanted it, ends it.
    var isEnding: Bool { wish != nil && wish != .copy }

    /// It is at work, or about to be. What waits for space or contents holds nothing, and others may bring its path.
    var isBrought: Bool { state != .waiting(.space) && state != .waiting(.contents) }

    /// The same, and no server has to recover before.
    var isBusy: Bool {
      if case .pausing = state { false } else { isBrought }
    }
  }

  private(set) var jobs: [JobID: Job] = [:]
  private var duplicates: Duplicates
  /// May begin, the last first.
  private var ready: [JobID] = []
  /// Wait for space, until nothing is at work.
  private var cramped: [JobID] = []
  /// Waited for space and may begin again, the last first.
  private var spaceFreed: [JobID] = []
  /// One that is tried with nothing else beside it.
  private var lone: JobID?
  private var pausing: Set<JobID> = []
  /// Without a source, by what they are to hold.
  private var exhausted: [UInt64: [JobID]] = [:]
  private(set) var exhaustedCount = 0
  /// Jobs that hold a file, a connection or space.
  private(set) var active = 0
  private(set) var publishing = 0
  /// Jobs so far that took space.
  private var begun = 0
  /// Nothing more is begun.
  private(set) var isStopping = false
  /// Of those that wait for space, and of those that wait for contents.
  private let mostHeldBack: Int

  /// - Parameter mostHeldBack: jobs in memory that wait for the same reason: for a duplicate, for space, for contents.
  init(mostHeldBack: Int) {
    self.mostHeldBack = mostHeldBack
    duplicates = Duplicates(mostWaiting: mostHeldBack)
  }

  // MARK: Questions

  /// Nothing is at work, and nothing may begin but what waits for space or contents.
  var isIdle: Bool { jobs.count == exhaustedCount + cramped.count }

  /// Jobs without a source.
  var waitingForContents: [JobID] { exhausted.values.flatMap { $0 }.sorted() }

  /// Jobs that wait for space, or that may begin since they did.
  var crampedCount: Int { cramped.count + spaceFreed.count }

  /// Nothing new begins before what waits for space has its turn: there is no room to remember more, or one is to be alone.
  var isHeldUp: Bool { isCramped || isAlone }

  var isCramped: Bool { crampedCount >= max(1, mostHeldBack) }

  /// One that waited for space runs alone.
  var isAlone: Bool {
    guard let lone, let job = jobs[lone] else { return false }
    return job.state != .waiting(.contents)
  }

  /// When the first of the pauses ends; nil without one.
  var nextDue: Instant? {
    pausing.lazy.compactMap { id in
      if case .pausing(let until)? = jobs[id]?.state { until } else { nil }
    }.min()
  }

  /// No order and no stop ends it before its next step.
  func goesOn(_ id: JobID) -> Bool { !isStopping && jobs[id].map { $0.wish == nil } ?? false }

  /// Its contents are in place by what is known here.
  func isPlaced(_ id: JobID) -> Bool { jobs[id]?.contents.map(duplicates.isPlaced) ?? false }

  /// The one that is at work on a path, or waits for something there.
  ///
  /// - Returns: nil where that is only one that nobody brings.
  func job(at path: RelativePath) -> JobID? {
    jobs.first { $0.value.path == path && $0.value.isBrought }?.key
  }

  /// Paths that are being brought.
  var pathsAtWork: Set<RelativePath> { Set(jobs.values.lazy.filter(\.isBrought).map(\.path)) }

  // MARK: Beginning

  /// - Parameter mustBegin: it is not postponed.
  mutating func admit(
    _ id: JobID, path: RelativePath, contents: Duplicates.Contents?, mustBegin: Bool
  ) -> [Action] {
    jobs[id] = Job(path: path, contents: contents)
    return enqueue(id, mustBegin: mustBegin)
  }

  /// One that has no source left, and whose contents are in the folder.
  mutating func admitCopy(
    _ id: JobID, path: RelativePath, contents: Duplicates.Contents?
  ) -> [Action] {
    jobs[id] = Job(path: path, contents: contents)
    hold(id)
    return [.reserve(id)]
  }

  private mutating func hold(_ id: JobID) {
    guard let key = jobs[id]?.contents?.key else { return }
    move(id, to: .waiting(.contents))
    exhausted[key, default: []].append(id)
    exhaustedCount += 1
  }

  private mutating func enqueue(_ id: JobID, mustBegin: Bool) -> [Action] {
    switch duplicates.admit(id, jobs[id]?.contents, mustBegin: mustBegin) {
    case .wait:
      move(id, to: .waiting(.duplicate))
      return []
    case .full:
      jobs[id] = nil
      return [.postpone(id)]
    case .first, .placed:
      move(id, to: .waiting(.turn))
      return [.reserve(id)]
    }
  }

  /// Begins one of those that waited for a duplicate or for space.
  ///
  /// - Returns: nil when none may begin.
  mutating func beginNext() -> [Action]? {
    if isAlone { return nil }
    if let id = ready.popLast() { return [.reserve(id)] }
    if let id = spaceFreed.popLast() { return enqueue(id, mustBegin: true) }
    return nil
  }

  /// Nothing is at work: what waited for space is tried again. Those that are tried a second time begin together; those that filled
  /// the space twice, one by one, so that each round ends the waiting of one of them at least.
  ///
  /// - Returns: nil when nothing waited.
  mutating func retryForSpace() -> [Action]? {
    let second = cramped.filter { jobs[$0]?.squeezes ?? 0 < 2 }
    if !second.isEmpty {
      spaceFreed += second.reversed()
      cramped.removeAll { jobs[$0]?.squeezes ?? 0 < 2 }
      return []
    }
    guard !cramped.isEmpty else { return nil }
    let id = cramped.removeFirst()
    lone = id
    return enqueue(id, mustBegin: true)
  }

  /// It has its space.
  ///
  /// - Parameter looks: bytes of it may be at hand.
  mutating func reserved(_ id: JobID, bytes: UInt64, looks: Bool) -> [Action] {
    guard case .waiting(let wait)? = jobs[id]?.state else { return [.release(bytes)] }
    begun += 1
    jobs[id]?.reserved = bytes
    jobs[id]?.begunAlone = active == 0 ? begun : nil
    if wait == .contents { removeExhausted(id) }
    if looks || wait == .contents || isPlaced(id) { return look(id, mayAsk: wait != .contents) }
    return ask(id)
  }

  /// It does not fit. No byte was fetched for it, so that it may wait as often as need be.
  mutating func refused(_ id: JobID) -> [Action] {
    guard case .waiting(let wait)? = jobs[id]?.state else { return [] }
    if active == 0 { return end(id, .noSpace) }
    return wait == .contents ? [] : putBack(id)
  }

  private mutating func putBack(_ id: JobID) -> [Action] {
    let actions = release(id) + [.putBack(id)]
    move(id, to: .waiting(.space))
    cramped.append(id)
    if lone == id { lone = nil }
    return actions + leave(id, isPlaced: false)
  }

  private mutating func look(_ id: JobID, mayAsk: Bool) -> [Action] {
    let isPlaced = isPlaced(id)
    jobs[id]?.knewDuplicate = isPlaced
    move(id, to: .looking(mayAsk: mayAsk))
    return [.look(id)]
  }

  private mutating func ask(_ id: JobID) -> [Action] {
    move(id, to: .asking)
    return [.ask(id)]
  }

  /// Its next step: asks, unless its contents came since its bytes were looked for.
  private mutating func goOn(_ id: JobID) -> [Action] {
    if let actions = heed(id) { return actions }
    return jobs[id]?.knewDuplicate == false && isPlaced(id) ? look(id, mayAsk: true) : ask(id)
  }

  /// What a stop, or a wish, makes of it before its next step; nil where there is none.
  private mutating func heed(_ id: JobID) -> [Action]? {
    if isStopping { return end(id, .stopped) }
    switch jobs[id]?.wish {
    case nil: return nil
    case .copy:
      jobs[id]?.wish = nil
      return look(id, mayAsk: true)
    case .cancel: return end(id, .cancelled)
    case .pause: return end(id, .paused)
    case .abandon: return end(id, .abandoned)
    }
  }

  // MARK: What came of it

  /// What was at hand.
  enum Found: Hashable {
    case nothing
    case part
    /// All bytes, to be checked.
    case whole
    /// Made from a file of the folder, and checked.
    case copy
  }

  mutating func looked(_ id: JobID, _ found: Found) -> [Action] {
    guard case .looking(let mayAsk)? = jobs[id]?.state else { return [] }
    switch found {
    case .copy: return publish(id)
    case .whole: return seal(id)
    case .part, .nothing: return mayAsk ? goOn(id) : end(id, .failed)
    }
  }

  /// What came of an exchange, or of a check.
  enum Answer: Hashable {
    /// Whole and checked.
    case checked
    /// All bytes are there.
    case whole
    /// Asked again at once.
    case again
    /// - Parameters:
    ///   - until: nil to ask again at once.
    ///   - isNewRound: every source has failed, so that others of the same contents need not wait for it alone.
    case pause(until: Instant?, isNewRound: Bool)
    case lacksSpace
    /// No source is left.
    case exhausted
    case failed
    /// The exchange was ended from here.
    case cancelled
  }

  mutating func answered(_ id: JobID, _ answer: Answer) -> [Action] {
    guard let job = jobs[id], job.state == .asking || job.state == .sealing else { return [] }
    switch answer {
    case .checked: return publish(id)
    case .whole: return seal(id)
    case .failed: return end(id, .failed)
    case .lacksSpace: return squeeze(id, job)
    case .again: return goOn(id)
    case .pause(let until, let isNewRound): return pause(id, until: until, isNewRound: isNewRound)
    case .exhausted:
      if job.wish == .copy { jobs[id]?.wish = nil }
      return heed(id) ?? exhaust(id)
    case .cancelled: return heed(id) ?? end(id, .stopped)
    }
  }

  private mutating func pause(_ id: JobID, until: Instant?, isNewRound: Bool) -> [Action] {
    if let actions = heed(id) { return actions }
    if isNewRound { free(duplicates.failed(id, jobs[id]?.contents)) }
    guard let until else { return goOn(id) }
    move(id, to: .pausing(until: until))
    pausing.insert(id)
    return []
  }

  private mutating func seal(_ id: JobID) -> [Action] {
    move(id, to: .sealing)
    return [.seal(id)]
  }

  /// What is whole gets its name, whatever was wished of its transfer.
  private mutating func publish(_ id: JobID) -> [Action] {
    if jobs[id]?.wish == .abandon { return end(id, .abandoned) }
    move(id, to: .publishing)
    return [.publish(id)]
  }

  mutating func published(_ id: JobID, _ ending: Ending) -> [Action] { end(id, ending) }

  /// What stands at its path is what the server has.
  mutating func confirmed(_ id: JobID) -> [Action] { end(id, .unchanged) }

  /// A transfer found no space while it ran. With nothing else at work it does not fit.
  private mutating func squeeze(_ id: JobID, _ job: Job) -> [Action] {
    guard !isStopping, job.begunAlone != begun, job.wish == nil || job.wish == .copy else {
      return end(id, job.wish == .abandon ? .abandoned : .failed)
    }
    jobs[id]?.squeezes += 1
    jobs[id]?.wish = nil
    return putBack(id)
  }

  private mutating func exhaust(_ id: JobID) -> [Action] {
    guard jobs[id]?.contents != nil else { return end(id, .failed) }
    var actions = release(id)
    hold(id)
    actions.append(.exhausted(id))
    actions += leave(id, isPlaced: false)
    return actions + (isPlaced(id) ? [.findCopy(id)] : bound(id))
  }

  private mutating func bound(_ id: JobID) -> [Action] {
    guard exhaustedCount > mostHeldBack else { return [] }
    removeExhausted(id)
    jobs[id] = nil
    return [.setAside(id)]
  }

  private mutating func removeExhausted(_ id: JobID) {
    guard let key = jobs[id]?.contents?.key, let index = exhausted[key]?.firstIndex(of: id) else { return }
    exhausted[key]?.remove(at: index)
    if exhausted[key]?.isEmpty == true { exhausted[key] = nil }
    exhaustedCount -= 1
  }

  /// - Parameter isThere: its contents are in the folder.
  mutating func foundCopy(_ id: JobID, _ isThere: Bool) -> [Action] {
    guard jobs[id]?.state == .waiting(.contents), !isStopping else { return [] }
    return isThere ? [.reserve(id)] : bound(id)
  }

  /// No job brings its contents any more.
  mutating func giveUp(_ id: JobID) -> [Action] {
    jobs[id]?.state == .waiting(.contents) ? end(id, .failed) : []
  }

  // MARK: Ending

  private mutating func end(_ id: JobID, _ ending: Ending) -> [Action] {
    guard let job = jobs[id] else { return [] }
    var actions = release(id) + [.end(id, ending)]
    switch job.state {
    case .waiting(.turn): ready.removeAll { $0 == id }
    case .waiting(.contents): removeExhausted(id)
    case .waiting(.space):
      cramped.removeAll { $0 == id }
      spaceFreed.removeAll { $0 == id }
    case .waiting(.duplicate): duplicates.forget(id, job.contents)
    case .looking, .asking, .pausing, .sealing, .publishing: break
    }
    move(id, to: .waiting(.turn))
    jobs[id] = nil
    if lone == id { lone = nil }
    let isPlaced = ending == .placed || ending == .unchanged
    actions += leave(id, job.contents, isPlaced: isPlaced)
    guard isPlaced, let key = job.contents?.key, let waiting = exhausted[key] else { return actions }
    return actions + waiting.map { .findCopy($0) }
  }

  private mutating func release(_ id: JobID) -> [Action] {
    guard let bytes = jobs[id]?.reserved, bytes > 0 else { return [] }
    jobs[id]?.reserved = 0
    return [.release(bytes)]
  }

  private mutating func leave(_ id: JobID, isPlaced: Bool) -> [Action] {
    leave(id, jobs[id]?.contents, isPlaced: isPlaced)
  }

  /// Others of its contents wait for it no more.
  private mutating func leave(_ id: JobID, _ contents: Duplicates.Contents?, isPlaced: Bool) -> [Action] {
    let (freed, asking) = duplicates.over(id, contents, isPlaced: isPlaced)
    free(freed)
    return asking.sorted().flatMap { other -> [Action] in
      switch jobs[other]?.state {
      case .asking:
        if jobs[other]?.wish == nil { jobs[other]?.wish = .copy }
        return [.cancelExchange(other)]
      case .pausing: return goOn(other)
      default: return []
      }
    }
  }

  private mutating func free(_ ids: [JobID]) {
    for id in ids where jobs[id]?.state == .waiting(.duplicate) {
      move(id, to: .waiting(.turn))
      ready.append(id)
    }
  }

  private mutating func move(_ id: JobID, to state: JobState) {
    guard let before = jobs[id]?.state else { return }
    count(before, -1)
    count(state, 1)
    jobs[id]?.state = state
    if case .pausing = before { pausing.remove(id) }
  }

  private mutating func count(_ state: JobState, _ step: Int) {
    if case .waiting = state { return }
    active += step
    if state == .publishing { publishing += step }
  }

  // MARK: From outside

  /// `retry` ends a pause after a failure.
  ///
  /// - Returns: nil when nothing had to be changed.
  mutating func obey(_ order: PassSteering.Order, _ id: JobID) -> [Action]? {
    guard let job = jobs[id], job.state != .publishing else { return nil }
    switch order {
    case .cancel, .pause:
      // What ends already can still be paused; a pause ends it as well.
      guard !job.isEnding || (order == .pause && job.wish == .cancel) else { return nil }
      return wish(order == .pause ? .pause : .cancel, of: id)
    case .retry:
      guard case .pausing = job.state else { return nil }
      return goOn(id)
    case .prioritize:
      guard !job.isUrgent else { return nil }
      jobs[id]?.isUrgent = true
      return job.state == .asking ? [.prioritize(id)] : []
    }
  }

  /// Nobody wants its bytes any more. What gets its name already is not stopped.
  mutating func abandon(_ id: JobID) -> [Action] {
    guard let job = jobs[id], job.state != .publishing else { return [] }
    return wish(.abandon, of: id)
  }

  /// Whatever it is at, it goes no further than to its next step.
  private mutating func wish(_ wish: Wish, of id: JobID) -> [Action] {
    jobs[id]?.wish = wish
    switch jobs[id]?.state {
    case .asking: return [.cancelExchange(id)]
    case .pausing, .waiting: return heed(id) ?? []
    default: return []
    }
  }

  /// Ends all pauses: a person's wish goes before what a server asked for.
  mutating func hurry() -> [Action] { pausing.sorted().flatMap { goOn($0) } }

  /// Ends the pauses that are over.
  mutating func tick(_ now: Instant) -> [Action] {
    let due = pausing.filter { id in
      if case .pausing(let until)? = jobs[id]?.state { until <= now } else { false }
    }
    return due.sorted().flatMap { goOn($0) }
  }

  /// Nothing more is begun: transfers end, and what gets its name is waited for.
  mutating func stop() -> [Action] {
    guard !isStopping else { return [] }
    isStopping = true
    return jobs.keys.sorted().flatMap { id -> [Action] in
      switch jobs[id]?.state {
      case .asking: [.cancelExchange(id)]
      case .waiting(.contents): end(id, .failed)
      case .waiting, .pausing: end(id, .stopped)
      default: []
      }
    }
  }
}
