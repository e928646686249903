import TarnCore
import TarnRuntime

/// Entries of the same contents: one asks, the others wait for its bytes.
extension Conductor {
  /// Begins a job that waited.
  ///
  /// - Returns: false when there is none.
  func startReady() -> Bool {
    guard let id = ready.popLast() else { return false }
    if let job = jobs[id], !endSteered(id) { start(job, mayReuse: true) }
    return true
  }

  /// A job has ended: those that waited for its bytes go on.
  func over(_ job: Job, isPlaced: Bool = false) {
    progress.forget(job.id)
    let (freed, asking) = duplicates.over(job, isPlaced: isPlaced)
    ready += freed
    guard !asking.isEmpty else { return }
    for id in asking {
      guard let download = jobs[id]?.download else { continue }
      jobs[id]?.isOvertaken = true
      ports.downloader.cancel(download)
    }
    for index in delayed.indices where asking.contains(delayed[index].job) { delayed[index].due = Instant() }
  }

  /// Asks the job's source, unless a twin was placed since its bytes were looked for in the folder.
  func go(_ id: UInt64) {
    guard let job = jobs[id], !stop.isSet, !job.knewTwin, duplicates.isPlaced(job) else { return ask(id) }
    look(job)
  }

  /// An exchange was cancelled: its bytes are in place elsewhere, or nobody wants them.
  func cancelled(_ id: UInt64, _ end: JobEnd) {
    jobs[id]?.attempts.interrupt(end)
    if endSteered(id) { return }
    guard !stop.isSet, var job = jobs[id], job.isOvertaken else { return drop(id) }
    job.isOvertaken = false
    jobs[id] = job
    look(job)
  }

  /// The pass ends: what waits was not begun.
  func dropWaiting() {
    for id in duplicates.takeWaiting() + ready { jobs[id] = nil }
    ready = []
    spaceQueue.drop()
  }
}
