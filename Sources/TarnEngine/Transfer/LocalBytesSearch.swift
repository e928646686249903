import TarnCore

/// Looks for bytes that need not be fetched. On a lane.
struct LocalBytesSearch: Sendable {
  let id: UInt64
  let entry: Entry
  let check: ContentCheck
  let row: Row?
  /// Only a copy of its contents is looked for.
  let isCopy: Bool
  /// An earlier partial file is known to the ledger at most.
  let hasNoPartial: Bool
  let unrecorded: UnrecordedFiles
  let context: FileReceiverContext

  init(_ job: Job, _ context: FileReceiverContext) {
    (id, entry, check, row) = (job.id, job.entry, job.check, job.action.row)
    (isCopy, hasNoPartial) = (job.failure != nil, job.partial == nil)
    (unrecorded, self.context) = (job.submission.unrecorded, context)
  }

  func run() {
    context.post(.prepared(id, prepare()))
  }

  private func prepare() -> LocalBytes {
    if !isCopy, hasNoPartial, let kept = resume() { return kept }
    guard let copied = reuse() else { return .nothing }
    if hasNoPartial { dropPartial() }
    return copied
  }

  /// What an earlier attempt left is of no use any more; its row goes when the copy is published. What cannot be removed
  /// goes when the mirror is opened again.
  private func dropPartial() {
    guard let row = try? context.client.ledger.partial(entry.path) else { return }
    do throws(FolderFailure) {
      try context.client.folder.removePartial(row.name)
    } catch {
      tell(error, "the next pass removes it")
    }
  }

  /// Not of a file that is gone or changed meanwhile, and so is no copy.
  private func tell(_ failure: FolderFailure, _ instead: String) {
    guard failure.errno != 0, ![.missing, .notDirectory, .link, .exists].contains(failure.code) else {
      return
    }
    context.post(.workedAround(id, failure, instead: instead))
  }

  /// The partial file of an earlier attempt, as far as its bytes are proved.
  private func resume() -> LocalBytes? {
    guard let row = try? context.client.ledger.partial(entry.path) else { return nil }
    do throws(FolderFailure) {
      guard let partial = try context.client.folder.openPartial(row.name) else { return nil }
      let isSameBoot = !row.bootID.isEmpty && row.bootID == context.client.bootID
      let isSameVersion =
        row.digest == check.digest && (check.digest != nil || row.fingerprint == entry.fingerprint)
      let keep = isSameVersion ? isSameBoot ? UInt64.max : row.durable : 0
      let kept = try partial.begin(keeping: keep, check: check)
      guard kept > 0 else {
        partial.discard()
        return nil
      }
      let durable = min(row.durable, kept)
      renew(row, durable: durable)
      let known = ResumeLadder.Known(
        kept: kept, durable: durable, url: row.url, etag: row.etag,
        lastModified: row.lastModified,
        total: row.total ?? check.size, digestDecides: check.digest != nil)
      return .kept(partial, known)
    } catch {
      tell(error, "\(entry.path.printable) begins anew")
      return .nothing
    }
  }

  /// From here on a kill takes none of what this boot adds, as little as of a file that it has begun. A power cut may take the row,
  /// for the older one says the same of what is durable; unless bytes were cut off: that it must not call them so again.
  private func renew(_ row: PartialRow, durable: UInt64) {
    guard row.bootID != context.client.bootID || row.durable != durable else { return }
    var renewed = row
    (renewed.bootID, renewed.durable) = (context.client.bootID, durable)
    context.record(renewed, isDurable: durable != row.durable)
  }

  /// A file of the folder with the wanted digest: one that is recorded with it, else one that looks like it.
  private func reuse() -> LocalBytes? {
    guard let digest = check.digest else { return nil }
    let recorded = RecordedCopies(ledger: context.client.ledger, folder: context.client.folder)
    if let copied = try? recorded.first(of: digest, for: entry.path, { copy(of: $0.path, $0.identity) }) {
      return copied
    }
    for file in unrecorded.candidates(entry, row: row) {
      if let copied = copy(of: file.path, file.identity) { return copied }
    }
    return nil
  }

  private func copy(of path: RelativePath, _ identity: FileIdentity) -> LocalBytes? {
    var copy: (any PartialFile)?
    do throws(FolderFailure) {
      copy = try context.client.folder.copyPartial(of: path, expected: identity, check: check)
      guard let copy else { return nil }
      return .copied(copy, try FileReceiver.seal(copy, entry, head: nil))
    } catch {
      copy?.discard()
      // Where there is no room for the copy there is none for the file: that is told for all of them.
      if copy != nil || ![.noSpace, .quota].contains(error.code) {
        tell(error, "\(entry.path.printable) is not copied from \(path.printable) but looked for elsewhere")
      }
      return nil
    }
  }
}
