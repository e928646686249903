import DequeModule
import TarnCore

/// The running transfers of a folder, and what the others wait for. This is a value: each event returns the actions that follow.
/// Its owner carries these out in order, and reports the results.
///
/// Its jobs belong to several clients: a pass, and repairs beside it. At most one of them uses a path, or claims it, and the others
/// wait. They are stale once a file was placed there. Otherwise the next one continues, after a look at the path.
///
/// Its actions are all that is asked of the outside: of the folder, the ledger, the disk's space and the servers.
struct TransferState: Hashable {
  typealias JobID = UInt64
  typealias ClientID = UInt32
  /// The client of claims, which belong to none.
  private static let nobody: ClientID = 0

  /// The reason why a job waits that has not begun. Such a job holds no file, no connection and no space.
  enum Wait: Hashable {
    /// It waits for its turn.
    case turn
    /// Another job uses its path.
    case path
    /// Another job brings the same contents.
    case duplicate
    /// It did not fit beside others, which give space back when they end.
    case space
    /// No source is left, but another job may still bring its contents.
    case contents
  }

  enum JobState: Hashable {
    case waiting(Wait)
    /// Its client uses the path itself.
    case claimed
    /// Bytes that are at hand are searched.
    ///
    /// - Parameter mayAsk: true when a source is left.
    case looking(mayAsk: Bool)
    /// An exchange is running.
    case asking
    case pausing(until: Instant)
    /// All bytes are there, and are being checked.
    case sealing
    /// The file is getting its name.
    case publishing
  }

  /// What must happen to a job before its next step.
  enum Wish: Hashable {
    /// Another job has brought its contents, which are to be copied.
    case copy
    /// A person's order.
    case cancel
    case pause
    /// Nobody wants its bytes any more.
    case abandon
  }

  struct Job: Hashable {
    let client: ClientID
    let path: RelativePath
    /// True for a claim: its client uses the path itself.
    let isClaim: Bool
    let contents: Duplicates.Contents?
    fileprivate(set) var state = JobState.waiting(.turn)
    fileprivate(set) var wish: Wish?
    /// True when it gets the next connection.
    fileprivate(set) var isPrioritized: Bool
    /// The bytes of space that it holds.
    fileprivate(set) var reserved: UInt64 = 0
    /// The number of times that it found no space while it ran beside others.
    fileprivate var spaceRefusals = 0
    /// The number of its client's jobs begun so far, when it began with no other running; `nil` otherwise.
    fileprivate var begunAlone: Int?
    /// True when its contents were in place at the last search for its bytes.
    fileprivate var knewDuplicate = false
    /// True when none of its sources is left.
    fileprivate var lacksSource = false
    /// True when others used its path since it came, so that the path must be checked before it begins.
    fileprivate(set) var hasWaited = false

    fileprivate init(
      _ client: ClientID, _ path: RelativePath, _ contents: Duplicates.Contents? = nil, isClaim: Bool = false,
      isPrioritized: Bool
    ) {
      (self.client, self.path, self.contents) = (client, path, contents)
      (self.isClaim, self.isPrioritized) = (isClaim, isPrioritized)
    }

    /// True when an order, or its client, ends it.
    var isEnding: Bool { wish != nil && wish != .copy && state != .publishing }
  }

  /// The jobs and queues of a client.
  struct Client: Hashable {
    let isUrgent: Bool
    fileprivate let mostHeldBack: Int
    /// The number of jobs and claims.
    fileprivate(set) var jobs = 0
    /// The number of jobs that hold a file, a connection or space.
    fileprivate(set) var active = 0
    /// The jobs that may begin, the next one at the end.
    fileprivate var ready: [JobID] = []
    /// The jobs that wait for space until nothing else of the client is running.
    fileprivate var waitingForSpace: Deque<JobID> = []
    /// The jobs that waited for space and may begin again, the next one at the end.
    fileprivate var spaceFreed: [JobID] = []
    /// The job that is tried with nothing else beside it.
    fileprivate var runningAlone: JobID?
    /// The number of jobs so far that took space.
    fileprivate var begun = 0
    fileprivate(set) var exhaustedCount = 0
    /// True when nothing more is begun.
    fileprivate(set) var isStopping = false

    fileprivate init(isUrgent: Bool, mostHeldBack: Int) {
      (self.isUrgent, self.mostHeldBack) = (isUrgent, mostHeldBack)
    }

    /// True when nothing is running, and the jobs that are left wait for space or contents.
    var isIdle: Bool { jobs == exhaustedCount + waitingForSpace.count }

    /// The number of jobs that wait for space, or waited for it and may begin.
    var spaceWaiters: Int { waitingForSpace.count + spaceFreed.count }

    /// True when there is no room to remember more jobs that wait for space.
    var isSpaceQueueFull: Bool { spaceWaiters >= max(1, mostHeldBack) }
  }

  /// The numbers of jobs that hold a file, a connection or space.
  struct Load: Hashable {
    fileprivate(set) var active = 0
    /// The number of these that get their names.
    fileprivate(set) var publishing = 0
  }

  private struct Holding: Hashable {
    let holder: JobID
    var waiting: [JobID] = []
  }

  private(set) var jobs: [JobID: Job] = [:]
  private(set) var clients: [ClientID: Client] = [:]
  /// The user of each path, and the jobs that wait for it.
  private var paths: [RelativePath: Holding] = [:]
  private var duplicates = Duplicates()
  private var pausing: Set<JobID> = []
  /// The jobs that wait for space or contents, and so hold no path.
  private var heldBack: [RelativePath: Set<JobID>] = [:]
  /// The jobs without a source, by the contents that they need.
  private var exhausted: [UInt64: [JobID]] = [:]
  private var (load, urgentLoad) = (Load(), Load())

  // MARK: Clients

  /// - Parameters:
  ///   - isUrgent: true when its exchanges get the next connections.
  ///   - mostHeldBack: the most jobs in memory that wait for the same reason: for a duplicate, for space, for contents.
  mutating func open(_ client: ClientID, isUrgent: Bool, mostHeldBack: Int) {
    clients[client] = Client(isUrgent: isUrgent, mostHeldBack: mostHeldBack)
  }

  /// Removes a client, which must have no jobs any more.
  mutating func close(_ client: ClientID) { clients[client] = nil }

  // MARK: Questions

  var active: Int { load.active + urgentLoad.active }

  /// Returns the load of all urgent clients, or of all others.
  func load(isUrgent: Bool) -> Load { isUrgent ? urgentLoad : load }

  func isIdle(_ client: ClientID) -> Bool { clients[client]?.isIdle ?? true }

  /// Returns the client's jobs without a source.
  func waitingForContents(_ client: ClientID) -> [JobID] {
    guard clients[client]?.exhaustedCount ?? 0 > 0 else { return [] }
    return exhausted.values.joined().filter { jobs[$0]?.client == client }.sorted()
  }

  /// Returns true when nothing new begins before the jobs that wait for space, because there is no room to remember more of them.
  func isSpaceQueueFull(_ client: ClientID) -> Bool { clients[client]?.isSpaceQueueFull == true }

  /// Returns true while one of its jobs that waited for space runs alone.
  func isAlone(_ client: ClientID) -> Bool { clients[client]?.runningAlone != nil }

  /// The end of the first pause; `nil` when there is none.
  var nextDue: Instant? {
    pausing.lazy.compactMap { id in
      if case .pausing(let until)? = jobs[id]?.state { until } else { nil }
    }.min()
  }

  /// Returns true when no order and no stop ends it before its next step.
  func goesOn(_ id: JobID) -> Bool { !isStopping(id) && jobs[id].map { $0.wish == nil } ?? false }

  private func isStopping(_ id: JobID) -> Bool {
    jobs[id].map { clients[$0.client]?.isStopping != false } ?? true
  }

  /// Returns whether its contents are known to be in place.
  func isPlaced(_ id: JobID) -> Bool { jobs[id]?.contents.map(duplicates.isPlaced) ?? false }

  /// Returns the transfer that uses a path, or waits for something there.
  ///
  /// - Returns: the job; `nil` when there is none, or only a claim.
  func job(at path: RelativePath) -> JobID? {
    guard let id = paths[path]?.holder, jobs[id]?.isClaim == false else { return nil }
    return id
  }

  /// Returns the transfer that uses a path, and those that wait for the path.
  func transfers(at path: RelativePath) -> [JobID] {
    guard let holding = paths[path] else { return [] }
    return ([holding.holder] + holding.waiting).filter { jobs[$0]?.isClaim == false }
  }

  /// Returns whether a transfer or a claim uses the path.
  func isTaken(_ path: RelativePath) -> Bool { paths[path] != nil }

  /// Returns whether a transfer uses the path, and its file is not getting its name.
  func isTransferring(_ path: RelativePath) -> Bool {
    job(at: path).map { jobs[$0]?.state != .publishing } ?? false
  }

  // MARK: Beginning

  /// - Parameter mustBegin: true when it may not be postponed.
  mutating func admit(
    _ id: JobID, of client: ClientID, path: RelativePath, contents: Duplicates.Contents?, mustBegin: Bool
  ) -> [Action] {
    add(id, Job(client, path, contents, isPrioritized: clients[client]?.isUrgent == true))
    return enqueue(id, mustBegin: mustBegin)
  }

  /// Admits a job without a source whose contents are in the folder.
  mutating func admitCopy(
    _ id: JobID, of client: ClientID, path: RelativePath, contents: Duplicates.Contents?
  ) -> [Action] {
    add(id, Job(client, path, contents, isPrioritized: clients[client]?.isUrgent == true))
    hold(id)
    return foundCopy(id, true)
  }

  /// Claims a path for its client's own use.
  mutating func claim(_ id: JobID, path: RelativePath) -> [Action] {
    add(id, Job(Self.nobody, path, isClaim: true, isPrioritized: false))
    guard takePath(id) else { return lendPriority(of: id) }
    move(id, to: .claimed)
    return [.granted(id)]
  }

  /// Ends a claim.
  mutating func yield(_ id: JobID) -> [Action] {
    guard let job = jobs[id], job.isClaim else { return [] }
    return remove(id, job)
  }

  private mutating func add(_ id: JobID, _ job: Job) {
    jobs[id] = job
    clients[job.client]?.jobs += 1
  }

  /// - Returns: false when another job uses the path; this one then waits for it.
  private mutating func takePath(_ id: JobID) -> Bool {
    guard let path = jobs[id]?.path, let holder = paths[path]?.holder else {
      if let path = jobs[id]?.path { paths[path] = Holding(holder: id) }
      return true
    }
    if holder == id { return true }
    paths[path]?.waiting.append(id)
    move(id, to: .waiting(.path))
    return false
  }

  /// Frees a path, which goes to the job that waited longest.
  ///
  /// - Parameter ending: the end of the job that leaves it; `nil` when the job comes back.
  private mutating func leavePath(_ id: JobID, _ path: RelativePath, after ending: Ending?) -> [Action] {
    guard let holding = paths[path], holding.holder == id else {
      paths[path]?.waiting.removeAll { $0 == id }
      return []
    }
    var (over, waiting): ([JobID], [JobID]) = ([], holding.waiting)
    let lot = ending?.ofThoseWhoWait
    if lot != nil {
      over = waiting.filter { jobs[$0]?.isClaim == false }
      waiting.removeAll { jobs[$0]?.isClaim == false }
    }
    paths[path] = waiting.first.map { Holding(holder: $0, waiting: Array(waiting.dropFirst())) }
    return over.flatMap { end($0, lot ?? .stale) } + (waiting.first.map { takeOver($0) } ?? [])
  }

  /// Gives a job the path that it waited for.
  private mutating func takeOver(_ id: JobID) -> [Action] {
    guard let job = jobs[id] else { return [] }
    if job.isClaim {
      move(id, to: .claimed)
      return [.granted(id)]
    }
    jobs[id]?.hasWaited = true
    // Its contents may have been removed.
    if job.lacksSource {
      hold(id)
      return leavePath(id, job.path, after: nil) + [.findCopy(id)]
    }
    let isHurried = paths[job.path]?.waiting.contains { jobs[$0]?.isPrioritized == true } == true
    let lent = isHurried ? prioritize(id) : []
    return lent + join(id, mustBegin: true, inTurn: true)
  }

  /// Lends the job's priority to the jobs that it waits for.
  private mutating func lendPriority(of id: JobID) -> [Action] {
    guard let job = jobs[id], job.isPrioritized else { return [] }
    switch job.state {
    case .waiting(.path): return paths[job.path].map { prioritize($0.holder) } ?? []
    case .waiting(.duplicate): return duplicates.hurry(job.contents).sorted().flatMap { prioritize($0) }
    case .asking: return [.prioritize(id)]
    default: return []
    }
  }

  private mutating func prioritize(_ id: JobID) -> [Action] {
    guard jobs[id]?.isPrioritized == false else { return [] }
    jobs[id]?.isPrioritized = true
    return lendPriority(of: id)
  }

  /// Makes a job wait for its contents. It waits for nobody at its path.
  private mutating func hold(_ id: JobID) {
    guard let job = jobs[id], let key = job.contents?.key else { return }
    move(id, to: .waiting(.contents))
    jobs[id]?.lacksSource = true
    exhausted[key, default: []].append(id)
    clients[job.client]?.exhaustedCount += 1
  }

  private mutating func enqueue(_ id: JobID, mustBegin: Bool) -> [Action] {
    guard takePath(id) else { return lendPriority(of: id) }
    return join(id, mustBegin: mustBegin)
  }

  /// Continues a job that has its path: jobs with the same contents come first.
  ///
  /// - Parameter inTurn: true to begin when its client has a place.
  private mutating func join(_ id: JobID, mustBegin: Bool, inTurn: Bool = false) -> [Action] {
    guard let job = jobs[id] else { return [] }
    let most = clients[job.client]?.mostHeldBack ?? 0
    switch duplicates.admit(id, job.contents, mostWaiting: most, mustBegin: mustBegin) {
    case .wait:
      move(id, to: .waiting(.duplicate))
      return lendPriority(of: id)
    case .full: return remove(id, job) + [.postpone(id)]
    case .first, .placed:
      move(id, to: .waiting(.turn))
      let lent = inheritPriority(id)
      guard inTurn else { return lent + [.reserve(id)] }
      clients[job.client]?.ready.append(id)
      return lent
    }
  }

  /// Prioritizes a job whose contents an urgent one waits for.
  private mutating func inheritPriority(_ id: JobID) -> [Action] {
    duplicates.isHurried(jobs[id]?.contents) ? prioritize(id) : []
  }

  /// Begins a job that waited for a duplicate or for space.
  ///
  /// - Returns: the actions; `nil` when none may begin.
  mutating func beginNext(_ client: ClientID) -> [Action]? {
    if isAlone(client) { return nil }
    if let id = clients[client]?.ready.popLast() { return [.reserve(id)] }
    if let id = clients[client]?.spaceFreed.popLast() { return enqueue(id, mustBegin: true) }
    return nil
  }

  /// Retries the jobs that waited for space, once nothing of the client is running. Those that are tried a second time begin
  /// together. Those that filled the space twice begin one by one, so that each round ends the wait of at least one. Nobody waits
  /// for space that other clients hold, because their files take it.
  ///
  /// - Returns: the actions; `nil` when nothing waited.
  mutating func retryForSpace(_ client: ClientID) -> [Action]? {
    guard let mine = clients[client], mine.isIdle, let first = mine.waitingForSpace.first else { return nil }
    let second = mine.waitingForSpace.filter { jobs[$0]?.spaceRefusals ?? 0 < 2 }
    if !second.isEmpty {
      clients[client]?.spaceFreed += second.reversed()
      clients[client]?.waitingForSpace.removeAll { jobs[$0]?.spaceRefusals ?? 0 < 2 }
      return []
    }
    clients[client]?.waitingForSpace.removeFirst()
    clients[client]?.runningAlone = first
    return enqueue(first, mustBegin: true)
  }

  /// Notes that a job has its space.
  ///
  /// - Parameter looks: true when bytes of it may be at hand.
  mutating func reserved(_ id: JobID, bytes: UInt64, looks: Bool) -> [Action] {
    guard let job = jobs[id], case .waiting(let wait) = job.state else { return [.release(id, bytes)] }
    clients[job.client]?.begun += 1
    jobs[id]?.reserved = bytes
    jobs[id]?.begunAlone = clients[job.client].flatMap { $0.active == 0 ? $0.begun : nil }
    if wait == .contents { removeExhausted(id) }
    if looks || wait == .contents || isPlaced(id) { return look(id, mayAsk: wait != .contents) }
    return ask(id)
  }

  /// Notes that a job does not fit. No byte was fetched for it, so it may wait as often as necessary.
  mutating func refused(_ id: JobID) -> [Action] {
    guard let job = jobs[id], case .waiting(let wait) = job.state else { return [] }
    if clients[job.client]?.active == 0 { return end(id, .noSpace) }
    return wait == .contents ? leavePath(id, job.path, after: nil) : putBack(id)
  }

  /// Ends a job whose path is no longer as it saw it. Its client decides again.
  mutating func changed(_ id: JobID) -> [Action] {
    guard case .waiting? = jobs[id]?.state else { return [] }
    return end(id, .stale)
  }

  private mutating func putBack(_ id: JobID) -> [Action] {
    guard let job = jobs[id] else { return [] }
    jobs[id]?.lacksSource = false
    let actions = release(id) + [.putBack(id)]
    move(id, to: .waiting(.space))
    clients[job.client]?.waitingForSpace.append(id)
    return actions + leave(id, job.contents, isPlaced: false) + leavePath(id, job.path, after: nil)
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

  /// Takes its next step: asks, unless its contents came since the last search for its bytes.
  private mutating func goOn(_ id: JobID) -> [Action] {
    if let actions = heed(id) { return actions }
    return jobs[id]?.knewDuplicate == false && isPlaced(id) ? look(id, mayAsk: true) : ask(id)
  }

  /// Returns the actions of a stop, or a wish, before its next step; `nil` when there is none.
  private mutating func heed(_ id: JobID) -> [Action]? {
    if isStopping(id) { return end(id, .stopped) }
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

  // MARK: Results

  /// The result of a search for bytes.
  enum Found: Hashable {
    case nothing
    case part
    /// All bytes, which are still to be checked.
    case whole
    /// A copy of a file of the folder, which is checked.
    case copy
  }

  mutating func looked(_ id: JobID, _ found: Found) -> [Action] {
    guard case .looking(let mayAsk)? = jobs[id]?.state else { return [] }
    switch found {
    case .copy: return publish(id)
    case .whole: return seal(id)
    case .part, .nothing:
      guard mayAsk else { return fail(id) }
      if found == .nothing, jobs[id]?.knewDuplicate == true { duplicates.lost(id, jobs[id]?.contents) }
      return goOn(id)
    }
  }

  /// The result of an exchange, or of a check.
  enum Answer: Hashable {
    /// The file is complete and checked.
    case checked
    /// All bytes are there.
    case whole
    /// A source must be asked again at once.
    case again
    /// - Parameters:
    ///   - until: the end of the pause; `nil` to ask again at once.
    ///   - isNewRound: true when every source has failed, so that others with the same contents need not wait for it alone.
    case pause(until: Instant?, isNewRound: Bool)
    case lacksSpace
    /// No source is left.
    case exhausted
    case failed
    /// The exchange was ended by this state.
    case cancelled
  }

  mutating func answered(_ id: JobID, _ answer: Answer) -> [Action] {
    guard let job = jobs[id], job.state == .asking || job.state == .sealing else { return [] }
    switch answer {
    // The order counts, whatever the result.
    case .failed where job.isEnding, .lacksSpace where job.isEnding: return heed(id) ?? []
    case .checked: return publish(id)
    case .whole: return seal(id)
    case .failed: return fail(id)
    case .lacksSpace: return lackSpace(id, job)
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

  /// Publishes a complete file, whatever was wished of its transfer, unless it is abandoned.
  private mutating func publish(_ id: JobID) -> [Action] {
    if jobs[id]?.wish == .abandon { return end(id, .abandoned) }
    move(id, to: .publishing)
    return [.publish(id)]
  }

  mutating func published(_ id: JobID, _ ending: Ending) -> [Action] {
    guard jobs[id]?.state == .publishing else { return [] }
    return ending == .failed ? fail(id) : end(id, ending)
  }

  /// Notes that the file at its path is the server's version.
  mutating func confirmed(_ id: JobID) -> [Action] { end(id, .unchanged) }

  /// Handles a transfer that found no space while it ran. When nothing else of its client was running, it does not fit.
  private mutating func lackSpace(_ id: JobID, _ job: Job) -> [Action] {
    guard !isStopping(id), job.begunAlone != clients[job.client]?.begun else { return fail(id) }
    jobs[id]?.spaceRefusals += 1
    jobs[id]?.wish = nil
    return putBack(id)
  }

  private mutating func exhaust(_ id: JobID) -> [Action] {
    guard let job = jobs[id], job.contents != nil else { return fail(id) }
    var actions = release(id)
    hold(id)
    actions.append(.exhausted(id))
    actions += leave(id, job.contents, isPlaced: false) + leavePath(id, job.path, after: nil)
    return actions + (isPlaced(id) ? [.findCopy(id)] : bound(id))
  }

  private mutating func bound(_ id: JobID) -> [Action] {
    guard let job = jobs[id], let mine = clients[job.client], mine.exhaustedCount > mine.mostHeldBack
    else { return [] }
    removeExhausted(id)
    return remove(id, job) + [.setAside(id)]
  }

  private mutating func removeExhausted(_ id: JobID) {
    guard let job = jobs[id], let key = job.contents?.key, let index = exhausted[key]?.firstIndex(of: id)
    else { return }
    exhausted[key]?.remove(at: index)
    if exhausted[key]?.isEmpty == true { exhausted[key] = nil }
    clients[job.client]?.exhaustedCount -= 1
  }

  /// - Parameter isThere: true when its contents are in the folder.
  mutating func foundCopy(_ id: JobID, _ isThere: Bool) -> [Action] {
    guard jobs[id]?.state == .waiting(.contents), !isStopping(id) else { return [] }
    guard isThere else { return bound(id) }
    // The path may be this job's own, when its contents are found again before it has its space. It keeps the path, and `reserved`
    // gives back what is reserved twice.
    if let job = jobs[id], paths[job.path] != nil { removeExhausted(id) }
    return takePath(id) ? [.reserve(id)] : lendPriority(of: id)
  }

  /// Fails a job whose contents no job brings any more.
  mutating func giveUp(_ id: JobID) -> [Action] {
    jobs[id]?.state == .waiting(.contents) ? end(id, .failed) : []
  }

  // MARK: Ending

  /// Fails a job. No reason is reported for one that nobody wants any more.
  private mutating func fail(_ id: JobID) -> [Action] {
    end(id, jobs[id]?.wish == .abandon ? .abandoned : .failed)
  }

  private mutating func end(_ id: JobID, _ ending: Ending) -> [Action] {
    guard let job = jobs[id] else { return [] }
    var actions = release(id) + [.end(id, ending)]
    switch job.state {
    case .waiting(.turn): clients[job.client]?.ready.removeAll { $0 == id }
    case .waiting(.contents): removeExhausted(id)
    case .waiting(.space):
      clients[job.client]?.waitingForSpace.removeAll { $0 == id }
      clients[job.client]?.spaceFreed.removeAll { $0 == id }
    case .waiting(.duplicate): duplicates.forget(id, job.contents)
    case .waiting(.path), .claimed, .looking, .asking, .pausing, .sealing, .publishing: break
    }
    let hadPath = paths[job.path]?.holder == id
    actions += remove(id, job, after: ending)
    let isPlaced = ending == .placed || ending == .unchanged
    actions += leave(id, job.contents, isPlaced: isPlaced)
    if hadPath, let lot = ending.ofThoseWhoWait { actions += endHeldBack(at: job.path, lot) }
    guard isPlaced, let key = job.contents?.key, let waiting = exhausted[key] else { return actions }
    return actions + waiting.map { .findCopy($0) }
  }

  /// Ends the jobs that hold no path: those without a source, and those that wait for space.
  private mutating func endHeldBack(at path: RelativePath, _ ending: Ending) -> [Action] {
    (heldBack[path] ?? []).sorted().flatMap { end($0, ending) }
  }

  /// Removes a job.
  ///
  /// - Returns: the actions for those who waited for its path.
  private mutating func remove(_ id: JobID, _ job: Job, after ending: Ending? = nil) -> [Action] {
    count(id, job, -1)
    if case .pausing = job.state { pausing.remove(id) }
    jobs[id] = nil
    clients[job.client]?.jobs -= 1
    if clients[job.client]?.runningAlone == id { clients[job.client]?.runningAlone = nil }
    return leavePath(id, job.path, after: ending)
  }

  private mutating func release(_ id: JobID) -> [Action] {
    guard let bytes = jobs[id]?.reserved, bytes > 0 else { return [] }
    jobs[id]?.reserved = 0
    return [.release(id, bytes)]
  }

  /// Frees the jobs that wait for the same contents.
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
      _ = inheritPriority(id)
      if let client = jobs[id]?.client { clients[client]?.ready.append(id) }
    }
  }

  private mutating func move(_ id: JobID, to state: JobState) {
    guard let job = jobs[id] else { return }
    count(id, job, -1)
    jobs[id]?.state = state
    if let job = jobs[id] { count(id, job, 1) }
    if case .waiting(let wait) = state, wait != .turn, clients[job.client]?.runningAlone == id {
      clients[job.client]?.runningAlone = nil
    }
    if case .pausing = job.state { pausing.remove(id) }
  }

  private mutating func count(_ id: JobID, _ job: Job, _ step: Int) {
    let publishing = job.state == .publishing ? step : 0
    switch job.state {
    case .waiting(.space), .waiting(.contents):
      if step > 0 { heldBack[job.path, default: []].insert(id) } else { heldBack[job.path]?.remove(id) }
      if heldBack[job.path]?.isEmpty == true { heldBack[job.path] = nil }
      return
    case .waiting, .claimed: return
    default: break
    }
    clients[job.client]?.active += step
    if clients[job.client]?.isUrgent == true {
      urgentLoad.active += step
      urgentLoad.publishing += publishing
    } else {
      load.active += step
      load.publishing += publishing
    }
  }

  // MARK: From outside

  /// Carries out an order. `retry` ends a pause after a failure.
  ///
  /// - Returns: the actions; `nil` when nothing had to be changed.
  mutating func obey(_ order: PassSteering.Order, _ id: JobID) -> [Action]? {
    guard let job = jobs[id], job.state != .publishing else { return nil }
    switch order {
    case .cancel, .pause:
      // A job that is ending can still be paused, because a pause ends it as well.
      guard !job.isEnding || (order == .pause && job.wish == .cancel) else { return nil }
      return wish(order == .pause ? .pause : .cancel, of: id)
    case .retry:
      guard case .pausing = job.state else { return nil }
      return goOn(id)
    case .prioritize:
      return job.isPrioritized ? nil : prioritize(id)
    }
  }

  /// Abandons a job that another manifest does not want. A file that is getting its name is not stopped; should it fail, that is
  /// not reported.
  mutating func abandon(_ id: JobID) -> [Action] { wish(.abandon, of: id) }

  /// Makes a job end at its next step.
  private mutating func wish(_ wish: Wish, of id: JobID) -> [Action] {
    jobs[id]?.wish = wish
    switch jobs[id]?.state {
    case .asking: return [.cancelExchange(id)]
    case .pausing, .waiting: return heed(id) ?? []
    default: return []
    }
  }

  /// Ends all pauses: a person's request precedes what a server asked for.
  mutating func hurry() -> [Action] { pausing.sorted().flatMap { goOn($0) } }

  /// Ends the pauses that are over.
  mutating func tick(_ now: Instant) -> [Action] {
    let due = pausing.filter { id in
      if case .pausing(let until)? = jobs[id]?.state { until <= now } else { false }
    }
    return due.sorted().flatMap { goOn($0) }
  }

  /// Stops a client: nothing more begins, its transfers end, and files that are getting their names are waited for.
  mutating func stop(_ client: ClientID) -> [Action] {
    guard clients[client]?.isStopping == false else { return [] }
    clients[client]?.isStopping = true
    return jobs.keys.filter { jobs[$0]?.client == client }.sorted().flatMap { id -> [Action] in
      switch jobs[id]?.state {
      case .asking: [.cancelExchange(id)]
      case .waiting(.contents): end(id, .failed)
      case .waiting, .pausing: end(id, .stopped)
      default: []
      }
    }
  }
}
