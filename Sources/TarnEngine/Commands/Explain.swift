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
    /// How it was last recognised: new, guid, url, title-date or earlier-feed.
    package var recognisedBy: String
  }
  package var path: String
  /// current, changed, missing, foreign, gone, pending, excluded, unknown, failed, refused, conflict or held.
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
  let folder: any FolderPort
  let holder: Int32?
  let configuredName: String?
  let agentsName: () -> String?

  /// - Parameters:
  ///   - holder: the process that holds the folder's lock; nil when nobody does.
  ///   - name: of a mirror of the settings.
  ///   - agentsName: what an agent that answers calls the mirror; nil for none. Asked where its pauses matter.
  package init(
    ledger: any LedgerPort, folder: any FolderPort, holder: Int32? = nil, configured name: String? = nil,
    agentsName: @escaping () -> String? = { nil }
  ) {
    self.ledger = ledger
    self.folder = folder
    self.holder = holder
    configuredName = name
    self.agentsName = agentsName
  }

  /// - Throws: `PassFailure`.
  package func explain(_ path: RelativePath, mirror: String) throws(PassFailure) -> Explanation {
    try PassFailure.translating {
      return try answer(path, mirror: mirror)
    }
  }

  /// A name as the feed gave it that was refused, a directory or a page of the feed that could not be read; nil for any other.
  ///
  /// - Throws: `PassFailure`.
  package func explain(refused name: [UInt8], mirror: String) throws(PassFailure) -> Explanation? {
    try PassFailure.translating {
      guard let problem = try ledger.problem(name: name),
        problem.kind == .refused || (try? RelativePath(name)) == nil
      else { return nil }
      var answer = Explanation(refused: problem)
      answer.hint =
        ProblemAdvice(problem, mirror: ShellWord.quote(mirror), configured: configuredName).step
      return answer
    }
  }

  /// Without one of a pass before the one at work, as in the status: what failed then is tried again.
  private func problem(_ path: RelativePath) throws -> Problem? {
    // A directory of the feed that could not be read ends in a slash.
    let problem =
      try ledger.problem(name: path.bytes) ?? ledger.problem(name: path.bytes + [UInt8(ascii: "/")])
    guard let problem else { return nil }
    guard problem.kind == .failed, let since = try StatusQuery(ledger: ledger).failedSince() else {
      return problem
    }
    return problem.seen < since ? nil : problem
  }

  private func answer(_ path: RelativePath, mirror: String) throws -> Explanation {
    let row = try ledger.row(path)
    let present = try folder.look(path)
    let problem = try problem(path) ?? inTheWay(path, present)
    let held = try ledger.held()
    let isHeld = try held.map { try ledger.isHeld(path, plan: $0.id) } ?? false
    var answer = Explanation(path: path.printable, state: "unknown", summary: "")
    let mirror = ShellWord.quote(mirror)
    let mayBeDirectory = row == nil && (present.map { $0.kind == .directory } ?? true)
    var about = try PathContext(
      path, mayBeDirectory: mayBeDirectory, ledger: ledger, folder: folder, holder: holder)
    about.configuredName = configuredName
    about.agentsName = agentsName
    (answer.state, answer.summary, answer.hint) = Self.verdict(
      row: row, present: present, problem: problem, held: held, isHeld: isHeld, about: about, mirror: mirror)
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
    if row == nil, present == nil, problem == nil, answer.state != "pending",
      ["deleted", "expired"].contains(answer.events.first?.code)
    {
      answer.state = "gone"
      answer.summary =
        about.isOfWindow
        ? "it was beyond what --keep and --max-age want, and was moved to the trash"
        : "the feed no longer had it, and it was moved to the trash"
      answer.hint = "tarn trash list \(mirror)"
    }
    if answer.state == "foreign", answer.events.first?.code == "trash-restored" {
      answer.summary = "it was taken back from the trash, and is yours since: no pass changes it"
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
  private static func hint(
    _ problem: Problem, row: Row?, plan: HeldPlan?, about: PathContext, mirror: String
  ) -> String? {
    switch problem.kind {
    case .conflict: about.afterConflict(problem.code, row: row, mirror: mirror)
    case .held where problem.code == "paused": about.resumption(of: problem.name, mirror: mirror)
    case .held: plan.map { "tarn approve \(mirror) \($0.id)" } ?? "tarn sync \(mirror)"
    case .refused: about.step(problem, mirror: mirror)
    default: about.lastPass == .atWork ? about.next(mirror) : about.step(problem, mirror: mirror)
    }
  }

  private static func verdict(
    row: Row?, present: Present?, problem: Problem?, held: HeldPlan?, isHeld: Bool, about: PathContext,
    mirror: String
  ) -> PathContext.Verdict {
    if about.transfer != nil, let verdict = about.unfinished(isPlaced: row != nil, mirror: mirror) {
      return verdict
    }
    if let held, isHeld {
      return (
        "held",
        (about.isOfWindow ? "it is beyond what --keep and --max-age want" : "the feed no longer has it")
          + "; its deletion "
          + (held.count == 1 ? "waits" : "is one of \(Units.grouped(held.count)) that wait")
          + " in plan \(held.id)",
        "tarn approve \(mirror) \(held.id)"
      )
    }
    if let problem {
      return (
        problem.kind.rawValue, "\(problem.message) [\(problem.code)]",
        hint(problem, row: row, plan: held, about: about, mirror: mirror)
      )
    }
    if let exclusion = about.exclusion { return about.leftOut(exclusion, row: row, present: present) }
    switch (row, present) {
    case (nil, nil): return about.unfinished(isPlaced: false, mirror: mirror) ?? about.unknown(mirror: mirror)
    case (nil, .some(let present)): return about.foreign(present)
    case (.some(let row), nil): return about.missing(row, mirror: mirror)
    case (.some(let row), .some(let present)):
      guard present.kind == .regular, row.identity.isSame(as: present.identity) else {
        return about.changed(row, present, mirror: mirror)
      }
      return about.unfinished(isPlaced: true, mirror: mirror) ?? about.current(row, mirror: mirror)
    }
  }
}
