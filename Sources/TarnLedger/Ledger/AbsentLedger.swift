package import TarnCore

/// The ledger of a mirror that does not exist yet. It is empty, and writing to it fails.
package final class AbsentLedger: LedgerPort {
  package init() {}

  private final class Nothing: RowCursor, RecordedCursor {
    func next() -> Row? { nil }
    func next() -> Recorded? { nil }
  }

  package func apply(_ changes: [LedgerChange]) throws(LedgerFailure) {
    throw LedgerFailure(.readOnly, "there is no ledger to write into")
  }
  package func applyVolatile(_ changes: [LedgerChange]) {}
  package func row(_ path: RelativePath) -> Row? { nil }
  package func rows(in region: Region) -> any RowCursor { Nothing() }
  package func recorded() -> any RecordedCursor { Nothing() }
  package func rowCount() -> Int { 0 }
  package func rowCount(below path: RelativePath) -> Int { 0 }
  package func rowBytes() -> UInt64 { 0 }
  package func rows(digest: Digest, after: RelativePath?, limit: Int) -> [Row] { [] }
  package func intents() -> [Intent] { [] }
  package func partial(_ path: RelativePath) -> PartialRow? { nil }
  package func partials(in region: Region) -> [PartialRow] { [] }
  package func trash() -> [TrashRow] { [] }
  package func trashTotals() -> (files: Int, bytes: UInt64) { (0, 0) }
  package func lastEvent() -> Int64 { 0 }
  package func problems(limit: Int, failedSince: Timestamp?) -> [Problem] { [] }
  package func problem(name: [UInt8]) -> Problem? { nil }
  package func problem(below path: RelativePath, code: String) -> Problem? { nil }
  package func problemCounts(failedSince: Timestamp?) -> [Problem.Kind: Int] { [:] }
  package func problemCounts(seenBefore: Timestamp) -> [Problem.Kind: Int] { [:] }
  package func failedRowCount() -> Int { 0 }
  package func events(after number: Int64, limit: Int) -> [Event] { [] }
  package func events(path: RelativePath, limit: Int) -> [Event] { [] }
  package func eventCount(code: String, after number: Int64) -> Int { 0 }
  package func held() -> HeldPlan? { nil }
  package func heldPaths(plan: String, after: RelativePath?, limit: Int) -> [RelativePath] { [] }
  package func isHeld(_ path: RelativePath, plan: String) -> Bool { false }
  package func names(guid: [UInt8]) -> [NameRow] { [] }
  package func names(url: [UInt8]) -> [NameRow] { [] }
  package func names(place: [UInt8], limit: Int) -> [NameRow] { [] }
  package func names(title: [UInt8], date: Timestamp) -> [NameRow] { [] }
  package func name(_ path: RelativePath) -> NameRow? { nil }
  package func placedNames() -> [NameRow] { [] }
  package func activity() -> [Activity] { [] }
  package func fact(_ name: LedgerFact) -> String? { nil }
  package func close() {}
}
