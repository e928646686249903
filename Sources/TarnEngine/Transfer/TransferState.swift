import TarnCore

/// Which transfers of a folder are at work, and what the others wait for. A value: each event gives what is to be done. Whoever owns
/// it does that, in order, and tells it what came of it.
///
/// Its jobs are those of several clients: of a pass, and of repairs beside it. One of them at most is at work on a path, or
/// claims it: the others wait. They are stale once a file was placed there; else the next one goes on, after a look at what stands there.
///
/// Its actions are all that is asked of the outside: of the folder, the ledger, the space of the disk and the servers.
struct TransferState: Hashable {
  typealias JobID = UInt64
  typealias ClientID = UInt32
  /// Claims are of no client.
  private static let nobody: ClientID = 0

  /// What a job waits for that was not begun: it holds no file, no connection and no space.
  enum Wait: Hashable {
    /// It may begin.
    case turn
    /// Another client is at work on its path.
    case path
    /// Another job brings the same contents.
    case duplicate
    /// It did not fit beside others, which give space back when they end.
    case space
    /// None of its sources is left: another job may still bring its contents.
    case contents
  }

  enum JobState: Hashable {
    case waiting(Wait)
    /// Its client does something of its own to the path.
    case claimed
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

  struct Job: Hashable {
    let client: ClientID
    let path: RelativePath
    /// It is no transfer: its client does something of its own to the path.
    let isClaim: Bool
    let contents: Duplicates.Contents?
    fileprivate(set) var state = JobState.waiting(.turn)
    fileprivate(set) var wish: Wish?
    /// It gets the next connection.
    fileprivate(set) var isPrioritized: Bool
    /// Bytes held of the space.
    fileprivate(set) var reserved: UInt64 = 0
    /// Times that it found no space while it ran beside others.
    fileprivate var squeezes = 0
    /// How many jobs of its client had begun with it, when it began with no other at work; nil when it did not.
    fileprivate var begunAlone: Int?
    /// Its contents were in place when its bytes were last looked for.
    fileprivate var knewDuplicate = false
    /// None of its sources is left.
    fileprivate var lacksSource = false
    /// Others were at work on its path since it came: whether what it saw there still holds is to be looked at before it begins.
    fileprivate(set) var hasWaited = false

    fileprivate init(
      _ client: ClientID, _ path: RelativePath, _ contents: Duplicates.Contents? = nil, isClaim: Bool = false,
      isPrioritized: Bool
    ) {
      (self.client, self.path, self.contents) = (client, path, contents)
      (self.isClaim, self.isPrioritized) = (isClaim, isPrioritized)
    }

    /// An order, or whoever wanted it, ends it.
    var isEnding: Bool { wish != nil && wish != .copy && state != .publishing }
  }

  /// What a client has here.
  struct Client: Hashable {
    let isUrgent: Bool
    fileprivate let mostHeldBack: Int
    /// Jobs and claims.
    fileprivate(set) var jobs = 0
    /// Those that hold a file, a connection or space.
    fileprivate(set) var active = 0
    /// May begin, the last first.
    fileprivate var ready: [JobID] = []
    /// Wait for space, until nothing else of the client is at work.
    fileprivate var cramped: [JobID] = []
    /// Waited for space and may begin again, the last first.
    fileprivate var spaceFreed: [JobID] = []
    /// One that is tried with nothing else beside it.
    fileprivate var lone: JobID?
    /// Jobs so far that took space.
    fileprivate var begun = 0
    fileprivate(set) var exhaustedCount = 0
    /// Nothing more is begun.
    fileprivate(set) var isStopping = false

    fileprivate init(isUrgent: Bool, mostHeldBack: Int) {
      (self.isUrgent, self.mostHeldBack) = (isUrgent, mostHeldBack)
    }

    /// Nothing is at work, and nothing may begin but what waits for space or contents.
    var isIdle: Bool { jobs == exhaustedCount + cramped.count }

    /// Jobs that wait for space, or that may begin since they did.
    var crampedCount: Int { cramped.count + spaceFreed.count }

    /// There is no room to remember more that waits for space.
    var isCramped: Bool { crampedCount >= max(1, mostHeldBack) }
  }

  /// Jobs that hold a file, a connection or space.
  struct Load: Hashable {
    fileprivate(set) var active = 0
    /// Of these, so many get their names.
    fileprivate(set) var publishing = 0
  }

  private struct Holding: Hashable {
    let holder: JobID
    var waiting: [JobID] = []
  }

  private(set) var jobs: [JobID: Job] = [:]
  private(set) var clients: [ClientID: Client] = [:]
  /// Who is at work on a path, or claims it, and who waits for that.
  private var paths: [RelativePath: Holding] = [:]
  private var duplicates = Duplicates()
  private var pausing: Set<JobID> = []
  /// Those that wait for space or contents, and so hold no path.
  private var heldBack: [RelativePath: Set<JobID>] = [:]
  /// Without a source, by what they are to hold.
  private var exhausted: [UInt64: [JobID]] = [:]
  private var (load, urgentLoad) = (Load(), Load())

  // MARK: Clients

  /// - Parameters:
  ///   - isUrgent: its exchanges get the next connections.
  ///   - mostHeldBack: jobs in memory that wait for the same reason: for a duplicate, for space, for contents.
  mutating func open(_ client: ClientID, isUrgent: Bool, mostHeldBack: Int) {
    clients[client] = Client(isUrgent: isUrgent, mostHeldBack: mostHeldBack)
  }

  /// Of one that has no jobs any more.
  mutating func close(_ client: ClientID) { clients[client] = nil }

  // MARK: Questions

  var active: Int { load.active + urgentLoad.active }

  /// What is at work for all clients that are urgent, or for all others.
  func load(isUrgent: Bool) -> Load { isUrgent ? urgentLoad : load }

  func isIdle(_ client: ClientID) -> Bool { clients[client]?.isIdle ?? true }

  /// Its jobs without a source.
  func waitingForContents(_ client: ClientID) -> [JobID] {
    guard clients[client]?.exhaustedCount ?? 0 > 0 else { return [] }
    return exhausted.values.joined().filter { jobs[$0]?.client == client }.sorted()
  }

  /// Nothing new of it begins before what waits for space has its turn: there is no room to remember more.
  func isCramped(_ client: ClientID) -> Bool { clients[client]?.isCramped == true }

  /// One of it that waited for space runs alone.
  func isAlone(_ client: ClientID) -> Bool { clients[client]?.lone != nil }

  /// When the first of the pauses ends; nil without one.
  var nextDue: Instant? {
    pausing.lazy.compactMap { id in
      if case .pausing(let until)? = jobs[id]?.state { until } else { nil }
    }.min()
  }

  /// No order and no stop ends it before its next step.
  func goesOn(_ id: JobID) -> Bool { !isStopping(id) && jobs[id].map { $0.wish == nil } ?? false }

  private func isStopping(_ id: JobID) -> Bool {
    jobs[id].map { clients[$0.client]?.isStopping != false } ?? true
  }

  /// Its contents are in place by what is known here.
  func isPlaced(_ id: JobID) -> Bool { jobs[id]?.contents.map(duplicates.isPlaced) ?? false }

  /// The transfer that is at work on a path, or waits for something there.
  ///
  /// - Returns: nil where that is only one that nobody brings.
  func job(at path: RelativePath) -> JobID? {
    guard let id = paths[path]?.holder, jobs[id]?.isClaim == false else { return nil }
    return id
  }

  /// The transfer that is at work on a path, and those that wait for it there.
  func transfers(at path: RelativePath) -> [JobID] {
    guard let holding = paths[path] else { return [] }
    return ([holding.holder] + holding.waiting).filter { jobs[$0]?.isClaim == false }
  }

  /// A transfer or a claim is at work on it.
  func isTaken(_ path: RelativePath) -> Bool { paths[path] != nil }

  // MARK: Beginning

  /// - Parameter mustBegin: it is not postponed.
  mutating func admit(
    _ id: JobID, of client: ClientID, path: RelativePath, contents: Duplicates.Contents?, mustBegin: Bool
  ) -> [Action] {
    add(id, Job(client, path, contents, isPrioritized: clients[client]?.isUrgent == true))
    return enqueue(id, mustBegin: mustBegin)
  }

  /// One that has no source left, and whose contents are in the folder.
  mutating func admitCopy(
    _ id: JobID, of client: ClientID, path: RelativePath, contents: Duplicates.Contents?
  ) -> [Action] {
    add(id, Job(client, path, contents, isPrioritized: clients[client]?.isUrgent == true))
    hold(id)
    return foundCopy(id, true)
  }

  /// Somebody is going to do something of his own to a path.
  mutating func claim(_ id: JobID, path: RelativePath) -> [Action] {
    add(id, Job(Self.nobody, path, isClaim: true, isPrioritized: false))
    guard takePath(id) else { return lendPriority(of: id) }
    move(id, to: .claimed)
    return [.granted(id)]
  }

  /// What a claim was for is done.
  mutating func yield(_ id: JobID) -> [Action] {
    guard let job = jobs[id], job.isClaim else { return [] }
    return remove(id, job)
  }

  private mutating func add(_ id: JobID, _ job: Job) {
    jobs[id] = job
    clients[job.client]?.jobs += 1
  }

  /// - Returns: false where another one is at work: then it waits for that.
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

  /// Others may have its path: who waited first gets it.
  ///
  /// - Parameter ending: of who leaves it; nil where it comes back.
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

  /// It has the path that it waited for.
  private mutating func takeOver(_ id: JobID) -> [Action] {
    guard let job = jobs[id] else { return [] }
    if job.isClaim {
      move(id, to: .claimed)
      return [.granted(id)]
    }
    jobs[id]?.hasWaited = true
    // Its contents may be there no more.
    if job.lacksSource {
      hold(id)
      return leavePath(id, job.path, after: nil) + [.findCopy(id)]
    }
    let isHurried = paths[job.path]?.waiting.contains { jobs[$0]?.isPrioritized == true } == true
    let lent = isHurried ? prioritize(id) : []
    return lent + join(id, mustBegin: true, inTurn: true)
  }

  /// Whom it waits for has its priority.
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

  /// It waits for another job of its contents, and for nobody at its path.
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

  /// It has its path: those of the same contents are before it.
  ///
  /// - Parameter inTurn: it begins when its client has a place.
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

  /// Somebody in a hurry waits for its contents.
  private mutating func inheritPriority(_ id: JobID) -> [Action] {
    duplicates.isHurried(jobs[id]?.contents) ? prioritize(id) : []
  }

  /// Begins one of those that waited for a duplicate or for space.
  ///
  /// - Returns: nil when none may begin.
  mutating func beginNext(_ client: ClientID) -> [Action]? {
    if isAlone(client) { return nil }
    if let id = clients[client]?.ready.popLast() { return [.reserve(id)] }
    if let id = clients[client]?.spaceFreed.popLast() { return enqueue(id, mustBegin: true) }
    return nil
  }

  /// Nothing of it is at work: what waited for space is tried again. Those that are tried a second time begin together; those that
  /// filled the space twice, one by one, so that each round ends the waiting of one of them at least. Nobody waits for the space that
  /// other clients hold: what they bring takes it.
  ///
  /// - Returns: nil when nothing waited.
  mutating func retryForSpace(_ client: ClientID) -> [Action]? {
    guard let mine = clients[client], mine.isIdle, let first = mine.cramped.first else { return nil }
    let second = mine.cramped.filter { jobs[$0]?.squeezes ?? 0 < 2 }
    if !second.isEmpty {
      clients[client]?.spaceFreed += second.reversed()
      clients[client]?.cramped = mine.cramped.filter { jobs[$0]?.squeezes ?? 0 >= 2 }
      return []
    }
    clients[client]?.cramped.removeFirst()
    clients[client]?.lone = first
    return enqueue(first, mustBegin: true)
  }

  /// It has its space.
  ///
  /// - Parameter looks: bytes of it may be at hand.
  mutating func reserved(_ id: JobID, bytes: UInt64, looks: Bool) -> [Action] {
    guard let job = jobs[id], case .waiting(let wait) = job.state else { return [.release(bytes)] }
    clients[job.client]?.begun += 1
    jobs[id]?.reserved = bytes
    jobs[id]?.begunAlone = clients[job.client].flatMap { $0.active == 0 ? $0.begun : nil }
    if wait == .contents { removeExhausted(id) }
    if looks || wait == .contents || isPlaced(id) { return look(id, mayAsk: wait != .contents) }
    return ask(id)
  }

  /// It does not fit. No byte was fetched for it, so that it may wait as often as need be.
  mutating func refused(_ id: JobID) -> [Action] {
    guard let job = jobs[id], case .waiting(let wait) = job.state else { return [] }
    if clients[job.client]?.active == 0 { return end(id, .noSpace) }
    return wait == .contents ? leavePath(id, job.path, after: nil) : putBack(id)
  }

  /// What it saw at its path holds no more: its client decides again.
  mutating func changed(_ id: JobID) -> [Action] {
    guard case .waiting? = jobs[id]?.state else { return [] }
    return end(id, .stale)
  }

  private mutating func putBack(_ id: JobID) -> [Action] {
    guard let job = jobs[id] else { return [] }
    jobs[id]?.lacksSource = false
    let actions = release(id) + [.putBack(id)]
    move(id, to: .waiting(.space))
    clients[job.client]?.cramped.append(id)
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

  /// Its next step: asks, unless its contents came since its bytes were looked for.
  private mutating func goOn(_ id: JobID) -> [Action] {
    if let actions = heed(id) { return actions }
    return jobs[id]?.knewDuplicate == false && isPlaced(id) ? look(id, mayAsk: true) : ask(id)
  }

  /// What a stop, or a wish, makes of it before its next step; nil where there is none.
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
    case .part, .nothing:
      guard mayAsk else { return fail(id) }
      if found == .nothing, jobs[id]?.knewDuplicate == true { duplicates.lost(id, jobs[id]?.contents) }
      return goOn(id)
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
    // Whatever came of it, an order was given.
    case .failed where job.isEnding, .lacksSpace where job.isEnding: return heed(id) ?? []
    case .checked: return publish(id)
    case .whole: return seal(id)
    case .failed: return fail(id)
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

  mutating func published(_ id: JobID, _ ending: Ending) -> [Action] {
    guard jobs[id]?.state == .publishing else { return [] }
    return ending == .failed ? fail(id) : end(id, ending)
  }

  /// What stands at its path is what the server has.
  mutating func confirmed(_ id: JobID) -> [Action] { end(id, .unchanged) }

  /// A transfer found no space while it ran. With nothing else of its client at work it does not fit.
  private mutating func squeeze(_ id: JobID, _ job: Job) -> [Action] {
    guard !isStopping(id), job.begunAlone != clients[job.client]?.begun else { return fail(id) }
    jobs[id]?.squeezes += 1
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

  /// - Parameter isThere: its contents are in the folder.
  mutating func foundCopy(_ id: JobID, _ isThere: Bool) -> [Action] {
    guard jobs[id]?.state == .waiting(.contents), !isStopping(id) else { return [] }
    guard isThere else { return bound(id) }
    if let job = jobs[id], paths[job.path] != nil { removeExhausted(id) }
    return takePath(id) ? [.reserve(id)] : lendPriority(of: id)
  }

  /// No job brings its contents any more.
  mutating func giveUp(_ id: JobID) -> [Action] {
    jobs[id]?.state == .waiting(.contents) ? end(id, .failed) : []
  }

  // MARK: Ending

  /// Why is not told of what nobody wants any more: whatever it was at.
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
      clients[job.client]?.cramped.removeAll { $0 == id }
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

  /// Another client gave up to bring a file there, or waits for space.
  private mutating func endHeldBack(at path: RelativePath, _ ending: Ending) -> [Action] {
    (heldBack[path] ?? []).sorted().flatMap { end($0, ending) }
  }

  /// - Returns: what comes of it for those who waited for its path.
  private mutating func remove(_ id: JobID, _ job: Job, after ending: Ending? = nil) -> [Action] {
    count(id, job, -1)
    if case .pausing = job.state { pausing.remove(id) }
    jobs[id] = nil
    clients[job.client]?.jobs -= 1
    if clients[job.client]?.lone == id { clients[job.client]?.lone = nil }
    return leavePath(id, job.path, after: ending)
  }

  private mutating func release(_ id: JobID) -> [Action] {
    guard let bytes = jobs[id]?.reserved, bytes > 0 else { return [] }
    jobs[id]?.reserved = 0
    return [.release(bytes)]
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
      _ = inheritPriority(id)
      if let client = jobs[id]?.client { clients[client]?.ready.append(id) }
    }
  }

  private mutating func move(_ id: JobID, to state: JobState) {
    guard let job = jobs[id] else { return }
    count(id, job, -1)
    jobs[id]?.state = state
    if let job = jobs[id] { count(id, job, 1) }
    if case .waiting(let wait) = state, wait != .turn, clients[job.client]?.lone == id {
      clients[job.client]?.lone = nil
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
      return job.isPrioritized ? nil : prioritize(id)
    }
  }

  /// Nobody wants its bytes any more, for another manifest holds. What gets its name already is not stopped; should it fail, nobody is told.
  mutating func abandon(_ id: JobID) -> [Action] { wish(.abandon, of: id) }

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

  /// Nothing more of a client is begun: its transfers end, and what gets its name is waited for.
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
