import TarnCore
import TarnRuntime

/// What follows from the end of an exchange.
extension Conductor {
  /// - Parameter received: bytes that came for the file in this exchange.
  func ended(_ id: UInt64, _ end: JobEnd, received: UInt64) throws {
    guard let job = jobs[id] else { return }
    switch end {
    case .sealed(let partial, let sealed, let head):
      try publish(id, partial, sealed, head: head)
    case .verdict(let verdict, let head): try judged(job, verdict, head)
    case .short(let partial, let known, let total):
      keep(id, partial, known)
      goOn(job, to: total)
    case .wrongSize(let said, let note):
      let size = job.entry.size ?? 0
      trouble(
        job, code: "size-mismatch",
        "\(Printable.escape(job.url)): has \(Units.count(said, "byte")), the feed says \(Units.grouped(size))\(note)",
        isTransient: false)
    case .isDirectory:
      trouble(
        job, code: "is-a-directory",
        "\(Printable.escape(job.url)): is a directory, which this kind of index does not tell from a file; nothing "
          + "below it is mirrored", isTransient: false)
    case .network(let failure, let partial, let known):
      keep(id, partial, known)
      if failure.code == .cancelled { return cancelled(id) }
      if failure.code == .gaveWay { return gaveWay(id, failure) }
      // More than the space that was free then.
      if failure.code == .tooLarge, job.entry.size == nil {
        discardPartial(id)
        if squeeze(id) { return }
        return giveUp(id, code: FolderFailure.Code.noSpace.rawValue, message: space.refusal(nil))
      }
      trouble(
        jobs[id] ?? job, code: failure.code.rawValue, "\(Printable.escape(job.url)): \(failure.message)",
        isTransient: failure.isTransient, retryAfter: failure.retryAfter, cameNothing: received == 0)
    case .folder(let failure, let partial, let known):
      failedLocally(job, failure, partial, known)
    }
  }

  /// Remembers how far the bytes go, for the next exchange.
  private func keep(_ id: UInt64, _ partial: (any PartialFile)?, _ known: ResumeLadder.Known?) {
    guard let partial else { return }
    jobs[id]?.partial = partial
    jobs[id]?.known = known
  }

  private func discardPartial(_ id: UInt64) {
    jobs[id]?.partial?.discard()
    jobs[id]?.partial = nil
    jobs[id]?.known = nil
  }

  private func judged(_ job: Job, _ verdict: ResumeLadder.Verdict, _ head: ResponseHead) throws {
    switch verdict {
    case .append, .takeFromZero:
      trouble(job, code: "bad-response", "\(Printable.escape(job.url)): unexpected answer", isTransient: true)
    case .nextRung:
      jobs[job.id]?.rung = ResumeLadder.rung(job.known, url: job.url, after: job.rung)
      ask(job.id)
    case .askFromZero:
      restart(job)
    case .whole: sealWhole(job.id)
    case .contradiction:
      // The next pass asks as if nothing had come before.
      discardPartial(job.id)
      trouble(
        jobs[job.id] ?? job, code: "unstable-source",
        "\(Printable.escape(job.url)): has fewer bytes than the same version had before; the server or a cache is wrong, "
          + "and the next pass asks for all of it",
        isTransient: false)
    case .notModified where job.isConditional:
      guard let size = job.entry.size, size != job.action.row?.identity.size else {
        return try revalidated(job)
      }
      // A stale cache: the feed says another size than that of the version that it vouches for.
      jobs[job.id]?.isUnconditional = true
      ask(job.id)
    case .notModified where askForTheWhole(job, HTTPStatus(head.status)): break
    case .notModified:
      trouble(
        job, code: "bad-response",
        "\(Printable.escape(job.url)): the server says 'not modified' (304) to a request without a condition",
        isTransient: false)
    case .status(let status) where askForTheWhole(job, status): break
    case .status(let status):
      trouble(
        job, code: status.name, "\(Printable.escape(job.url)): \(status.message)",
        isTransient: status.isTransient, retryAfter: head.retryAfter)
    }
  }

  /// Asks for what is behind a part that was shorter than asked for.
  private func goOn(_ job: Job, to total: UInt64) {
    guard let kept = jobs[job.id]?.known?.kept else { return restart(job) }
    let came = kept - min(kept, job.known?.kept ?? 0)
    let isProgress = ResumeLadder.isProgress(came, of: total)
    if !isProgress { jobs[job.id]?.restarts += 1 }
    guard isProgress || job.restarts < Job.mostRestarts else {
      let message =
        "\(Printable.escape(job.url)): ends after \(Units.grouped(kept)) of \(Units.count(total, "byte")), time and again"
      // Once: where the rest never comes, the whole may.
      guard job.restarts > Job.mostRestarts else { return askForTheWhole(job, message) }
      return trouble(jobs[job.id] ?? job, code: "range-too-short", message, isTransient: true)
    }
    let known = jobs[job.id]?.known
    jobs[job.id]?.rung = ResumeLadder.rung(known, url: job.url)
    ask(job.id)
  }

  /// Asks once more, without a range, where the request for the rest of a file was refused. The partial file stays until the whole
  /// one comes.
  ///
  /// - Returns: false when the answer has another cause.
  private func askForTheWhole(_ job: Job, _ status: HTTPStatus) -> Bool {
    guard job.rung != .fromZero, ResumeLadder.mayGiveTheWhole(status), !stop.isSet else { return false }
    askForTheWhole(job, "\(Printable.escape(job.url)): refuses the rest of the file (\(status.code))")
    return true
  }

  /// Whether a request without a range may fare better: servers, and what stands before them, fail at ranges in many ways. Of
  /// these failures a range is no cause.
  private static func mayBeOfRange(_ code: String) -> Bool {
    let others: Set<DownloadFailure.Code> = [
      .resolve, .connect, .tls, .addressRefused, .urlRefused, .fileNotReadable, .hostResting, .tooLarge,
      .outOfMemory, .tooManyOpenFiles, .refusedByReceiver,
    ]
    return DownloadFailure.Code(rawValue: code).map { !others.contains($0) } ?? code.hasPrefix("http-")
  }

  private func askForTheWhole(_ job: Job, _ message: String) {
    jobs[job.id]?.rung = .fromZero
    let told = "\(message); all of it is asked for"
    observer.pass(.retrying(path: job.entry.path, message: told, seconds: 0))
    ask(job.id)
  }

  /// The bytes at hand are of another version: from zero, but not for ever.
  private func restart(_ job: Job) {
    guard job.restarts < Job.mostRestarts, job.rung != .fromZero || job.hasKept else {
      return trouble(
        job, code: "unstable-source",
        "\(Printable.escape(job.url)): answers with ranges that do not fit, or changes while it is read",
        isTransient: false)
    }
    jobs[job.id]?.restarts += 1
    jobs[job.id]?.keepNothing()
    jobs[job.id]?.rung = .fromZero
    ask(job.id)
  }

  private func failedLocally(
    _ job: Job, _ failure: FolderFailure, _ partial: (any PartialFile)?, _ known: ResumeLadder.Known?
  ) {
    switch failure.code {
    case .contentMismatch where known != nil:
      // The bytes of an earlier attempt are as they were.
      keep(job.id, partial, known)
      trouble(
        jobs[job.id] ?? job, code: failure.code.rawValue, "\(Printable.escape(job.url)): \(failure.message)",
        isTransient: false)
    case .digestMismatch, .sizeMismatch, .contentMismatch:
      (partial ?? job.partial)?.discard()
      jobs[job.id]?.partial = nil
      jobs[job.id]?.known = nil
      // Bytes of an earlier attempt were in it: they may be what is wrong.
      if job.hasKept, failure.code != .contentMismatch { return restart(job) }
      trouble(
        jobs[job.id] ?? job, code: failure.code.rawValue, "\(Printable.escape(job.url)): \(failure.message)",
        isTransient: false)
    case .pieceMismatch:
      keep(job.id, partial, known)
      // Nobody waits for this exchange any more.
      if job.isOvertaken || abandoned.contains(job.id) { return cancelled(job.id) }
      // It began before what this source sent: bytes of an earlier attempt may be what is wrong.
      if failure.goodPrefix ?? .max < job.known?.kept ?? 0, job.restarts < Job.mostRestarts {
        jobs[job.id]?.restarts += 1
        jobs[job.id]?.rung = ResumeLadder.rung(known, url: job.url)
        return ask(job.id)
      }
      trouble(
        jobs[job.id] ?? job, code: failure.code.rawValue, "\(Printable.escape(job.url)): \(failure.message)",
        isTransient: false)
    case .noSpace, .quota:
      if failure.errno != 0 { space.doubt() }
      // What does not fit must not keep others from fitting.
      if let partial { jobs[job.id]?.partial = partial }
      discardPartial(job.id)
      if squeeze(job.id) { return tellSqueezed(job, failure) }
      giveUp(job.id, code: failure.code.rawValue, message: failure.message)
    default:
      keep(job.id, partial, known)
      giveUp(job.id, code: failure.code.rawValue, message: failure.message)
    }
  }

  /// The kernel refused it, which is said even if all comes right; what only would not fit beside others waits in silence.
  private func tellSqueezed(_ job: Job, _ failure: FolderFailure) {
    guard failure.errno != 0 else { return }
    let message = "\(job.entry.path.printable): \(failure.message); tried again when the others are over"
    observer.pass(.notice(code: failure.code.rawValue, message: message))
  }

  /// One source failed: the next one, else a pause and all of them again, else the entry fails.
  ///
  /// - Parameter cameNothing: not a byte of the file.
  private func trouble(
    _ job: Job, code: String, _ message: String, isTransient: Bool, retryAfter: Int64? = nil,
    cameNothing: Bool = true
  ) {
    let id = job.id
    guard !stop.isSet else { return drop(id) }
    if endSteered(id) { return }
    if job.isOfDocument {
      jobs[id]?.isOfDocument = false
      return ask(id)
    }
    var failure = Job.Trouble(
      source: job.source, code: code, message: message, isTransient: isTransient, retryAfter: retryAfter,
      // A server that asked for a pause is not to send more.
      mayBeOfRange: cameNothing && job.rung != .fromZero && retryAfter == nil && Self.mayBeOfRange(code))
    if let retryAfter, !failure.isRest { failure.message += "; it asked for a pause of \(retryAfter) s" }
    jobs[id]?.note(failure)
    if let next = jobs[id]?.usableSource(from: job.source + 1) {
      jobs[id]?.source = next
      return again(id, after: 0, message)
    }
    guard let troubles = jobs[id]?.troubles, let first = jobs[id]?.usableSource(from: 0) else {
      return exhaust(id, code: code, message)
    }
    // A host that rests is waited for only where no other source may be back before.
    let asked = troubles.filter { !$0.isRest }
    let isResting = !asked.contains(where: \.isTransient)
    let waited = isResting ? troubles : asked
    let verdict = retry.judge(
      attempt: job.round, isTransient: troubles.contains(where: \.isTransient),
      asked: waited.compactMap(\.retryAfter).min(), isResting: isResting, random: ports.random.unit())
    guard case .retry(let seconds) = verdict else { return exhaust(id, code: code, message) }
    jobs[id]?.source = first
    jobs[id]?.round += 1
    again(id, after: seconds, message)
    ready += duplicates.failed(job)
  }

  /// All sources were tried. Perhaps one of them fails only at requests for the rest of the file: else no later pass would ever get
  /// it. Each such source is asked for the whole, once.
  private func exhaust(_ id: UInt64, code: String, _ message: String) {
    guard let trouble = jobs[id]?.troubles.first(where: \.mayBeOfRange) else {
      return forsake(id, code: code, message: jobs[id]?.troubleText ?? message)
    }
    jobs[id]?.source = trouble.source
    if let job = jobs[id] { askForTheWhole(job, trouble.message) }
  }

  /// Its place went to another mirror, which is no failure of its source: the same one again, a little later.
  private func gaveWay(_ id: UInt64, _ failure: DownloadFailure) {
    guard !stop.isSet, let job = jobs[id] else { return drop(id) }
    if endSteered(id) { return }
    jobs[id]?.gaveWay += 1
    again(id, after: Double(job.patience), "\(Printable.escape(job.url)): \(failure.message)")
  }

  private func again(_ id: UInt64, after seconds: Double, _ message: String) {
    guard let job = jobs[id] else { return }
    jobs[id]?.rung = ResumeLadder.rung(job.known, url: job.url)
    observer.pass(.retrying(path: job.entry.path, message: message, seconds: seconds))
    // Wanted during the attempt that failed.
    let isWanted = job.wishes != steering?.wishes
    if seconds > 0, !isWanted { delay(id, seconds: seconds) } else { go(id) }
  }
}
