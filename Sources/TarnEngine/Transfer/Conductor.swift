import TarnCore
import TarnRuntime

/// Carries a plan out: admits actions, runs their transfers, hands checked files to the publisher. What is begun when, and what waits
/// for what, its `TransferState` says.
///
/// It decides nothing over a path: what is not as the plan saw it goes back as stale. On the pass's thread; all its state is confined
/// to it, and other threads speak to it through the mailbox.
final class Conductor {
  let ports: PassPorts
  let folder: any FolderPort
  let policy: PassPolicy
  let observer: any PassObserver
  let progress: PassProgress
  let stop: StopFlag
  let steering: PassSteering?
  private let retry: RetryPolicy

  let mailbox: LockedCondition<[JobMessage]>
  private let lanes: Lanes
  private let checkpoints: Checkpoints
  let publisher: PublishThread
  var context: FileReceiverContext
  /// Names of the partial files to go on with.
  private var resumable: [RelativePath: String]
  /// Any rows at the start: else no bytes of the folder can be used again.
  private let hasRows: Bool

  var state: TransferState
  /// Those that the state has.
  var jobs: [UInt64: Job] = [:]
  private var nextID: UInt64 = 0
  /// Jobs that are not for the first lane alone.
  private var othersBegun = 0
  var adoptions: [Row] = []
  /// The next action of the plan.
  private var front: Action?
  /// Actions taken from the plan so far.
  private var position = 0
  /// Actions of the plan that are come back to.
  var left = Leftovers()
  /// What orders ended or kept from beginning, and as which problem it is told, to be tried again if somebody wants that.
  var steeredAway: [RelativePath: (action: Action, ordinal: Int, code: String)] = [:]
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
  var steerBeside: ((PassSteering.Order, RelativePath) throws -> PassSteering.Answer)?
  /// Paths that failed and that somebody else looks at again, and tells of; nil where failures are told here.
  var untold: Set<RelativePath>?
  /// It works beside another one, which tells how far the pass is.
  let isBeside: Bool
  /// Files that could not make way, and why: no more than the deletion guard lets go.
  var stuck: [RelativePath: String] = [:]
  private var ticked = Instant()
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
    isBeside = bell != nil
    mostJobs = isBeside ? min(Self.mostBeside, Self.most / 4) : Self.most
    state = TransferState(mostHeldBack: mostHeldBack)
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
  var hasPlace: Bool { state.active < mostJobs && state.active - state.publishing < Self.mostOnTheWay }

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
        let isLast = stop.isSet || state.isHeldUp || (front?.phase != phase && !left.isWalking)
        if isLast, state.isIdle {
          if !stop.isSet, let retried = state.retryForSpace() {
            try perform(retried)
            continue
          }
          // What it comes back to is begun before anything is waited for.
          if try settle(isLast: phase == .list) { continue }
          break
        }
        setFlushing(isLast)
        try step()
      }
      try flushAdoptions()
      if stop.isSet { return nil }
    }
    return front
  }

  /// - Parameter isLast: nothing more is coming soon.
  func setFlushing(_ isLast: Bool) { publisher.setFlushing(isLast && state.active == state.publishing) }

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
    while !stop.isSet, hasPlace, !state.isAlone {
      let begun = state.beginNext()
      if let begun { try perform(begun) }
      guard hasPlace else { break }
      if state.isCramped {
        guard begun != nil else { break }
      } else if try !admitNext(of: actions, phase), try !comeBack(isLast: phase == .list), begun == nil {
        break
      }
      // Much of it may begin nothing.
      tick()
    }
    if stop.isSet { try perform(state.stop()) }
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
      try begin(makeJob(action, entry, ordinal: ordinal), mustBegin: isAgain)
    }
  }

  func isPaused(_ path: RelativePath) -> Bool { steering?.isPaused(path) == true }

  /// - Parameter mustBegin: is not left for later.
  func begin(_ job: Job, mustBegin: Bool) throws {
    jobs[job.id] = job
    let contents = Duplicates.Contents(job.entry)
    try perform(state.admit(job.id, path: job.entry.path, contents: contents, mustBegin: mustBegin))
  }

  func makeJob(_ action: Action, _ entry: Entry, ordinal: Int) -> Job {
    nextID += 1
    // The others in turn, the lane first that has no small files.
    let isForFirst = Job.isForFirstLane(entry)
    if !isForFirst { othersBegun += 1 }
    return Job(
      id: nextID, action: action, entry: entry, ordinal: ordinal, lane: isForFirst ? 0 : othersBegun)
  }

  // MARK: Messages

  /// At most a quarter of a second, and no longer than until the next attempt is due.
  var longestWait: Duration {
    let most = Duration.milliseconds(250)
    return state.nextDue.map { min(most, $0.remaining(at: ports.clock.monotonic())) } ?? most
  }

  /// With so many jobs their messages are gathered for a moment: to be woken for each costs more than to handle it.
  private static let many = 64
  /// Microseconds.
  private static let moment: UInt32 = 1000

  /// Handles what came in, or waits for it.
  private func step() throws {
    if state.active > Self.many { Nap.sleep(microseconds: Self.moment) }
    try handleMail(waiting: longestWait)
    try meanwhile?()
    try goOn()
    tick()
  }

  /// Goes on with what has paused.
  func goOn() throws {
    try perform(stop.isSet ? state.stop() : state.tick(ports.clock.monotonic()))
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
    case .prepared(let id, let found): try looked(id, found)
    case .workedAround(let failure, let instead):
      observer.pass(.notice(code: failure.code.rawValue, message: "\(failure.message); \(instead)"))
    case .ended(let id, let end, let received):
      jobs[id]?.download = nil
      bytes.received.addSaturated(received)
      try exchangeEnded(id, end, received: received)
    case .published(let id, let outcome): try published(id, outcome)
    case .steer(let order, let path, let answer): answer(try steer(order, path))
    case .hurry: try perform(state.hurry())
    case .ledgerFailed(let failure): throw PassFailure(failure)
    case .folderFailed(let failure): throw PassFailure(failure)
    case .wake: if stop.isSet { try perform(state.stop()) }
    }
  }

  // MARK: What the state asks for

  func perform(_ actions: [TransferState.Action]) throws {
    for action in actions { try perform(action) }
  }

  private func perform(_ action: TransferState.Action) throws {
    switch action {
    case .reserve(let id): try reserve(id)
    case .look(let id):
      guard let job = jobs[id] else { return }
      let search = LocalBytesSearch(job: job, context: context)
      lanes.submit(lane: job.lane) { search.run() }
    case .ask(let id): ask(id)
    case .cancelExchange(let id): jobs[id]?.download.map(ports.downloader.cancel)
    case .prioritize(let id): jobs[id]?.download.map(ports.downloader.prioritize)
    case .seal(let id): seal(id)
    case .publish(let id): try publish(id)
    case .release(let bytes): space.giveBack(bytes)
    case .putBack(let id): putBack(id)
    case .exhausted(let id): noteExhausted(id)
    case .findCopy(let id): try perform(state.foundCopy(id, jobs[id].map { try hasCopy($0.entry) } ?? false))
    case .postpone(let id):
      if let job = jobs.removeValue(forKey: id) { left.untried.insert(job.ordinal) }
    case .setAside(let id):
      if let job = jobs.removeValue(forKey: id) { left.forsake(job) }
    case .end(let id, let ending):
      if let job = jobs.removeValue(forKey: id) { try ended(job, ending) }
    }
  }

  /// Takes the space that a job needs, and says whether bytes of it may be at hand: a partial file, or the same contents elsewhere in
  /// the folder.
  private func reserve(_ id: UInt64) throws {
    guard let job = jobs[id] else { return }
    if job.failure == nil, isPaused(job.entry.path) {
      return try perform(state.obey(.pause, id) ?? [])
    }
    let needed = needed(job)
    guard space.reserve(needed ?? 0) else { return try perform(state.refused(id)) }
    if job.failure == nil { observer.pass(.action(job.action)) } else { early?.settle(job.entry.path.bytes) }
    let looks =
      resumable[job.entry.path] != nil || (job.entry.digest != nil && hasRows)
      || !context.unrecorded.candidates(job.entry, row: job.action.row).isEmpty
    try perform(state.reserved(id, bytes: needed ?? 0, looks: looks))
  }

  /// Bytes of space for it; nil where that is not known.
  ///
  /// What an unfinished download of it has already serves again, whatever becomes of its contents.
  func needed(_ job: Job) -> UInt64? {
    let name = resumable[job.entry.path]
    let held = name.flatMap { try? folder.partialAllocation($0) } ?? 0
    return job.entry.size.map { $0 - min($0, held) }
  }

  /// Starts an exchange with the job's source.
  private func ask(_ id: UInt64) {
    guard var job = jobs[id] else { return }
    let document = job.entry.isList ? listURL.take() : nil
    var request = job.attempts.request(room: space.room, document: document)
    request.isUrgent = areUrgent || state.jobs[id]?.isUrgent == true
    job.wishes = steering?.wishes
    let receiver = FileReceiver(job, context: context)
    progress.begin(
      id, path: job.entry.path, kept: request.offset, total: job.entry.size, source: job.attempts.url,
      isWaiting: true)
    let download = ports.downloader.start(request, to: receiver)
    receiver.started(download)
    job.download = download
    jobs[id] = job
  }

  /// All bytes are at hand: only the check is left.
  private func seal(_ id: UInt64) {
    guard let job = jobs[id], let partial = job.partial else { return }
    let (entry, known, post) = (job.entry, job.attempts.known, context.post)
    lanes.submit(lane: job.lane) {
      post(.ended(id, FileReceiver.seal(partial, entry, head: nil, known: known), received: 0))
    }
  }

  // MARK: What came of it

  private func looked(_ id: UInt64, _ found: LocalBytes) throws {
    switch found {
    case .nothing, .failed: try perform(state.looked(id, .nothing))
    case .copied(let partial, let sealed):
      // What was fetched of it is of no use any more; its row goes when this is published.
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

  /// - Parameter received: bytes that came for the file in this exchange.
  private func exchangeEnded(_ id: UInt64, _ end: JobEnd, received: UInt64) throws {
    guard jobs[id] != nil else { return }
    if let atHand = end.atHand { jobs[id]?.partial = atHand.partial }
    if isOfNoUse(id, end) {
      jobs[id]?.attempts.interrupt(end)
      return try perform(state.answered(id, .cancelled))
    }
    guard
      let (step, discards) = jobs[id]?.attempts.next(
        after: end, received: received, retry: retry, random: ports.random)
    else { return }
    if discards {
      jobs[id]?.partial?.discard()
      jobs[id]?.partial = nil
    }
    if let answer = answer(step, id) { return try perform(state.answered(id, answer)) }
    if let job = jobs[id] { try revalidated(job) }
  }

  /// Nobody waits for what the exchange would have brought.
  private func isOfNoUse(_ id: UInt64, _ end: JobEnd) -> Bool {
    switch end {
    case .network(let failure, _, _): failure.code == .cancelled
    case .folder(let failure, _, _): failure.code == .pieceMismatch && !state.goesOn(id)
    default: false
    }
  }

  /// - Returns: nil where what stands there is what the server has.
  private func answer(_ step: Attempts.Step, _ id: UInt64) -> TransferState.Answer? {
    switch step {
    case .publish(let partial, let sealed, let head):
      jobs[id]?.partial = partial
      jobs[id]?.checked = Job.Checked(sealed: sealed, head: head, isCopy: false)
      return .checked
    case .seal: return .whole
    case .unchanged: return nil
    case .ask(let told):
      if let told { tellRetry(id, told, seconds: 0) }
      return .again
    case .wait(let seconds, let told, let isNewRound):
      tellRetry(id, told, seconds: seconds)
      // Wanted during the attempt that failed.
      let isWanted = jobs[id]?.wishes != steering?.wishes
      let until = seconds > 0 && !isWanted ? ports.clock.monotonic() + .bounded(seconds: seconds) : nil
      return .pause(until: until, isNewRound: isNewRound)
    case .lacksSpace(let failure): return lacksSpace(id, failure)
    case .exhausted(let code, let message):
      let all = jobs[id]?.attempts.troubleText ?? ""
      giveUp(id, code: code, message: all.isEmpty ? message : all)
      return .exhausted
    case .fail(let failure):
      giveUp(id, code: failure.code.rawValue, message: failure.message)
      return .failed
    }
  }

  private func tellRetry(_ id: UInt64, _ message: String, seconds: Double) {
    guard state.goesOn(id), let path = jobs[id]?.entry.path else { return }
    observer.pass(.retrying(path: path, message: message, seconds: seconds))
  }

  /// Why it fails, unless it still comes right.
  func giveUp(_ id: UInt64, code: String, message: String) { jobs[id]?.fail(code: code, message: message) }

  /// Its partial file is somebody else's now, or gone.
  func release(_ id: UInt64) { jobs[id]?.partial = nil }

  func wantAgain(_ id: UInt64) { jobs[id]?.isWantedAgain = true }

  /// Who comes next for this path goes on with it.
  func keep(_ partial: any PartialFile, for path: RelativePath) { resumable[path] = partial.name }

  /// Begins one that only a copy can help.
  func beginCopy(_ job: Job) throws {
    jobs[job.id] = job
    try perform(
      state.admitCopy(job.id, path: job.entry.path, contents: Duplicates.Contents(job.entry)))
  }

  private func putBack(_ id: UInt64) {
    progress.forget(id)
    if let job = jobs[id], job.isRefusedByKernel, let failure = job.failure {
      let message =
        "\(job.entry.path.printable): \(failure.message); tried again when the others are over"
      observer.pass(.notice(code: failure.code, message: message))
    }
    jobs[id]?.beginAnew()
  }

  /// Whether a second went by since it last said so.
  func isDue() -> Bool {
    let now = ports.clock.monotonic()
    guard now >= ticked + .seconds(1) else { return false }
    ticked = now
    return true
  }

  /// - Parameter failure: nil where its size was not known.
  private func lacksSpace(_ id: UInt64, _ failure: FolderFailure?) -> TransferState.Answer {
    let isOfKernel = failure.map { $0.errno != 0 } ?? false
    if isOfKernel { space.doubt() }
    let failure = failure ?? FolderFailure(.noSpace, space.refusal(nil))
    giveUp(id, code: failure.code.rawValue, message: failure.message)
    // What only would not fit beside others waits in silence.
    jobs[id]?.isRefusedByKernel = isOfKernel
    return .lacksSpace
  }
}
