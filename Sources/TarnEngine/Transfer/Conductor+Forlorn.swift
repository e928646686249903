import TarnCore
import TarnRuntime

/// Entries whose sources all failed: another entry with the same digest may still bring their bytes.
extension Conductor {
  /// More than so many at a time fail at once.
  private static let mostForlorn = 4096

  /// No source is left for the job. Its failure is told when no twin can be placed any more.
  func forsake(_ id: UInt64, code: String, message: String) {
    guard jobs[id]?.entry.digest != nil, forlorn.count < Self.mostForlorn, !stop.isSet,
      var job = jobs.removeValue(forKey: id)
    else { return giveUp(id, code: code, message: message) }
    job.partial?.close()
    space.giveBack(job.reserved)
    job.reserved = 0
    job.failure = Job.Trouble(code: code, message: message, isTransient: false, retryAfter: nil)
    forlorn.append(job)
    over(job)
  }

  /// Once nothing else is at work: copies those whose twin is in place by now.
  ///
  /// - Parameter isLast: nothing more is going to be placed, so that the others fail.
  /// - Returns: false when nothing is at work now, either.
  func copyForlorn(isLast: Bool) throws -> Bool {
    guard !forlorn.isEmpty else { return false }
    // What was adopted is a twin as good as any.
    try flushAdoptions()
    let waiting = forlorn
    forlorn = []
    for job in waiting {
      guard let failure = job.failure else { continue }
      if !stop.isSet, jobs.count >= mostJobs {
        forlorn.append(job)
      } else if !stop.isSet, let digest = job.entry.digest,
        try !ports.ledger.rows(digest: digest, limit: 1).isEmpty
      {
        copy(job)
      } else if isLast || stop.isSet {
        fail(job, code: failure.code, message: failure.message)
      } else {
        forlorn.append(job)
      }
    }
    return !jobs.isEmpty
  }

  private func copy(_ forlorn: Job) {
    var job = forlorn
    let size = job.entry.size ?? 0
    guard space.take(size) else {
      return fail(job, code: "no-space", message: space.refusal(job.entry.size))
    }
    job.reserved = size
    jobs[job.id] = job
    let preparing = Preparing(job: job, context: context)
    lanes.submit(lane: Int(truncatingIfNeeded: job.id)) { preparing.run() }
  }
}
