import TarnCore
import TarnRuntime

/// What becomes of jobs that are over.
extension Conductor {
  func ended(_ job: Job, _ ending: TransferState.Ending) throws {
    defer { progress.forget(job.id) }
    switch ending {
    case .placed, .unchanged: break
    case .stale: stale.append(job.action)
    case .failed:
      leavePartial(job)
      fail(job, code: job.failure?.code ?? "", message: job.failure?.message ?? "")
    case .noSpace: fail(job, code: "no-space", message: space.refusal(needed(job)))
    case .cancelled:
      keepPartial(job)
      let message = "its transfer was cancelled; the next pass tries again"
      noteNow(fail(job, code: Self.cancelledCode, message: message))
      steeredAway[job.entry.path] = (job.action, job.ordinal, Self.cancelledCode)
      if job.isWantedAgain { _ = try beginAgain(job.entry.path) }
    case .paused:
      keepPartial(job)
      hold(job.action, ordinal: job.ordinal)
      if job.isWantedAgain { _ = try beginAgain(job.entry.path) }
    case .abandoned: if job.checked == nil { job.partial?.close() } else { job.partial?.discard() }
    case .stopped: job.partial?.close()
    }
  }

  // MARK: Publishing

  /// - Throws: `ThreadFailure`.
  func publish(_ id: UInt64) throws {
    guard let job = jobs[id], let partial = job.partial, let checked = job.checked else { return }
    if let row = sameAsBefore(job, checked) {
      partial.discard()
      if try ports.ledger.partial(row.path) != nil { try ports.ledger.apply([.dropPartial(row.path)]) }
      return try revalidated(job, as: row)
    }
    try publisher.start()
    let row = Row(
      path: job.entry.path, identity: checked.sealed.identity, digest: checked.sealed.digest,
      isVerified: checked.sealed.isVerified, fingerprint: job.entry.fingerprint, etag: checked.head?.etag,
      lastModified: checked.head?.lastModified, placed: ports.now)
    publisher.submit(
      Publication(
        job: id, kind: job.action.kind, partial: partial,
        expectation: job.action.present.map { .present($0) } ?? .absent,
        trashName: job.action.present == nil ? "" : ports.random.name(), row: row,
        displacesOwn: job.displacesOwn, isCopy: checked.isCopy))
    release(id)
  }

  /// A server that knows no conditions sends the same bytes each time: the file that is there is as good.
  ///
  /// - Returns: its row, with what the server says now; nil where it is another file, or stands there no more.
  private func sameAsBefore(_ job: Job, _ checked: Job.Checked) -> Row? {
    guard job.action.kind == .revalidate, var row = job.action.row, row.digest == checked.sealed.digest,
      row.lastModified == checked.head?.lastModified,
      let present = try? folder.look(row.path), row.identity.isSame(as: present.identity)
    else { return nil }
    row.etag = checked.head?.etag
    return row
  }

  func published(_ id: UInt64, _ outcome: PublishOutcome) throws {
    guard let job = jobs[id] else { return }
    switch outcome {
    case .installed(let identity, _):
      early?.settle(job.entry.path.bytes)
      let isCopy = job.checked?.isCopy == true
      if isCopy { counts.copied += 1 } else { count(job.action.kind) }
      bytes.published.addSaturated(identity.size)
      if job.entry.size == nil {
        learned.add(identity.size, before: job.action.sizeCounted(of: job.entry))
      }
      progress.finish(
        job.id, bytes: identity.size, isLearned: job.entry.size == nil, planned: job.action.bytesPlanned)
      let code = job.action.kind.doneCode(isCopy: isCopy)
      observer.pass(.done(code: code, path: job.entry.path, bytes: identity.size))
      try perform(state.published(id, .placed))
    case .stale: try perform(state.published(id, .stale))
    case .failed(let failure):
      giveUp(id, code: failure.code.rawValue, message: failure.message)
      try perform(state.published(id, .failed))
    case .removed: try perform(state.published(id, .stopped))
    }
  }

  private func count(_ kind: Action.Kind) {
    switch kind {
    case .fetch: counts.fetched += 1
    case .update, .revalidate: counts.updated += 1
    case .restore: counts.restored += 1
    case .replace: counts.replaced += 1
    default: break
    }
  }

  /// The server's copy is the one that is there: only the ledger learns what the listing and the server say now.
  ///
  /// - Parameter said: its row, with what the server says; nil for as it was.
  func revalidated(_ job: Job, as said: Row? = nil) throws {
    try perform(state.confirmed(job.id))
    counts.revalidated += 1
    bytes.confirmed.addSaturated(job.action.row?.identity.size ?? 0)
    guard var row = said ?? job.action.row else { return }
    row.fingerprint = job.entry.fingerprint
    // Until the ledger knows its times, each pass hashes a file that somebody touched.
    if try ports.ledger.row(row.path) != row { try ports.ledger.apply([.row(row)]) }
    progress.finish(job.id, bytes: 0, isLearned: job.entry.size == nil)
  }

  // MARK: Failing

  /// Keeps a partial file for the next pass. Without a row nobody could go on with it: it would only take space.
  private func leavePartial(_ job: Job) {
    guard let partial = job.partial else { return }
    let isKnown = (try? ports.ledger.partial(job.entry.path)).map { $0?.name == partial.name } ?? true
    if isKnown { partial.close() } else { partial.discard() }
  }

  /// Its bytes are gone on with in this pass, if somebody wants that.
  private func keepPartial(_ job: Job) {
    guard let partial = job.partial else { return }
    partial.close()
    keep(partial, for: job.entry.path)
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

  // MARK: Without a source

  /// No source is left for the job. It has failed, for the status, until a twin of it is placed; for the report once none can be.
  func noteExhausted(_ id: UInt64) {
    guard let job = jobs[id] else { return }
    leavePartial(job)
    release(id)
    progress.forget(id)
    tellExhausted(job)
  }

  /// Once nothing else is at work: goes back to what was not begun, and copies those whose twin is in place by now.
  ///
  /// - Parameter isLast: nothing more is going to be placed, so that the others fail.
  /// - Returns: false when nothing is left to do.
  func settle(isLast: Bool) throws -> Bool {
    guard !stop.isSet else {
      try perform(state.stop())
      // Beyond those that were named early the next pass tells them: to name them here would mean to read the plan to its end.
      counts.failed += left.forsakenCount
      let told = Set(problems.map(\.name))
      problems.keep((early?.standing.values).map(Array.init)?.filter { !told.contains($0.name) } ?? [])
      left = Leftovers()
      return false
    }
    // What was adopted is a twin as good as any.
    try flushAdoptions()
    if left.untried.isEmpty, try copyExhausted(isLast: isLast) { return true }
    return try left.begin { try ports.stage.actions() }
  }

  /// Goes on reading the plan again.
  ///
  /// - Returns: false when it is not being read again, or came to its end.
  func comeBack(isLast: Bool) throws -> Bool {
    guard let comeback = try nextComeback() else { return false }
    let (action, ordinal) = (comeback.action, comeback.ordinal)
    guard comeback.isForsaken else {
      try admit(action, ordinal: ordinal, isAgain: true)
      return true
    }
    guard let entry = action.entry, let failure = left.failure(ordinal, entry) else { return true }
    let isPlaced = try hasCopy(entry)
    guard isPlaced || isLast else { return true }
    left.drop(ordinal)
    var job = makeJob(action, entry, ordinal: ordinal)
    job.failure = failure
    guard isPlaced else {
      fail(job, code: failure.code, message: failure.message)
      return true
    }
    try beginCopy(job)
    return true
  }

  private func nextComeback() throws -> Leftovers.Comeback? {
    while true {
      switch try left.next() {
      case .comeback(let comeback): return comeback
      case .over: return nil
      // Not from within `left`: the status, which is told here, counts what is left.
      case .pause: if !mayGoOn() { left.end() }
      }
    }
  }

  /// Asked now and then by what takes long on the pass's thread.
  private func mayGoOn() -> Bool {
    tick()
    return !stop.isSet
  }

  /// - Parameter isLast: those fail that cannot be copied.
  /// - Returns: whether any is at work.
  func copyExhausted(isLast: Bool) throws -> Bool {
    for id in state.waitingForContents {
      guard mayGoOn(), state.active < mostJobs else { break }
      if let job = jobs[id], try hasCopy(job.entry) {
        try perform(state.foundCopy(id, true))
      } else if isLast {
        try perform(state.giveUp(id))
      }
    }
    return !state.isIdle
  }

  func hasCopy(_ entry: Entry) throws -> Bool {
    guard let digest = entry.digest else { return false }
    return try RecordedCopies(ledger: ports.ledger, folder: folder).exists(of: digest, for: entry.path)
  }

  /// The stale actions so far; they are the caller's now.
  func takeStale() -> [Action] {
    defer { stale = [] }
    return stale
  }

  /// Once a second, what `tarn status` shows beside a running pass.
  func tick() {
    guard !isBeside, isDue() else { return }
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
