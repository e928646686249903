import TarnCore
import TarnRuntime

/// Entries whose sources all failed: another entry with the same digest may still bring their bytes.
extension Conductor {
  /// No source is left for the job. It has failed, for the status, until a twin of it is placed; for the report once none can be.
  func forsake(_ id: UInt64, code: String, message: String) {
    guard jobs[id]?.entry.digest != nil, !stop.isSet, var job = jobs.removeValue(forKey: id) else {
      return giveUp(id, code: code, message: message)
    }
    leavePartial(job)
    space.giveBack(job.reserved)
    job.reserved = 0
    let attempts = job.attempts
    let all = attempts.troubleText
    job.forsake(
      Attempts.Trouble(
        source: attempts.source, code: code, message: all.isEmpty ? message : all, isTransient: false,
        retryAfter: nil))
    if duplicates.isPlaced(job), (try? hasCopy(job.entry)) == true {
      copy(job)
    } else {
      tellForlorn(job)
      if forlorn.count < mostHeldBack {
        forlorn.append(job)
        if let digest = job.entry.digest { forlornDigests.insert(digest) }
      } else {
        left.forsake(job, code: code, message: attempts.troubles.last?.message ?? message)
      }
    }
    over(job)
  }

  /// Keeps a partial file for the next pass. Without a row nobody could go on with it: it would only take space.
  func leavePartial(_ job: Job) {
    guard let partial = job.partial else { return }
    let isKnown = (try? ports.ledger.partial(job.entry.path)).map { $0?.name == partial.name } ?? true
    if isKnown { partial.close() } else { partial.discard() }
  }

  /// Once nothing else is at work: goes back to what was not begun, and copies those whose twin is in place by now.
  ///
  /// - Parameter isLast: nothing more is going to be placed, so that the others fail.
  /// - Returns: false when nothing is left to do.
  func settle(isLast: Bool) throws -> Bool {
    guard !stop.isSet else {
      for job in forlorn { tell(job) }
      forlorn = []
      // Beyond those that were named early the next pass tells them: to name them here would mean to read the plan to its end.
      counts.failed += left.forsakenCount
      let told = Set(problems.map(\.name))
      problems.keep((early?.standing.values).map(Array.init)?.filter { !told.contains($0.name) } ?? [])
      left = Leftovers()
      return false
    }
    // What was adopted is a twin as good as any.
    try flushAdoptions()
    if left.untried.isEmpty, try copyForlorn(isLast: isLast) { return true }
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
    job.forsake(failure)
    if isPlaced { copy(job) } else { tell(job) }
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

  func copyForlorn(isLast: Bool) throws -> Bool {
    guard !forlorn.isEmpty else { return false }
    let waiting = forlorn
    forlorn = []
    for job in waiting {
      if !mayGoOn() || jobs.count >= mostJobs {
        forlorn.append(job)
      } else if try hasCopy(job.entry) {
        copy(job)
      } else if isLast {
        tell(job)
      } else {
        forlorn.append(job)
      }
    }
    return !jobs.isEmpty
  }

  /// The bytes that they lack are in place from now on: the status does not call them failed until the pass has ended.
  func copyForlorn(twinsOf entry: Entry) {
    guard let digest = entry.digest, !stop.isSet, forlornDigests.remove(digest) != nil else { return }
    let duplicates = forlorn.filter { $0.entry.digest == digest }
    forlorn.removeAll { $0.entry.digest == digest }
    for job in duplicates {
      if (try? hasCopy(job.entry)) == true { copy(job) } else { forlorn.append(job) }
    }
  }

  private func hasCopy(_ entry: Entry) throws -> Bool {
    guard let digest = entry.digest else { return false }
    return try RecordedCopies(ledger: ports.ledger, folder: folder).exists(of: digest, for: entry.path)
  }

  private func tell(_ job: Job) {
    guard let failure = job.failure else { return }
    fail(job, code: failure.code, message: failure.message)
  }

  private func copy(_ forlorn: Job) {
    var job = forlorn
    early?.settle(job.entry.path.bytes)
    guard takeSpace(&job) else { return }
    jobs[job.id] = job
    look(job)
  }
}
