package import TarnCore

/// A folder that is not there: what a plan sees before the first pass.
package struct AbsentFolder: FolderReading {
  package init() {}

  private final class Nothing: SnapshotCursor {
    func next() throws(FolderFailure) -> Present? { nil }
  }

  package func scan(_ region: Region) -> any SnapshotCursor { Nothing() }
  package func look(_ path: RelativePath) throws(FolderFailure) -> Present? { nil }
  package func digest(
    of path: RelativePath, _ algorithm: DigestAlgorithm, watch: (Int) -> Bool
  ) throws(FolderFailure) -> (Digest, FileIdentity)? { nil }
}

/// The ledger of a mirror that is not made yet: empty, and nothing can be written into it.
package struct AbsentLedger: LedgerPort {
  package init() {}

  private final class Nothing: RowCursor, RecordedCursor {
    func next() throws(LedgerFailure) -> Row? { nil }
    func next() throws(LedgerFailure) -> Recorded? { nil }
  }

  package func apply(_ changes: [LedgerChange]) throws(LedgerFailure) {
    throw LedgerFailure(.readOnly, "there is no ledger to write into")
  }
  package func applyVolatile(_ changes: [LedgerChange]) throws(LedgerFailure) {}
  package func row(_ path: RelativePath) throws(LedgerFailure) -> Row? { nil }
  package func rows(in region: Region) throws(LedgerFailure) -> any RowCursor { Nothing() }
  package func recorded() throws(LedgerFailure) -> any RecordedCursor { Nothing() }
  package func rowCount() throws(LedgerFailure) -> Int { 0 }
  package func rowCount(below path: RelativePath) throws(LedgerFailure) -> Int { 0 }
  package func rowBytes() throws(LedgerFailure) -> UInt64 { 0 }
  package func rows(digest: Digest, after: RelativePath?, limit: Int) throws(LedgerFailure) -> [Row] { [] }
  package func intents() throws(LedgerFailure) -> [Intent] { [] }
  package func partial(_ path: RelativePath) throws(LedgerFailure) -> PartialRow? { nil }
  package func partials() throws(LedgerFailure) -> [PartialRow] { [] }
  package func trash() throws(LedgerFailure) -> [TrashRow] { [] }
  package func trashTotals() throws(LedgerFailure) -> (files: Int, bytes: UInt64) { (0, 0) }
  package func lastEvent() throws(LedgerFailure) -> Int64 { 0 }
  package func problems(limit: Int, failedSince: Timestamp?) throws(LedgerFailure) -> [Problem] { [] }
  package func problem(name: [UInt8]) throws(LedgerFailure) -> Problem? { nil }
  package func problem(below path: RelativePath, code: String) throws(LedgerFailure) -> Problem? { nil }
  package func problemCounts(failedSince: Timestamp?) throws(LedgerFailure) -> [Problem.Kind: Int] { [:] }
  package func problemCounts(seenBefore: Timestamp) throws(LedgerFailure) -> [Problem.Kind: Int] { [:] }
  package func failedRowCount() throws(LedgerFailure) -> Int { 0 }
  package func events(after number: Int64, limit: Int) throws(LedgerFailure) -> [Event] { [] }
  package func events(path: RelativePath, limit: Int) throws(LedgerFailure) -> [Event] { [] }
  package func eventCount(code: String, after number: Int64) throws(LedgerFailure) -> Int { 0 }
  package func held() throws(LedgerFailure) -> HeldPlan? { nil }
  package func heldPaths(plan: String, after: RelativePath?, limit: Int) throws(LedgerFailure)
    -> [RelativePath]
  {
    []
  }
  package func isHeld(_ path: RelativePath, plan: String) throws(LedgerFailure) -> Bool { false }
  package func names(guid: [UInt8]) throws(LedgerFailure) -> [NameRow] { [] }
  package func names(url: [UInt8]) throws(LedgerFailure) -> [NameRow] { [] }
  package func names(place: [UInt8], limit: Int) throws(LedgerFailure) -> [NameRow] { [] }
  package func names(title: [UInt8], date: Timestamp) throws(LedgerFailure) -> [NameRow] { [] }
  package func name(_ path: RelativePath) throws(LedgerFailure) -> NameRow? { nil }
  package func placedNames() throws(LedgerFailure) -> [NameRow] { [] }
  package func activity() throws(LedgerFailure) -> [Activity] { [] }
  package func fact(_ name: LedgerFact) throws(LedgerFailure) -> String? { nil }
  package func close() {}
}
