import TarnCore
import TarnRuntime

/// Publishes one group of files: everything between "checked" and "synced".
struct PublishGroup: Sendable {
  let client: TransferClient
  let post: @Sendable (JobMessage) -> Void

  private static let replaced = FolderFailure(
    .markerMissing, "the folder was moved, replaced or unmounted while the pass ran")

  /// Makes the contents of files durable.
  ///
  /// - Returns: the files whose contents are durable, to be renamed. The outcome of the others has been reported.
  func makeDurable(_ batch: [Publication]) -> [Publication] {
    var ready: [Publication] = []
    do throws(LedgerFailure) {
      for (publication, failure) in zip(batch, client.folder.makeDurable(batch.map(\.partial))) {
        guard let failure else {
          ready.append(publication)
          continue
        }
        // After a failed fsync the bytes are lost. The file is never synced again, but always fetched again.
        try drop(publication)
        post(.published(publication.job, .failed(failure)))
      }
      return ready
    } catch {
      fail(batch, error)
      return []
    }
  }

  /// Files that were renamed, or failed to be, and are not recorded yet.
  typealias Named = [(file: Publication, outcome: PublishOutcome)]

  /// Renames a group. The results of the previous group are recorded together with this one's intents, which saves one wait for the
  /// disk.
  ///
  /// - Parameter former: the previous group. It is recorded whatever happens to this one.
  /// - Returns: the files to record next; `nil` when there are none.
  func name(_ group: [Publication], after former: Named?) -> Named? {
    var open = (former ?? []).map(\.file) + group
    do throws(LedgerFailure) {
      guard let (failure, isOfAll) = refusal() else { return try install(group, after: former) }
      if let former { try write(former) }
      open = group
      for publication in group {
        try leave(publication)
        guard !isOfAll else { continue }
        var failure = failure
        failure.path = publication.path
        post(.published(publication.job, .failed(failure)))
      }
      if isOfAll { post(.folderFailed(failure)) }
    } catch {
      fail(open, error)
    }
    return nil
  }

  /// Makes the results of a group durable, and reports them.
  func record(_ named: Named) {
    do throws(LedgerFailure) {
      try write(named)
    } catch {
      fail(named.map(\.file), error)
    }
  }

  /// Returns the reason why nothing may be renamed in the folder now, and whether it concerns more than these files.
  private func refusal() -> (FolderFailure, isOfAll: Bool)? {
    do throws(FolderFailure) {
      return try client.folder.isIntact() ? nil : (Self.replaced, false)
    } catch {
      // A shortage that may pass fails these files. Any other failure may concern the whole folder.
      return (error, error.code != .tooManyFiles && error.code != .outOfMemory)
    }
  }

  private func fail(_ batch: [Publication], _ failure: LedgerFailure) {
    for publication in batch { publication.partial.close() }
    post(.ledgerFailed(failure))
  }

  /// Handles a checked file that is not published. A partial file that the ledger knows stays for the next pass. Any other one is
  /// removed, because nobody would find it again.
  private func leave(_ publication: Publication) throws(LedgerFailure) {
    if try client.ledger.partial(publication.path)?.name == publication.partial.name {
      publication.partial.close()
    } else {
      try drop(publication)
    }
  }

  private func drop(_ publication: Publication) throws(LedgerFailure) {
    publication.partial.discard()
    try client.ledger.apply([.dropPartial(publication.path)])
  }

  private func install(_ ready: [Publication], after former: Named?) throws(LedgerFailure) -> Named {
    let intents = ready.map { publication in
      Intent(
        kind: .install, path: publication.path, partialName: publication.partial.name,
        trashName: publication.trashName, row: publication.row, displacesOwn: publication.displacesOwn)
    }
    try record(former, with: intents.map { .intent($0) })
    for publication in ready { client.ownWrites?.expect(publication.path, publication.row.identity) }
    let outcomes = client.folder.install(
      ready.map { publication in
        Installation(
          path: publication.path, partial: publication.partial, expectation: publication.expectation,
          trashName: publication.trashName)
      })
    for (publication, outcome) in zip(ready, outcomes) {
      if case .installed(let identity, _) = outcome {
        client.ownWrites?.note(publication.path, identity)
      } else {
        client.ownWrites?.withdraw(publication.path)
      }
    }
    return zip(ready, outcomes).map { ($0, $1) }
  }

  /// Records the former group with the new intents. On a full disk the former group is recorded alone, because it is already
  /// renamed and may still fit.
  private func record(_ former: Named?, with intents: [LedgerChange]) throws(LedgerFailure) {
    guard let former else { return try client.ledger.apply(intents) }
    do throws(LedgerFailure) {
      try write(former, and: intents)
    } catch {
      guard error.code == .noSpace else { throw error }
      try write(former)
      try client.ledger.apply(intents)
    }
  }

  private func write(_ named: Named, and intents: [LedgerChange] = []) throws(LedgerFailure) {
    let changes = changes(named) + intents
    let brought = named.compactMap { file, outcome in Self.isInstalled(outcome) ? file.brought : nil }
    if let engine = brought.first?.repair.engine {
      try engine.record(changes, brought: brought, in: client.ledger)
    } else {
      try client.ledger.apply(changes)
    }
    finish(named)
  }

  private func finish(_ named: Named) {
    for (publication, outcome) in named {
      if Self.isInstalled(outcome) || isKept(publication) {
        publication.partial.close()
      } else {
        publication.partial.discard()
      }
      post(.published(publication.job, outcome))
    }
  }

  private func changes(_ named: Named) -> [LedgerChange] {
    var changes: [LedgerChange] = []
    changes.reserveCapacity(6 * named.count)
    var (entries, bytes) = (0, UInt64(0))
    for (publication, outcome) in named {
      add(publication, outcome, to: &changes)
      guard publication.isCounted, case .installed(let identity, _) = outcome else { continue }
      entries += 1
      bytes.addSaturated(identity.size)
    }
    if entries > 0 { changes.append(.inPlace(entries: entries, bytes: bytes)) }
    return changes
  }

  /// Returns whether a file that did not get its name stays for another attempt. One without a row would be known to nobody.
  private func isKept(_ publication: Publication) -> Bool {
    guard client.keepsFailed else { return false }
    do throws(LedgerFailure) {
      return try client.ledger.partial(publication.path) != nil
    } catch {
      return true
    }
  }

  private static func isInstalled(_ outcome: PublishOutcome) -> Bool {
    if case .installed = outcome { true } else { false }
  }

  private func add(_ publication: Publication, _ outcome: PublishOutcome, to changes: inout [LedgerChange]) {
    if Self.isInstalled(outcome) || !client.keepsFailed { changes.append(.dropPartial(publication.path)) }
    // The trash may hold the new file or the displaced one.
    if case .failed = outcome, client.folder.mayHoldInTrash(publication.trashName) { return }
    changes.append(.dropIntent(publication.path))
    guard case .installed(let identity, let displaced) = outcome else { return }
    let now = client.now
    var row = publication.row
    row.identity = identity
    row.placed = now
    changes.append(.row(row))
    changes.append(.dropProblem(name: row.path.bytes))
    changes.append(
      .event(
        when: now, code: publication.kind.doneCode(isCopy: publication.isCopy), path: row.path,
        bytes: identity.size, detail: publication.detail))
    guard let displaced else { return }
    let isAsPlanned = publication.expects(displaced)
    changes.append(
      .trash(
        TrashRow(
          name: publication.trashName, path: row.path,
          reason: isAsPlanned && publication.kind != .replace ? .replaced : .edited,
          isOwn: publication.displacesOwn && isAsPlanned, size: displaced.size, when: now, identity: displaced
        )))
  }
}

extension TransferFolder {
  /// Returns whether the trash may hold an object of this name, after a failure halfway. Its intent then stays, so that the next
  /// pass can tell.
  ///
  /// - Parameter name: the name; empty where nothing was to go to the trash.
  func mayHoldInTrash(_ name: String) -> Bool {
    guard !name.isEmpty else { return false }
    do throws(FolderFailure) {
      return try trashIdentity(name) != nil
    } catch {
      return true
    }
  }
}

extension Publication {
  /// The reason for the change, for people.
  fileprivate var detail: String {
    let cause: String? =
      switch kind {
      case .restore: "it was gone from the folder"
      case .replace: "it was changed in the folder; what stood there is in the trash"
      default: nil
      }
    guard isCopy else { return cause ?? "" }
    return ["copied from a file of the folder", cause].compactMap { $0 }.joined(separator: "; ")
  }

  func expects(_ displaced: FileIdentity) -> Bool {
    guard case .present(let expected) = expectation else { return false }
    return expected.isSameContents(as: displaced)
  }
}
