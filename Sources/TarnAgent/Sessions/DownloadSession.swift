import TarnCore
import TarnEngine
import TarnFolder
import TarnLedger
import TarnRuntime
import TarnTransfer

/// One session at work: its ledger says what its tasks are, the engine carries out those whose turn it is. All but what is said
/// otherwise is of the loop's thread.
final class DownloadSession: Sendable {
  /// What a task at work has.
  private struct AtWork {
    var download: RunningDownload?
    /// Of the last answer, and whether the ledger has it.
    var response: (head: TaskResponse, isNoted: Bool)?
    /// Why it was ended from outside; nil for by itself.
    var order: Order?
  }

  /// What somebody wants of a task.
  enum Order: Sendable {
    case suspend
    case cancel
    /// The process ends: it stays as it is, and goes on with the next one.
    case leave
  }

  let id: String
  let ledger: SessionLedger
  private let folder: SessionFolder
  private let engine = TransferEngine()
  private let downloader: any Downloading
  private let clock: any Clock
  private let random: any RandomSource
  private let bootID = BootID.read()
  private let progress: PassProgress
  private let patience: Patience
  private let atWork = Locked<[Int64: AtWork]>([:])
  /// Nothing more begins.
  private let isClosed = Locked(false)
  private let post: @Sendable (SessionLoop.Message) -> Void

  /// What happens after a failure that may be over in a while.
  enum Patience: Sendable {
    /// The task waits, and is tried again and again.
    case long
    /// It is tried so many times more, within minutes, and has failed then.
    case short(retries: Int)
  }

  /// - Parameters:
  ///   - progress: how far all its transfers are, by the paths that stand for tasks.
  ///   - post: says something to the loop; any thread.
  init(
    id: String, ledger: SessionLedger, folder: SessionFolder, downloader: any Downloading,
    patience: Patience = .long, progress: PassProgress, clock: any Clock, random: any RandomSource,
    post: @escaping @Sendable (SessionLoop.Message) -> Void
  ) throws(LedgerFailure) {
    (self.id, self.ledger, self.folder, self.downloader) = (id, ledger, folder, downloader)
    (self.patience, self.progress) = (patience, progress)
    (self.clock, self.random, self.post) = (clock, random, post)
    ledger.attach(
      SessionLedger.Sources(
        path: { [folder] in folder.path($0) }, response: { [atWork] in Self.take($0, atWork) }))
    try settle()
  }

  /// What a crash left between a file's name and its record.
  private func settle() throws(LedgerFailure) {
    for intent in try ledger.unfinished() {
      let task = intent.task
      if task.state != .finished {
        try ledger.settle(intent, path: folder.find((task, inode: intent.inode, size: intent.size)))
      }
      guard let task = try ledger.task(task.number), task.state == .finished else { continue }
      folder.finish(task)
      try ledger.forgetIntent(of: task.number)
    }
  }

  /// Nothing is at work any more. Partial files stay, and tasks go on when the session is opened again. Any thread but the loop's.
  func close() {
    isClosed.withLock { $0 = true }
    for download in atWork.withLock({ tasks -> [RunningDownload] in
      for number in tasks.keys { tasks[number]?.order = .leave }
      return tasks.values.compactMap(\.download)
    }) { download.cancel() }
    engine.close()
    downloader.shutDown()
    ledger.close()
  }

  var running: Int { atWork.withLock { $0.count } }

  // MARK: What begins

  /// Begins as many tasks as may be at work.
  ///
  /// - Returns: when it is to be called again at the latest; nil for never.
  func advance() throws(LedgerFailure) -> Timestamp? {
    guard !isClosed.withLock({ $0 }) else { return nil }
    let now = clock.time
    if let due = try ledger.nextDue(), due <= now { try ledger.queueDue(now: now) }
    var free = try transfers - running
    while free > 0, !isClosed.withLock({ $0 }), let task = try ledger.next(limit: 1).first {
      if try begin(task) { free -= 1 }
    }
    return try ledger.nextDue()
  }

  private var transfers: Int {
    get throws(LedgerFailure) {
      max(1, min(64, try settings().transfers ?? SessionSettings.standardTransfers))
    }
  }

  /// As they are stored. Any thread.
  func settings() throws(LedgerFailure) -> SessionSettings {
    try ledger.fact(.settings).flatMap { JSONText.value(SessionSettings.self, from: $0) } ?? SessionSettings()
  }

  /// - Returns: false where it cannot begin; then its record says why.
  private func begin(_ task: TaskRecord) throws(LedgerFailure) -> Bool {
    let destination: any TransferFolder
    do {
      destination = try folder.open(task)
    } catch {
      try fail(task.number, code: error.code.rawValue, message: error.message)
      return false
    }
    try ledger.update(task.number) { task in
      var task = task
      task.state = .running
      return (task, [])
    }
    atWork.withLock { $0[task.number] = AtWork() }
    var download = SingleDownload(RelativePath(task: task.number), url: task.request.url)
    download.digest = task.request.digest.flatMap { Digest(labelled: $0) }
    download.headers = task.request.headers ?? []
    if case .short(let retries) = patience { download.retries = retries }
    let ports = SingleDownload.Ports(
      folder: destination, ledger: ledger, downloader: downloader, clock: clock, random: random,
      bootID: bootID, progress: progress)
    let number = task.number
    let running = engine.start(download, with: ports, observer: Responses(self)) { [weak self] outcome in
      guard let self else { return }
      post(.ended(self, number, outcome))
    }
    let order = atWork.withLock { tasks -> Order? in
      tasks[number]?.download = running
      return tasks[number]?.order
    }
    // Given while it began.
    if order != nil || isClosed.withLock({ $0 }) { running.cancel() }
    return true
  }

  // MARK: What came of it

  /// Hears the servers' answers.
  private final class Responses: ResponseObserver {
    private let session: DownloadSession

    init(_ session: DownloadSession) { self.session = session }

    func responded(_ path: RelativePath, _ head: ResponseHead) -> FolderFailure? {
      session.responded(path.task, head)
    }
  }

  /// On the network's thread.
  private func responded(_ task: Int64, _ head: ResponseHead) -> FolderFailure? {
    let isFile = (200..<300).contains(head.status)
    var refusal: FolderFailure?
    if isFile {
      let name = SuggestedName.name(disposition: head.contentDisposition, url: head.url)
      do throws(FolderFailure) {
        _ = try folder.name(task, name)
      } catch {
        refusal = error
      }
    }
    atWork.withLock { $0[task]?.response = (TaskResponse(head), false) }
    post(.responded(self, task))
    return refusal
  }

  /// Writes the last answer down, if the ledger does not have it.
  func noteResponse(_ task: Int64) throws(LedgerFailure) {
    let isNew = atWork.withLock { $0[task]?.response?.isNoted == false }
    if isNew { try ledger.noteResponse(of: task) }
  }

  /// The last answer, once.
  private static func take(_ task: Int64, _ atWork: Locked<[Int64: AtWork]>) -> TaskResponse? {
    atWork.withLock { tasks in
      guard let (head, isNoted) = tasks[task]?.response, !isNoted else { return nil }
      tasks[task]?.response = (head, true)
      return head
    }
  }

  func ended(_ number: Int64, _ outcome: SingleDownload.Outcome) throws(LedgerFailure) {
    try noteResponse(number)
    let order = atWork.withLock { $0.removeValue(forKey: number)?.order }
    switch outcome {
    case .finished:
      guard let task = try ledger.task(number) else { return folder.close(number) }
      folder.finish(task)
      if task.request.existing == .replace { try ledger.forgetIntent(of: number) }
    case .failed(let code, let message):
      folder.close(number)
      try fail(number, code: code, message: message)
    case .stopped:
      folder.close(number)
      try obey(order ?? .leave, number)
    case .broken(let failure):
      folder.close(number)
      try fail(number, code: failure.code, message: failure.message)
    }
  }

  private func fail(_ number: Int64, code: String, message: String) throws(LedgerFailure) {
    let now = clock.time
    let random = random.unit()
    try ledger.update(number) { task in
      guard !task.state.isEnd else { return nil }
      var task = task
      let isSame = task.code == code
      (task.code, task.message) = (code, message)
      task.attempts += 1
      let verdict = TaskVerdict.judge(code, wrongContents: isSame ? task.attempts : 1)
      guard case .long = patience, verdict != .end else {
        (task.state, task.nextAttempt, task.ended) = (.failed, nil, now)
        return (task, [SessionEvent(.failed, time: now, of: task)])
      }
      task.state = .waiting
      if verdict == .ask {
        task.nextAttempt = nil
        return (task, [SessionEvent(.needsRequest, time: now, of: task)])
      }
      task.nextAttempt = now.adding(seconds: TaskBackOff.seconds(after: task.attempts, random: random))
      // Once for each reason: who looks again sees when.
      return (task, isSame ? [] : [SessionEvent(.waiting, time: now, of: task)])
    }
  }

  // MARK: Orders

  /// Any thread.
  ///
  /// - Returns: whether there was anything to do.
  func give(_ order: Order, _ number: Int64) throws(LedgerFailure) -> Bool {
    let (isAtWork, download) = atWork.withLock { tasks in
      tasks[number]?.order = order
      return (tasks[number] != nil, tasks[number]?.download)
    }
    download?.cancel()
    if isAtWork { return true }
    return try obey(order, number)
  }

  /// Adds tasks, as the ledger does. What is finished, and whose file is gone, is queued again. Any thread; `advance` begins them.
  func add(_ requests: [TaskRequest]) throws(LedgerFailure) -> [SessionLedger.Added] {
    var added = try ledger.add(requests, now: clock.time)
    for index in added.indices where added[index].task.state == .finished {
      let number = added[index].task.number
      if added[index].task.path.map({ TextFile.status($0) != nil }) == true { continue }
      if try queue(number, from: [.finished]) { added[index].task.state = .queued }
    }
    return added
  }

  /// Its turn comes again. Any thread; `advance` begins it.
  ///
  /// - Returns: false where it is in none of these states.
  func queue(_ number: Int64, from states: [TaskState]) throws(LedgerFailure) -> Bool {
    try ledger.update(number) { task in
      guard states.contains(task.state) else { return nil }
      var task = task
      (task.state, task.attempts, task.nextAttempt, task.ended) = (.queued, 0, nil, nil)
      (task.code, task.message) = (nil, nil)
      return (task, [])
    } != nil
  }

  /// Goes on with another request, which keeps what the task is known by. What runs has it after its next failure. Any thread.
  ///
  /// - Returns: false where there is no such task, or it has ended.
  /// - Throws: `TaskRequest.Refusal` for a request that is none.
  func answer(_ number: Int64, url: String?, headers: [String]?) throws -> Bool {
    guard var request = try ledger.task(number)?.request else { return false }
    (request.url, request.headers) = (url ?? request.url, headers ?? request.headers)
    try request.validate()
    return try ledger.update(number) { task in
      guard !task.state.isEnd else { return nil }
      var task = task
      task.request = request
      if task.state == .waiting {
        (task.state, task.attempts, task.nextAttempt, task.code, task.message) = (.queued, 0, nil, nil, nil)
      }
      return (task, [])
    } != nil
  }

  /// Any thread.
  func prioritize(_ number: Int64, _ priority: TaskPriority) throws(LedgerFailure) -> Bool {
    try ledger.update(number) { task in
      guard task.request.priority ?? .normal != priority else { return nil }
      var task = task
      task.request.priority = priority
      return (task, [])
    } != nil
  }

  /// Closed, all tasks ended, all events acknowledged. Any thread.
  func isOver() throws(LedgerFailure) -> Bool {
    guard try ledger.fact(.closed) != nil,
      try ledger.tasks(in: TaskState.allCases.filter { !$0.isEnd }, limit: 1).isEmpty
    else { return false }
    return try ledger.acknowledged() == ledger.lastEvent()
  }

  /// Partial files of all tasks that have not ended go. Any thread but the loop's, before `close`.
  func dropAll() {
    let tasks = (try? ledger.tasks(limit: .max)) ?? []
    for task in tasks where !task.state.isEnd { _ = try? give(.cancel, task.number) }
    engine.close()
    for task in tasks where !task.state.isEnd { folder.removePartial(of: task) }
  }

  @discardableResult
  private func obey(_ order: Order, _ number: Int64) throws(LedgerFailure) -> Bool {
    let now = clock.time
    let changed = try ledger.update(number) { task in
      var task = task
      switch order {
      case .suspend:
        guard task.state.isOpen else { return nil }
        (task.state, task.nextAttempt) = (.suspended, nil)
        return (task, [])
      case .cancel:
        guard !task.state.isEnd else { return nil }
        (task.state, task.nextAttempt, task.ended) = (.cancelled, nil, now)
        return (task, [SessionEvent(.cancelled, time: now, of: task)])
      case .leave:
        guard task.state == .running else { return nil }
        task.state = .queued
        return (task, [])
      }
    }
    if order == .cancel, let changed {
      folder.removePartial(of: changed)
      try ledger.apply([.dropPartial(RelativePath(task: number))])
    }
    return changed != nil
  }
}

/// How long a task waits after failures.
enum TaskBackOff {
  /// Doubled with each failure, to an hour at most; less by chance, so that tasks do not all come at once.
  static func seconds(after attempts: Int, random: Double) -> Int64 {
    let most = min(3600, 2 << min(max(attempts, 1), 12))
    return max(1, Int64(Double(most) * (0.5 + random / 2)))
  }
}
