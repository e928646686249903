import Glibc
package import TarnCore
import TarnCrypto
package import TarnEngine
import TarnFolder
import TarnLedger
package import TarnRuntime
import TarnTransfer

/// Files to download now.
package struct GetRequest: Sendable {
  package var tasks: [TaskRequest]
  /// The options for the network, such as `--limit-rate`.
  package var options = PassOptions()
  /// The transfers at a time.
  package var transfers = 4

  package init(_ tasks: [TaskRequest]) { self.tasks = tasks }
}

package struct GetReport: Sendable {
  package var tasks: [TaskRecord]
  package var wasStopped: Bool
}

extension Tarn {
  /// Downloads files and waits for them. An interrupted download keeps its bytes: the same request continues
  /// from there.
  ///
  /// - Parameters:
  ///   - beginsAnew: called with the reason why a task leaves what an earlier run has fetched.
  ///   - ended: called for each task as it ends, on another thread.
  ///   - progress: the progress of the transfers, by the numbers of tasks.
  /// - Throws: `usage` for an invalid request, or one whose file would lie in a mirror; `locked` when another
  ///   process works at the same request.
  package func get(
    _ request: GetRequest, progress: PassProgress, stop: StopFlag, beginsAnew: (String) -> Void,
    ended: @escaping @Sendable (TaskRecord) -> Void
  ) throws(PassFailure) -> GetReport {
    try refuseInvalid(request.tasks)
    let id = Self.id(of: request.tasks)
    let place = try getPlace(id)
    let lock = try Self.lock(place)
    defer { withExtendedLifetime(lock) {} }
    let (report, isDone) = try PassFailure.translating {
      try run(
        request, id: id, place: place, progress: progress, stop: stop, beginsAnew: beginsAnew, ended: ended)
    }
    if isDone { Self.remove(place) }
    return report
  }

  /// Checks requests before anything is begun.
  ///
  /// - Throws: `usage` for an invalid request, or one whose file would lie in a mirror.
  package func refuseInvalid(_ tasks: [TaskRequest]) throws(PassFailure) {
    for task in tasks {
      do throws(TaskRequest.Refusal) {
        try task.refuseUnusable()
      } catch {
        throw PassFailure(.usage, code: error.code, error.message)
      }
      if let mirror = TaskPlace(task.to)?.mirror {
        throw PassFailure(
          .folderUnusable, code: TaskPlace.inMirror, TaskPlace.isInMirror(task.to, mirror),
          hint: TaskPlace.noMirror)
      }
    }
  }

  private func run(
    _ request: GetRequest, id: String, place: String, progress: PassProgress, stop: StopFlag,
    beginsAnew: (String) -> Void, ended: @escaping @Sendable (TaskRecord) -> Void
  ) throws -> (GetReport, isDone: Bool) {
    CurlDownloader.prepareProcess()
    var network = try Secrets.settings(request.options, feed: .standardInput, home: homeDirectory)
    network.userAgent = network.userAgent ?? "tarn/\(Self.version)"
    network.allowsAskedPrivateAddresses = true
    let ledger = try SessionLedger(directory: place)
    let random = SystemRandom()
    if try ledger.fact(.settings) == nil { try ledger.set(.token, random.token()) }
    var settings = SessionSettings()
    settings.transfers = request.transfers
    try ledger.set(.settings, JSONText.line(settings))
    let ends = LockedCondition(false)
    // The ends of an earlier run were reported then.
    let told = Locked(try ledger.lastEvent())
    let failure = Locked<LedgerFailure?>(nil)
    let loop = SessionLoop(clock: SystemClock())
    let session = try DownloadSession(
      id: id, ledger: ledger,
      folder: SessionFolder(
        id: id, token: try ledger.fact(.token), isCommand: true, names: FinalNames(),
        hashing: OpenSSLHashing()),
      downloader: try CurlDownloader(settings: network),
      patience: .short(retries: request.options.last(.retries).flatMap { Int($0) } ?? 5), progress: progress,
      clock: SystemClock(), random: random, post: { loop.post($0) })
    defer {
      session.close()
      loop.end()
    }
    try loop.start { session, fault in
      if let fault { failure.withLock { $0 = $0 ?? fault } }
      let isOver = (try? session.tell(endsAfter: told, ended)) ?? true
      if isOver || fault != nil { ends.change { $0 = true } }
    }
    // Requests with one URL and one destination are one task.
    let tasks = try session.add(request.tasks, beginsAnew: beginsAnew).map(\.task)
    let added = Dictionary(tasks.map { ($0.number, $0) }) { $1 }
    progress.expect(files: added.count)
    for number in added.keys.sorted() {
      if let task = added[number], task.state == .finished { ended(task) }
    }
    stop.onSet(waking: ends) { ends.change { $0 = true } }
    loop.post(.wake(session))
    ends.wait { $0 ? () : nil }
    if let failure = failure.withLock({ $0 }) { throw failure }
    let all = try ledger.tasks(limit: .max)
    let hasPartials = try ledger.hasPartials()
    // As long as some are missing, the same command must know which of the others it has put there.
    let isMixed = Set(all.map { $0.state == .finished }).count > 1
    let isDone = !hasPartials && !isMixed && all.allSatisfy(\.state.isEnd)
    return (GetReport(tasks: all, wasStopped: stop.isSet), isDone)
  }

  /// Returns the same id for the same files and places, whoever asks.
  private static func id(of tasks: [TaskRequest]) -> String {
    let text = tasks.map { "\($0.url)\n\($0.to)\n" }.joined()
    return "get-\(OpenSSLHashing().digest(.sha256, of: Array(text.utf8)).hex.prefix(16))"
  }

  /// Returns the directory of the record, made when it is missing.
  private func getPlace(_ id: String) throws(PassFailure) -> String {
    guard let state = stateDirectory else {
      throw PassFailure(
        .configuration, code: "no-state-directory",
        "there is no place for the record of a download: neither $XDG_STATE_HOME nor $HOME is set")
    }
    let place = "\(state)/get/\(id)"
    TextFile.makeDirectories(place)
    guard TextFile.isDirectory(place) else {
      throw PassFailure(
        .inputOutput, code: "state-directory", "\(Printable.escape(place)) cannot be made",
        hint: "make its directory writable for this user, or set XDG_STATE_HOME to another one")
    }
    return place
  }

  private static func lock(_ place: String) throws(PassFailure) -> FileLock {
    do throws(FileLock.Refusal) {
      let lock = try FileLock(place + "/lock")
      lock.write("\(getpid())\n")
      return lock
    } catch {
      let holder = TextFile.read(place + "/lock", limit: 64).flatMap { Int32($0.prefix { $0.isNumber }) }
      throw PassFailure(
        .locked, code: "get-runs",
        "the same files are being downloaded to the same places already"
          + (holder.map { " (process \($0))" } ?? ""),
        hint: "wait for it, or end it")
    }
  }

  private static func remove(_ place: String) {
    for name in ["ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite-shm", "lock"] {
      unlink("\(place)/\(name)")
    }
    rmdir(place)
  }

  /// The directory for the state of this user's Tarn that belongs to no mirror; `nil` when there is none.
  var stateDirectory: String? {
    Registry(environment: environment).flatMap { registry in
      registry.path.lastIndex(of: "/").map { String(registry.path[..<$0]) }
    }
  }
}

extension DownloadSession {
  /// Reports the tasks that have ended since an event.
  ///
  /// - Returns: true when no task is left to end. A file that was replaced is removed after its task has ended.
  fileprivate func tell(
    endsAfter told: Locked<Int64>, _ ended: (TaskRecord) -> Void
  ) throws(LedgerFailure) -> Bool {
    let events = try ledger.events(after: told.withLock { $0 }, limit: .max)
    for event in events where [.finished, .failed, .cancelled].contains(event.code) {
      if let number = event.task, let task = try ledger.task(number) { ended(task) }
    }
    if let last = events.last { told.withLock { $0 = last.number } }
    let isOver = try ledger.tasks(in: TaskState.allCases.filter(\.isOpen), limit: 1).isEmpty
    return isOver && running == 0
  }
}
