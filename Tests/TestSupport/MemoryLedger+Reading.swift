package import TarnCore
import TarnRuntime

extension MemoryLedger {
  package func row(_ path: RelativePath) throws(LedgerFailure) -> Row? {
    try read { $0.rows[path] }
  }

  package func rows(in region: Region) throws(LedgerFailure) -> any RowCursor {
    MemoryRowCursor(
      try read { $0.rows.values.filter { region.contains($0.path) }.sorted { $0.path < $1.path } })
  }

  package func recorded() throws(LedgerFailure) -> any RecordedCursor {
    MemoryRecordedCursor(
      try read { $0.rows.values.sorted { $0.path < $1.path } }.map {
        Recorded(path: $0.path, identity: $0.identity)
      })
  }

  package func rowCount() throws(LedgerFailure) -> Int {
    rowCounts.withLock { $0 += 1 }
    return try read { $0.rows.count }
  }

  package func rowCount(below path: RelativePath) throws(LedgerFailure) -> Int {
    try read { $0.rows.keys.count { $0.bytes.starts(with: path.bytes + [UInt8(ascii: "/")]) } }
  }

  package func rowBytes() throws(LedgerFailure) -> UInt64 {
    try read { state in
      state.rows.values.reduce(0) { sum, row in
        let (next, overflow) = sum.addingReportingOverflow(row.identity.size)
        return overflow ? .max : next
      }
    }
  }

  package func rows(digest: Digest, after: RelativePath?, limit: Int) throws(LedgerFailure) -> [Row] {
    try read { $0.rows(digest: digest, after: after, limit: limit) }
  }

  package func intents() throws(LedgerFailure) -> [Intent] {
    try read { $0.intents.values.sorted { $0.path < $1.path } }
  }

  package func partial(_ path: RelativePath) throws(LedgerFailure) -> PartialRow? {
    try read { $0.partials[path] }
  }

  package func partials(in region: Region) throws(LedgerFailure) -> [PartialRow] {
    try read { $0.partials.values.filter { region.contains($0.path) }.sorted { $0.path < $1.path } }
  }

  package func trash() throws(LedgerFailure) -> [TrashRow] {
    try read { $0.trash.values.sorted { ($0.when, $0.name) < ($1.when, $1.name) } }
  }

  package func trashTotals() throws(LedgerFailure) -> (files: Int, bytes: UInt64) {
    let rows = try trash()
    return (rows.count, rows.reduce(0) { $0.addingSaturated($1.size) })
  }

  package func problems(limit: Int, failedSince: Timestamp?) throws(LedgerFailure) -> [Problem] {
    try read { state in
      let wanted = state.problems.values.filter { $0.kind != .failed || $0.seen >= failedSince ?? $0.seen }
      return Array(wanted.sorted { compareBytes($0.name, $1.name) < 0 }.prefix(max(0, limit)))
    }
  }

  package func problem(name: [UInt8]) throws(LedgerFailure) -> Problem? {
    try read { $0.problems[name] }
  }

  package func problem(below path: RelativePath, code: String) throws(LedgerFailure) -> Problem? {
    let start = path.bytes + [UInt8(ascii: "/")]
    return try problems(limit: .max).first {
      $0.code == code && $0.name.count > start.count && $0.name.starts(with: start)
    }
  }

  package func problemCounts(failedSince: Timestamp?) throws(LedgerFailure) -> [Problem.Kind: Int] {
    Dictionary(grouping: try problems(limit: .max, failedSince: failedSince), by: \.kind).mapValues(\.count)
  }

  package func failedRowCount() throws(LedgerFailure) -> Int {
    var count = 0
    for problem in try problems(limit: .max) where problem.kind == .failed {
      if try row(RelativePath(trusted: problem.name)) != nil { count += 1 }
    }
    return count
  }

  package func problemCounts(seenBefore: Timestamp) throws(LedgerFailure) -> [Problem.Kind: Int] {
    let older = try problems(limit: .max).filter { $0.seen < seenBefore }
    return Dictionary(grouping: older, by: \.kind).mapValues(\.count)
  }

  package func lastEvent() throws(LedgerFailure) -> Int64 {
    try read { state in
      max(state.events.last?.number ?? 0, state.facts[.eventsDropped].flatMap { Int64($0) } ?? 0)
    }
  }

  package func events(after number: Int64, limit: Int) throws(LedgerFailure) -> [Event] {
    try read { Array($0.events.filter { $0.number > number }.prefix(max(0, limit))) }
  }

  package func events(path: RelativePath, limit: Int) throws(LedgerFailure) -> [Event] {
    try read { Array($0.events.filter { $0.path == path }.reversed().prefix(max(0, limit))) }
  }

  package func eventCount(code: String, after number: Int64) throws(LedgerFailure) -> Int {
    try read { $0.events.count { $0.code == code && $0.number > number } }
  }

  package func held() throws(LedgerFailure) -> HeldPlan? {
    try read { $0.held }
  }

  package func heldPaths(
    plan: String, after: RelativePath?, limit: Int
  ) throws(LedgerFailure) -> [RelativePath] {
    try read { state in
      let paths = (state.heldPaths[plan] ?? []).sorted().filter { path in after.map { $0 < path } ?? true }
      return Array(paths.prefix(limit))
    }
  }

  package func isHeld(_ path: RelativePath, plan: String) throws(LedgerFailure) -> Bool {
    try read { $0.heldPaths[plan]?.contains(path) ?? false }
  }

  package func names(guid: [UInt8]) throws(LedgerFailure) -> [NameRow] {
    try names { $0.guid == guid }
  }

  package func names(url: [UInt8]) throws(LedgerFailure) -> [NameRow] {
    try names { $0.url == url }
  }

  package func names(place: [UInt8], limit: Int) throws(LedgerFailure) -> [NameRow] {
    try Array(names { $0.place == place }.prefix(limit))
  }

  package func names(title: [UInt8], date: Timestamp) throws(LedgerFailure) -> [NameRow] {
    try names { $0.title == title && $0.date == date }
  }

  package func name(_ path: RelativePath) throws(LedgerFailure) -> NameRow? {
    try read { $0.names[path] }
  }

  package func placedNames() throws(LedgerFailure) -> [NameRow] {
    let placed = try read { state in state.names.values.filter { state.rows[$0.path] != nil } }
    return placed.sorted {
      let (left, right) = ($0.date ?? $0.first, $1.date ?? $1.first)
      return left == right ? $0.path < $1.path : left > right
    }
  }

  private func names(_ isWanted: (NameRow) -> Bool) throws(LedgerFailure) -> [NameRow] {
    try read { $0.names.values.filter(isWanted).sorted { $0.path < $1.path } }
  }

  package func activity() throws(LedgerFailure) -> [Activity] {
    try read { $0.activity }
  }

  package func fact(_ name: LedgerFact) throws(LedgerFailure) -> String? {
    try read { $0.facts[name] }
  }
}

private final class MemoryRowCursor: RowCursor {
  private var rows: ArraySlice<Row>
  init(_ rows: [Row]) { self.rows = rows[...] }
  func next() throws(LedgerFailure) -> Row? { rows.popFirst() }
}

private final class MemoryRecordedCursor: RecordedCursor {
  private var rest: ArraySlice<Recorded>

  init(_ all: [Recorded]) {
    rest = all[...]
  }

  func next() throws(LedgerFailure) -> Recorded? { rest.popFirst() }
}

extension LedgerPort {
  /// Returns all paths of a plan.
  package func heldPaths(plan: String) throws(LedgerFailure) -> [RelativePath] {
    try heldPaths(plan: plan, after: nil, limit: .max)
  }
}
