import TarnCore

/// Searches for bytes that need not be fetched. Runs on a lane.
struct LocalBytesSearch: Sendable {
  let id: UInt64
  let entry: Entry
  let check: ContentCheck
  let row: Row?
  /// True to search only for a copy of its contents.
  let isCopy: Bool
  /// True when the job has no partial file, so that the ledger at most knows one.
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

  /// Removes the file of an earlier attempt, which is useless now. Its row goes when the copy is published. A file that cannot be
  /// removed is removed when the mirror is opened again.
  private func dropPartial() {
    guard let row = try? context.client.ledger.partial(entry.path) else { return }
    do throws(FolderFailure) {
      try context.client.folder.removePartial(row.name)
    } catch {
      tell(error, "the next pass removes it")
    }
  }

  /// Reports a failure, except for files that are gone or changed meanwhile and so are no copies.
  private func tell(_ failure: FolderFailure, _ instead: String) {
    guard failure.errno != 0, ![.missing, .notDirectory, .link, .exists].contains(failure.code) else {
      return
    }
    context.post(.workedAround(id, failure, instead: instead))
  }

  /// Returns the partial file of an earlier attempt, as far as its bytes are proved. Without it, its row goes.
  private func resume() -> LocalBytes? {
    guard let row = try? context.client.ledger.partial(entry.path) else { return nil }
    do throws(FolderFailure) {
      if let kept = try proved(row) { return kept }
      context.dropRow(of: entry.path)
      return nil
    } catch {
      tell(error, "\(entry.path.printable) begins anew")
      context.dropRow(of: entry.path)
      return .nothing
    }
  }

  private func proved(_ row: PartialRow) throws(FolderFailure) -> LocalBytes? {
    guard let partial = try context.client.folder.openPartial(row.name) else { return nil }
    let isSameBoot = !row.bootID.isEmpty && row.bootID == context.client.bootID
    // A digest that came later does not prove these bytes. The server does, and then the digest judges the whole.
    let isSameVersion =
      row.digest != nil ? row.digest == check.digest : row.fingerprint == entry.fingerprint
    let keep = isSameVersion ? isSameBoot ? UInt64.max : row.durable : 0
    let kept = try partial.begin(keeping: keep, check: check)
    guard kept > 0 else {
      partial.discard()
      return nil
    }
    let durable = min(row.durable, kept)
    renew(row, durable: durable)
    let known = ResumeLadder.Known(
      kept: kept, durable: durable, url: row.url, answered: row.answered, etag: row.etag,
      lastModified: row.lastModified, weakDate: row.weakDate,
      total: row.total ?? check.size, digestDecides: row.digest != nil)
    return .kept(partial, known)
  }

  /// Renews the row, so that a kill loses none of the bytes that this boot adds, as with a file that it began. A power cut may lose
  /// the new row, because the older one says the same about durable bytes. When bytes were cut off, the older row would be wrong,
  /// so the new one is durable.
  private func renew(_ row: PartialRow, durable: UInt64) {
    guard row.bootID != context.client.bootID || row.durable != durable else { return }
    var renewed = row
    (renewed.bootID, renewed.durable) = (context.client.bootID, durable)
    context.record(renewed, isDurable: durable != row.durable)
  }

  /// Returns a copy of a file of the folder with the wanted digest: a recorded one, else one that is likely to have it.
  private func reuse() -> LocalBytes? {
    guard let digest = check.digest, !entry.mayBeCut else { return nil }
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
      // When there is no room for the copy, there is none for the file either, which is reported elsewhere.
      if copy != nil || ![.noSpace, .quota].contains(error.code) {
        tell(error, "\(entry.path.printable) is not copied from \(path.printable) but looked for elsewhere")
      }
      return nil
    }
  }
}
