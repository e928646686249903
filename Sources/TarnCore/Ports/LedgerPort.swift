/// An unfinished download, with enough to prove that more bytes belong to the same version.
package struct PartialRow: Sendable, Equatable {
  package var path: RelativePath
  /// The name of the file in `partial/`.
  package var name: String
  /// The URL that was asked for.
  package var url: String
  /// The URL that sent the bytes, after redirects; `nil` when it is not known.
  package var answered: String?
  /// The strong ETag with quotes; `nil` when the response had none or a weak one.
  package var etag: String?
  /// Last-Modified, kept only when it is strong by RFC 9110 8.8.2.2.
  package var lastModified: String?
  /// Last-Modified when it is not strong; then `lastModified` is `nil`.
  package var weakDate: String?
  package var total: UInt64?
  /// The digest that the feed gave for this version.
  package var digest: Digest?
  package var fingerprint: [UInt8]
  /// The number of bytes known to be durable.
  package var durable: UInt64
  /// The ID of the boot that wrote it. Empty when it could not be read, which counts as another boot.
  package var bootID: String

  package init(
    path: RelativePath, name: String, url: String, etag: String?, lastModified: String?, total: UInt64?,
    digest: Digest?, fingerprint: [UInt8], durable: UInt64, bootID: String, answered: String? = nil,
    weakDate: String? = nil
  ) {
    self.path = path
    self.name = name
    self.url = url
    self.etag = etag
    self.lastModified = lastModified
    self.weakDate = weakDate
    self.total = total
    self.digest = digest
    self.fingerprint = fingerprint
    self.durable = durable
    self.bootID = bootID
    self.answered = answered
  }
}

/// The record of an intended rename, written first, so that a crash between the rename and the row can be detected.
package struct Intent: Sendable, Equatable {
  package enum Kind: UInt8, Sendable { case install = 1, remove = 2 }
  package var kind: Kind
  package var path: RelativePath
  /// The name in `partial/` for an install; empty for a file that has none, and for a removal.
  package var partialName: String
  /// The trash name of what stands at the path; empty where nothing was expected there.
  package var trashName: String
  /// The row. For an install: the one to write once the file is found there (its identity before the rename). For a removal: the
  /// one to drop.
  package var row: Row
  /// True when the object expected at the path was placed by Tarn, not adopted, and not edited since.
  package var displacesOwn: Bool

  package init(
    kind: Kind, path: RelativePath, partialName: String, trashName: String, row: Row, displacesOwn: Bool
  ) {
    self.kind = kind
    self.path = path
    self.partialName = partialName
    self.trashName = trashName
    self.row = row
    self.displacesOwn = displacesOwn
  }

  /// True when the new file has no name until its final one, so that a crash before that removes it.
  package var isUnnamed: Bool { kind == .install && partialName.isEmpty }
}

/// An object in the trash.
package struct TrashRow: Sendable, Equatable {
  package enum Reason: String, Sendable { case deleted, replaced, edited }
  /// The name in `trash/`, also its ID for users.
  package var name: String
  package var path: RelativePath
  package var reason: Reason
  /// True when Tarn placed these bytes. Then they expire, as long as `identity` still matches.
  package var isOwn: Bool
  package var size: UInt64
  package var when: Timestamp
  /// The identity of the object in the trash after the move, with the same `size`. `nil` when nobody looked; then it is not Tarn's.
  package var identity: FileIdentity?

  package init(
    name: String, path: RelativePath, reason: Reason, isOwn: Bool, size: UInt64, when: Timestamp,
    identity: FileIdentity? = nil
  ) {
    self.name = name
    self.path = path
    self.reason = reason
    self.isOwn = isOwn
    self.size = size
    self.when = when
    self.identity = identity
  }

  /// Returns the row adjusted to what lies there now. Bytes that were written after the move, through a descriptor that was still
  /// open, are not Tarn's. Mode and links may change.
  package func lying(_ now: FileIdentity) -> TrashRow {
    if !isOwn || identity?.isSameContents(as: now) == true { return self }
    var row = self
    row.isOwn = false
    row.reason = .edited
    row.size = now.size
    row.identity = now
    return row
  }
}

/// An entry that is not as it should be, and the reason. Shown by status and explain until a pass clears it.
package struct Problem: Sendable, Equatable {
  package enum Kind: String, Sendable, CaseIterable { case failed, refused, conflict, held }
  /// The path, or the refused name as the feed gave it.
  package var name: [UInt8]
  package var kind: Kind
  package var code: String
  package var message: String
  /// When it was first and last seen.
  package var since: Timestamp
  package var seen: Timestamp
  /// The number of passes that found it.
  package var attempts: Int

  /// Makes a problem that a pass sees now. When the ledger has the same name with the same code, seen at another time, it keeps
  /// `since` and adds up `attempts`.
  package init(name: [UInt8], kind: Kind, code: String, message: String, seen: Timestamp) {
    self.name = name
    self.kind = kind
    self.code = code
    self.message = message
    self.since = seen
    self.seen = seen
    self.attempts = 1
  }

  /// The same problem, found by something other than a pass.
  package var asLooked: Problem {
    var problem = self
    problem.attempts = 0
    return problem
  }
}

/// An event of the mirror, numbered by the ledger. The number only grows.
package struct Event: Sendable, Equatable {
  /// The number; 0 until the event is stored.
  package var number: Int64
  package var when: Timestamp
  /// A stable code: `published`, `adopted`, `deleted`, `restored`, `failed` ...
  package var code: String
  package var path: RelativePath?
  package var bytes: UInt64?
  package var detail: String

  package init(
    number: Int64 = 0, when: Timestamp, code: String, path: RelativePath? = nil, bytes: UInt64? = nil,
    detail: String = ""
  ) {
    self.number = number
    self.when = when
    self.code = code
    self.path = path
    self.bytes = bytes
    self.detail = detail
  }
}

/// Deletions that wait for `tarn approve`.
package struct HeldPlan: Sendable, Equatable {
  /// Eight hexadecimal digits, made from the set of paths and digests.
  package var id: String
  package var when: Timestamp
  package var count: Int
  /// Why the guard holds it, for people.
  package var reason: String
  /// True when it stays held until it is approved, whatever comes meanwhile.
  package var isForPerson: Bool

  package init(id: String, when: Timestamp, count: Int, reason: String = "", isForPerson: Bool = false) {
    self.id = id
    self.when = when
    self.count = count
    self.reason = reason
    self.isForPerson = isForPerson
  }
}

/// A transfer in progress, shown by `tarn status` during a pass.
package struct Activity: Sendable, Equatable {
  package var path: RelativePath
  package var received: UInt64
  package var total: UInt64?
  /// Bytes per second.
  package var rate: UInt64
  package var source: String

  package init(path: RelativePath, received: UInt64, total: UInt64?, rate: UInt64, source: String) {
    self.path = path
    self.received = received
    self.total = total
    self.rate = rate
    self.source = source
  }
}

/// One thing to write; a list of them is one transaction. Large values are boxed (`indirect`), since changes are passed on often.
package enum LedgerChange: Sendable, Equatable {
  /// Inserts or replaces a row.
  indirect case row(Row)
  case dropRow(RelativePath)
  indirect case intent(Intent)
  case dropIntent(RelativePath)
  indirect case partial(PartialRow)
  case durable(path: RelativePath, bytes: UInt64)
  case dropPartial(RelativePath)
  indirect case trash(TrashRow)
  case dropTrash(name: String)
  /// Inserts a problem. A known one of the same name and code keeps `since` and adds up the attempts of later moments; `seen` never
  /// goes back.
  indirect case problem(Problem)
  /// - Parameter isUnwanted: true when the feed no longer names the entry, so that nothing was solved.
  case dropProblem(name: [UInt8], isUnwanted: Bool = false)
  /// Drops the problems that a pass did not see again: they are solved.
  case dropProblems(seenBefore: Timestamp)
  /// Appends an event with the next number.
  indirect case event(Event)
  /// Drops the events before a moment, except the newest `keeping` and the deletions of the 24 hours before `now` (the guard's
  /// window). The number of the last one dropped is kept as the fact `events-dropped`.
  case pruneEvents(keeping: Int, before: Timestamp, now: Timestamp)
  case hold(HeldPlan)
  case heldPath(plan: String, path: RelativePath)
  /// Removes a path from the held plan and lowers its count. With the last path the plan is no longer held.
  case dropHeldPath(RelativePath)
  case dropHolds
  /// Inserts or replaces the name of a file of a window. Names outlive rows, so that an item is known again however late it comes
  /// back.
  case name(NameRow)
  /// Replaces the whole list.
  case activity([Activity])
  /// Sets a small named fact: the feed, the policy, times of the last pass. `nil` removes it.
  case fact(LedgerFact, String?)
  /// Adds to the counts of what is in place, `entries-current` and `bytes-current`, where they are known.
  case inPlace(entries: Int, bytes: UInt64)
}

/// The record of what the engine transfers for one client. Blocking; any thread.
package protocol TransferLedger: AnyObject, Sendable {
  /// Writes all changes or none; durable on return (synchronous=FULL).
  func apply(_ changes: [LedgerChange]) throws(LedgerFailure)
  /// Writes like `apply`, but a power cut may lose it until the next durable write. For activity and other short-lived data, and
  /// for data that is useless without bytes that the same power cut takes.
  func applyVolatile(_ changes: [LedgerChange]) throws(LedgerFailure)

  func row(_ path: RelativePath) throws(LedgerFailure) -> Row?
  /// Returns the rows of a region by path bytes, as of now, whatever is written meanwhile.
  func rows(in region: Region) throws(LedgerFailure) -> any RowCursor
  /// Returns at most `limit` rows with that digest, by path bytes; those after `after` when it is given.
  func rows(digest: Digest, after: RelativePath?, limit: Int) throws(LedgerFailure) -> [Row]
  func partial(_ path: RelativePath) throws(LedgerFailure) -> PartialRow?
  func partials(in region: Region) throws(LedgerFailure) -> [PartialRow]
}

/// The record of one mirror. Blocking; any thread; one writer (the folder's lock) and concurrent readers.
package protocol LedgerPort: TransferLedger {
  /// Returns all rows without what only a decision needs.
  func recorded() throws(LedgerFailure) -> any RecordedCursor
  func rowCount() throws(LedgerFailure) -> Int
  /// Returns the number of rows below a directory.
  func rowCount(below path: RelativePath) throws(LedgerFailure) -> Int
  func rowBytes() throws(LedgerFailure) -> UInt64
  func intents() throws(LedgerFailure) -> [Intent]
  func trash() throws(LedgerFailure) -> [TrashRow]
  /// Returns the number of files in the trash and their bytes.
  func trashTotals() throws(LedgerFailure) -> (files: Int, bytes: UInt64)
  /// Returns problems sorted by name.
  ///
  /// - Parameter failedSince: leaves out those of kind `failed` that were last seen before this time; `nil` for all.
  func problems(limit: Int, failedSince: Timestamp?) throws(LedgerFailure) -> [Problem]
  func problem(name: [UInt8]) throws(LedgerFailure) -> Problem?
  /// Returns the first problem by name that has this code and lies below a path.
  func problem(below path: RelativePath, code: String) throws(LedgerFailure) -> Problem?
  /// Counts the problems by kind; `failedSince` as in `problems`.
  func problemCounts(failedSince: Timestamp?) throws(LedgerFailure) -> [Problem.Kind: Int]
  /// Counts the problems of all kinds that were last seen before a time.
  func problemCounts(seenBefore: Timestamp) throws(LedgerFailure) -> [Problem.Kind: Int]
  /// Counts the failed entries that have a row, which were in place once.
  func failedRowCount() throws(LedgerFailure) -> Int
  /// Returns the events after a number, oldest first.
  func events(after number: Int64, limit: Int) throws(LedgerFailure) -> [Event]
  /// Returns the number of the newest event; 0 when there never was one.
  func lastEvent() throws(LedgerFailure) -> Int64
  /// Returns the newest events of one path, newest first.
  func events(path: RelativePath, limit: Int) throws(LedgerFailure) -> [Event]
  /// Returns the number of events with that code after a number.
  func eventCount(code: String, after number: Int64) throws(LedgerFailure) -> Int
  func held() throws(LedgerFailure) -> HeldPlan?
  /// Returns at most `limit` paths of a plan, by path bytes; those after `after` when it is given.
  func heldPaths(plan: String, after: RelativePath?, limit: Int) throws(LedgerFailure) -> [RelativePath]
  func isHeld(_ path: RelativePath, plan: String) throws(LedgerFailure) -> Bool
  /// Returns the files of windows that are known by a guid.
  func names(guid: [UInt8]) throws(LedgerFailure) -> [NameRow]
  func names(url: [UInt8]) throws(LedgerFailure) -> [NameRow]
  /// Returns at most `limit` of the files known by a URL without query and fragment.
  func names(place: [UInt8], limit: Int) throws(LedgerFailure) -> [NameRow]
  func names(title: [UInt8], date: Timestamp) throws(LedgerFailure) -> [NameRow]
  func name(_ path: RelativePath) throws(LedgerFailure) -> NameRow?
  /// Returns the files of windows that have a row, the newest by date or first sight first, then by path.
  func placedNames() throws(LedgerFailure) -> [NameRow]
  func activity() throws(LedgerFailure) -> [Activity]
  func fact(_ name: LedgerFact) throws(LedgerFailure) -> String?
  func close()
}

extension TransferLedger {
  /// Returns all rows.
  package func rows() throws(LedgerFailure) -> any RowCursor { try rows(in: .everything) }

  /// Returns all unfinished downloads.
  package func partials() throws(LedgerFailure) -> [PartialRow] { try partials(in: .everything) }
}

/// Reads rows one at a time. Used by one thread.
package protocol RowCursor: AnyObject {
  /// Returns the next row; `nil` at the end.
  func next() throws(LedgerFailure) -> Row?
}

/// The path and the identity of the file that a row records.
package struct Recorded: Sendable, Equatable {
  package var path: RelativePath
  package var identity: FileIdentity

  package init(path: RelativePath, identity: FileIdentity) {
    self.path = path
    self.identity = identity
  }
}

/// Reads the recorded paths and identities one at a time. Used by one thread.
package protocol RecordedCursor: AnyObject {
  /// Returns the next record; `nil` at the end.
  func next() throws(LedgerFailure) -> Recorded?
}

/// An operation on the ledger that failed.
package struct LedgerFailure: Error, Sendable, Equatable {
  /// The hint for a full file system, out of bytes or of files.
  package static let makeRoom = "remove what is not needed on that file system, and try again"

  package enum Code: String, Sendable, CaseIterable {
    /// The file is damaged or no ledger: it is set aside and rebuilt.
    case corrupt = "ledger-corrupt"
    /// Written by a newer Tarn: it is refused and left untouched.
    case newer = "ledger-newer"
    /// Written by an older Tarn and opened only for reading. The next writer updates it.
    case older = "ledger-older"
    case noSpace = "no-space"
    case readOnly = "read-only"
    case permission = "permission-denied"
    case inputOutput = "input-output-error"
    case tooManyFiles = "too-many-open-files"
    case busy = "ledger-busy"
    case missing = "ledger-missing"
    case other = "ledger-error"
  }
  package var code: Code
  package var message: String
  /// The errno; 0 when the kernel was not asked, or its answer was lost.
  package var errno: Int32

  package init(_ code: Code, _ message: String, errno: Int32 = 0) {
    self.code = code
    self.message = message
    self.errno = errno
  }
}

/// The actions of a plan. Used by one thread at a time; it can be read again.
package protocol ActionList: AnyObject, Sendable {
  /// Returns the actions in the order to carry them out: by phase, then by path.
  func actions() throws(LedgerFailure) -> any ActionCursor
}

/// A temporary store on disk for what a pass cannot hold in memory: the manifest in path order, and the plan. Used by one thread at
/// a time.
package protocol StagePort: ActionList {
  /// Keeps an entry. Two entries of one path are both kept, in the order they came.
  func add(_ entry: Entry) throws(LedgerFailure)
  /// Returns the entries by path bytes, then in the order they came.
  func entries() throws(LedgerFailure) -> any EntryCursor
  /// Drops all entries and actions. Cursors from before read on what there was.
  func clear() throws(LedgerFailure)

  func add(_ action: Action) throws(LedgerFailure)
  func actionCount() throws(LedgerFailure) -> Int
}

package protocol EntryCursor: AnyObject {
  func next() throws(LedgerFailure) -> Entry?
}

package protocol ActionCursor: AnyObject {
  func next() throws(LedgerFailure) -> Action?
}

extension LedgerPort {
  package func problems(limit: Int) throws(LedgerFailure) -> [Problem] {
    try problems(limit: limit, failedSince: nil)
  }

  package func problemCounts() throws(LedgerFailure) -> [Problem.Kind: Int] {
    try problemCounts(failedSince: nil)
  }
}

extension LedgerChange {
  package static func event(
    when: Timestamp, code: String, path: RelativePath? = nil, bytes: UInt64? = nil, detail: String = ""
  ) -> LedgerChange {
    .event(Event(when: when, code: code, path: path, bytes: bytes, detail: detail))
  }
}
