import TarnCore
import TarnRuntime

/// Carries submissions out: does what their `TransferState` says, and tells it what came of it. It owns the lanes, the publisher and
/// the partial files.
///
/// On the thread of who runs it; all its state is confined to that one, and other threads speak to it through the mailbox.
final class TransferEngine {
  let submission: Submission

  private let mailbox: LockedCondition<[JobMessage]>
  private let lanes: Lanes
  private let checkpoints: Checkpoints
  private let publisher: PublishThread
  private let context: FileReceiverContext

  private var state: TransferState
  /// Those that the state has.
  private var jobs: [UInt64: Job] = [:]
  private var nextID: UInt64 = 0
  /// Jobs that are not for the first lane alone.
  private var othersBegun = 0
  /// Called between messages, several times a second.
  var meanwhile: (() throws -> Void)?
  /// Whether a repair beside it brings a path: what the plan wants there is decided over again afterwards.
  var isBroughtBeside: ((RelativePath) -> Bool)?
  /// Gives an order to whatever works beside it.
  var steerBeside: ((PassSteering.Order, RelativePath) throws -> PassSteering.Answer)?
  /// It works beside another one, which tells how far the pass is.
  private let isBeside: Bool
  private let mostJobs: Int

  /// - Parameters:
  ///   - mostHeldBack: see `TransferState`.
  ///   - bell: of one that works beside another, which is stepped by whoever hears it; called on any thread.
  init(_ submission: Submission, mostHeldBack: Int, bell: (@Sendable () -> Void)? = nil) throws {
    self.submission = submission
    let (ports, stop) = (submission.ports, submission.stop)
    isBeside = bell != nil
    mostJobs = isBeside ? min(Self.mostBeside, Self.most / 4) : Self.most
    state = TransferState(mostHeldBack: mostHeldBack)
    let mailbox = LockedCondition<[JobMessage]>([])
    self.mailbox = mailbox
    let post: @Sendable (JobMessage) -> Void = { message in
      mailbox.change { $0.append(message) }
      bell?()
    }
    lanes = try Lanes(name: "tarn-write", count: 2)
    checkpoints = Checkpoints(ledger: ports.ledger)
    publisher = PublishThread(
      folder: submission.folder, ledger: ports.ledger, clock: ports.clock, ownWrites: ports.ownWrites,
      post: post)
    context = FileReceiverContext(
      folder: submission.folder, ledger: ports.ledger, downloader: ports.downloader, lanes: lanes,
      checkpoints: checkpoints, space: submission.space, progress: submission.account.progress,
      bootID: ports.bootID,
      post: post)
    stop.onSet { post(.wake) }
    // Beside another one it follows pauses, and orders go to that one.
    if !isBeside {
      submission.steering?.attach(hurry: { post(.hurry) }) { order, path, answer in
        post(.steer(order, path, answer))
      }
    }
  }

  private var ports: PassPorts { submission.ports }
  private var account: TransferAccount { submission.account }
  private var stop: StopFlag { submission.stop }

  /// Actions at work at a time: enough for a group that gets its names and one that is made durable, and for the next one on its
  /// way meanwhile.
  ///
  /// Each may hold a file and a connection, and some descriptors are the process's own.
  private static var most: Int { min(PublishThread.largestGroup * 3, max(4, (OpenFiles.limit - 40) / 2)) }
  private static let mostBeside = 128
  /// Of these, how many may be on their way: what they bring waits in memory for its lane.
  private static let mostOnTheWay = PublishThread.largestGroup * 3 / 2

  /// Another job may be at work beside those that are.
  private var hasPlace: Bool {
    state.active < mostJobs && state.active - state.publishing < Self.mostOnTheWay
  }

  /// Waits for all threads. Nothing is at work afterwards.
  func close() {
    submission.steering?.detach()
    for job in jobs.values { job.download.map(ports.downloader.cancel) }
    publisher.close()
    lanes.close()
    checkpoints.close()
    for job in jobs.values { job.partial?.close() }
  }

  // MARK: A plan

  /// Carries the actions out up to the deletions.
  ///
  /// - Returns: the first deletion, if any; the cursor goes on after it.
  func run(_ actions: any ActionCursor) throws -> Action? {
    submission.plan = try PlanReader(actions)
    for phase in Action.Phase.transfers {
      submission.plan?.left.beginPhase()
      while true {
        try fill(phase)
        let isThrough = submission.plan?.isThrough(phase) != false
        let isLast = stop.isSet || state.isHeldUp || isThrough
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
      try submission.flushAdoptions()
      if stop.isSet { return nil }
    }
    return submission.plan?.front
  }

  /// - Parameter isLast: nothing more is coming soon.
  private func setFlushing(_ isLast: Bool) {
    publisher.setFlushing(isLast && state.active == state.publishing)
  }

  /// Begins as many jobs as may be at work: those that waited and new ones in turn.
  private func fill(_ phase: Action.Phase) throws {
    while !stop.isSet, hasPlace, !state.isAlone {
      let begun = state.beginNext()
      if let begun { try perform(begun) }
      guard hasPlace else { break }
      if state.isCramped {
        guard begun != nil else { break }
      } else if try !admitNext(of: phase), try !comeBack(isLast: phase == .list), begun == nil {
        break
      }
      // Much of it may begin nothing.
      tick()
    }
    if stop.isSet { try perform(state.stop()) }
  }

  /// - Returns: false when the plan has none of this phase any more.
  private func admitNext(of phase: Action.Phase) throws -> Bool {
    guard let (action, ordinal) = try submission.plan?.next(of: phase) else { return false }
    try admit(action, ordinal: ordinal)
    return true
  }

  /// - Parameter isAgain: it was left once, and is not left again.
  private func admit(_ action: Action, ordinal: Int, isAgain: Bool = false) throws {
    switch action.kind {
    case .adopt: if let row = action.row { try submission.adopt(row) }
    case .delete: try submission.removeInTheWay(action)
    case .inspect: submission.stale.append(action)
    case .forget:
      // Among the deletions only.
      break
    case .fetch, .update, .restore, .replace, .revalidate:
      guard let entry = action.entry, !entry.sources.isEmpty else { return }
      if isBroughtBeside?(action.path) == true { return submission.stale.append(action) }
      if submission.isBlocked(action) { return }
      if submission.isPaused(action.path) { return submission.hold(action, ordinal: ordinal) }
      try begin(makeJob(action, entry, ordinal: ordinal), mustBegin: isAgain)
    }
  }

  /// - Parameter mustBegin: is not left for later.
  private func begin(_ job: Job, mustBegin: Bool) throws {
    jobs[job.id] = job
    let contents = Duplicates.Contents(job.entry)
    try perform(state.admit(job.id, path: job.entry.path, contents: contents, mustBegin: mustBegin))
  }

  private func makeJob(_ action: Action, _ entry: Entry, ordinal: Int) -> Job {
    nextID += 1
    // The others in turn, the lane first that has no small files.
    let isForFirst = Job.isForFirstLane(entry)
    if !isForFirst { othersBegun += 1 }
    return Job(
      id: nextID, action: action, entry: entry, ordinal: ordinal, lane: isForFirst ? 0 : othersBegun)
  }

  /// Once nothing else is at work: goes back to what was not begun, and copies those whose duplicate is in place by now.
  ///
  /// - Parameter isLast: nothing more is going to be placed, so that the others fail.
  /// - Returns: false when nothing is left to do.
  private func settle(isLast: Bool) throws -> Bool {
    if !stop.isSet {
      // What was adopted is a duplicate as good as any.
      try submission.flushAdoptions()
      if submission.plan?.left.untried.isEmpty != false, try copyExhausted(isLast: isLast) { return true }
      if try submission.plan?.left.begin({ try ports.stage.actions() }) == true { return true }
    }
    // It may have come meanwhile.
    guard stop.isSet else { return false }
    try perform(state.stop())
    account.end(exhausted: submission.plan?.left.forsakenCount ?? 0)
    submission.plan?.left = Leftovers()
    return false
  }

  /// Goes on reading the plan again.
  ///
  /// - Returns: false when it is not being read again, or came to its end.
  private func comeBack(isLast: Bool) throws -> Bool {
    guard let comeback = try nextComeback() else { return false }
    let (action, ordinal) = (comeback.action, comeback.ordinal)
    guard comeback.isForsaken else {
      try admit(action, ordinal: ordinal, isAgain: true)
      return true
    }
    guard let entry = action.entry, let failure = submission.plan?.left.failure(ordinal, entry) else {
      return true
    }
    let isPlaced = try submission.hasCopy(entry)
    guard isPlaced || isLast else { return true }
    submission.plan?.left.drop(ordinal)
    guard isPlaced else {
      account.fail(entry, code: failure.code, message: failure.message)
      return true
    }
    let job = makeJob(action, entry, ordinal: ordinal)
    job.failure = failure
    jobs[job.id] = job
    try perform(state.admitCopy(job.id, path: entry.path, contents: Duplicates.Contents(entry)))
    return true
  }

  private func nextComeback() throws -> Leftovers.Comeback? {
    while true {
      switch try submission.plan?.left.next() {
      case .comeback(let comeback): return comeback
      case .over, nil: return nil
      // Not from within `left`: the status, which is told here, counts what is left.
      case .pause: if !mayGoOn() { submission.plan?.left.end() }
      }
    }
  }

  /// Asked now and then by what takes long on this thread.
  private func mayGoOn() -> Bool {
    tick()
    return !stop.isSet
  }

  /// - Parameter isLast: those fail that cannot be copied.
  /// - Returns: whether any is at work.
  private func copyExhausted(isLast: Bool) throws -> Bool {
    for id in state.waitingForContents {
      guard mayGoOn(), state.active < mostJobs else { break }
      if let job = jobs[id], try submission.hasCopy(job.entry) {
        try perform(state.foundCopy(id, true))
      } else if isLast {
        try perform(state.giveUp(id))
      }
    }
    return !state.isIdle
  }

  private func tick() {
    guard !isBeside else { return }
    account.tick { state.exhaustedCount + (submission.plan?.left.forsakenCount ?? 0) }
  }

  // MARK: Messages

  /// At most a quarter of a second, and no longer than until the next attempt is due.
  private var longestWait: Duration {
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
  private func goOn() throws {
    try perform(stop.isSet ? state.stop() : state.tick(ports.clock.monotonic()))
  }

  /// - Parameter waiting: for the first message.
  private func handleMail(waiting: Duration) throws {
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
      account.tell(.notice(code: failure.code.rawValue, message: "\(failure.message); \(instead)"))
    case .ended(let id, let end, let received):
      jobs[id]?.download = nil
      account.received(received)
      try ended(id, end, received: received)
    case .published(let id, let outcome): try published(id, outcome)
    case .steer(let order, let path, let answer): answer(try steer(order, path))
    case .hurry: try perform(state.hurry())
    case .ledgerFailed(let failure): throw PassFailure(failure)
    case .folderFailed(let failure): throw PassFailure(failure)
    case .wake:
      // What it is for is looked at after the mail.
      break
    }
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
      let search = LocalBytesSearch(job: job, unrecorded: submission.unrecorded, context: context)
      lanes.submit(lane: job.lane) { search.run() }
    case .ask(let id): ask(id)
    case .cancelExchange(let id): jobs[id]?.download.map(ports.downloader.cancel)
    case .prioritize(let id): jobs[id]?.download.map(ports.downloader.prioritize)
    case .seal(let id): seal(id)
    case .publish(let id): try publish(id)
    case .release(let bytes): submission.space.giveBack(bytes)
    case .putBack(let id): putBack(id)
    case .exhausted(let id):
      guard let job = jobs[id] else { return }
      submission.leavePartial(job)
      jobs[id]?.partial = nil
      account.progress.forget(id)
      account.tellExhausted(job)
    case .findCopy(let id):
      let isThere = try jobs[id].map { try submission.hasCopy($0.entry) } ?? false
      try perform(state.foundCopy(id, isThere))
    case .postpone(let id):
      if let job = jobs.removeValue(forKey: id) { submission.plan?.left.untried.insert(job.ordinal) }
    case .setAside(let id): if let job = jobs.removeValue(forKey: id) { submission.plan?.left.forsake(job) }
    case .end(let id, let ending): if let job = jobs.removeValue(forKey: id) { try end(job, ending) }
    }
  }

  /// Takes the space that a job needs.
  private func reserve(_ id: UInt64) throws {
    guard let job = jobs[id] else { return }
    let isCopy = job.failure != nil
    if !isCopy, submission.isPaused(job.entry.path) { return try perform(state.obey(.pause, id) ?? []) }
    let needed = submission.needed(job.entry)
    guard submission.space.reserve(needed ?? 0) else { return try perform(state.refused(id)) }
    if isCopy { account.settle(job.entry.path) } else { account.tell(.action(job.action)) }
    try perform(state.reserved(id, bytes: needed ?? 0, looks: submission.mayBeAtHand(job)))
  }

  /// Starts an exchange with the job's source.
  private func ask(_ id: UInt64) {
    guard let job = jobs[id] else { return }
    let document = job.entry.isList ? submission.listURL.take() : nil
    var request = job.attempts.request(room: { submission.space.room }, document: document)
    request.isUrgent = submission.isUrgent || state.jobs[id]?.isUrgent == true
    job.wishes = submission.steering?.wishes
    let receiver = FileReceiver(job, context: context)
    account.progress.begin(
      id, path: job.entry.path, kept: request.offset, total: job.entry.size, source: job.attempts.url,
      isWaiting: true)
    let download = ports.downloader.start(request, to: receiver)
    receiver.started(download)
    job.download = download
  }

  /// All bytes are at hand: only the check is left.
  private func seal(_ id: UInt64) {
    guard let job = jobs[id], let partial = job.partial else { return }
    let (entry, known, post) = (job.entry, job.attempts.known, context.post)
    lanes.submit(lane: job.lane) {
      post(.ended(id, FileReceiver.seal(partial, entry, head: nil, known: known), received: 0))
    }
  }

  /// - Throws: `ThreadFailure`.
  private func publish(_ id: UInt64) throws {
    guard let job = jobs[id], let partial = job.partial, let checked = job.checked else { return }
    if let row = submission.sameAsBefore(job, checked) {
      partial.discard()
      jobs[id]?.partial = nil
      if try ports.ledger.partial(row.path) != nil { try ports.ledger.apply([.dropPartial(row.path)]) }
      return try confirm(job, as: row)
    }
    try publisher.start()
    publisher.submit(submission.publication(job, partial, checked))
    // The publisher's from now on.
    jobs[id]?.partial = nil
  }

  private func putBack(_ id: UInt64) {
    account.progress.forget(id)
    if let job = jobs[id], job.isRefusedByKernel, let failure = job.failure {
      let message = "\(job.entry.path.printable): \(failure.message); tried again when the others are over"
      account.tell(.notice(code: failure.code, message: message))
    }
    jobs[id]?.beginAnew()
  }

  private func end(_ job: Job, _ ending: TransferState.Ending) throws {
    account.progress.forget(job.id)
    switch ending {
    case .placed, .unchanged: break
    case .stale: submission.stale.append(job.action)
    case .failed:
      submission.leavePartial(job)
      account.fail(job.entry, code: job.failure?.code ?? "", message: job.failure?.message ?? "")
    case .noSpace:
      let message = submission.space.refusal(submission.needed(job.entry))
      account.fail(job.entry, code: FolderFailure.Code.noSpace.rawValue, message: message)
    case .cancelled, .paused:
      if ending == .paused { submission.pause(job) } else { submission.cancel(job) }
      if job.isWantedAgain { _ = try beginAgain(job.entry.path) }
    case .abandoned: if job.checked == nil { job.partial?.close() } else { job.partial?.discard() }
    case .stopped: job.partial?.close()
    }
  }

  // MARK: What came of it

  private func looked(_ id: UInt64, _ found: LocalBytes) throws {
    switch found {
    case .nothing: try perform(state.looked(id, .nothing))
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
  private func ended(_ id: UInt64, _ end: JobEnd, received: UInt64) throws {
    guard jobs[id] != nil else { return }
    if let atHand = end.atHand { jobs[id]?.partial = atHand.partial }
    if isOfNoUse(id, end) {
      jobs[id]?.attempts.interrupt(end)
      return try perform(state.answered(id, .cancelled))
    }
    guard
      let (step, discards) = jobs[id]?.attempts.next(
        after: end, received: received, retry: submission.retry, random: ports.random)
    else { return }
    if discards {
      jobs[id]?.partial?.discard()
      jobs[id]?.partial = nil
    }
    if let answer = answer(step, id) { return try perform(state.answered(id, answer)) }
    if let job = jobs[id] { try confirm(job, as: job.action.row) }
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
      let isWanted = jobs[id]?.wishes != submission.steering?.wishes
      let until = seconds > 0 && !isWanted ? ports.clock.monotonic() + .bounded(seconds: seconds) : nil
      return .pause(until: until, isNewRound: isNewRound)
    case .lacksSpace(let failure):
      lacksSpace(id, failure)
      return .lacksSpace
    case .exhausted(let code, let message):
      let all = jobs[id]?.attempts.troubleText ?? ""
      jobs[id]?.fail(code: code, message: all.isEmpty ? message : all)
      return .exhausted
    case .fail(let failure):
      jobs[id]?.fail(code: failure.code.rawValue, message: failure.message)
      return .failed
    }
  }

  private func tellRetry(_ id: UInt64, _ message: String, seconds: Double) {
    guard state.goesOn(id), let path = jobs[id]?.entry.path else { return }
    account.tell(.retrying(path: path, message: message, seconds: seconds))
  }

  /// - Parameter failure: nil where its size was not known.
  private func lacksSpace(_ id: UInt64, _ failure: FolderFailure?) {
    let isOfKernel = failure.map { $0.errno != 0 } ?? false
    if isOfKernel { submission.space.doubt() }
    let failure = failure ?? FolderFailure(.noSpace, submission.space.refusal(nil))
    jobs[id]?.fail(code: failure.code.rawValue, message: failure.message)
    // What only would not fit beside others waits in silence.
    jobs[id]?.isRefusedByKernel = isOfKernel
  }

  private func published(_ id: UInt64, _ outcome: PublishOutcome) throws {
    guard let job = jobs[id] else { return }
    switch outcome {
    case .installed(let identity, _):
      account.placed(job, identity)
      try perform(state.published(id, .placed))
    case .stale: try perform(state.published(id, .stale))
    case .failed(let failure):
      jobs[id]?.fail(code: failure.code.rawValue, message: failure.message)
      try perform(state.published(id, .failed))
    case .removed: try perform(state.published(id, .stopped))
    }
  }

  /// What stands there is what the server has.
  private func confirm(_ job: Job, as row: Row?) throws {
    try perform(state.confirmed(job.id))
    account.confirmed(job)
    if let row { try submission.confirm(row, job) }
  }

  // MARK: Orders

  /// Carries an order about a single transfer out, or says why there is nothing to do.
  func steer(_ order: PassSteering.Order, _ path: RelativePath) throws -> PassSteering.Answer {
    guard let id = state.job(at: path), let job = state.jobs[id], job.state != .publishing else {
      if order == .retry, try beginAgain(path) { return .done }
      return try steerBeside?(order, path) ?? .notThere
    }
    if order == .retry, job.isEnding, !submission.isPaused(path) {
      jobs[id]?.isWantedAgain = true
      return .done
    }
    guard let actions = state.obey(order, id) else { return .wasSo }
    try perform(actions)
    return .done
  }

  private func beginAgain(_ path: RelativePath) throws -> Bool {
    guard let (action, entry, ordinal) = submission.takeBack(path) else { return false }
    try begin(makeJob(action, entry, ordinal: ordinal), mustBegin: true)
    return true
  }

  // MARK: Beside another one

  /// Its actions come bit by bit, and it is stepped in turns: another action may begin.
  var hasRoom: Bool { !stop.isSet && hasPlace && !state.isHeldUp }

  var isIdle: Bool { jobs.isEmpty && !submission.hasAdoptions }

  var pathsAtWork: Set<RelativePath> { state.pathsAtWork }

  /// Entries that are being brought.
  var entriesAtWork: [Entry] { jobs.values.map(\.entry) }

  /// Wakes it when it waits for its own messages.
  var nudge: @Sendable () -> Void {
    { [mailbox] in mailbox.change { if $0.isEmpty { $0.append(.wake) } } }
  }

  func isAtWork(on path: RelativePath) -> Bool { state.job(at: path) != nil }

  /// Jobs at work that do not wait for a server to recover.
  var busy: Set<UInt64> { Set(state.jobs.lazy.filter { $0.value.isBusy }.map(\.key)) }

  /// Handles what came in, and begins what waited for it.
  ///
  /// - Parameter waiting: when nothing came in so far.
  func turn(waiting: Duration) throws {
    setFlushing(true)
    try handleMail(waiting: min(waiting, longestWait))
    try goOn()
    while !stop.isSet, hasPlace, let begun = state.beginNext() { try perform(begun) }
    // Of those that failed few are kept until a duplicate may have come.
    if state.isIdle || state.exhaustedCount >= mostJobs { _ = try copyExhausted(isLast: true) }
    if !stop.isSet, state.isIdle, let retried = state.retryForSpace() { try perform(retried) }
    setFlushing(true)
  }

  /// Begins an action that no plan of its own names.
  func begin(_ action: Action, _ unrecorded: UnrecordedFiles) throws {
    submission.unrecorded = unrecorded
    try admit(action, ordinal: 0, isAgain: true)
  }

  /// Ends a job whose bytes nobody wants any more; what gets its name already is not stopped.
  func abandon(_ path: RelativePath) throws {
    if let id = state.job(at: path) { try perform(state.abandon(id)) }
  }
}
