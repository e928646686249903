import TarnCore
import TarnEngine
import TarnFolder
import TarnLedger
import TarnRuntime
import TarnTransfer

/// One session at work: its ledger holds the tasks, the engine carries out those whose turn it is. Members
/// run on the loop's thread unless they say otherwise. Private ones run on the threads of their callers as well.
final class DownloadSession: Sendable {
  let id: String
  let ledger: SessionLedger
  let folder: SessionFolder
  let partialFiles: PartialFiles
  /// The engine. A failure of the ledger ends it, and a new one takes its place.
  private let engine = Locked(TransferEngine())
  private let downloaders: SessionDownloaders
  let clock: any Clock
  private let random: any RandomSource
  let progress: PassProgress
  private let promises: SpacePromises
  private let patience: Patience
  let atWork = Locked<[Int64: TaskAtWork]>([:])
  /// The settings that the ledger holds.
  private let stored: Locked<SessionSettings>
  let age: SessionClock
  private let turns = Locked(Turns())
  private let earlier: EarlierBytes
  /// Lets either a task begin or the partial file of a cancelled one be removed.
  private let partialLock = SlowLock()
  /// True once nothing more may begin.
  private let isClosed = Locked(false)
  let post: @Sendable (SessionLoop.Message) -> Void

  /// The number of tasks that are asked about at once.
  static let askedAtOnce = 1000
  static let upkeepEvery: Int64 = 600
  private static let backOff = BackOff(base: 4, most: 3600)
  /// More seconds than a server's `Retry-After` or a back-off lets a task wait.
  private static let longestWait: Int64 = 8 * 86_400
  /// The number of tasks in one transaction of an order for all.
  static let batch = 1000

  /// - Parameters:
  ///   - progress: the progress of all its transfers, by the paths that stand for tasks.
  ///   - post: posts a message to the loop; callable on any thread.
  init(
    id: String, ledger: SessionLedger, folder: SessionFolder, downloader: any Downloading,
    patience: Patience = .long, progress: PassProgress, promises: SpacePromises = SpacePromises(),
    clock: any Clock, random: any RandomSource,
    post: @escaping @Sendable (SessionLoop.Message) -> Void
  ) throws(LedgerFailure) {
    (self.id, self.ledger, self.folder) = (id, ledger, folder)
    partialFiles = PartialFiles(ledger: ledger, folder: folder)
    age = try SessionClock(ledger, clock)
    earlier = EarlierBytes(ledger: ledger, folder: folder, bootID: age.bootID)
    downloaders = SessionDownloaders(downloader)
    (self.patience, self.progress, self.promises) = (patience, progress, promises)
    (self.clock, self.random, self.post) = (clock, random, post)
    stored = Locked(try ledger.settings())
    ledger.attach(
      SessionLedger.Sources(
        path: { [folder] in folder.path($0) }, response: { [atWork] in Self.unnoted($0, atWork) },
        kept: { [folder] task in task.directory == nil ? nil : folder.partial(of: task)?.bytes },
        times: { [atWork, clock] task in atWork.withLock { $0[task] }?.times(at: clock.monotonic()) },
        noted: { [atWork] task, serial in
          atWork.withLock { tasks in
            if tasks[task]?.response?.answer.serial == serial { tasks[task]?.response?.isNoted = true }
          }
        }))
    try settle()
  }

  /// Settles what a crash left between a file's name and its record, and tasks that must not repeat by
  /// themselves.
  private func settle() throws(LedgerFailure) {
    // A file whose disk is absent now is settled before its task begins.
    for intent in try ledger.unfinished() { try? settle(intent) }
    try interrupt(try ledger.numbers(in: [.running]))
    try queueUncompared()
    for task in try ledger.partialTasks() where !task.state.isEnd { folder.reserve(task) }
  }

  /// Queues finished tasks again that got a digest while they ran, where a crash came before `ended` could do so. Those that are no GET
  /// wait for an order.
  ///
  /// - Parameter number: the only task to look at; `nil` for all.
  private func queueUncompared(_ number: Int64? = nil) throws(LedgerFailure) {
    let (tasks, terms) = (try ledger.uncompared(number), terms)
    guard !tasks.isEmpty else { return }
    _ = try ledger.update(tasks) { $0.request.isRepeatable ? nil : $0.reopened(terms) }
    _ = try queue(tasks, from: [.finished])
  }

  /// Takes back tasks that were running when the agent ended, or whose end could not be recorded.
  private func interrupt(_ numbers: [Int64]) throws(LedgerFailure) {
    guard !numbers.isEmpty else { return }
    let terms = terms
    var dropped: Set<Int64> = []
    let changed = try ledger.update(numbers) { task in
      if task.wish == .cancel(keeps: false) { dropped.insert(task.number) }
      return task.interrupted(terms)
    }
    releaseNames(changed)
    for task in changed where dropped.contains(task.number) { try partialFiles.remove(task) }
  }

  /// - Throws: `FolderFailure` when the fate of the file cannot be determined now.
  private func settle(_ intent: SessionLedger.Unfinished) throws {
    let number = intent.task.number
    if intent.task.state != .finished || intent.task.file?.inode != intent.inode {
      try ledger.settle(intent, folder.find((intent.task, inode: intent.inode, size: intent.size)))
    }
    // A task that begins again keeps its file until then.
    guard let task = try ledger.task(number), task.state == .finished || task.file?.inode == intent.inode
    else { return }
    folder.finish(task, replaces: true)
    try ledger.forgetIntent(of: number)
  }

  /// Stops all work. Partial files stay, and tasks continue when the session is opened again. Callable on any
  /// thread but the loop's.
  func close() {
    isClosed.withLock { $0 = true }
    for download in atWork.withLock({ tasks -> [RunningDownload] in
      for number in tasks.keys where tasks[number]?.stopReason == nil { tasks[number]?.stopReason = .leave }
      return tasks.values.compactMap(\.download)
    }) { download.cancel() }
    engine.withLock { $0 }.close()
    downloaders.shutDown()
    folder.releaseAll()
    try? age.save()
    ledger.close()
  }

  var running: Int { atWork.withLock { $0.count } }

  /// True from the beginning of the task's transfer until its end is recorded. Callable on any thread.
  func isAtWork(_ task: Int64) -> Bool { atWork.withLock { $0[task] != nil } }

  // MARK: Time

  var terms: TaskTerms {
    TaskTerms(now: clock.time, age: age.seconds, limits: settings.limits ?? TaskLimits())
  }

  // MARK: Settings

  /// The settings, as they are stored. Callable on any thread.
  var settings: SessionSettings { stored.withLock { $0 } }

  /// Stores new settings. Callable on any thread.
  ///
  /// - Parameter downloader: a downloader with the new settings, for tasks that begin from now on; `nil` when
  ///   the network is not concerned.
  func set(_ settings: SessionSettings, _ downloader: (any Downloading)?) throws(LedgerFailure) {
    try ledger.set(.settings, JSONText.line(settings))
    stored.withLock { $0 = settings }
    if let downloader { downloaders.add(downloader) }
  }

  // MARK: What begins

  /// Begins as many tasks as may be at work.
  ///
  /// - Returns: the latest time of the next call.
  func advance() throws(LedgerFailure) -> Timestamp? {
    guard !isClosed.withLock({ $0 }) else { return nil }
    try look()
    try queueDue()
    var free = max(1, min(64, settings.transfers ?? SessionSettings.standardTransfers)) - running
    while free > 0, !isClosed.withLock({ $0 }) {
      let waiting = try queueFitting()
      guard let task = try ledger.next(limit: 1).first else { break }
      // It has just finished and was added again before the loop heard of its end, which comes soon.
      if isAtWork(task.number) { break }
      if !mayBegin(task, behind: waiting) { break }
      if try isHeldBack(task.number, free) { break }
      if isOld(task) {
        try ask(try ledger.next(limit: Self.askedAtOnce).filter(isOld).map(\.number))
      } else if try begin(task) {
        free -= 1
      }
    }
    downloaders.endUnused(Set(atWork.withLock { $0.values.map(\.network) }))
    let (age, next) = (self.age.seconds, try ledger.nextEnd())
    let ends = atWork.withLock { $0.values.flatMap { [$0.end, $0.stall?.end] }.compactMap(\.self).min() }
    let upkeep = clock.time.adding(
      seconds: max(1, min(turns.withLock { $0.upkeep }, next ?? .max, ends ?? .max) - age))
    return min(upkeep, try ledger.nextDue() ?? .distantFuture)
  }

  /// Returns whether the free slots are kept for tasks before this one that were asked about: they begin within half a minute. Those
  /// that are asked about after its turn has come keep none, so that it begins as well.
  private func isHeldBack(_ number: Int64, _ free: Int) throws(LedgerFailure) -> Bool {
    let since = turns.withLock { $0.held[number] } ?? clock.time
    let asked = try ledger.asked(before: number, dueBy: since.adding(seconds: TaskRecord.answerTime))
    turns.withLock { $0.held[number] = asked >= free ? since : nil }
    return asked >= free
  }

  /// True when the task's request may have expired; signed URLs do so first.
  private func isOld(_ task: TaskRecord) -> Bool {
    guard case .long = patience else { return false }
    return clock.time.seconds - task.fresh.seconds >= TaskRecord.freshness
  }

  /// Queues the tasks whose wait is over.
  private func queueDue() throws(LedgerFailure) {
    let setBack = age.takeSetBack()
    if setBack > 0 { try ledger.advanceDue(bySeconds: setBack) }
    if setBack > 0 { turns.withLock { $0.held = [:] } }
    while true {
      let (terms, isHeld) = (terms, settings.holdsOld == true)
      var due = try ledger.due(now: terms.now, limit: Self.askedAtOnce)
      if due.isEmpty {
        // No wait is so long: the clock was set back between two boots.
        due = try ledger.waiting(after: terms.now.adding(seconds: Self.longestWait), limit: Self.askedAtOnce)
      }
      if due.isEmpty { return }
      let tasks = try ledger.update(due) { task in
        guard task.state == .waiting else { return nil }
        // Nobody had a better request.
        if task.code == TaskRecord.stale { return task.queued(terms, isFresh: true) }
        if task.code == TaskRecord.delayed || isOld(task) { return task.asked(terms, isHeld: isHeld) }
        return task.queued(terms)
      }
      if tasks.isEmpty { return }
    }
  }

  /// Asks for better requests for tasks that are about to begin.
  private func ask(_ tasks: [Int64]) throws(LedgerFailure) {
    let (terms, isHeld) = (terms, settings.holdsOld == true)
    _ = try ledger.update(tasks) { $0.state == .queued ? $0.asked(terms, isHeld: isHeld) : nil }
  }

  /// - Returns: false when it cannot begin; then its record says why.
  private func begin(_ task: TaskRecord) throws(LedgerFailure) -> Bool {
    let number = task.number
    let known = try partialFiles.finished(task)
    if let known, let digest = task.request.digest, digest == task.digest {
      // The file has the wanted contents, whatever the server has.
      if try ledger.finishQueued(known) {
        try removeLeftPartial(of: number)
        // An earlier attempt may have reserved it.
        folder.release(number)
      }
      return false
    }
    // Another file is wanted than the one that is there: the server is asked for all of it. A file of another URL has no validators,
    // see `PartialFiles.finished`. Where the partial bytes lie is another question (`EarlierBytes`).
    let isOther = task.request.digest != nil && task.request.digest != task.digest
    let (network, room) = (downloaders.newest, try need(of: task))
    let opened = try partialLock.withLock { () throws(LedgerFailure) -> (Destination, headers: [String])? in
      guard let opened = try open(task, known) else { return nil }
      // From here on orders find the task. Its bytes count among those of the tasks at work.
      var work = TaskAtWork(
        task, known: known, network: network.number, kept: folder.partial(of: task)?.bytes ?? 0,
        began: clock.monotonic())
      // Its room is there now, and nobody else gets it meanwhile.
      if let room { (work.size, work.isUnsized) = (max(work.size, room.bytes), room.isUnsized) }
      atWork.withLock { [work] in $0[number] = work }
      return opened
    }
    guard let (destination, headers) = opened else { return false }
    guard try enterRunning(number, in: destination, keepsFile: known != nil) else { return false }
    let beginning = Beginning(
      task: number, download: .of(task, known: isOther ? nil : known, headers, patience),
      ports: ports(destination, network.downloader))
    if EarlierBytes.areElsewhere(task) { bring(task, beginning) } else { try start(beginning) }
    return true
  }

  private func bring(_ task: TaskRecord, _ beginning: Beginning) {
    let number = task.number
    earlier.bring(task) { [atWork] in
      atWork.withLock { $0[number]?.stopReason != nil }
    } ended: { [self] failure in
      guard let failure else { return post(.brought(self, beginning)) }
      post(.ended(self, number, .failed(code: failure.code, message: failure.message)))
    }
  }

  func start(_ beginning: Beginning) throws(LedgerFailure) {
    let number = beginning.task
    // An order came while its earlier bytes were brought.
    if atWork.withLock({ $0[number]?.stopReason != nil }) { return try ended(number, .stopped) }
    let running = engine.withLock { $0 }.start(
      beginning.download, with: beginning.ports, observer: TaskResponses(self)
    ) { [weak self] outcome in
      guard let self else { return }
      post(.ended(self, number, outcome))
    }
    let reason = atWork.withLock { tasks -> StopReason? in
      tasks[number]?.download = running
      return tasks[number]?.stopReason
    }
    // An order came while the task began.
    if reason != nil || isClosed.withLock({ $0 }) { running.cancel() }
  }

  /// Opens the destination, and makes the header lines of the request.
  ///
  /// - Returns: `nil` when the task cannot begin; then its record says why.
  private func open(
    _ task: TaskRecord, _ known: Row?
  ) throws(LedgerFailure) -> (Destination, headers: [String])? {
    let number = task.number
    do {
      // The partial file's name may hold the file that a new one replaced.
      for intent in try ledger.unfinished() where intent.task.number == number { try settle(intent) }
      guard try ledger.task(number)?.state == .queued else {
        try queueUncompared(number)
        return nil
      }
      // The folder may have become one while the task waited.
      if let mirror = TaskPlace(task.request.to)?.mirror {
        try fail(number, code: TaskPlace.inMirror, message: TaskPlace.isInMirror(task.request.to, mirror))
        return nil
      }
      let hasPartial = try ledger.partial(RelativePath(task: number)) != nil
      let destination = try folder.open(task, own: known?.identity, hasPartial: hasPartial)
      // Such a request cannot ask for a part.
      if !task.request.isRepeatable, hasPartial { try partialFiles.remove(task) }
      return (destination, try HostCredential.headers(of: task.request, settings))
    } catch let failure as LedgerFailure {
      // The record failed; it may be writable later.
      folder.close(number)
      throw failure
    } catch {
      folder.close(number)
      let failure = PassFailure(translating: error)
      try fail(number, code: failure.code, message: failure.message)
      return nil
    }
  }

  /// - Returns: false when somebody has ended the task since it was chosen.
  private func enterRunning(
    _ number: Int64, in destination: Destination, keepsFile: Bool
  ) throws(LedgerFailure) -> Bool {
    let terms = terms
    do throws(LedgerFailure) {
      let begun = try ledger.update(number) { task in
        guard task.state == .queued else { return nil }
        var task = task
        // They stay as in `queued`.
        let (code, message) = (task.code, task.message)
        task.enter(.running, terms)
        (task.code, task.message) = (code, message)
        (task.directory, task.disk) = (destination.directory.inode, destination.disk)
        if !keepsFile { (task.file, task.origin) = (nil, nil) }
        return (task, [])
      }
      guard let begun else {
        try abandon(number)
        return false
      }
      atWork.withLock { tasks in
        let kept = tasks[number]?.kept ?? 0
        tasks[number]?.end = begun.life?.whole
        tasks[number]?.stall = (begun.life?.stall).map { ($0, kept) }
      }
      try countIdle()
      return true
    } catch {
      // Where it is recorded as running, the next look takes it back.
      atWork.withLock { $0[number] = nil }
      folder.close(number)
      throw error
    }
  }

  /// Gives up the beginning of a task. An order that came meanwhile is carried out.
  private func abandon(_ number: Int64) throws(LedgerFailure) {
    folder.close(number)
    let reason = atWork.withLock { $0.removeValue(forKey: number)?.stopReason }
    if let reason { try obey(reason, number) }
    if let task = try ledger.task(number) { releaseNames([task]) }
  }

  private typealias Destination = (folder: any TransferFolder, directory: FileIdentity, disk: String)

  private func ports(
    _ destination: Destination, _ downloader: any Downloading
  ) -> SingleDownload.Ports {
    SingleDownload.Ports(
      folder: destination.folder, ledger: ledger, downloader: downloader, clock: clock, random: random,
      bootID: age.bootID, progress: progress, device: destination.directory.device, promises: promises)
  }

  // MARK: What came of it

  func ended(_ number: Int64, _ outcome: SingleDownload.Outcome) throws(LedgerFailure) {
    let work = atWork.withLock { $0[number] }
    do throws(LedgerFailure) {
      try record(outcome, of: number, work)
    } catch {
      folder.close(number)
      atWork.withLock { $0[number] = nil }
      throw error
    }
    // A client's order may have come while the end was recorded.
    let last = atWork.withLock { $0.removeValue(forKey: number)?.stopReason }
    if let wish = last?.wish, wish != work?.stopReason?.wish { try obey(.wish(wish), number) }
    if let task = try ledger.task(number) {
      releaseNames([task])
      // A digest that came while it ran holds as one that comes later.
      if task.request.digest != work?.request.digest { try queueUncompared(number) }
    }
    try makeRoom(after: number)
  }

  /// Removes the partial file of a task whose finished file has stayed, or is there already.
  private func removeLeftPartial(of number: Int64) throws(LedgerFailure) {
    guard let task = try ledger.task(number), task.state == .finished, task.directory != nil else { return }
    try partialFiles.remove(task)
  }

  private func releaseNames(_ tasks: [TaskRecord]) {
    for task in tasks where task.state.isEnd { folder.release(task.number) }
  }

  /// Closes the destination of a task. When somebody has renamed it, the bytes are looked for under its new name.
  private func close(_ number: Int64) throws(LedgerFailure) {
    let renamed = folder.renamedDirectory(of: number)
    folder.close(number)
    guard let renamed else { return }
    try ledger.update(number) { task in
      var task = task
      task.movedFrom = renamed
      return (task, [])
    }
  }

  private func record(
    _ outcome: SingleDownload.Outcome, of number: Int64, _ work: TaskAtWork?
  ) throws(LedgerFailure) {
    try noteResponse(number)
    switch outcome {
    case .finished:
      guard let task = try ledger.task(number) else { return folder.close(number) }
      let replaces = work?.replaces == true
      folder.finish(task, replaces: replaces)
      if replaces { try ledger.forgetIntent(of: number) }
      // It begins again, with another request, and was suspended as well.
      if work?.stopReason?.wish?.suspends == true, !task.state.isEnd { try obey(.wish(.suspend), number) }
      return
    case .unchanged:
      folder.close(number)
      try removeLeftPartial(of: number)
    case .failed(let code, let told):
      let message = told.replacing(HTTPStatus.passwordOptions, with: "")
      try close(number)
      if let reason = work?.stopReason {
        try obey(reason, number)
      } else {
        try fail(number, code: code, message: message)
      }
    case .stopped:
      try close(number)
      try obey(work?.stopReason ?? .leave, number)
    case .broken(let failure):
      try close(number)
      engine.withLock { if $0.hasFailed { $0 = TransferEngine() } }
      if let reason = work?.stopReason, reason.wish != nil {
        try obey(reason, number)
      } else {
        try fail(number, code: failure.code, message: failure.message, .wait)
      }
    }
    // An answer to the running task may have given it another URL, for which its bytes are kept.
    if let task = try ledger.task(number), let work, task.request.url != work.request.url {
      try partialFiles.follow(task, to: task.request.url)
    }
  }

  /// - Parameter verdict: the verdict; `nil` for that of the table of failures.
  private func fail(
    _ number: Int64, code: String, message: String, _ verdict: TaskVerdict? = nil
  ) throws(LedgerFailure) {
    let (terms, random) = (terms, random.unit())
    let work = atWork.withLock { $0[number] }
    let kept = try ledger.task(number).flatMap { folder.partial(of: $0)?.bytes } ?? 0
    // The pause that the server asked for.
    let rest = work.flatMap { downloaders.newest.downloader.rest(of: $0.url) }
    let changed = try ledger.update(number) { task in
      guard !task.state.isEnd else { return nil }
      var task = task
      let isSame = task.code == code
      // Whoever sends bytes fails at other times only.
      if ResumeLadder.isProgress(kept - min(kept, work?.kept ?? kept), of: .max) { task.attempts = 0 }
      if verdict != .room { task.attempts += 1 }
      let isRepeatable = task.request.isRepeatable
      let judged = TaskVerdict.judge(
        code, wrongContents: isSame ? task.attempts : 1, isRepeatable: isRepeatable)
      let next: TaskVerdict = verdict == .room && !isRepeatable ? .ask : verdict ?? judged
      let isEnd = if case .short = patience { true } else { next == .end }
      let stall = task.life?.stall
      task.enter(isEnd ? .failed : .waiting, terms)
      if let stall, kept <= work?.kept ?? 0 { task.life?.stall = stall }
      (task.code, task.message) = (code, message)
      func event(_ code: SessionEvent.Code) -> SessionEvent {
        var event = SessionEvent(code, time: terms.now, of: task)
        (event.response, event.body) = (work?.response?.answer.head, work?.body)
        return event
      }
      if isEnd { return (task, [event(.failed)]) }
      if next == .ask || next == .room {
        task.nextAttempt = nil
        return (task, next == .ask ? [event(.needsRequest)] : isSame ? [] : [event(.waiting)])
      }
      // Half of it is random, so that tasks do not all come at once.
      let pause = Int64(Self.backOff.ceiling(task.attempts) * (1 + random) / 2)
      task.nextAttempt = terms.now.adding(seconds: max(rest ?? 0, pause))
      // Told once for each reason; a client that asks again sees when the next attempt is.
      return (task, isSame ? [] : [event(.waiting)])
    }
    if let changed { releaseNames([changed]) }
  }

  // MARK: Upkeep

  /// Ends tasks that have taken too long, and drops partial files that were kept long enough.
  private func look() throws(LedgerFailure) {
    let (age, terms) = (self.age.seconds, terms)
    // The end of these tasks could not be recorded.
    let busy = Set(atWork.withLock { Array($0.keys) })
    try interrupt(try ledger.numbers(in: [.running]).filter { !busy.contains($0) })
    while true {
      let tasks = try ledger.overdue(age: age, limit: Self.askedAtOnce)
      if tasks.isEmpty { break }
      releaseNames(try ledger.update(tasks) { $0.overdue(terms) })
    }
    for number in atWork.withLock({ tasks in tasks.filter { $1.end.map { $0 <= age } == true }.keys }) {
      atWork.withLock { $0[number]?.end = nil }
      _ = try give(
        .fail(code: TaskRecord.timeOver.code, message: TaskRecord.timeOver.message), number)
    }
    try endStalled(terms)
    guard age >= turns.withLock({ $0.upkeep }) else { return }
    turns.withLock { $0 = Turns(upkeep: age + Self.upkeepEvery) }
    try partialFiles.dropOld(
      settings.quota ?? SessionQuota(), terms.now, age: self.age.proven,
      besides: atWork.withLock { Set($0.keys) })
    try countIdle()
    try self.age.save()
  }

  func countIdle() throws(LedgerFailure) {
    guard settings.quota?.bytes != nil else { return }
    try partialFiles.countIdle(besides: atWork.withLock { Set($0.keys) })
  }

  // MARK: Orders

  /// Stops the transfer of a task for a reason, and does with the task what follows from it. Callable on any
  /// thread.
  ///
  /// - Returns: whether there was anything to do.
  func give(_ reason: StopReason, _ number: Int64) throws(LedgerFailure) -> Bool {
    var isRepeated = false
    if let wish = reason.wish, isAtWork(number) {
      // It is obeyed when the transfer has stopped, also when the agent is killed before.
      try ledger.update(number) { task in
        guard task.state == .running else { return nil }
        let merged = wish.after(task.wish)
        isRepeated = task.wish == merged
        var task = task
        task.wish = merged
        return (task, [])
      }
    }
    let (isAtWork, download) = atWork.withLock { tasks in
      // What a client wants goes before what the session decides.
      if reason.wish != nil || tasks[number]?.stopReason == nil { tasks[number]?.stopReason = reason }
      return (tasks[number] != nil, tasks[number]?.download)
    }
    download?.cancel()
    if isAtWork { return !isRepeated }
    return try obey(reason, number)
  }

  /// Does the same with all tasks in some states. Callable on any thread.
  ///
  /// - Returns: the number of tasks that it concerned.
  func giveAll(_ reason: StopReason, in states: [TaskState]) throws(LedgerFailure) -> Int {
    var count = 0
    // First the tasks that could begin meanwhile.
    let numbers = try ledger.numbers(in: states.filter { $0 != .running })
    // Others may use the ledger between the batches.
    for start in stride(from: 0, to: numbers.count, by: Self.batch) {
      count += try obey(reason, Array(numbers[start..<min(numbers.count, start + Self.batch)]))
    }
    for number in atWork.withLock({ Array($0.keys) }) where try give(reason, number) { count += 1 }
    return count
  }

  /// Adds tasks to the ledger. Finished tasks are checked again. Callable on any thread; `advance` begins
  /// them.
  ///
  /// - Parameter beginsAnew: called with the reason why a task of a single command leaves what was fetched.
  /// - Throws: `SessionLedger.tooManyTasks` when the session's quota allows no more.
  func add(
    _ requests: [TaskRequest], beginsAnew: (String) -> Void = { _ in }
  ) throws(LedgerFailure) -> [SessionLedger.Added] {
    let (terms, most) = (terms, settings.quota?.tasks ?? SessionQuota.standardTasks)
    let isCommand = if case .short = patience { true } else { false }
    var requests = requests
    for index in requests.indices { requests[index].normalizeDigest() }
    var added = try ledger.add(requests, terms, renews: isCommand, most: most)
    if isCommand { try takeFoldersMadeAgain(added.map(\.task), beginsAnew) }
    // A request that a client repeats by its key stays as it is.
    let finished = added.filter { !$0.isRepeated }.map(\.task).filter { task in
      // A single command resumes after an interruption; a file that is in place is done.
      let isRight = task.request.digest == nil || task.request.digest == task.digest
      if isCommand, isRight, folder.isThere(task) { return false }
      return task.state == .finished
    }.map(\.number)
    guard !finished.isEmpty else { return added }
    let again = try queue(finished, from: [.finished])
    for index in added.indices where again.contains(added[index].task.number) {
      added[index].task.state = .queued
    }
    return added
  }

  /// Queues tasks again. Callable on any thread; `advance` begins them.
  ///
  /// - Returns: the tasks that were in one of these states.
  func queue(_ numbers: [Int64], from states: [TaskState]) throws(LedgerFailure) -> [Int64] {
    let terms = terms
    let again = try states.contains(.waiting) ? madeAgain(numbers) : []
    return try ledger.update(numbers) { task in
      if task.state == .running, task.isBound(for: states) {
        // Its transfer is being stopped. It is queued when that is done.
        var task = task
        task.wish = TaskWish.goOn.after(task.wish)
        return (task, [])
      }
      // What is not to begin yet has nothing to try again.
      guard states.contains(task.state), task.code != TaskRecord.delayed else { return nil }
      if task.state == .suspended { return task.resumed(terms) }
      var task = task
      let isNew = task.state.isEnd
      task.attempts = 0
      task.fresh = terms.now
      if again.contains(task.number) { (task.directory, task.disk) = (nil, nil) }
      if isNew { task.begin(.queued, terms) } else { task.enterQueue(terms) }
      return (task, [])
    }.map(\.number)
  }

  /// Lets tasks begin anew in folders that were made again. A single command has nobody who could order it later.
  private func takeFoldersMadeAgain(
    _ tasks: [TaskRecord], _ beginsAnew: (String) -> Void
  ) throws(LedgerFailure) {
    let again = tasks.filter { folder.isMadeAgain($0) }
    guard !again.isEmpty else { return }
    for task in again where try ledger.partial(RelativePath(task: task.number)) != nil {
      beginsAnew(SessionFolder.beginsAnew(task))
    }
    _ = try ledger.update(again.map(\.number)) { task in
      var task = task
      (task.directory, task.disk) = (nil, nil)
      return (task, [])
    }
  }

  /// Returns those of the tasks that wait because their folder was made again. Their author was told.
  private func madeAgain(_ numbers: [Int64]) throws(LedgerFailure) -> Set<Int64> {
    guard let first = numbers.min(), let last = numbers.max() else { return [] }
    let tasks = try ledger.tasks(first...last, code: FolderFailure.Code.otherFileSystem.rawValue)
    return Set(tasks.filter { folder.isMadeAgain($0) }.map(\.number))
  }

  /// Continues a task with another request, and keeps the task's identity. The transfer of a running task is
  /// stopped, and begins again with it. Callable on any thread.
  ///
  /// - Returns: false when there is no such task, or it has ended.
  /// - Throws: `TaskRequest.Refusal` for an invalid request, `FolderFailure` when the fetched bytes cannot be
  ///   moved.
  func answer(_ order: SessionOrder, _ number: Int64) throws -> Bool {
    let isAgain = { (state: TaskState) in !state.isEnd || state == .failed || order.verb == .retry }
    guard let known = try ledger.task(number), isAgain(known.state) else { return false }
    var request = known.request
    if let url = order.url, !URLOrigin.isSame(url, request.url) { request.headers = nil }
    (request.url, request.headers) = (order.url ?? request.url, order.headers ?? request.headers)
    try request.refuseUnusable()
    if known.state == .running, order.to != nil || request != known.request {
      return try answerRunning(order, known, request)
    }
    if order.to != nil {
      // Its file may have its name already, where only a mounted disk can show it.
      for intent in try ledger.unfinished() where intent.task.number == number { try settle(intent) }
    }
    // A task that a rule holds continues, whatever the rules say.
    if let url = order.url, url != known.request.url, known.state != .running {
      try partialFiles.follow(known, to: url)
    }
    let released =
      known.code == TaskRecord.held ? known.rulesOnceReleased(try ledger.response(number)) : nil
    let terms = terms
    var hasBegun = false
    let changed = try ledger.update(number) { task in
      hasBegun = order.to != nil && task.state == .running
      guard isAgain(task.state), !hasBegun else { return nil }
      var task = task
      if let to = order.to { task.move(to: to, order.existing) }
      (task.request.url, task.request.headers) = (request.url, request.headers)
      if let released { task.request.rules = released }
      task.fresh = terms.now
      // An answer begins it now, unless it only says how or where the task is to begin later.
      let isForLater = order.to != nil || task.code == TaskRecord.delayed && !order.isBareAnswer
      if task.state == .waiting { isForLater ? task.enterQueue(terms) : task.enter(.queued, terms) }
      if task.state.isEnd { task.begin(.queued, terms) }
      if task.state == .queued { task.attempts = 0 }
      return (task, [])
    }
    if let changed, order.to != nil { folder.renew(changed) }
    return try hasBegun ? answer(order, number) : changed != nil
  }

  /// Sets the priority of tasks. Callable on any thread.
  func prioritize(_ numbers: [Int64], _ priority: TaskPriority) throws(LedgerFailure) -> Int {
    try ledger.update(numbers) { task in
      guard !task.state.isEnd, task.request.priority ?? .normal != priority else { return nil }
      var task = task
      task.request.priority = priority
      return (task, [])
    }.count
  }

  /// True when the session is closed, all tasks have ended and all events are acknowledged. Callable on any
  /// thread.
  func isOver() throws(LedgerFailure) -> Bool {
    guard try ledger.fact(.closed) != nil, try ledger.liveCount() == 0 else { return false }
    return try ledger.acknowledged() == ledger.lastEvent()
  }

  /// Removes the partial files of all tasks. Callable on any thread but the loop's, before `close`.
  func dropAll() {
    isClosed.withLock { $0 = true }
    let busy = atWork.withLock { Array($0.keys) }.compactMap { try? ledger.task($0) }
    _ = try? giveAll(.wish(.cancel(keeps: false)), in: [.suspended, .queued, .waiting])
    engine.withLock { $0 }.close()
    earlier.wait()
    for task in busy + ((try? ledger.partialTasks()) ?? []) { folder.removePartial(of: task) }
  }

  @discardableResult
  private func obey(_ reason: StopReason, _ number: Int64) throws(LedgerFailure) -> Bool {
    if case .fail(let code, let message) = reason {
      guard try ledger.task(number)?.state.isEnd == false else { return false }
      try fail(number, code: code, message: message, code == TaskRecord.lacksRoom ? .room : nil)
      return true
    }
    return try obey(reason, [number]) > 0
  }

  private func removePartial(ofCancelled task: TaskRecord) throws(LedgerFailure) {
    try partialLock.withLock { () throws(LedgerFailure) in
      // Somebody may have queued it again meanwhile, and it goes on with what is there.
      guard isAtWork(task.number) || task.directory != nil, try ledger.task(task.number)?.state == .cancelled
      else {
        return
      }
      try partialFiles.remove(task)
    }
  }

  /// - Returns: the number of tasks that changed.
  private func obey(_ reason: StopReason, _ numbers: [Int64]) throws(LedgerFailure) -> Int {
    let terms = terms
    let response = numbers.first.flatMap { number in atWork.withLock { $0[number]?.response?.answer.head } }
    var (dropped, moved): (Set<Int64>, Set<Int64>) = ([], [])
    let changed = try ledger.update(numbers) { task in
      switch reason {
      case .wish(let asked):
        // A later wish for a running task is in its record.
        let wish = task.wish ?? asked
        if wish == .cancel(keeps: false) { dropped.insert(task.number) }
        if wish.destination != nil { moved.insert(task.number) }
        return task.obeying(wish, terms)
      case .leave: return task.interrupted(terms)
      case .hold: return task.held(terms, response)
      case .fail: return nil
      }
    }
    releaseNames(changed)
    for task in changed where moved.contains(task.number) { folder.renew(task) }
    // Also that of a task that was cancelled before, with the order to keep it.
    for number in dropped { if let task = try ledger.task(number) { try removePartial(ofCancelled: task) } }
    return changed.count
  }
}
