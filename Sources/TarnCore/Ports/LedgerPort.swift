/// A download that is not finished: enough to prove that more bytes belong to the same version.
package struct PartialRow: Sendable, Equatable {
  package var path: RelativePath
  /// Its name in `partial/`.
  package var name: String
  package var url: String
  /// Strong ETag with quotes; nil when the response had none or a weak one.
  package var etag: String?
  /// Last-Modified, only when it is strong by RFC 9110 8.8.2.2.
  package var lastModified: String?
  package var total: UInt64?
  /// The digest that the feed gave for this version.
  package var digest: Digest?
  package var fingerprint: [UInt8]
  /// Bytes known to be durable.
  package var durable: UInt64
  /// Of the boot that wrote it; empty when it could not be read, which counts as another boot.
  package var bootID: String

  package init(
    path: RelativePath, name: String, url: String, etag: String?, lastModified: String?, total: UInt64?,
    digest: Digest?, fingerprint: [UInt8], durable: UInt64, bootID: String
  ) {
    self.path = path
    self.name = name
    self.url = url
    self.etag = etag
    self.lastModified = lastModified
    self.total = total
    self.digest = digest
    self.fingerprint = fingerprint
    self.durable = durable
    self.bootID = bootID
  }
}

/// Said before a file is renamed, so that a crash between the rename and the row can be told.
package struct Intent: Sendable, Equatable {
  package enum Kind: UInt8, Sendable { case install = 1, remove = 2 }
  package var kind: Kind
  package var path: RelativePath
  /// install: the name in `partial/`, empty for a file that has none; remove: empty.
  package var partialName: String
  /// Where what stands at the path goes; empty where nothing was expected there.
  package var trashName: String
  /// install: the row to write once the file is seen there (its identity before the rename); remove: the row
  /// that goes.
  package var row: Row
  /// True when what was expected at the path was placed by Tarn, not adopted, and not edited since.
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

  /// The new file has no name before its last one: a crash before that takes it.
  package var isUnnamed: Bool { kind == .install && partialName.isEmpty }
}

/// Something in the trash.
package struct TrashRow: Sendable, Equatable {
  package enum Reason: String, Sendable { case deleted, replaced, edited }
  /// Its name in `trash/`, and its id for users.
  package var name: String
  package var path: RelativePath
  package var reason: Reason
  /// True when Tarn placed these bytes: then they expire, as long as `identity` still fits.
  package var isOwn: Bool
  package var size: UInt64
  package var when: Timestamp
  /// What stat said of it in the trash after the move, with the same `size`; nil when nobody looked: then it is not
  /// Tarn's.
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

  /// The row as what lies there now makes it: bytes that somebody wrote after the move, through a descriptor that was
  /// open still, are not Tarn's. Mode and links may change.
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

/// An entry that is not as it should be, and why; shown by status and explain until a pass clears it.
package struct Problem: Sendable, Equatable {
  package enum Kind: String, Sendable, CaseIterable { case failed, refused, conflict, held }
  /// The path, or the refused name as the feed gave it.
  package var name: [UInt8]
  package var kind: Kind
  package var code: String
  package var message: String
  /// When it was first seen, and last.
  package var since: Timestamp
  package var seen: Timestamp
  /// How many passes found it.
  package var attempts: Int

  /// A problem that a pass sees now, for the first time as far as the caller knows; the ledger keeps `since` and adds up
  /// `attempts` when it knows the same name with the same code, seen at another time.
  package init(name: [UInt8], kind: Kind, code: String, message: String, seen: Timestamp) {
    self.name = name
    self.kind = kind
    self.code = code
    self.message = message
    self.since = seen
    self.seen = seen
    self.attempts = 1
  }

  /// The same, found by who is no pass.
  package var asLooked: Problem {
    var problem = self
    problem.attempts = 0
    return problem
  }
}

/// Something that happened. Numbered by the ledger; the number only grows.
package struct Event: Sendable, Equatable {
  /// 0 until it is stored.
  package var number: Int64
  package var when: Timestamp
  /// Stable: `published`, `adopted`, `deleted`, `restored`, `failed` ...
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
  /// Eight hexadecimal digits, of the set of paths and digests.
  package var id: String
  package var when: Timestamp
  package var count: Int
  /// Why the guard holds it, for a person.
  package var reason: String
  /// It stays held until it is approved, whatever comes meanwhile.
  package var isForPerson: Bool

  package init(id: String, when: Timestamp, count: Int, reason: String = "", isForPerson: Bool = false) {
    self.id = id
    self.when = when
    self.count = count
    self.reason = reason
    self.isForPerson = isForPerson
  }
}

/// A transfer in progress, for `tarn status` beside a running pass.
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

/// One thing to write. A list of them is one transaction. What is large lies in a box of its own, for changes are handed on often.
package enum LedgerChange: Sendable, Equatable {
  /// Inserts or replaces.
  indirect case row(Row)
  case dropRow(RelativePath)
  indirect case intent(Intent)
  case dropIntent(RelativePath)
  indirect case partial(PartialRow)
  case durable(path: RelativePath, bytes: UInt64)
  case dropPartial(RelativePath)
  indirect case trash(TrashRow)
  case dropTrash(name: String)
  /// Inserts; a known one of the same name and code keeps `since`, gets the new `seen` and the new attempts on top.
  indirect case problem(Problem)
  /// - Parameter isUnwanted: the feed does not name it any more, so that nothing has come right.
  case dropProblem(name: [UInt8], isUnwanted: Bool = false)
  /// After a pass: what it did not see again is solved.
  case dropProblems(seenBefore: Timestamp)
  /// Appends, with the next number.
  indirect case event(Event)
  /// Drops the events before a moment, but not the newest so many nor the deletions of the 24 hours before `now` (the
  /// guard's window), and keeps the number of the last one dropped as the fact `events-dropped`.
  case pruneEvents(keeping: Int, before: Timestamp, now: Timestamp)
  case hold(HeldPlan)
  case heldPath(plan: String, path: RelativePath)
  /// Out of the held plan: its count goes down, and with the last path it is held no more.
  case dropHeldPath(RelativePath)
  case dropHolds
  /// Inserts or replaces.
  case name(NameRow)
  case dropName(RelativePath)
  /// Replaces the whole list.
  case activity([Activity])
  /// A small named fact: the feed, the policy, times of the last pass. nil removes it.
  case fact(LedgerFact, String?)
  /// Adds to the numbers of what is in place: `entries-current` and `bytes-current`, where they are known.
  case inPlace(entries: Int, bytes: UInt64)
}

/// The record of what the engine transfers for one client. Blocking; any thread.
package protocol TransferLedger: AnyObject, Sendable {
  /// All or nothing, durable on return (synchronous=FULL).
  func apply(_ changes: [LedgerChange]) throws(LedgerFailure)
  /// The same, but a power cut may lose it until the next durable write: for activity and other things that are soon stale, and for
  /// what is of no use without bytes that the same power cut takes.
  func applyVolatile(_ changes: [LedgerChange]) throws(LedgerFailure)

  func row(_ path: RelativePath) throws(LedgerFailure) -> Row?
  /// The rows of a region by path bytes, as of now, whatever is written meanwhile.
  func rows(in region: Region) throws(LedgerFailure) -> any RowCursor
  /// At most `limit` rows with that digest, by path bytes; those behind `after` when it is given.
  func rows(digest: Digest, after: RelativePath?, limit: Int) throws(LedgerFailure) -> [Row]
  func partial(_ path: RelativePath) throws(LedgerFailure) -> PartialRow?
  func partials(in region: Region) throws(LedgerFailure) -> [PartialRow]
}

/// The record of one mirror. Blocking; any thread; one writer (the folder's lock), readers beside it.
package protocol LedgerPort: TransferLedger {
  /// The same of all rows, without what only a decision needs.
  func recorded() throws(LedgerFailure) -> any RecordedCursor
  func rowCount() throws(LedgerFailure) -> Int
  /// How many rows lie below a directory.
  func rowCount(below path: RelativePath) throws(LedgerFailure) -> Int
  func rowBytes() throws(LedgerFailure) -> UInt64
  func intents() throws(LedgerFailure) -> [Intent]
  func trash() throws(LedgerFailure) -> [TrashRow]
  /// How many files lie in the trash, and their bytes.
  func trashTotals() throws(LedgerFailure) -> (files: Int, bytes: UInt64)
  /// By name.
  ///
  /// - Parameter failedSince: without those of kind `failed` that were last seen before; nil for all.
  func problems(limit: Int, failedSince: Timestamp?) throws(LedgerFailure) -> [Problem]
  func problem(name: [UInt8]) throws(LedgerFailure) -> Problem?
  /// The first by name, of this code, of what lies below a path.
  func problem(below path: RelativePath, code: String) throws(LedgerFailure) -> Problem?
  /// Counts the same.
  func problemCounts(failedSince: Timestamp?) throws(LedgerFailure) -> [Problem.Kind: Int]
  /// Counts those that were last seen before, of all kinds.
  func problemCounts(seenBefore: Timestamp) throws(LedgerFailure) -> [Problem.Kind: Int]
  /// Counts what failed and has a row: it was in place once.
  func failedRowCount() throws(LedgerFailure) -> Int
  /// Events after a number, oldest first.
  func events(after number: Int64, limit: Int) throws(LedgerFailure) -> [Event]
  /// The number of the newest event; 0 when there never was one.
  func lastEvent() throws(LedgerFailure) -> Int64
  /// The newest events of one path, newest first.
  func events(path: RelativePath, limit: Int) throws(LedgerFailure) -> [Event]
  /// How many events with that code there are behind a number.
  func eventCount(code: String, after number: Int64) throws(LedgerFailure) -> Int
  func held() throws(LedgerFailure) -> HeldPlan?
  /// At most `limit` paths of a plan, by path bytes; those behind `after` when it is given.
  func heldPaths(plan: String, after: RelativePath?, limit: Int) throws(LedgerFailure) -> [RelativePath]
  func isHeld(_ path: RelativePath, plan: String) throws(LedgerFailure) -> Bool
  /// The files of windows that are known by a guid.
  func names(guid: [UInt8]) throws(LedgerFailure) -> [NameRow]
  func names(url: [UInt8]) throws(LedgerFailure) -> [NameRow]
  /// At most `limit` of those known by a URL without query and fragment.
  func names(place: [UInt8], limit: Int) throws(LedgerFailure) -> [NameRow]
  func names(title: [UInt8], date: Timestamp) throws(LedgerFailure) -> [NameRow]
  func name(_ path: RelativePath) throws(LedgerFailure) -> NameRow?
  /// The files of windows that have a row, the newest by date or first sight first, then by path.
  func placedNames() throws(LedgerFailure) -> [NameRow]
  func activity() throws(LedgerFailure) -> [Activity]
  func fact(_ name: LedgerFact) throws(LedgerFailure) -> String?
  func close()
}

extension TransferLedger {
  /// All rows.
  package func rows() throws(LedgerFailure) -> any RowCursor { try rows(in: .everything) }

  /// All unfinished downloads.
  package func partials() throws(LedgerFailure) -> [PartialRow] { try partials(in: .everything) }
}

extension LedgerPort {
  /// All paths of a plan.
  package func heldPaths(plan: String) throws(LedgerFailure) -> [RelativePath] {
    try heldPaths(plan: plan, after: nil, limit: .max)
  }
}

/// Rows one at a time. One thread.
package protocol RowCursor: AnyObject {
  /// nil at the end.
  func next() throws(LedgerFailure) -> Row?
}

/// Where a row says that a file is, and which one.
package struct Recorded: Sendable, Equatable {
  package var path: RelativePath
  package var identity: FileIdentity

  package init(path: RelativePath, identity: FileIdentity) {
    self.path = path
    self.identity = identity
  }
}

/// The same, one at a time. One thread.
package protocol RecordedCursor: AnyObject {
  /// nil at the end.
  func next() throws(LedgerFailure) -> Recorded?
}

/// An operation on the ledger that failed.
package struct LedgerFailure: Error, Sendable, Equatable {
  /// What helps where a file system is full, of bytes or of files.
  package static let makeRoom = "remove what is not needed on that file system, and try again"

  package enum Code: String, Sendable, CaseIterable {
    /// Not a ledger, or damaged: set aside and rebuilt.
    case corrupt = "ledger-corrupt"
    /// Written by a newer Tarn: refused, untouched.
    case newer = "ledger-newer"
    /// Written by an older Tarn, and opened to be read only: whoever writes to it brings it up to date.
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
  /// What the kernel said; 0 when it was not asked, or when its answer was lost.
  package var errno: Int32

  package init(_ code: Code, _ message: String, errno: Int32 = 0) {
    self.code = code
    self.message = message
    self.errno = errno
  }
}

/// What a plan says is to be done. One thread at a time; it can be read again.
package protocol ActionList: AnyObject, Sendable {
  /// The actions in the order to carry them out: by phase, then by path.
  func actions() throws(LedgerFailure) -> any ActionCursor
}

/// A place on disk for what a pass cannot hold in memory: the manifest in path order, and the plan. It
/// outlives nothing. One thread at a time.
package protocol StagePort: ActionList {
  /// Keeps an entry; two entries of one path are both kept, in the order they came.
  func add(_ entry: Entry) throws(LedgerFailure)
  /// The entries by path bytes, then in the order they came.
  func entries() throws(LedgerFailure) -> any EntryCursor
  /// Forgets entries and actions.
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
