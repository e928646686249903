import TarnCore
import TarnRuntime

/// The engine's thread. It does what its `TransferState` says, and reports the results to it. It owns the lanes, the publisher and
/// the partial files. All its state is confined to it; other threads use the inbox.
final class EngineThread {
  private let inbox: LockedCondition<TransferEngine.Inbox>
  private let post: @Sendable (JobMessage) -> Void
  private var state = TransferState()
  /// The jobs of the state, by their numbers.
  private var jobs: [UInt64: Job] = [:]
  private var claims: [UInt64: PathClaim] = [:]
  private var lastJob: UInt64
  /// The number of jobs so far that are not for the first lane alone.
  private var othersBegun = 0
  /// The submissions that have begun, in the order of their turns.
  private var submissions: [Transfers] = []
  private var queues = SubmissionQueues()
  private var isQueuesTurn = true
  private var lastClient: TransferState.ClientID = 0
  private var workshop: Workshop?

  init(_ inbox: LockedCondition<TransferEngine.Inbox>) {
    self.inbox = inbox
    lastJob = inbox.withLock { $0.lastJob }
    post = { [inbox] message in inbox.change { $0.messages.append(.job(message)) } }
  }

  // MARK: From the first submission to the last

  func run() {
    repeat {
      do {
        try work()
        end()
      } catch {
        let failure = PassFailure(translating: error)
        inbox.withLock { $0.failure = failure }
        refuse(failure)
      }
    } while !isOver()
  }

  /// Refuses all submissions, because there is no thread to run on.
  ///
  /// - Returns: false while somebody waits for paths: without a thread nobody can keep them for that client.
  func refuseAll(_ failure: PassFailure) -> Bool {
    refuse(failure, opensClaims: false)
    return isOver()
  }

  private func open(_ transfers: Transfers) {
    let submission = transfers.submission
    if let failure = inbox.withLock({ $0.failure }) { return transfers.end(.failure(failure)) }
    // A newer manifest was announced since the plan was made.
    if let known = submission.manifestNumber, known != inbox.withLock({ $0.history.manifests }) {
      submission.isSuperseded = true
      return transfers.end(.success(()))
    }
    lastClient += 1
    submission.id = lastClient
    queues[isUrgent: submission.isUrgent].append(transfers)
    state.open(lastClient, isUrgent: submission.isUrgent, mostHeldBack: submission.client.mostHeldBack)
    submission.steering?.attach(
      hurry: { [inbox] in inbox.change { $0.messages.append(.hurry) } },
      { [inbox] order, path, answer in inbox.change { $0.messages.append(.steer(order, path, answer)) } })
  }

  /// Returns the workshop, which is made when the first transfer needs it.
  private func openWorkshop() throws -> Workshop {
    if let workshop { return workshop }
    let made = try Workshop(post: post)
    workshop = made
    return made
  }

  private func context(_ submission: Submission) throws -> FileReceiverContext {
    let workshop = try openWorkshop()
    return FileReceiverContext(
      client: submission.client, lanes: workshop.lanes, checkpoints: workshop.checkpoints,
      blocks: workshop.blocks, space: submission.space, post: post)
  }

  /// Ends all threads, because nothing is submitted any more.
  private func end() {
    guard let workshop = workshop.take() else { return }
    workshop.close()
  }

  /// Ends all submissions with the reason why the folder, the ledger or a thread is not available.
  private func refuse(_ failure: PassFailure, opensClaims: Bool = true) {
    for job in jobs.values { job.download.map(job.submission.client.downloader.cancel) }
    end()
    for job in jobs.values { job.partial?.close() }
    for (id, job) in state.jobs { jobs[id]?.submission.space.giveBack(job.reserved) }
    jobs = [:]
    let waiting = inbox.withLock { inbox -> [EngineMessage] in
      defer { inbox.messages = [] }
      return inbox.messages
    }
    for message in waiting {
      switch message {
      case .submit(let transfers): transfers.end(.failure(failure))
      case .claim(let claim) where opensClaims: claim.granted.open()
      case .claim: inbox.withLock { $0.messages.append(message) }
      case .steer(_, _, let answer): answer(.notThere)
      case .yield, .follow, .job, .hurry, .stopped: break
      }
    }
    for claim in claims.values { claim.granted.open() }
    claims = [:]
    for transfers in submissions + queues.all { finish(transfers, .failure(failure)) }
    queues = SubmissionQueues()
    state = TransferState()
  }

  /// - Returns: false when more was submitted meanwhile.
  private func isOver() -> Bool {
    inbox.change { inbox in
      inbox.lastJob = lastJob
      // Messages of exchanges that nobody waits for are obsolete.
      let messages = inbox.messages
      inbox.messages = []
      for message in messages {
        switch message {
        case .submit, .claim, .steer: inbox.messages.append(message)
        case .follow: inbox.beginCarryingOut()
        case .yield, .job, .hurry, .stopped: break
        }
      }
      inbox.isRunning = !inbox.messages.isEmpty
      return inbox.messages.isEmpty
    }
  }

  private func work() throws {
    var hasMore = false
    repeat {
      try handleMail(waiting: hasMore ? .zero : longestWait)
      if let now = clock?.monotonic() { try perform(state.tick(now)) }
      hasMore = false
      // Running and queued plans take turns in going first.
      isQueuesTurn.toggle()
      if isQueuesTurn { hasMore = try beginQueued() }
      for transfers in submissions where try advance(transfers) { hasMore = true }
      if !isQueuesTurn, try beginQueued() { hasMore = true }
      if submissions.count > 1 { submissions.append(submissions.removeFirst()) }
      let publishing = state.load(isUrgent: false).publishing + state.load(isUrgent: true).publishing
      workshop?.publisher.setFlushing(!hasMore && state.active == publishing)
      tick()
    } while !submissions.isEmpty || !claims.isEmpty || !queues.isEmpty
  }

  private var clock: (any Clock)? { submissions.first?.submission.client.clock }

  // MARK: What begins

  /// The most actions at a time: enough for a group that is renamed, one that is made durable, and the next one meanwhile.
  /// Each may hold a file and a connection, and the process itself needs some descriptors.
  private let most = min(PublishThread.largestGroup * 3, max(4, (OpenFiles.limit - 40) / 2))
  /// The most actions of urgent clients besides these.
  private var mostUrgent: Int { max(1, min(256, most / 4)) }
  /// The most of these that may be in transfer: what they bring waits in memory for its lane.
  private static let mostOnTheWay = PublishThread.largestGroup * 3 / 2
  /// The most actions that one submission begins before others have their turn.
  private static let handful = 512

  /// Returns whether another job may begin now.
  private func hasPlace(_ submission: Submission) -> Bool {
    let load = state.load(isUrgent: submission.isUrgent)
    guard load.active - load.publishing < Self.mostOnTheWay else { return false }
    guard submission.isUrgent else { return load.active < most }
    guard load.active < mostUrgent else { return false }
    // A submission takes half of what others leave, so that some is always left for the next one.
    let own = state.clients[submission.id]?.active ?? 0
    return own < max(1, (mostUrgent - (load.active - own)) / 2)
  }

  /// - Returns: true when more of them may begin at once.
  private func beginQueued() throws -> Bool {
    var hasMore = false
    for isUrgent in [true, false] {
      for _ in 0..<Self.handful {
        guard let next = queues[isUrgent: isUrgent].first, hasPlace(next.submission) else { break }
        queues[isUrgent: isUrgent].removeFirst()
        submissions.append(next)
        if try advance(next) { hasMore = true }
      }
    }
    return hasMore
  }

  /// Moves stopped submissions out of the queue, because they need no place to end.
  private func beginStopped() {
    for isUrgent in [true, false] {
      submissions += queues[isUrgent: isUrgent].filter { $0.submission.stop.isSet }
      queues[isUrgent: isUrgent].removeAll { $0.submission.stop.isSet }
    }
  }

  /// Begins what may begin, phase by phase. After the last phase the submission is over.
  ///
  /// - Returns: true when more of it may begin at once.
  private func advance(_ transfers: Transfers) throws -> Bool {
    let (submission, client) = (transfers.submission, transfers.submission.id)
    while true {
      if try fill(submission) { return true }
      if submission.stop.isSet { try perform(state.stop(client)) }
      let isThrough = submission.stop.isSet || submission.plan.isThrough
      // No more of this phase is adopted, and what was adopted can serve as a duplicate.
      if isThrough { try submission.flushAdoptions(isTaken: isGoingOn) }
      guard isThrough || state.isSpaceQueueFull(client), state.isIdle(client) else { return false }
      if !submission.stop.isSet, let retried = state.retryForSpace(client) {
        try perform(retried)
        continue
      }
      // Deferred actions begin before anything is waited for.
      if isThrough, try beginDeferred(submission) { continue }
      // In the last phase each of them must end: there may be no place to copy it now.
      let isLeft = submission.plan.isLastPhase && !state.waitingForContents(client).isEmpty
      guard submission.stop.isSet || isThrough && !isLeft else { return false }
      if submission.stop.isSet || !submission.plan.beginNextPhase() {
        finish(transfers, .success(()))
        return false
      }
    }
  }

  private func finish(_ transfers: Transfers, _ result: Result<Void, PassFailure>) {
    submissions.removeAll { $0 === transfers }
    state.close(transfers.submission.id)
    transfers.submission.steering?.detach()
    transfers.end(result)
  }

  /// Begins jobs while there are places: waiting and new ones in turn.
  ///
  /// - Returns: true when its turn is over.
  private func fill(_ submission: Submission) throws -> Bool {
    let client = submission.id
    for _ in 0..<Self.handful {
      guard !submission.stop.isSet, hasPlace(submission), !state.isAlone(client) else { return false }
      let begun = state.beginNext(client)
      if let begun { try perform(begun) }
      guard hasPlace(submission) else { return false }
      if state.isSpaceQueueFull(client) || isHeldUp(submission) {
        guard begun != nil else { return false }
      } else if let (action, ordinal) = try submission.plan.next() {
        try admit(action, ordinal: ordinal, of: submission)
      } else if try !comeBack(submission), begun == nil {
        return false
      }
      // Many actions may begin nothing.
      tick()
    }
    return true
  }

  /// Returns whether the next file must make way while its path is in use. The manifest has a directory there.
  private func isHeldUp(_ submission: Submission) -> Bool {
    submission.plan.upcoming.map { $0.kind == .delete && state.isTaken($0.path) } ?? false
  }

  /// - Parameter isAgain: true when it was deferred before; it is not deferred again.
  private func admit(
    _ action: Action, ordinal: Int, of submission: Submission, isAgain: Bool = false
  ) throws {
    switch action.kind {
    case .adopt:
      if state.isTaken(action.path) {
        // The path's user decides what becomes of it: a repair looks again.
        if submission.isUrgent { return submission.isSuperseded = true }
        guard try abandonRepair(at: action.path) else { return submission.decideAgain(action) }
      }
      if try !submission.isAsSeen(action) { return submission.decideAgain(action) }
      try submission.adopt(action, isTaken: isGoingOn)
    // The removal itself looks at the file.
    case .delete: try submission.removeInTheWay(action)
    case .inspect: submission.decideAgain(action)
    // This kind occurs only among the deletions.
    case .forget: break
    case .fetch, .update, .restore, .replace, .revalidate:
      guard let entry = action.entry, !entry.sources.isEmpty else { return }
      if try submission.mustWait(action) || !submission.isAsSeen(action) {
        return submission.decideAgain(action)
      }
      if submission.isUrgent, isBroughtByRepair(entry) { return submission.countBrought(action) }
      if submission.isBlocked(action) { return }
      if submission.isPaused(action.path) { return submission.hold(action, ordinal: ordinal) }
      try begin(makeJob(action, entry, ordinal: ordinal, of: submission), mustBegin: isAgain)
    }
  }

  /// Returns whether somebody uses a path and is not about to end.
  private func isGoingOn(_ path: RelativePath) -> Bool {
    state.isTaken(path) && state.job(at: path).map { state.jobs[$0]?.isEnding == false } ?? true
  }

  /// Returns whether another repair brings the same file, or waits to. That one reports the file: waiting for it would take the place
  /// of a repair that can proceed. A file that is being renamed may be removed again, so it is waited for and looked at again.
  private func isBroughtByRepair(_ entry: Entry) -> Bool {
    state.transfers(at: entry.path).contains { id in
      guard let job = jobs[id], job.submission.isUrgent, job.entry == entry else { return false }
      guard let transfer = state.jobs[id], transfer.state != .publishing else { return false }
      return !job.submission.stop.isSet && !transfer.isEnding
    }
  }

  /// Ends a repair of a path whose file is already as the feed wants it.
  ///
  /// - Returns: false when no repair brings it, or its file is already being renamed.
  private func abandonRepair(at path: RelativePath) throws -> Bool {
    guard let id = state.job(at: path), let job = jobs[id], job.submission.isUrgent,
      state.jobs[id]?.state != .publishing
    else { return false }
    job.submission.isSuperseded = true
    try perform(state.abandon(id))
    return true
  }

  /// - Parameter mustBegin: true when it may not be deferred.
  private func begin(_ job: Job, mustBegin: Bool) throws {
    jobs[job.id] = job
    try perform(
      state.admit(
        job.id, of: job.submission.id, path: job.entry.path, contents: job.contents, mustBegin: mustBegin))
  }

  private func makeJob(_ action: Action, _ entry: Entry, ordinal: Int, of submission: Submission) -> Job {
    lastJob += 1
    // The other files alternate, beginning with the lane that has no small files.
    let isForFirst = Job.isForFirstLane(entry)
    if !isForFirst { othersBegun += 1 }
    return Job(
      id: lastJob, of: submission, action: action, entry: entry, ordinal: ordinal,
      lane: isForFirst ? 0 : othersBegun)
  }

  /// Once nothing else is running: begins deferred actions, and copies files whose duplicate is in place by now.
  ///
  /// - Returns: false when nothing is left to do.
  private func beginDeferred(_ submission: Submission) throws -> Bool {
    if !submission.stop.isSet {
      if submission.plan.deferred.postponed.isEmpty, try copyExhausted(submission) { return true }
      if try submission.plan.comeBack() { return true }
    }
    // A stop may have come meanwhile.
    guard submission.stop.isSet else { return false }
    try perform(state.stop(submission.id))
    submission.account.end(exhausted: submission.plan.deferred.exhaustedCount)
    submission.plan.deferred = DeferredActions()
    return false
  }

  /// Continues to read the plan again.
  ///
  /// - Returns: false when it is not being read again, or is at its end.
  private func comeBack(_ submission: Submission) throws -> Bool {
    guard let (ordinal, action, isExhausted) = try nextComeback(submission) else { return false }
    guard isExhausted else {
      try admit(action, ordinal: ordinal, of: submission, isAgain: true)
      return true
    }
    guard let entry = action.entry, let failure = submission.plan.deferred.failure(ordinal, entry) else {
      return true
    }
    let isPlaced = try submission.hasCopy(entry)
    guard isPlaced || submission.plan.isLastPhase else { return true }
    submission.plan.deferred.drop(ordinal)
    guard try submission.isAsSeen(action) else {
      submission.decideAgain(action)
      return true
    }
    guard isPlaced else {
      submission.account.fail(action, code: failure.code, message: failure.message)
      return true
    }
    let job = makeJob(action, entry, ordinal: ordinal, of: submission)
    job.failure = failure
    jobs[job.id] = job
    try perform(
      state.admitCopy(
        job.id, of: submission.id, path: entry.path, contents: Duplicates.Contents(entry)))
    return true
  }

  private func nextComeback(_ submission: Submission) throws -> DeferredActions.Comeback? {
    while true {
      switch try submission.plan.deferred.next() {
      case .comeback(let comeback): return comeback
      case .over: return nil
      // This must not happen inside `next`, which changes the deferred actions: the status that is reported here counts them.
      case .pause: if !mayGoOn(submission) { submission.plan.deferred.end() }
      }
    }
  }

  /// Must be called now and then by long work on this thread.
  private func mayGoOn(_ submission: Submission) -> Bool {
    tick()
    return !submission.stop.isSet
  }

  /// Once nothing more will be placed, fails the jobs whose contents cannot be copied.
  ///
  /// - Returns: whether any job is running.
  private func copyExhausted(_ submission: Submission) throws -> Bool {
    for id in state.waitingForContents(submission.id) {
      guard mayGoOn(submission), hasPlace(submission) else { break }
      if let job = jobs[id], try submission.hasCopy(job.entry) {
        try perform(state.foundCopy(id, true))
      } else if submission.plan.isLastPhase {
        try perform(state.giveUp(id))
      }
    }
    return !state.isIdle(submission.id)
  }

  /// Updates the ledger about one submission: a pass before a repair.
  private func tick() {
    let transfers = submissions.first { !$0.submission.isUrgent } ?? submissions.first
    guard let shown = transfers?.submission else { return }
    shown.account.tick {
      (state.clients[shown.id]?.exhaustedCount ?? 0) + shown.plan.deferred.exhaustedCount
    }
  }

  // MARK: Messages

  /// The longest wait: at most a quarter of a second, and not beyond the next attempt.
  private var longestWait: Duration {
    let most = Duration.milliseconds(250)
    guard let due = state.nextDue, let now = clock?.monotonic() else { return most }
    return min(most, due.remaining(at: now))
  }

  /// With more jobs than this, messages are collected for a moment: a wake-up for each costs more than handling it.
  private static let many = 64
  /// The moment in microseconds.
  private static let moment: UInt32 = 1000

  /// Handles the messages that have come, or waits for the first one.
  ///
  /// - Parameter waiting: the longest wait for the first message.
  private func handleMail(waiting: Duration) throws {
    if waiting > .zero, state.active > Self.many { WorkerThread.sleep(microseconds: Self.moment) }
    let messages = inbox.wait(atMost: waiting) { inbox -> [EngineMessage]? in
      guard !inbox.messages.isEmpty else { return nil }
      defer { inbox.messages = [] }
      return inbox.messages
    }
    guard var rest = messages.map({ $0[...] }) else { return }
    let wereStopped = rest.contains { if case .stopped = $0 { true } else { false } }
    // Messages that are left are handled later, so that their senders get an answer even when an earlier one fails.
    defer { if !rest.isEmpty { inbox.withLock { $0.messages = rest + $0.messages } } }
    while let message = rest.popFirst() { try handle(message) }
    if wereStopped { beginStopped() }
  }

  private func handle(_ message: EngineMessage) throws {
    switch message {
    case .submit(let transfers): open(transfers)
    case .claim(let claim): try admit(claim)
    case .yield(let claim):
      for id in claim.jobs {
        claims[id] = nil
        try perform(state.yield(id))
      }
    case .follow(let entry, let number): try follow(entry, number)
    case .job(let message): try handle(message)
    case .steer(let order, let path, let answer): answer(try steer(order, path))
    case .hurry: try perform(state.hurry())
    // Handled once for all of them, after the mail: `beginStopped`.
    case .stopped: break
    }
  }

  private func handle(_ message: JobMessage) throws {
    switch message {
    case .prepared(let id, let found): try looked(id, found)
    case .workedAround(let id, let failure, let instead):
      jobs[id]?.submission.account.tell(
        .notice(code: failure.code.rawValue, message: "\(failure.message); \(instead)"))
    case .ended(let id, let end, let received):
      guard let job = jobs[id] else { return }
      job.download = nil
      job.submission.account.received(received)
      try ended(job, end, received: received)
    case .published(let id, let outcome): try published(id, outcome)
    case .ledgerFailed(let failure): throw PassFailure(failure)
    case .folderFailed(let failure): throw PassFailure(failure)
    }
  }

  // MARK: Claims, and another manifest

  /// Takes the claim's paths, one after the other.
  private func admit(_ claim: PathClaim) throws {
    if !claim.waits { claim.leaveOutTaken(state) }
    while claim.jobs.count < claim.paths.count {
      lastJob += 1
      let path = claim.paths[claim.jobs.count]
      claim.jobs.append(lastJob)
      claims[lastJob] = claim
      let actions = state.claim(lastJob, path: path)
      guard actions == [.granted(lastJob)] else { return try perform(actions) }
    }
    claim.granted.open()
  }

  /// Ends jobs of repairs whose entries the new manifest wants otherwise. The rest of their plans is checked as it begins.
  private func follow(_ entry: @escaping (RelativePath) throws -> Entry?, _ number: Int) throws {
    for transfers in submissions + queues.all where transfers.submission.isUrgent {
      (transfers.submission.manifest, transfers.submission.manifestNumber) = (entry, number)
    }
    for job in jobs.values.sorted(by: { $0.id < $1.id })
    where job.submission.isUrgent && (try? entry(job.entry.path)) != job.entry {
      job.submission.isSuperseded = true
      try perform(state.abandon(job.id))
    }
    inbox.withLock { $0.beginCarryingOut() }
  }

  // MARK: What the state asks for

  private func perform(_ actions: [TransferState.Action]) throws {
    for action in actions { try perform(action) }
  }

  private func perform(_ action: TransferState.Action) throws {
    switch action {
    case .reserve(let id): try reserve(id)
    case .look(let id):
      guard let job = jobs[id] else { return }
      let search = LocalBytesSearch(job, try context(job.submission))
      search.context.lanes.submit(lane: job.lane) { search.run() }
    case .ask(let id): try ask(id)
    case .cancelExchange(let id):
      if let job = jobs[id] { job.download.map(job.submission.client.downloader.cancel) }
    case .prioritize(let id):
      if let job = jobs[id] { job.download.map(job.submission.client.downloader.prioritize) }
    case .seal(let id): try seal(id)
    case .publish(let id): try publish(id)
    case .release(let id, let bytes): jobs[id]?.submission.space.giveBack(bytes)
    case .putBack(let id): putBack(id)
    case .exhausted(let id):
      guard let job = jobs[id] else { return }
      job.submission.leavePartial(job)
      job.partial = nil
      job.submission.account.progress.forget(id)
      job.submission.account.tellExhausted(job)
    case .findCopy(let id):
      let isThere = try jobs[id].map { try $0.submission.hasCopy($0.entry) } ?? false
      try perform(state.foundCopy(id, isThere))
    case .postpone(let id):
      if let job = jobs.removeValue(forKey: id) { job.submission.plan.deferred.postponed.insert(job.ordinal) }
    case .setAside(let id):
      if let job = jobs.removeValue(forKey: id) { job.submission.plan.deferred.setAside(job) }
    case .granted(let id): if let claim = claims[id] { try admit(claim) }
    case .end(let id, let ending): if let job = jobs.removeValue(forKey: id) { try end(job, ending) }
    }
  }

  /// Reserves the space that a job needs.
  private func reserve(_ id: UInt64) throws {
    guard let job = jobs[id] else { return }
    let (submission, account) = (job.submission, job.submission.account)
    let isCopy = job.failure != nil
    if !isCopy, submission.isPaused(job.entry.path) { return try perform(state.obey(.pause, id) ?? []) }
    if state.jobs[id]?.hasWaited == true, try !submission.isAsSeen(job.action, mustLook: true) {
      return try perform(state.changed(id))
    }
    let needed = submission.needed(job.entry)
    // A file that has not changed needs no new file.
    let others = job.action.kind == .revalidate ? nil : state.active
    guard submission.space.reserve(needed, besides: others) else {
      return try perform(state.refused(id))
    }
    if isCopy { account.forgetFailure(of: job.entry.path) } else { account.tell(.action(job.action)) }
    try perform(state.reserved(id, bytes: needed ?? 0, looks: submission.mayBeAtHand(job)))
  }

  /// Starts an exchange with the job's source.
  private func ask(_ id: UInt64) throws {
    guard let job = jobs[id] else { return }
    let submission = job.submission
    let document = job.entry.isList ? submission.listURL.take() : nil
    var request = job.attempts.request(room: { submission.space.room }, document: document)
    request.isUrgent = state.jobs[id]?.isPrioritized == true
    submission.client.complete(&request)
    job.wishes = submission.steering?.wishes
    let receiver = FileReceiver(job, context: try context(submission))
    submission.account.progress.begin(
      id, path: job.entry.path, kept: request.offset, total: job.entry.size, source: job.attempts.url,
      isWaiting: true)
    let download = submission.client.downloader.start(request, to: receiver)
    receiver.started(download)
    job.download = download
  }

  /// Checks a file whose bytes are all at hand.
  private func seal(_ id: UInt64) throws {
    guard let job = jobs[id], let check = FileReceiver.check(of: job) else { return }
    let post = post
    try openWorkshop().lanes.submit(lane: job.lane) { post(.ended(id, check(), received: 0)) }
  }

  private func publish(_ id: UInt64) throws {
    guard let job = jobs[id], let partial = job.partial, let checked = job.checked else { return }
    let submission = job.submission
    if let row = submission.sameAsBefore(job, checked) {
      partial.discard()
      job.partial = nil
      let ledger = submission.client.ledger
      if try ledger.partial(row.path) != nil { try ledger.apply([.dropPartial(row.path)]) }
      return try confirm(job, as: row)
    }
    let publisher = try openWorkshop().publisher
    try publisher.start()
    publisher.submit(submission.publication(job, partial, checked))
    // The partial file belongs to the publisher from now on.
    job.partial = nil
  }

  private func putBack(_ id: UInt64) {
    guard let job = jobs[id] else { return }
    job.submission.account.progress.forget(id)
    if job.isRefusedByKernel, let failure = job.failure {
      let message = "\(job.entry.path.printable): \(failure.message); tried again when the others are over"
      job.submission.account.tell(.notice(code: failure.code, message: message))
    }
    job.beginAnew()
  }

  private func end(_ job: Job, _ ending: TransferState.Ending) throws {
    let (submission, account) = (job.submission, job.submission.account)
    account.progress.forget(job.id)
    switch ending {
    case .placed, .unchanged: submission.leavePartial(job)
    case .stale: submission.decideAgain(job.action)
    case .failed:
      submission.leavePartial(job)
      account.fail(job.action, code: job.failure?.code ?? "", message: job.failure?.message ?? "")
    case .noSpace:
      submission.leavePartial(job)
      let message = submission.space.refusal(submission.needed(job.entry))
      account.fail(job.action, code: FolderFailure.Code.noSpace.rawValue, message: message)
    case .cancelled, .paused:
      if ending == .paused { submission.pause(job) } else { submission.cancel(job) }
      if job.isWantedAgain { _ = try beginAgain(job.entry.path) }
    case .abandoned: if job.checked == nil { job.partial?.close() } else { job.partial?.discard() }
    case .stopped: job.partial?.close()
    }
  }

  // MARK: Results

  private func looked(_ id: UInt64, _ found: LocalBytes) throws {
    switch found {
    case .nothing: try perform(state.looked(id, .nothing))
    case .copied(let partial, let sealed):
      // The fetched part is useless now; its row goes when the copy is published.
      jobs[id]?.partial?.discard()
      jobs[id]?.partial = partial
      jobs[id]?.checked = Job.Checked(sealed: sealed, head: nil, isCopy: true)
      try perform(state.looked(id, .copy))
    case .kept(let partial, let known):
      jobs[id]?.partial = partial
      let isWhole = jobs[id]?.attempts.resume(with: known) == true
      try perform(state.looked(id, isWhole ? .whole : .part))
    }
  }

  /// - Parameter received: the bytes that this exchange brought for the file.
  private func ended(_ job: Job, _ end: JobEnd, received: UInt64) throws {
    if let atHand = end.atHand { job.partial = atHand.partial }
    if isOfNoUse(job.id, end) {
      job.attempts.interrupt(end)
      return try perform(state.answered(job.id, .cancelled))
    }
    let step = job.next(after: end, received: received)
    if job.attempts.discards { try job.submission.discardPartial(job) }
    if let answer = answer(step, job) { return try perform(state.answered(job.id, answer)) }
    try confirm(job, as: job.action.row)
  }

  /// Returns whether nobody waits for the result of the exchange.
  private func isOfNoUse(_ id: UInt64, _ end: JobEnd) -> Bool {
    switch end {
    case .network(let failure, _, _): failure.code == .cancelled
    case .folder(let failure, _, _): failure.code == .pieceMismatch && !state.goesOn(id)
    default: false
    }
  }

  /// - Returns: the answer; `nil` when the file in place stays.
  private func answer(_ step: Attempts.Step, _ job: Job) -> TransferState.Answer? {
    switch step {
    case .publish(let partial, let sealed, let head):
      job.partial = partial
      job.checked = Job.Checked(sealed: sealed, head: head, isCopy: false)
      return .checked
    case .seal: return .whole
    case .unchanged: return nil
    case .ask(let told):
      if let told { tellRetry(job, told, seconds: 0) }
      return .again
    case .wait(let seconds, let told, let isNewRound):
      // Hosts that are left alone for longer are not asked then. What comes of it is told in its place.
      let downloader = job.submission.client.downloader
      let mayAsk = job.entry.sources.contains { Double(downloader.rest(of: $0.url) ?? 0) <= seconds }
      if mayAsk { tellRetry(job, told, seconds: seconds) }
      // True when a retry was requested during the failed attempt.
      let isWanted = job.wishes != job.submission.steering?.wishes
      let until =
        seconds > 0 && !isWanted
        ? job.submission.client.clock.monotonic() + .bounded(seconds: seconds) : nil
      return .pause(until: until, isNewRound: isNewRound)
    case .lacksSpace(let failure):
      let isOfKernel = failure.map { $0.errno != 0 } ?? false
      if isOfKernel { job.submission.space.doubt() }
      let failure = failure ?? FolderFailure(.noSpace, job.submission.space.refusal(nil))
      job.fail(code: failure.code.rawValue, message: failure.message)
      // A file that only does not fit beside others waits silently.
      job.isRefusedByKernel = isOfKernel
      return .lacksSpace
    case .exhausted(let code, let message):
      let all = job.attempts.troubleText
      job.fail(code: code, message: all.isEmpty ? message : all)
      return .exhausted
    case .fail(let failure):
      job.fail(code: failure.code.rawValue, message: failure.message)
      return .failed
    }
  }

  private func tellRetry(_ job: Job, _ message: String, seconds: Double) {
    guard state.goesOn(job.id) else { return }
    job.submission.account.tell(.retrying(path: job.entry.path, message: message, seconds: seconds))
  }

  private func published(_ id: UInt64, _ outcome: PublishOutcome) throws {
    guard let job = jobs[id] else { return }
    switch outcome {
    case .installed(let identity, _):
      job.submission.account.placed(job, identity)
      if job.submission.isUrgent { inbox.withLock { $0.history.brought += 1 } }
      try perform(state.published(id, .placed))
    case .stale: try perform(state.published(id, .stale))
    case .failed(let failure):
      job.fail(code: failure.code.rawValue, message: failure.message)
      try perform(state.published(id, .failed))
    case .removed: try perform(state.published(id, .stopped))
    }
  }

  /// Ends a job whose file in place is the server's version, or an unsure page that stays although asking failed.
  private func confirm(_ job: Job, as row: Row?) throws {
    // This must come before anybody else has the path.
    if let row { try job.submission.confirm(row, job) }
    job.submission.account.confirmed(job)
    try perform(state.confirmed(job.id))
  }

  // MARK: Orders

  /// Carries out an order about a single transfer, or says why there is nothing to do.
  private func steer(_ order: PassSteering.Order, _ path: RelativePath) throws -> PassSteering.Answer {
    guard let id = state.job(at: path), let job = state.jobs[id], job.state != .publishing else {
      return try order == .retry && beginAgain(path) ? .done : .notThere
    }
    if order == .retry, job.isEnding, jobs[id]?.submission.isPaused(path) == false {
      // Files that nobody wants any more are not brought, and the answer says so.
      guard job.wish != .abandon else { return try beginAgain(path) ? .done : .notThere }
      // Those who wait for the path end with it.
      for id in state.transfers(at: path) { jobs[id]?.isWantedAgain = true }
      return .done
    }
    guard let actions = state.obey(order, id) else { return .wasSo }
    try perform(actions)
    return .done
  }

  /// Begins again for all submissions that were to bring the path, if it is still as they saw it.
  private func beginAgain(_ path: RelativePath) throws -> Bool {
    var isBegun = false
    for submission in submissions.map(\.submission) {
      guard let (action, entry, ordinal) = submission.takeBack(path) else { continue }
      isBegun = true
      guard try submission.isAsSeen(action, mustLook: true) else {
        submission.decideAgain(action)
        continue
      }
      try begin(makeJob(action, entry, ordinal: ordinal, of: submission), mustBegin: true)
    }
    return isBegun
  }
}
