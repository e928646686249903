package import TarnCore

/// Why a path is here, missing, held, refused or gone (`tarn explain`).
package struct Explanation: Encodable, Sendable {
  package struct Record: Encodable, Sendable {
    package var size: UInt64
    package var digest: String
    package var verified: Bool
    package var placed: String
    /// It was there already: `placed` says when it was adopted.
    package var adopted = false
    package var etag: String?
    package var lastModified: String?
  }
  package struct Happening: Encodable, Sendable {
    package var number: Int64
    package var time: String
    package var code: String
    package var bytes: UInt64?
    package var detail: String
  }
  package struct Item: Encodable, Sendable {
    package var guid: String?
    package var title: String
    package var date: String?
    package var firstSeen: String
    /// How it was last recognised: new, guid, url or title-date.
    package var recognisedBy: String
  }
  package var path: String
  /// current, changed, missing, foreign, gone, unknown, failed, refused, conflict or held.
  package var state: String
  /// The answer in a sentence.
  package var summary: String
  /// What to do about it, when there is something.
  package var hint: String?
  package var record: Record?
  /// Of a file of RSS, Atom or JSON Feed.
  package var item: Item?
  package var problem: StatusDocument.ProblemLine?
  /// Newest first.
  package var events: [Happening] = []
}

extension Explanation {
  /// Of a name that was refused, and is no path.
  init(refused problem: Problem) {
    self.init(
      path: Printable.escape(problem.name), state: problem.kind.rawValue,
      summary: "\(problem.message) [\(problem.code)]")
    self.problem = StatusDocument.ProblemLine(problem)
  }
}

package struct ExplainQuery {
  let ledger: any LedgerPort
  let folder: any FolderReading

  package init(ledger: any LedgerPort, folder: any FolderReading) {
    self.ledger = ledger
    self.folder = folder
  }

  /// - Throws: `PassFailure`.
  package func explain(_ path: RelativePath, mirror: String) throws(PassFailure) -> Explanation {
    try PassFailure.translating {
      return try answer(path, mirror: mirror)
    }
  }

  /// A name as the feed gave it that was refused; nil for any other.
  ///
  /// - Throws: `PassFailure`.
  package func explain(refused name: [UInt8]) throws(PassFailure) -> Explanation? {
    try PassFailure.translating {
      guard let problem = try ledger.problem(name: name), problem.kind == .refused else { return nil }
      return Explanation(refused: problem)
    }
  }

  private func answer(_ path: RelativePath, mirror: String) throws -> Explanation {
    let row = try ledger.row(path)
    let present = try folder.look(path)
    let problem = try ledger.problem(name: path.bytes) ?? inTheWay(path, present)
    let held = try ledger.held()
    let isHeld = try held.map { try ledger.isHeld(path, plan: $0.id) } ?? false
    var answer = Explanation(path: path.printable, state: "unknown", summary: "")
    let mirror = ShellWord.quote(mirror)
    (answer.state, answer.summary, answer.hint) = Self.verdict(
      row: row, present: present, problem: problem, held: held, isHeld: isHeld, mirror: mirror)
    answer.record = row.map { row in
      Explanation.Record(
        size: row.identity.size, digest: row.digest.description, verified: row.isVerified,
        placed: row.placed.rfc3339, adopted: row.isAdopted, etag: row.etag, lastModified: row.lastModified)
    }
    answer.item = try ledger.name(path).map { name in
      Explanation.Item(
        guid: name.guid.map { Printable.escape($0) }, title: Printable.escape(name.title),
        date: name.date?.rfc3339, firstSeen: name.first.rfc3339, recognisedBy: name.rule.rawValue)
    }
    answer.problem = problem.map(StatusDocument.ProblemLine.init)
    answer.events = try ledger.events(path: path, limit: 10).map { event in
      Explanation.Happening(
        number: event.number, time: event.when.rfc3339, code: event.code, bytes: event.bytes,
        detail: event.detail)
    }
    if row == nil, present == nil, problem == nil, answer.events.first?.code == "deleted" {
      answer.state = "gone"
      answer.summary = "the feed no longer had it, and it was moved to the trash"
      answer.hint = "tarn trash list \(mirror)"
    }
    return answer
  }

  /// What stands where the feed has a directory: the pass reports each entry below, and this is what to move.
  private func inTheWay(_ path: RelativePath, _ present: Present?) throws -> Problem? {
    guard let present, present.kind != .directory else { return nil }
    return try ledger.problem(below: path, code: "parent-not-a-directory")
  }

  /// What the next pass alone would not mend needs a person first; what is refused, the feed's author.
  ///
  /// - Parameter plan: the one that is held; nil when what was held was approved since.
  private static func hint(_ kind: Problem.Kind, plan: HeldPlan?, mirror: String) -> String? {
    switch kind {
    case .conflict: "move it away, then: tarn sync \(mirror)"
    case .held: plan.map { "tarn approve \(mirror) \($0.id)" } ?? "tarn sync \(mirror)"
    case .refused: nil
    default: "tarn sync \(mirror)"
    }
  }

  private static func verdict(
    row: Row?, present: Present?, problem: Problem?, held: HeldPlan?, isHeld: Bool, mirror: String
  ) -> (String, String, String?) {
    if let held, isHeld {
      return (
        "held",
        "the feed no longer has it; its deletion "
          + (held.count == 1 ? "waits" : "is one of \(Units.grouped(held.count)) that wait")
          + " in plan \(held.id)",
        "tarn approve \(mirror) \(held.id)"
      )
    }
    if let problem {
      return (
        problem.kind.rawValue, "\(problem.message) [\(problem.code)]",
        hint(problem.kind, plan: held, mirror: mirror)
      )
    }
    switch (row, present) {
    case (nil, nil):
      return ("unknown", "neither the feed of the last pass nor the ledger knows it", "tarn plan \(mirror)")
    case (nil, .some):
      return ("foreign", "it is in the folder, and Tarn did not place it; Tarn leaves it alone", nil)
    case (.some(let row), nil):
      return ("missing", "\(origin(row)), and it is not there any more", "tarn sync \(mirror)")
    case (.some(let row), .some(let present)):
      guard present.kind == .regular, row.identity.isSame(as: present.identity) else {
        return ("changed", "\(origin(row)), and it was changed since", "tarn sync \(mirror)")
      }
      let how =
        row.isVerified ? "verified against the feed's digest" : "the feed gives no digest to verify it by"
      return ("current", "\(origin(row)) on \(row.placed.rfc3339), \(how)", nil)
    }
  }

  private static func origin(_ row: Row) -> String {
    row.isAdopted ? "it was there already, and was adopted" : "Tarn placed it"
  }
}
