import TarnCore
import TarnRuntime

/// A checked file on its way to its final name.
struct Publication: Sendable {
  var job: UInt64
  var kind: Action.Kind
  var path: RelativePath
  var partial: any PartialFile
  var expectation: Installation.Expectation
  var trashName: String
  /// The row to write; its identity is the one before the rename.
  var row: Row
  /// What is expected at the path was placed by Tarn, not adopted, and is as it left it.
  var displacesOwn: Bool
  var isCopy: Bool
}

/// Publishes in groups, on a thread of its own: durable together, then renamed, then the directories, then one
/// ledger transaction; only then is the word said (reliability.md 6.1).
final class PublishThread: Sendable {
  private struct State {
    var waiting: [Publication] = []
    /// Nothing more is coming soon: do not wait for a fuller group.
    var isFlushing = false
    var isClosed = false
  }

  static let largestGroup = 512
  /// How long a file waits for company, nanoseconds.
  private static let linger: UInt64 = 100_000_000

  private let state: LockedCondition<State>
  private let thread: WorkerThread

  init(
    folder: any FolderPort, ledger: any LedgerPort, clock: any Clock, ownWrites: OwnWrites? = nil,
    post: @escaping @Sendable (JobMessage) -> Void
  ) throws(ThreadFailure) {
    let state = LockedCondition(State())
    self.state = state
    let group = PublishGroup(
      folder: folder, ledger: ledger, clock: clock, ownWrites: ownWrites, post: post)
    thread = try WorkerThread.start(name: "tarn-publish") { Self.run(state, group) }
  }

  /// Wakes the thread for the first of a group and for the last one it can take: in between it would only look again.
  func submit(_ publication: Publication) {
    let isDue = state.withLock { state in
      state.waiting.append(publication)
      return state.waiting.count == 1 || state.waiting.count == Self.largestGroup
    }
    if isDue { state.change { _ in } }
  }

  func setFlushing(_ isFlushing: Bool) {
    let isNew = state.withLock { state in
      defer { state.isFlushing = isFlushing }
      return state.isFlushing != isFlushing
    }
    if isNew { state.change { _ in } }
  }

  /// Publishes what waits, and ends the thread.
  func close() {
    state.change { $0.isClosed = true }
    thread.join()
  }

  private static func run(_ state: LockedCondition<State>, _ group: PublishGroup) {
    while true {
      let isOver = state.wait { state -> Bool? in
        if !state.waiting.isEmpty { return false }
        return state.isClosed ? true : nil
      }
      if isOver { return }
      _ = state.wait(nanoseconds: linger) { state in
        state.isFlushing || state.isClosed || state.waiting.count >= largestGroup ? () : nil
      }
      let batch = state.withLock { state -> [Publication] in
        let batch = Array(state.waiting.prefix(largestGroup))
        state.waiting.removeFirst(batch.count)
        return batch
      }
      group.publish(batch)
    }
  }
}

/// One group: everything between "checked" and "synced".
struct PublishGroup: Sendable {
  let folder: any FolderPort
  let ledger: any LedgerPort
  let clock: any Clock
  var ownWrites: OwnWrites?
  let post: @Sendable (JobMessage) -> Void

  private static let replaced = FolderFailure(
    .markerMissing, "the folder was moved, replaced or unmounted while the pass ran")

  func publish(_ batch: [Publication]) {
    do throws(LedgerFailure) {
      let isIntact: Bool
      do throws(FolderFailure) {
        isIntact = try folder.isIntact()
      } catch {
        // A lack that may be over in a moment fails these files; anything else may be true of the whole folder.
        if error.code == .tooManyFiles || error.code == .outOfMemory { return try leave(batch, error) }
        for publication in batch { try leave(publication) }
        return post(.folderFailed(error))
      }
      if isIntact { try install(durable(batch)) } else { try leave(batch, Self.replaced) }
    } catch {
      for publication in batch { publication.partial.close() }
      post(.ledgerFailed(error))
    }
  }

  private func leave(_ batch: [Publication], _ failure: FolderFailure) throws(LedgerFailure) {
    for publication in batch {
      try leave(publication)
      var failure = failure
      failure.path = publication.path
      post(.published(publication.job, .failed(failure)))
    }
  }

  /// Those whose contents are durable; the others have failed.
  private func durable(_ batch: [Publication]) throws(LedgerFailure) -> [Publication] {
    var ready: [Publication] = []
    for (publication, failure) in zip(batch, folder.makeDurable(batch.map(\.partial))) {
      guard let failure else {
        ready.append(publication)
        continue
      }
      // After a failed fsync the bytes are lost: never synced again, always fetched again.
      try drop(publication)
      post(.published(publication.job, .failed(failure)))
    }
    return ready
  }

  /// Checked, and not published: what the ledger knows as partial file is there for the next pass, anything else
  /// nobody would find again.
  private func leave(_ publication: Publication) throws(LedgerFailure) {
    if try ledger.partial(publication.path)?.name == publication.partial.name {
      publication.partial.close()
    } else {
      try drop(publication)
    }
  }

  private func drop(_ publication: Publication) throws(LedgerFailure) {
    publication.partial.discard()
    try ledger.apply([.dropPartial(publication.path)])
  }

  private func install(_ ready: [Publication]) throws(LedgerFailure) {
    guard !ready.isEmpty else { return }
    try ledger.apply(ready.map { .intent(intent($0)) })
    for publication in ready { ownWrites?.expect(publication.path, publication.row.identity) }
    let outcomes = folder.install(ready.map(installation))
    for (publication, outcome) in zip(ready, outcomes) {
      if case .installed(let identity, _) = outcome { ownWrites?.note(publication.path, identity) }
    }
    try ledger.apply(zip(ready, outcomes).flatMap { changes($0, $1) })
    for (publication, outcome) in zip(ready, outcomes) { finish(publication, outcome) }
  }

  private func finish(_ publication: Publication, _ outcome: PublishOutcome) {
    if case .installed = outcome { publication.partial.close() } else { publication.partial.discard() }
    post(.published(publication.job, outcome))
  }

  private func intent(_ publication: Publication) -> Intent {
    Intent(
      kind: .install, path: publication.path, partialName: publication.partial.name,
      trashName: publication.trashName, row: publication.row, displacesOwn: publication.displacesOwn)
  }

  private func installation(_ publication: Publication) -> Installation {
    Installation(
      path: publication.path, partial: publication.partial, expectation: publication.expectation,
      trashName: publication.trashName)
  }

  /// After a failure half-way the trash may hold the new file, or what it displaced: then the intent stays, so that
  /// the next pass can tell.
  private func mayHoldInTrash(_ publication: Publication) -> Bool {
    do throws(FolderFailure) {
      return try folder.trashIdentity(publication.trashName) != nil
    } catch {
      return true
    }
  }

  private func changes(_ publication: Publication, _ outcome: PublishOutcome) -> [LedgerChange] {
    var changes: [LedgerChange] = [.dropPartial(publication.path)]
    if case .failed = outcome, mayHoldInTrash(publication) { return changes }
    changes.append(.dropIntent(publication.path))
    guard case .installed(let identity, let displaced) = outcome else { return changes }
    let now = Timestamp(nanoseconds: clock.now())
    var row = publication.row
    row.identity = identity
    row.placed = now
    changes += [
      .row(row), .dropProblem(name: row.path.bytes),
      .event(
        Event(
          when: now, code: publication.kind.doneCode(isCopy: publication.isCopy), path: row.path,
          bytes: identity.size,
          detail: publication.detail)),
    ]
    guard let displaced else { return changes }
    let isAsPlanned = publication.expects(displaced)
    changes.append(
      .trash(
        TrashRow(
          name: publication.trashName, path: row.path,
          reason: isAsPlanned && publication.kind != .replace ? .replaced : .edited,
          isOwn: publication.displacesOwn && isAsPlanned, size: displaced.size, when: now, identity: displaced
        )))
    return changes
  }
}

extension Publication {
  /// Why, for people.
  fileprivate var detail: String {
    let cause: String? =
      switch kind {
      case .restore: "it was gone from the folder"
      case .replace: "it was changed in the folder; what stood there is in the trash"
      default: nil
      }
    return [isCopy ? "copied from a file of the folder" : nil, cause].compactMap { $0 }
      .joined(separator: "; ")
  }

  func expects(_ displaced: FileIdentity) -> Bool {
    guard case .present(let expected) = expectation else { return false }
    return expected.isSameContents(as: displaced)
  }
}

extension Action.Kind {
  /// The code of the event once it is done with bytes that were in the folder, or that came from a server.
  func doneCode(isCopy: Bool) -> String { isCopy ? "copied" : doneCode }

  var doneCode: String {
    switch self {
    case .fetch: "fetched"
    case .update, .revalidate: "updated"
    case .restore: "restored"
    case .replace: "replaced"
    case .adopt: "adopted"
    case .delete: "deleted"
    case .forget: "forgotten"
    case .inspect: "inspected"
    }
  }
}

extension PublishOutcome {
  var isInstalled: Bool {
    if case .installed = self { true } else { false }
  }
}
