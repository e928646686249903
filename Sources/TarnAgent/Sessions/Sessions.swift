import Glibc
import Logging
import TarnCore
import TarnCrypto
import TarnEngine
import TarnFolder
import TarnLedger
import TarnRuntime
import TarnServer
import TarnTransfer

/// The sessions of an agent, each a directory with its ledger. Callable on any thread.
final class Sessions: SessionPort {
  private struct Open {
    let session: DownloadSession
    let progress: PassProgress
    /// Others take their place when the session keeps none any more: a downloader that still works may add to these.
    var cookies: HostCookies
    var listeners: [UInt64: @Sendable () -> Void] = [:]
    var wake = WakeState()
  }

  private struct State {
    var sessions: [String: Open] = [:]
    /// Why sessions cannot be opened, by their IDs.
    var broken: [String: String] = [:]
    var lastListener: UInt64 = 0
    var isEnding = false
  }

  /// The directory of all sessions: `$STATE/sessions`.
  private let directory: String
  private let pool: DownloaderPool
  private let log: Logger
  private let clock: any Clock
  private let random = SystemRandom()
  private let names = FinalNames()
  private let promises = SpacePromises()
  private let state = Locked(State())
  /// Lets only one thread make or forget a session at a time.
  private let openingLock = SlowLock()
  private let loop: SessionLoop
  private let waker: Waker

  /// - Throws: the reason why the thread of sessions cannot be made.
  init(directory: String, socket: String?, pool: DownloaderPool, log: Logger, clock: any Clock)
    throws(ThreadFailure)
  {
    (self.directory, self.pool, self.log, self.clock) = (directory, pool, log, clock)
    loop = SessionLoop(clock: clock)
    waker = Waker(socket: socket)
    try loop.start { [weak self] session, failure in self?.changed(session, failure) }
  }

  /// Opens the sessions that earlier agents left; their tasks continue.
  func begin() {
    TextFile.makeDirectories(directory)
    guard let entries = opendir(directory) else { return }
    defer { closedir(entries) }
    while let entry = readdir(entries) {
      let id = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
        String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
      }
      if id.hasPrefix(Self.forgotten) { Self.remove("\(directory)/\(id)") }
      guard SessionDocument.isID(id), TextFile.isDirectory("\(directory)/\(id)") else { continue }
      do {
        _ = try makeOpen(id)
      } catch {
        let reason = PassFailure(translating: error).message
        state.withLock { $0.broken[id] = reason }
        log.tell(.error, "session \(id) cannot be opened: \(reason)", .of(code: "session-failed"))
      }
    }
  }

  /// Ends the work; the next agent continues it.
  func end() {
    let open = state.withLock { state in
      state.isEnding = true
      return Array(state.sessions.values)
    }
    for open in open { open.session.close() }
    loop.end()
  }

  // MARK: Opening

  /// - Parameter first: the settings of a new session.
  private func makeOpen(
    _ id: String, _ first: SessionSettings? = nil
  ) throws -> (open: Open, isNew: Bool) {
    try openingLock.withLock {
      if let known = state.withLock({ $0.sessions[id] }) { return (known, false) }
      let place = "\(directory)/\(id)"
      TextFile.makeDirectories(place)
      let ledger = try SessionLedger(directory: place, clock: clock)
      let isNew = try ledger.fact(.contact) == nil
      if isNew { try ledger.set(.token, random.token()) }
      if isNew, let first { try ledger.set(.settings, JSONText.line(first)) }
      let settings = try ledger.settings()
      let (progress, cookies) = (PassProgress(clock: clock), HostCookies())
      let session = try DownloadSession(
        id: id, ledger: ledger,
        folder: SessionFolder(
          id: id, token: try ledger.fact(.token), names: names, hashing: OpenSSLHashing()),
        downloader: try downloader(id, settings, cookies), progress: progress, promises: promises,
        clock: clock, random: random, post: { [loop] in loop.post($0) })
      if isNew { try session.age.touch() }
      let open = Open(session: session, progress: progress, cookies: cookies)
      state.withLock { ($0.sessions[id], $0.broken[id]) = (open, nil) }
      loop.post(.wake(session))
      return (open, isNew)
    }
  }

  private func downloader(
    _ id: String, _ settings: SessionSettings, _ cookies: HostCookies
  ) throws -> any Downloading {
    var network = settings.network
    network.userAgent = "tarn/\(Tarn.version)"
    return try pool.downloader(mirror: Self.client(id), settings: network, cookies: cookies)
  }

  private func find(_ id: String) throws(ControlFailure) -> Open {
    try refuseAtEnd()
    if let open = state.withLock({ $0.sessions[id] }) {
      try Self.translating { try open.session.age.touch() }
      return open
    }
    if let reason = state.withLock({ $0.broken[id] }) {
      throw ControlFailure(
        .storage, code: "session-failed", "session '\(id)' cannot be opened: \(reason)",
        hint:
          "to try it again: tarn session open \(id); to give it up, but not finished files: tarn session forget \(id)"
      )
    }
    throw ControlFailure(
      .notFound, code: "no-such-session", "there is no session '\(Printable.escape(id))'",
      hint: "'tarn session list' lists them, 'tarn session open ID' makes one")
  }

  /// - Throws: `stopping` while the agent ends: the next agent has all sessions.
  private func refuseAtEnd() throws(ControlFailure) {
    if state.withLock({ $0.isEnding }) { throw .stopping }
  }

  private func changed(_ session: DownloadSession, _ failure: LedgerFailure?) {
    // A session that is forgotten, and one of an agent that ends, fails because its ledger is closed.
    let isAtWork = state.withLock { !$0.isEnding && $0.sessions[session.id]?.session === session }
    if let failure, isAtWork {
      log.tell(.error, "session \(session.id): \(failure.message)", .of(code: failure.code.rawValue))
    }
    tellEnd(session)
    for listener in state.withLock({ $0.sessions[session.id].map { Array($0.listeners.values) } }) ?? [] {
      listener()
    }
    wake(session)
    forgetIfOver(session)
  }

  private static func translating<Result>(_ body: () throws -> Result) throws(ControlFailure) -> Result {
    do {
      return try body()
    } catch let failure as ControlFailure {
      throw failure
    } catch let failure as TaskRequest.Refusal {
      throw ControlFailure(.usage, code: failure.code, failure.message)
    } catch {
      let failure = PassFailure(translating: error)
      throw ControlFailure(.storage, code: failure.code, failure.message, hint: failure.hint)
    }
  }

  // MARK: SessionPort

  func list() throws(ControlFailure) -> SessionList {
    try refuseAtEnd()
    let (ids, broken) = state.withLock { ($0.sessions.keys.sorted(), $0.broken) }
    var documents = broken.map { id, reason in
      var document = SessionDocument(
        id: id, settings: SessionSettings(), isClosed: false, tasks: [:], lastEvent: 0, acknowledged: 0)
      document.failure = reason
      return document
    }
    for id in ids {
      guard let open = state.withLock({ $0.sessions[id] }) else { continue }
      do throws(ControlFailure) {
        documents.append(try document(of: open, id))
      } catch {
        // It was forgotten meanwhile.
        guard state.withLock({ $0.sessions[id] }) == nil else { throw error }
      }
    }
    return SessionList(documents.sorted { $0.id < $1.id })
  }

  func open(
    _ id: String, _ settings: SessionSettings?, isUpdate: Bool
  ) throws(ControlFailure) -> SessionDocument {
    guard SessionDocument.isID(id) else {
      throw ControlFailure(
        .usage, code: "session-id", "'\(Printable.escape(id))' is not the id of a session",
        hint: "an id has 1 to 64 letters, digits, '-', '_' and '.', and begins with a letter or digit")
    }
    try Self.translating { try settings?.validate() }
    for rule in settings?.rules ?? [] { try rule.to.map(refuseMirror) }
    let (open, isNew) = try Self.translating { try makeOpen(id, settings) }
    let session = open.session
    let stored = session.settings
    if let settings, !isNew, isUpdate {
      try Self.translating {
        // Ends from before there was a hook are not told to it.
        if stored.hook == nil, stored.notify != true {
          _ = try session.ledger.takeDelivered()
        }
        let isOther = settings.network != stored.network
        let cookies = settings.cookies == true ? open.cookies : HostCookies()
        try session.set(settings, isOther ? downloader(id, settings, cookies) : nil)
        state.withLock { $0.sessions[id]?.cookies = cookies }
      }
      loop.post(.wake(session))
    }
    var document = try show(id)
    if let settings, !isNew, !isUpdate { document.differs = settings.names(unlike: stored) }
    return document
  }

  func show(_ id: String) throws(ControlFailure) -> SessionDocument { try document(of: find(id), id) }

  private func document(of open: Open, _ id: String) throws(ControlFailure) -> SessionDocument {
    return try Self.translating {
      let ledger = open.session.ledger
      let counts = try ledger.counts()
      var document = SessionDocument(
        id: id, settings: open.session.settings, isClosed: try ledger.fact(.closed) != nil,
        tasks: Dictionary(uniqueKeysWithValues: counts.map { ($0.rawValue, $1) }),
        lastEvent: try ledger.lastEvent(), acknowledged: try ledger.acknowledged())
      document.wake = state.withLock { $0.sessions[id]?.wake.document }
      let (files, bytes) = try open.session.partialFiles.total()
      if files > 0 { (document.partialFiles, document.partialBytes) = (files, bytes) }
      return document
    }
  }

  func add(_ tasks: [TaskRequest], to id: String) throws(ControlFailure) -> AddedTasks {
    let session = try find(id).session
    return try Self.translating {
      try refuseInvalid(tasks)
      let isRepeated = try tasks.allSatisfy { try $0.key.map { try session.ledger.knows(key: $0) } ?? false }
      guard try isRepeated || session.ledger.fact(.closed) == nil else {
        throw ControlFailure(
          .conflict, code: "session-closed", "session '\(id)' is closed: it takes no more tasks",
          hint: "open another one")
      }
      let added = try Self.added(tasks, to: session)
      loop.post(.wake(session))
      return AddedTasks(
        added.map { .init(number: $0.task.number, state: $0.task.state, wasThere: $0.wasThere) })
    }
  }

  /// - Throws: what is wrong with the first invalid request, and with its line when there are several.
  private func refuseInvalid(_ tasks: [TaskRequest]) throws(ControlFailure) {
    for (index, task) in tasks.enumerated() {
      do throws(ControlFailure) {
        try Self.translating { try task.refuseUnusable() }
        try refuseMirror(task.to)
        for rule in task.rules ?? [] { try rule.to.map(refuseMirror) }
      } catch {
        throw tasks.count > 1 ? error.inLine(index + 1) : error
      }
    }
  }

  private static func added(
    _ tasks: [TaskRequest], to session: DownloadSession
  ) throws -> [SessionLedger.Added] {
    do throws(LedgerFailure) {
      return try session.add(tasks)
    } catch {
      guard error == SessionLedger.tooManyTasks else { throw error }
      let most = session.settings.quota?.tasks ?? SessionQuota.standardTasks
      throw ControlFailure(
        .conflict, code: "too-many-tasks",
        "session '\(session.id)' may have \(Units.count(most, "task")) that have not ended",
        hint: "wait for some to end, or set another quota")
    }
  }

  private func refuseMirror(_ to: String) throws(ControlFailure) {
    guard let mirror = TaskPlace(to)?.mirror else { return }
    throw ControlFailure(
      .conflict, code: TaskPlace.inMirror, TaskPlace.isInMirror(to, mirror), hint: TaskPlace.noMirror)
  }

  func tasks(
    of id: String, in states: [TaskState], after number: Int64, limit: Int
  ) throws(ControlFailure) -> TaskPage {
    let open = try find(id)
    return try Self.translating {
      let (asOf, tasks) = try open.session.ledger.snapshot(
        in: states.isEmpty ? TaskState.allCases : states, after: number, limit: limit + 1)
      let running = Dictionary(
        open.progress.snapshot().transfers.map { ($0.path.task, $0) }
      ) { first, _ in first }
      let files = open.session.partialFiles
      let documents = try tasks.prefix(limit).map { task in
        var document = TaskDocument(task)
        guard task.state != .finished else { return document }
        let activity = task.state == .running ? running[task.number] : nil
        // A whole file that is passed over begins at zero, and what is kept is there already.
        document.received = [activity?.received, files.kept(of: task)].compactMap { $0 }.max()
        document.expected = try activity?.total ?? files.total(of: task) ?? task.request.expectedBytes
        document.rate = activity?.rate
        return document
      }
      return TaskPage(asOf: asOf, tasks: Array(documents), hasMore: tasks.count > limit)
    }
  }

  func events(of id: String, after number: Int64, limit: Int) throws(ControlFailure) -> SessionEventPage {
    let session = try find(id).session
    return try Self.translating {
      // A number beyond the last event is that of an earlier session with this name. The greatest one asks for no event.
      let isOfAnother = try number != .max && number > session.ledger.lastEvent()
      let events = try session.ledger.events(after: isOfAnother ? 0 : number, limit: limit + 1)
      return SessionEventPage(events: Array(events.prefix(limit)), hasMore: events.count > limit)
    }
  }

  func acknowledged(in id: String) throws(ControlFailure) -> Int64 {
    let session = try find(id).session
    return try Self.translating { try session.ledger.acknowledged() }
  }

  func subscribe(
    _ id: String, _ wake: @escaping @Sendable () -> Void
  ) throws(ControlFailure) -> AgentSubscription {
    _ = try find(id)
    let number = state.withLock { state in
      state.lastListener += 1
      state.sessions[id]?.listeners[state.lastListener] = wake
      return state.lastListener
    }
    return AgentSubscription { [self] in
      let session = state.withLock { state in
        state.sessions[id]?.listeners[number] = nil
        return state.sessions[id]?.session
      }
      // Nobody reads the session now: its program may have to be woken.
      if let session { self.wake(session) }
    }
  }

  // MARK: Orders

  func order(_ order: SessionOrder, _ id: String) throws(ControlFailure) -> ControlAnswer {
    if order.verb == .forget, forgetBroken(id) {
      return ControlAnswer("session '\(id)' is forgotten; files that are finished stay")
    }
    let session = try find(id).session
    return try Self.translating {
      let order = try naming(order, session)
      switch order.verb {
      case .acknowledge:
        guard let number = order.number else {
          throw ControlFailure(
            .usage, code: "number-missing", "'number' is missing: the last event to acknowledge")
        }
        return try acknowledge(number, session)
      case .close:
        let wasClosed = try session.ledger.fact(.closed) != nil
        if !wasClosed { try session.ledger.set(.closed, clock.time.rfc3339) }
        loop.post(.wake(session))
        return ControlAnswer("session '\(id)' takes no more tasks", wasSo: wasClosed)
      case .forget:
        forget(session)
        return ControlAnswer("session '\(id)' is forgotten; files that are finished stay")
      case .answer:
        guard let task = order.task else { throw Self.taskMissing("which one goes on") }
        let url = order.url
        let isAnew = try url.map { try session.partialFiles.beginsAnew(task, at: $0) } ?? false
        guard try answer(order, task, session) else {
          throw ControlFailure(
            .notFound, code: "no-such-task", "there is no such task, or it has ended",
            hint: "'tarn session show \(id)' lists them")
        }
        loop.post(.wake(session))
        // A request that may have reached its server is not sent again by itself.
        if let record = try session.ledger.task(task), !record.request.isRepeatable,
          record.wish != nil || record.state == .waiting && record.code == TaskRecord.interruptedCode
        {
          return ControlAnswer(
            "task \(task) stops for that, and waits for an order to send its request again")
        }
        let anew = isAnew ? "; it begins anew, for its bytes came from another URL" : ""
        return ControlAnswer("task \(task) goes on\(order.isBareAnswer ? "" : " with that")\(anew)")
      case .suspend, .resume, .cancel, .retry, .prioritize, .first: return try steer(order, session)
      }
    }
  }

  /// Adds the destination to an order that only says what is to become of a file that is there: the task keeps its own.
  private func naming(_ order: SessionOrder, _ session: DownloadSession) throws -> SessionOrder {
    guard [.answer, .retry].contains(order.verb), order.existing != nil, order.to == nil,
      let task = try order.task.flatMap({ try session.ledger.task($0) })
    else { return order }
    // To change what becomes of another file, the transfer is stopped and begins again.
    if task.state == .running, !task.request.isRepeatable { throw TaskRequest.Refusal.atWork(task.request) }
    var order = order
    // A finished file has its name in the folder that was asked for.
    order.to = task.state == .finished ? task.path ?? task.request.to : task.request.to
    return order
  }

  private func answer(_ order: SessionOrder, _ task: Int64, _ session: DownloadSession) throws -> Bool {
    if let to = order.to {
      // Only the destination is checked here; the URL is any valid one.
      var request = TaskRequest(url: "http://localhost/", to: to)
      request.existing = order.existing
      try request.validate()
      try refuseMirror(to)
    }
    tryHosts(of: session)
    return try session.answer(order, task)
  }

  /// The name under which the transfers of a session share the budget.
  private static func client(_ id: String) -> String { "session:\(id)" }

  /// Ends the pauses of hosts that failed, for somebody who asks may know that a host is back.
  private func tryHosts(of session: DownloadSession) {
    pool.budget.tryNow(mirror: Self.client(session.id))
  }

  private func acknowledge(_ number: Int64, _ session: DownloadSession) throws -> ControlAnswer {
    let (before, last) = (try session.ledger.acknowledged(), try session.ledger.lastEvent())
    // Its sender has seen the events of an earlier session with this name. The greatest number stands for all events.
    guard number <= last || number == .max else {
      throw ControlFailure(
        .notFound, code: "no-such-event",
        "session '\(session.id)' has no event \(number), and nothing is acknowledged: its last one is \(last)",
        hint: "it may have been forgotten and made anew: 'tarn session events \(session.id)' lists its events"
      )
    }
    let now = try session.ledger.acknowledge(number)
    if now != before { state.withLock { $0.sessions[session.id]?.wake.acknowledged() } }
    loop.post(.wake(session))
    return ControlAnswer("events up to \(now) are acknowledged", wasSo: now == before)
  }

  private func steer(_ order: SessionOrder, _ session: DownloadSession) throws -> ControlAnswer {
    if let task = order.task, try session.ledger.task(task) == nil {
      throw ControlFailure(
        .notFound, code: "no-such-task", "session '\(session.id)' has no task \(task)",
        hint: "'tarn session show \(session.id)' lists them")
    }
    if order.verb == .first, order.task == nil { throw Self.taskMissing("which one goes first") }
    if order.task == nil, order.url != nil || order.headers != nil || order.to != nil || order.existing != nil
    {
      throw Self.taskMissing("which one has that URL, these headers or that destination")
    }
    let changed = try carryOut(order, session)
    loop.post(.wake(session))
    let done =
      switch order.verb {
      case .suspend: "suspended"
      case .resume: "resumed"
      case .cancel: "cancelled"
      case .retry: "tried again"
      case .first: "put first"
      default: "set to \(order.priority?.rawValue ?? "normal")"
      }
    return ControlAnswer(
      changed == 0 ? "nothing had to be changed" : "\(Units.count(changed, "task")) \(done)",
      wasSo: changed == 0)
  }

  private static func taskMissing(_ why: String) -> ControlFailure {
    ControlFailure(.usage, code: "usage", "'task' is missing: \(why)")
  }

  /// Runs the body in batches, so that others may use the ledger in between.
  private func inBatches(_ numbers: [Int64], _ body: ([Int64]) throws -> Int) rethrows -> Int {
    var count = 0
    for start in stride(from: 0, to: numbers.count, by: DownloadSession.batch) {
      count += try body(Array(numbers[start..<min(numbers.count, start + DownloadSession.batch)]))
    }
    return count
  }

  /// - Returns: the number of tasks that changed.
  private func carryOut(_ order: SessionOrder, _ session: DownloadSession) throws -> Int {
    let ended = TaskState.allCases.filter(\.isEnd)
    func numbers(_ states: [TaskState]) throws -> [Int64] {
      try order.task.map { [$0] } ?? session.ledger.numbers(in: states)
    }
    switch order.verb {
    case .suspend, .cancel:
      let wish: TaskWish = order.verb == .suspend ? .suspend : .cancel(keeps: order.keep == true)
      if let task = order.task { return try session.give(.wish(wish), task) ? 1 : 0 }
      return try session.giveAll(.wish(wish), in: TaskState.allCases.filter { !ended.contains($0) })
    case .resume:
      // The transfer of a running one may still be stopping.
      return try inBatches(numbers([.suspended, .running])) {
        try session.queue($0, from: [.suspended]).count
      }
    case .retry:
      if let task = order.task, order.to != nil || order.url != nil || order.headers != nil {
        return try answer(order, task, session) ? 1 : 0
      }
      tryHosts(of: session)
      let states: [TaskState] = [.waiting, .failed, .cancelled]
      return try inBatches(numbers(states + [.running])) { try session.queue($0, from: states).count }
    case .first: return try order.task.map { try session.ledger.putFirst($0) } == true ? 1 : 0
    default:
      return try inBatches(numbers(TaskState.allCases.filter { !ended.contains($0) })) {
        try session.prioritize($0, order.priority ?? .normal)
      }
    }
  }

  /// Forgets a session that is closed, with all tasks ended and all events acknowledged. Also forgets one
  /// that was abandoned.
  private func forgetIfOver(_ session: DownloadSession) {
    let isRead = state.withLock { $0.sessions[session.id]?.listeners.isEmpty == false }
    guard (try? session.isOver()) == true || !isRead && (try? session.age.isAbandoned()) == true else {
      return
    }
    // Runs on a thread of its own, for the session's end waits for the loop's.
    _ = try? WorkerThread.start(name: "tarn-forget") { [self] in forget(session, onlyIfOver: true) }
  }

  /// - Parameter onlyIfOver: true to check again, for the session may have more to do by now.
  private func forget(_ session: DownloadSession, onlyIfOver: Bool = false) {
    openingLock.withLock {
      let isOver = (try? session.isOver()) == true || (try? session.age.isAbandoned()) == true
      guard isOver || !onlyIfOver else { return }
      guard let open = state.withLock({ $0.sessions.removeValue(forKey: session.id) }) else { return }
      defer { for listener in open.listeners.values { listener() } }
      loop.post(.forget(session))
      pool.budget.forgetReceived(mirror: Self.client(session.id))
      session.dropAll()
      session.close()
      removeDirectory(of: session.id)
    }
  }

  /// Forgets a session that cannot be opened. Its partial files are unknown, and stay.
  ///
  /// - Returns: false when there is none of that ID.
  private func forgetBroken(_ id: String) -> Bool {
    openingLock.withLock {
      guard state.withLock({ $0.broken.removeValue(forKey: id) }) != nil else { return false }
      removeDirectory(of: id)
      return true
    }
  }

  /// From here on no agent takes it for a session, whatever a crash leaves of it.
  private func removeDirectory(of id: String) {
    let place = "\(directory)/\(Self.forgotten)\(id)"
    if rename("\(directory)/\(id)", place) == 0 { Self.remove(place) }
  }

  /// The beginning of the name of a directory whose session is forgotten; no session's ID begins so.
  private static let forgotten = ".forgotten-"

  private static func remove(_ place: String) {
    for name in ["ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite-shm", "wake.lock"] {
      unlink("\(place)/\(name)")
    }
    rmdir(place)
  }

  // MARK: Waking programs

  /// Runs the session's wake command when there are new events that nobody reads.
  private func wake(_ session: DownloadSession) {
    let isRead = state.withLock { $0.sessions[session.id]?.listeners.isEmpty == false }
    guard !isRead, let command = session.settings.wake,
      var first = try? session.ledger.firstNews()
    else { return }
    // The program reads on from the first event of all; that it is woken has another reason.
    if let oldest = try? session.ledger.events(after: 0, limit: 1).first { first.number = oldest.number }
    let isDue = state.withLock { state in
      guard !state.isEnding else { return false }
      return state.sessions[session.id]?.wake.begin(by: clock) == true
    }
    guard isDue else { return retryWake(session) }
    let place = "\(directory)/\(session.id)/wake.lock"
    waker.run(command, session: session.id, first: first, lock: place) { [weak self] message in
      guard let self else { return }
      state.withLock { $0.sessions[session.id]?.wake.ended(message, by: self.clock) }
      loop.post(.wake(session))
    }
  }

  /// The sessions whose wake commands run in vain, in the order of their IDs.
  func wakeTroubles() -> [AgentDocument.Trouble] {
    let wakes = state.withLock { $0.sessions.compactMapValues(\.wake.document) }
    return wakes.filter { $0.value.failures > 0 }.sorted { $0.key < $1.key }.map { id, wake in
      AgentDocument.Trouble(
        code: "wake-command",
        message:
          "the wake command of session \(id) ran \(Units.count(wake.failures, "time")) in vain: \(wake.message)",
        hint: "what it should read: tarn session events \(id)")
    }
  }

  private func retryWake(_ session: DownloadSession) {
    guard let due = state.withLock({ $0.sessions[session.id]?.wake.due }) else { return }
    loop.post(.wakeAt(session, due))
  }
}

extension Sessions {
  /// Tells the session's hook and the desktop, once, that all downloads are done.
  private func tellEnd(_ session: DownloadSession) {
    let settings = session.settings
    guard settings.hook != nil || settings.notify == true else { return }
    for event in (try? session.ledger.takeDelivered()) ?? [] {
      if let hook = settings.hook { waker.tell(hook, session: session.id, event) }
      if settings.notify == true { waker.notify(session: session.id, event) }
    }
  }
}

extension SessionSettings {
  /// Returns the names of the settings that differ from another's.
  fileprivate func names(unlike other: SessionSettings) -> [String] {
    [
      transfers != other.transfers ? "transfers" : nil, wake != other.wake ? "wake" : nil,
      hook != other.hook ? "hook" : nil, notify != other.notify ? "notify" : nil,
      holdsOld != other.holdsOld ? "holdsOld" : nil, limits != other.limits ? "limits" : nil,
      rules != other.rules ? "rules" : nil, headers != other.headers ? "headers" : nil,
      cookies != other.cookies ? "cookies" : nil, hosts != other.hosts ? "hosts" : nil,
      quota != other.quota ? "quota" : nil, proxy != other.proxy ? "proxy" : nil,
    ].compactMap { $0 }
  }
}

extension SessionSettings {
  /// The network settings of the session's downloads.
  var network: NetworkSettings {
    var network = NetworkSettings()
    network.allowsAskedPrivateAddresses = true
    (network.lowSpeedLimit, network.lowSpeedTime) = (1, limits?.idle ?? TaskLimits.standardIdle)
    network.keepsCookies = cookies == true
    network.proxy = proxy
    network.trust = (hosts ?? []).filter { $0.ca != nil || $0.pins != nil }
    return network
  }
}
