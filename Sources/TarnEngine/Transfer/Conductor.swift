import TarnCore
import TarnRuntime

/// Carries a plan out: admits actions, runs their transfers, hands checked files to the publisher, tries again.
/// It decides nothing over a path: what is not as the plan saw it goes back as stale. On the pass's thread; all
/// its state is confined to it, and other threads speak to it through the mailbox.
final class Conductor {
  let ports: PassPorts
  let folder: any FolderPort
  let policy: PassPolicy
  let observer: any PassObserver
  let progress: PassProgress
  let stop: StopFlag
  let steering: PassSteering?
  let retry: RetryPolicy
  /// Of `forlorn`, and of the jobs that wait for a twin.
  let mostHeldBack: Int

  let mailbox: LockedCondition<[JobMessage]>
  let lanes: Lanes
  private let checkpoints: Checkpoints
  let publisher: PublishThread
  var context: FileReceiverContext
  /// Names of the partial files to go on with.
  var resumable: [RelativePath: String]
  /// Any rows at the start: else no bytes of the folder can be used again.
  private let hasRows: Bool

  var jobs: [UInt64: Job] = [:]
  /// Of these nobody wants the bytes any more.
  var abandoned: Set<UInt64> = []
  private var nextID: UInt64 = 0
  /// Jobs that are not for the first lane alone.
  private var othersBegun = 0
  var delayed: [(due: Instant, job: UInt64)] = []
  var adoptions: [Row] = []
  var duplicates: Duplicates
  /// Jobs that waited for a twin and may begin.
  var ready: [UInt64] = []
  /// The next action of the plan.
  private var front: Action?
  /// Actions taken from the plan so far.
  private var position = 0
  /// Entries whose sources all failed, until no twin of theirs can be placed any more.
  var forlorn: [Job] = []
  /// Of `forlorn`, and of some that are no longer among them.
  var forlornDigests: Set<Digest> = []
  /// Actions of the plan that are come back to.
  var left = Leftovers()
  /// What orders ended or kept from beginning, and as which problem it is told, to be tried again if somebody wants that.
  var steeredAway: [RelativePath: (action: Action, ordinal: Int, code: String)] = [:]
  /// Entries for which there was no space beside others.
  var spaceQueue: SpaceQueue
  /// Jobs so far that took space.
  var begun = 0
  let space: SpaceBudget
  /// Whether files may make way for directories: they are deletions like any other.
  var deletions = DeletionVerdict.allowed
  /// Where the feed's own list was read to; nil once it was taken from there.
  var listURL: String?
  /// Its requests go ahead of others.
  var areUrgent = false
  /// Called between messages, several times a second.
  var meanwhile: (() throws -> Void)?
  /// Whether a repair beside it brings a path: what the plan wants there is decided over again afterwards.
  var isBroughtBeside: ((RelativePath) -> Bool)?
  /// Gives an order to whatever works beside it.
  var steerBeside: ((PassSteering.Order, RelativePath) -> PassSteering.Answer)?
  /// Paths that failed and that somebody else looks at again, and tells of; nil where failures are told here.
  var untold: Set<RelativePath>?
  /// It works beside another one, which tells how far the pass is.
  let isBeside: Bool
  /// Files that could not make way, and why: no more than the deletion guard lets go.
  var stuck: [RelativePath: String] = [:]
  private var ticked = Instant()
  var publishing = 0
  var counts = PassCounts()
  var bytes = PassBytes()
  var learned = LearnedSizes()
  /// What was in place already when the pass began to change the folder.
  ///
  /// nil in a repair, which sees a part of it.
  var standing: (entries: Int, bytes: UInt64)? = (0, 0)
  var problems: [Problem] = []
  /// nil where the ledger hears of problems only at the end.
  var early: EarlyProblems?
  /// Actions whose path was not as the plan saw it, to be decided over again.
  var stale: [Action] = []

  /// - Parameter bell: of one that works beside another, which is stepped by whoever hears it; called on any thread.
  init(
    ports: PassPorts, folder: any FolderPort, policy: PassPolicy, unrecorded: UnrecordedFiles,
    observer: any PassObserver, progress: PassProgress, stop: StopFlag, steering: PassSteering? = nil,
    mostHeldBack: Int, bell: (@Sendable () -> Void)? = nil
  ) throws {
    self.ports = ports
    self.folder = folder
    self.policy = policy
    self.observer = observer
    self.progress = progress
    self.stop = stop
    self.steering = steering
    self.mostHeldBack = mostHeldBack
    isBeside = bell != nil
    mostJobs = isBeside ? min(Self.mostBeside, Self.most / 4) : Self.most
    duplicates = Duplicates(mostWaiting: mostHeldBack)
    spaceQueue = SpaceQueue(most: mostHeldBack)
    retry = RetryPolicy(retries: policy.retries)
    let mailbox = LockedCondition<[JobMessage]>([])
    self.mailbox = mailbox
    let post: @Sendable (JobMessage) -> Void = { message in
      mailbox.change { $0.append(message) }
      bell?()
    }
    space = try SpaceBudget(folder, reserve: policy.reserve)
    lanes = try Lanes(name: "tarn-write", count: 2)
    checkpoints = Checkpoints(ledger: ports.ledger)
    publisher = PublishThread(
      folder: folder, ledger: ports.ledger, clock: ports.clock, ownWrites: ports.ownWrites, post: post)
    context = FileReceiverContext(
      folder: folder, ledger: ports.ledger, downloader: ports.downloader, lanes: lanes,
      checkpoints: checkpoints, space: space, progress: progress, bootID: ports.bootID,
      unrecorded: unrecorded, post: post)
    resumable = Dictionary(try ports.ledger.partials().map { ($0.path, $0.name) }) { $1 }
    hasRows = try ports.ledger.rows().next() != nil
    stop.onSet { post(.wake) }
    // Beside another one it follows pauses, and orders go to that one.
    if !isBeside {
      steering?.attach(hurry: { post(.hurry) }) { order, path, answer in post(.steer(order, path, answer)) }
    }
  }

  /// Actions at work at a time: enough for a group that gets its names and one that is made durable, and for the next one on its
  /// way meanwhile.
  ///
  /// Each may hold a file and a connection, and some descriptors are the process's own.
  private static var most: Int { min(PublishThread.largestGroup * 3, max(4, (OpenFiles.limit - 40) / 2)) }
  private static let mostBeside = 128
  /// Of these, how many may be on their way: what they bring waits in memory for its lane.
  private static let mostOnTheWay = PublishThread.largestGroup * 3 / 2
  let mostJobs: Int

  /// Another job may be at work beside those that are.
  var hasPlace: Bool { active < mostJobs && active - publishing < Self.mostOnTheWay }

  /// Carries out the actions up to the deletions.
  ///
  /// - Returns: the first deletion, if any; the cursor goes on after it.
  func run(_ actions: any ActionCursor) throws -> Action? {
    front = try actions.next()
    position = 0
    left = Leftovers()
    for phase in Action.Phase.transfers {
      left.beginPhase()
      while true {
        try fill(from: actions, phase)
        let isLast = stop.isSet || isHeldUp || (front?.phase != phase && !left.isWalking)
        if isLast, jobs.isEmpty {
          if tryCramped() { continue }
          // What it comes back to is begun before anything is waited for.
          if try settle(isLast: phase == .list) { continue }
          break
        }
        publisher.setFlushing(isLast && active == publishing)
        try step()
      }
      try flushAdoptions()
      if stop.isSet { return nil }
    }
    return front
  }

  /// Nothing of the plan begins before what is at work is over.
  var isHeldUp: Bool { spaceQueue.isFull || spaceQueue.isAlone(among: jobs) }

  /// Jobs at work: those that wait for a twin hold no file, no connection and no space.
  var active: Int { jobs.count - duplicates.waitingCount - ready.count }

  /// Waits for all threads. The pass is over afterwards.
  func close() {
    steering?.detach()
    for job in jobs.values { job.download.map(ports.downloader.cancel) }
    publisher.close()
    lanes.close()
    checkpoints.close()
    for job in jobs.values { job.partial?.close() }
  }

  // MARK: Admitting

  /// Begins as many jobs as may be at work: those that waited and new ones in turn.
  private func fill(from actions: any ActionCursor, _ phase: Action.Phase) throws {
    while !stop.isSet, hasPlace, !spaceQueue.isAlone(among: jobs) {
      let hasStarted = startReady() || startCramped()
      guard hasPlace else { break }
      if spaceQueue.isFull {
        guard hasStarted else { break }
      } else if try !admitNext(of: actions, phase), try !comeBack(isLast: phase == .list), !hasStarted {
        break
      }
      // Much of it may begin nothing.
      tick()
    }
    if stop.isSet { dropWaiting() }
  }

  /// - Returns: false when the plan has none of this phase any more.
  private func admitNext(of actions: any ActionCursor, _ phase: Action.Phase) throws -> Bool {
    guard let action = front, action.phase == phase else { return false }
    let ordinal = position
    position += 1
    try admit(action, ordinal: ordinal)
    front = try actions.next()
    return true
  }

  /// - Parameter isAgain: it was left once, and is not left again.
  func admit(_ action: Action, ordinal: Int, isAgain: Bool = false) throws {
    switch action.kind {
    case .adopt:
      if let row = action.row { adoptions.append(row) }
      if adoptions.count >= PublishThread.largestGroup { try flushAdoptions() }
    case .delete:
      try removeInTheWay(action)
    case .inspect:
      stale.append(action)
    case .forget:
      // Among the deletions only.
      break
    case .fetch, .update, .restore, .replace, .revalidate:
      guard let entry = action.entry, !entry.sources.isEmpty else { return }
      if isBroughtBeside?(action.path) == true { return stale.append(action) }
      if let blocker = action.blocker, isBlocked(action, by: blocker) { return }
      if isPaused(action.path) { return hold(action, ordinal: ordinal) }
      begin(makeJob(action, entry, ordinal: ordinal), mustBegin: isAgain)
    }
  }

  func isPaused(_ path: RelativePath) -> Bool { steering?.isPaused(path) == true }

  /// - Parameter mustBegin: is not left for later.
  func begin(_ job: Job, mustBegin: Bool) {
    switch duplicates.admit(job, mustBegin: mustBegin) {
    case .wait: jobs[job.id] = job
    case .full: left.untried.insert(job.ordinal)
    case .first: start(job, mayReuse: false)
    case .placed: start(job, mayReuse: true)
    }
  }

  func makeJob(_ action: Action, _ entry: Entry, ordinal: Int) -> Job {
    nextID += 1
    // The others in turn, the lane first that has no small files.
    let isForFirst = Job.isForFirstLane(entry)
    if !isForFirst { othersBegun += 1 }
    return Job(
      id: nextID, action: action, entry: entry, ordinal: ordinal, lane: isForFirst ? 0 : othersBegun)
  }

  // MARK: Transfers

  /// Looks for bytes that are at hand already: a partial file, or the same contents elsewhere in the folder.
  ///
  /// - Parameter mayReuse: this pass brought its contents, or was bringing them.
  func start(_ waiting: Job, mayReuse: Bool) {
    var job = waiting
    jobs[job.id] = nil
    guard takeSpace(&job) else { return over(job) }
    jobs[job.id] = job
    observer.pass(.action(job.action))
    let mayBeThere =
      mayReuse || (job.entry.digest != nil && hasRows)
      || !context.unrecorded.candidates(job.entry, row: job.action.row).isEmpty
    guard resumable[job.entry.path] != nil || mayBeThere else { return ask(job.id) }
    look(job)
  }

  /// Answers with `prepared`.
  func look(_ job: Job) {
    jobs[job.id]?.knewTwin = duplicates.isPlaced(job)
    let preparing = LocalBytesSearch(job: job, context: context)
    lanes.submit(lane: job.lane) { preparing.run() }
  }

  /// Starts an exchange with the job's source.
  func ask(_ id: UInt64) {
    guard var job = jobs[id], !endSteered(id) else { return }
    guard !stop.isSet, !abandoned.contains(id) else { return drop(id) }
    let document = job.entry.isList ? listURL.take() : nil
    var request = job.attempts.request(room: space.room, document: document)
    request.isUrgent = job.isUrgent || areUrgent
    job.wishes = steering?.wishes
    let receiver = FileReceiver(job, context: context)
    progress.begin(
      id, path: job.entry.path, kept: request.offset, total: job.entry.size, source: job.attempts.url,
      isWaiting: true)
    let download = ports.downloader.start(request, to: receiver)
    receiver.started(download)
    job.download = download
    job.isOvertaken = false
    jobs[id] = job
  }

  /// At most a quarter of a second, and no longer than until the next attempt is due.
  var longestWait: Duration {
    let most = Duration.milliseconds(250)
    return delayed.map(\.due).min().map { min(most, $0.remaining(at: ports.clock.monotonic())) } ?? most
  }

  /// With so many jobs their messages are gathered for a moment: to be woken for each costs more than to handle it.
  private static let many = 64
  /// Microseconds.
  private static let moment: UInt32 = 1000

  /// Handles what came in, or waits for it.
  private func step() throws {
    if active > Self.many { Nap.sleep(microseconds: Self.moment) }
    try handleMail(waiting: longestWait)
    try meanwhile?()
    wakeDelayed()
    tick()
  }

  /// - Parameter waiting: for the first message.
  func handleMail(waiting: Duration) throws {
    let messages = mailbox.wait(atMost: waiting) { messages -> [JobMessage]? in
      guard !messages.isEmpty else { return nil }
      defer { messages = [] }
      return messages
    }
    for message in messages ?? [] { try handle(message) }
  }

  private func handle(_ message: JobMessage) throws {
    switch message {
    case .prepared(let id, let preparation): try prepared(id, preparation)
    case .workedAround(let failure, let instead):
      observer.pass(.notice(code: failure.code.rawValue, message: "\(failure.message); \(instead)"))
    case .ended(let id, let end, let received):
      jobs[id]?.download = nil
      bytes.received.addSaturated(received)
      try ended(id, end, received: received)
    case .published(let id, let outcome): published(id, outcome)
    case .steer(let order, let path, let answer): answer(steer(order, path))
    case .hurry: hurry()
    case .ledgerFailed(let failure): throw PassFailure(failure)
    case .folderFailed(let failure): throw PassFailure(failure)
    case .wake:
      if stop.isSet { stopTransfers() }
    }
  }

  private func prepared(_ id: UInt64, _ preparation: LocalBytes) throws {
    switch preparation {
    case .nothing, .failed:
      if let failure = jobs[id]?.failure { return giveUp(id, code: failure.code, message: failure.message) }
      go(id)
    case .copied(let partial, let sealed):
      // What was fetched of it is of no use any more; its row goes when this is published.
      jobs[id]?.partial?.discard()
      jobs[id]?.isCopy = true
      try publish(id, partial, sealed, head: nil)
    case .kept(let partial, let known):
      jobs[id]?.partial = partial
      if jobs[id]?.attempts.resume(with: known) == true { sealWhole(id) } else { go(id) }
    }
  }

  /// All bytes are at hand: only the check is left.
  func sealWhole(_ id: UInt64) {
    guard let job = jobs[id], let partial = job.partial else { return ask(id) }
    let post = context.post
    let (entry, known) = (job.entry, job.attempts.known)
    lanes.submit(lane: job.lane) {
      post(.ended(id, FileReceiver.seal(partial, entry, head: nil, known: known), received: 0))
    }
  }

  /// Asks again after a pause.
  func delay(_ id: UInt64, seconds: Double) {
    delayed.append((ports.clock.monotonic() + .bounded(seconds: seconds), id))
  }

  func wakeDelayed() {
    guard !delayed.isEmpty else { return }
    let now = ports.clock.monotonic()
    let due = delayed.filter { $0.due <= now || stop.isSet }
    delayed.removeAll { $0.due <= now || stop.isSet }
    for (_, id) in due { go(id) }
  }

  /// The transfers end; what they have stays for the next pass.
  private func stopTransfers() {
    for job in jobs.values { job.download.map(ports.downloader.cancel) }
  }

  /// Forgets a job and keeps its partial file.
  func drop(_ id: UInt64) {
    guard let job = jobs.removeValue(forKey: id) else { return }
    abandoned.remove(id)
    job.partial?.close()
    space.giveBack(job.reserved)
    over(job)
  }

  // MARK: Results

  /// The server's copy is the one that is there: only the ledger learns what the listing and the server say now.
  ///
  /// - Parameter said: its row, with what the server says; nil for as it was.
  func revalidated(_ job: Job, as said: Row? = nil) throws {
    jobs[job.id] = nil
    space.giveBack(job.reserved)
    over(job, isPlaced: true)
    counts.revalidated += 1
    bytes.confirmed.addSaturated(job.action.row?.identity.size ?? 0)
    guard var row = said ?? job.action.row else { return }
    row.fingerprint = job.entry.fingerprint
    // Until the ledger knows its times, each pass hashes a file that somebody touched.
    if try ports.ledger.row(row.path) != row { try ports.ledger.apply([.row(row)]) }
    progress.finish(job.id, bytes: 0, isLearned: job.entry.size == nil)
  }

  func giveUp(_ id: UInt64, code: String, message: String) {
    guard let job = jobs.removeValue(forKey: id) else { return }
    leavePartial(job)
    space.giveBack(job.reserved)
    fail(job, code: code, message: message)
    over(job)
  }

  @discardableResult
  func fail(_ job: Job, code: String, message: String) -> Problem {
    if job.entry.size == nil { progress.change { $0.unknownSizes -= 1 } }
    return fail(job.entry.path, code: code, message: message)
  }

  @discardableResult
  func fail(_ path: RelativePath, code: String, message: String) -> Problem {
    progress.change { $0.failed += 1 }
    let problem = Problem(
      name: path.bytes, kind: .failed, code: code, message: message,
      seen: early?.standing[path.bytes]?.seen ?? ports.now)
    guard untold?.insert(path) == nil else { return problem }
    take(problem)
    return problem
  }

  /// The stale actions so far; they are the caller's now.
  func takeStale() -> [Action] {
    defer { stale = [] }
    return stale
  }

  /// Once a second, what `tarn status` shows beside a running pass.
  func tick() {
    guard !isBeside else { return }
    let now = ports.clock.monotonic()
    guard now >= ticked + .seconds(1) else { return }
    ticked = now
    // Stale in a second, so a failure is of no account here.
    var changes = progress.snapshot().changes
    if let standing {
      changes += [
        .fact(.entriesCurrent, String(standing.entries + counts.inPlace)),
        .fact(.bytesCurrent, String(standing.bytes.addingSaturated(bytes.inPlace))),
      ]
    }
    try? ports.ledger.applyVolatile(changes + earlyChanges())
  }
}
