package import TarnCore

/// What `tarn status` says of one mirror (contract.md, Status document). Encoded as it stands.
package struct StatusDocument: Encodable, Sendable {
  package struct Entries: Encodable, Sendable {
    package var wanted = 0
    package var current = 0
    package var pending = 0
    package var failed = 0
    package var refused = 0
    package var conflict = 0
    package var held = 0
    /// Deleted or edited by the user, and left so by policy.
    package var kept = 0
  }
  package struct Bytes: Encodable, Sendable {
    /// Of wanted entries whose size is known, from the feed or from the file in place; nil when none is known.
    package var wanted: UInt64? = 0
    /// Of files that the feed wants and that are in place.
    package var current: UInt64 = 0
    /// nil when nothing is known of what is missing.
    package var pending: UInt64? = 0
    /// Wanted entries whose size is not known.
    package var unknownSizes = 0

    private enum CodingKeys: String, CodingKey { case wanted, current, pending, unknownSizes }

    /// Every key is there; what is not known is null.
    package func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: CodingKeys.self)
      try container.encode(wanted, forKey: .wanted)
      try container.encode(current, forKey: .current)
      try container.encode(pending, forKey: .pending)
      try container.encode(unknownSizes, forKey: .unknownSizes)
    }
  }
  package struct Transfer: Encodable, Sendable {
    package var path: String
    package var received: UInt64
    package var total: UInt64?
    package var rate: UInt64
    package var source: String
  }
  package struct Watch: Encodable, Sendable {
    package var mode = "off"
    package var reason = "one pass at a time; no agent watches this folder"
  }
  package struct Held: Encodable, Sendable {
    package var plan: String
    package var deletions: Int
    package var since: String
  }
  package struct ProblemLine: Encodable, Sendable {
    package var path: String
    package var kind: String
    package var code: String
    package var message: String
    package var since: String
    package var attempts: Int
    package var nextAttempt: String?
    /// The path's bytes, for commands to type; not encoded.
    package var name: [UInt8] = []

    private enum CodingKeys: String, CodingKey {
      case path, kind, code, message, since, attempts, nextAttempt
    }
  }

  package var name: String
  package var feed: String
  package var folder: String
  /// idle, reading, planning, transferring, publishing, deleting, held, failing or interrupted.
  package var state: String
  /// The process that holds the folder now.
  package var process: Int32?
  package var format: String?
  package var lastSuccess: String?
  package var lastAttempt: String?
  package var nextRun: String?
  package var verifiedAt: String?
  package var upstreamChangedAt: String?
  /// Why the last pass ended without doing its work.
  package var lastFailure: String?
  package var entries = Entries()
  package var bytes = Bytes()
  package var transfers: [Transfer] = []
  package var watch = Watch()
  package var held: Held?
  package var problems: [ProblemLine] = []
  /// Problems beyond those listed.
  package var moreProblems = 0
  /// Files and bytes in the trash.
  package var trashFiles = 0
  package var trashBytes: UInt64 = 0

  init(name: String, feed: String, folder: String, state: String) {
    self.name = name
    self.feed = feed
    self.folder = folder
    self.state = state
  }
}

extension StatusDocument {
  private enum CodingKeys: String, CodingKey {
    case name, feed, folder, state, process, format, lastSuccess, lastAttempt, nextRun, verifiedAt,
      upstreamChangedAt, lastFailure, entries, bytes, transfers, watch, held, problems, moreProblems,
      trashFiles,
      trashBytes
  }

  /// Every key is there; what is not known is null.
  package func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    for (key, value) in [
      (CodingKeys.name, name), (.feed, feed), (.folder, folder), (.state, state), (.format, format),
      (.lastSuccess, lastSuccess), (.lastAttempt, lastAttempt), (.nextRun, nextRun),
      (.verifiedAt, verifiedAt),
      (.upstreamChangedAt, upstreamChangedAt), (.lastFailure, lastFailure),
    ] as [(CodingKeys, String?)] {
      try container.encode(value, forKey: key)
    }
    try container.encode(process, forKey: .process)
    try container.encode(entries, forKey: .entries)
    try container.encode(bytes, forKey: .bytes)
    try container.encode(transfers, forKey: .transfers)
    try container.encode(watch, forKey: .watch)
    try container.encode(held, forKey: .held)
    try container.encode(problems, forKey: .problems)
    try container.encode(moreProblems, forKey: .moreProblems)
    try container.encode(trashFiles, forKey: .trashFiles)
    try container.encode(trashBytes, forKey: .trashBytes)
  }
}

/// Answers from the ledger, also beside a running pass. Reads only; any thread.
package struct StatusQuery {
  let ledger: any LedgerPort

  package init(ledger: any LedgerPort) {
    self.ledger = ledger
  }

  /// - Parameters:
  ///   - holder: the process that holds the folder's lock; nil when nobody does.
  ///   - problemLimit: how many problems to list.
  package func document(
    name: String, folder: String, holder: Int32?, problemLimit: Int = 20
  ) throws(LedgerFailure) -> StatusDocument {
    var document = StatusDocument(
      name: name, feed: try ledger.fact("feed") ?? "", folder: folder, state: "idle")
    document.format = try ledger.fact("format")
    document.lastSuccess = try ledger.fact("success")
    document.lastAttempt = try ledger.fact("attempt")
    document.verifiedAt = try ledger.fact("verified")
    document.lastFailure = try ledger.fact("failure")
    document.process = holder
    try fillCounts(&document)
    try fillProblems(&document, limit: problemLimit)
    if let held = try ledger.held() {
      document.held = StatusDocument.Held(plan: held.id, deletions: held.count, since: held.when.rfc3339)
      document.entries.held = held.count
    }
    let trash = try ledger.trash()
    document.trashFiles = trash.count
    document.trashBytes = trash.reduce(0) { $0.addingSaturated($1.size) }
    document.state = try state(document)
    if holder != nil { document.transfers = try ledger.activity().map(StatusDocument.Transfer.init) }
    return document
  }

  private func state(_ document: StatusDocument) throws(LedgerFailure) -> String {
    if document.process != nil { return try ledger.fact("phase") ?? "reading" }
    if document.lastFailure != nil { return "failing" }
    let outcome = try ledger.fact("outcome")
    if outcome == "running" { return "interrupted" }
    if document.held != nil { return "held" }
    return outcome == "partial" ? "failing" : "idle"
  }

  private func fillCounts(_ document: inout StatusDocument) throws(LedgerFailure) {
    let wanted = try ledger.fact("entries-wanted").flatMap { Int($0) } ?? 0
    let counts = try ledger.problemCounts()
    document.entries.wanted = wanted
    document.entries.failed = counts[.failed] ?? 0
    document.entries.refused = counts[.refused] ?? 0
    document.entries.conflict = counts[.conflict] ?? 0
    document.entries.current = try ledger.fact("entries-current").flatMap { Int($0) } ?? 0
    document.entries.kept = try ledger.fact("entries-kept").flatMap { Int($0) } ?? 0
    document.entries.pending = max(
      0,
      wanted - document.entries.current - document.entries.refused - document.entries.conflict
        - document.entries.kept)
    try fillBytes(&document.bytes)
  }

  private func fillBytes(_ bytes: inout StatusDocument.Bytes) throws(LedgerFailure) {
    let known = try ledger.fact("bytes-wanted").flatMap { UInt64($0) } ?? 0
    bytes.unknownSizes = try ledger.fact("sizes-unknown").flatMap { Int($0) } ?? 0
    // A ledger of an earlier Tarn does not say; its next pass does.
    let recorded = try ledger.fact("bytes-current").flatMap { UInt64($0) }
    bytes.current = if let recorded { recorded } else { try ledger.rowBytes() }
    let pending = known - min(known, bytes.current)
    bytes.wanted = known == 0 && bytes.unknownSizes > 0 ? nil : known
    bytes.pending = pending == 0 && bytes.unknownSizes > 0 ? nil : pending
  }

  private func fillProblems(_ document: inout StatusDocument, limit: Int) throws(LedgerFailure) {
    let counts = try ledger.problemCounts()
    document.problems = try ledger.problems(limit: limit).map(StatusDocument.ProblemLine.init)
    document.moreProblems = max(0, counts.values.reduce(0, +) - document.problems.count)
  }
}

extension StatusDocument.Transfer {
  init(_ activity: Activity) {
    self.init(
      path: activity.path.printable, received: activity.received, total: activity.total, rate: activity.rate,
      source: Printable.escape(activity.source))
  }
}

extension StatusDocument.ProblemLine {
  package init(_ problem: Problem) {
    self.init(
      path: Printable.escape(problem.name), kind: problem.kind.rawValue, code: problem.code,
      message: problem.message, since: problem.since.rfc3339, attempts: problem.attempts, name: problem.name)
  }
}
