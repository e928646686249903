import TarnCore
import TarnRuntime

/// Checked files on their way to their final names.
extension Conductor {
  /// - Throws: `ThreadFailure`.
  func publish(_ id: UInt64, _ partial: any PartialFile, _ sealed: Sealed, head: ResponseHead?) throws {
    guard let job = jobs[id] else { return partial.close() }
    jobs[id]?.partial = partial
    guard !abandoned.contains(id) else {
      partial.discard()
      return drop(id)
    }
    if let row = sameAsBefore(job, sealed, head) {
      partial.discard()
      if try ports.ledger.partial(row.path) != nil { try ports.ledger.apply([.dropPartial(row.path)]) }
      return try revalidated(job, as: row)
    }
    try publisher.start()
    jobs[id]?.isPublishing = true
    publishing += 1
    let row = Row(
      path: job.entry.path, identity: sealed.identity, digest: sealed.digest, isVerified: sealed.isVerified,
      fingerprint: job.entry.fingerprint, etag: head?.etag, lastModified: head?.lastModified,
      placed: ports.now)
    publisher.submit(
      Publication(
        job: id, kind: job.action.kind, partial: partial,
        expectation: job.action.present.map { .present($0) } ?? .absent,
        trashName: job.action.present == nil ? "" : ports.random.name(), row: row,
        displacesOwn: job.displacesOwn, isCopy: job.isCopy))
  }

  /// A server that knows no conditions sends the same bytes each time: the file that is there is as good.
  ///
  /// - Returns: its row, with what the server says now; nil where it is another file, or stands there no more.
  private func sameAsBefore(_ job: Job, _ sealed: Sealed, _ head: ResponseHead?) -> Row? {
    guard job.action.kind == .revalidate, var row = job.action.row, row.digest == sealed.digest,
      row.lastModified == head?.lastModified,
      let present = try? folder.look(row.path), row.identity.isSame(as: present.identity)
    else { return nil }
    row.etag = head?.etag
    return row
  }

  func published(_ id: UInt64, _ outcome: PublishOutcome) {
    publishing -= 1
    guard let job = jobs.removeValue(forKey: id) else { return }
    switch outcome {
    case .installed(let identity, _):
      space.giveBack(job.reserved)
      early?.settle(job.entry.path.bytes)
      if job.isCopy { counts.copied += 1 } else { count(job.action.kind) }
      bytes.published.addSaturated(identity.size)
      if job.entry.size == nil {
        learned.add(identity.size, before: job.action.sizeCounted(of: job.entry))
      }
      progress.finish(
        job.id, bytes: identity.size, isLearned: job.entry.size == nil, planned: job.action.bytesPlanned)
      observer.pass(
        .done(
          code: job.action.kind.doneCode(isCopy: job.isCopy), path: job.entry.path, bytes: identity.size))
    case .stale:
      space.giveBack(job.reserved)
      stale.append(job.action)
    case .failed(let failure):
      space.giveBack(job.reserved)
      fail(job, code: failure.code.rawValue, message: failure.message)
    case .removed:
      break
    }
    over(job, isPlaced: outcome.isInstalled)
    if outcome.isInstalled { copyForlorn(twinsOf: job.entry) }
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
}
