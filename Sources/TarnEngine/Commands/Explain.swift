package import TarnCore

/// The reason why a path is present, missing, held, refused or gone (`tarn explain`).
package struct Explanation: Encodable, Sendable {
  package struct Record: Encodable, Sendable {
    package var size: UInt64
    package var digest: String
    package var verified: Bool
    package var placed: String
    /// True when the file existed already; `placed` is then the time of its adoption.
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
    /// The rule that last recognised it: new, guid, url, title-date or earlier-feed.
    package var recognisedBy: String
  }
  package var path: String
  /// The state: current, changed, missing, foreign, gone, pending, excluded, unknown, failed, refused, conflict or held.
  package var state: String
  /// The answer in one sentence.
  package var summary: String
  /// What to do about it; `nil` when there is nothing to do.
  package var hint: String?
  package var record: Record?
  /// The item of the feed; only for files of RSS, Atom or JSON Feed.
  package var item: Item?
  package var problem: StatusDocument.ProblemLine?
  /// The events of the path, newest first.
  package var events: [Happening] = []
}

/// Explains the state of a path. Only reads.
package struct ExplainQuery {
  let ledger: any LedgerPort
  let folder: any FolderPort
  let holder: Int32?
  let configuredName: String?
  let agentsName: () -> String?

  /// - Parameters:
  ///   - holder: the process that holds the folder's lock; `nil` when none does.
  ///   - name: the name of a mirror of the settings.
  ///   - agentsName: returns the running agent's name for the mirror; `nil` when no agent answers. Called only when pauses matter.
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

  package func explain(_ path: RelativePath, mirror: String) throws(PassFailure) -> Explanation {
    try PassFailure.translating { try answer(path, PathContext(path, self, mirror: ShellWord.quote(mirror))) }
  }

  /// Explains a refused name as the feed gave it, or a directory or page of the feed that could not be read. `nil` for any other
  /// name.
  package func explain(refused name: [UInt8], mirror: String) throws(PassFailure) -> Explanation? {
    try PassFailure.translating {
      // The ledger keeps only this many bytes of a name.
      let known =
        try ledger.problem(name: name) ?? ledger.problem(name: Array(name.prefix(Refusal.mostShown)))
        ?? ledger.problem(name: FeedReader.problemName(String(decoding: name, as: UTF8.self)))
      guard let problem = known, problem.kind == .refused || (try? RelativePath(name)) == nil else {
        return nil
      }
      let advice = ProblemAdvice(
        problem, mirror: ShellWord.quote(mirror), configured: configuredName, excluded: try excluded())
      return Explanation(
        path: Printable.escape(name), state: problem.kind.rawValue,
        summary: "\(problem.message) [\(problem.code)]", hint: advice.step,
        problem: StatusDocument.ProblemLine(problem))
    }
  }

  /// Returns the patterns of `--exclude` of the last pass.
  func excluded() throws(LedgerFailure) -> [String] {
    PassOptions(encoded: try ledger.fact(.options) ?? "").values[.exclude] ?? []
  }

  /// Explains a name that Tarn would refuse and that the patterns of the last pass exclude. `nil` for any other.
  package func explain(leftOut name: [UInt8]) throws(PassFailure) -> Explanation? {
    let refusal: PathRefusal
    do throws(PathRefusal) {
      _ = try RelativePath(name)
      return nil
    } catch {
      refusal = error
    }
    return try PassFailure.translating {
      let options = PassOptions(encoded: try ledger.fact(.options) ?? "")
      guard let filter = try? options.policy().filter,
        let exclusion = filter.exclusion(ofRefused: name)
      else { return nil }
      return Explanation(
        path: Printable.escape(name), state: "excluded",
        summary: "\(exclusion.words(filter)); Tarn would refuse it, for \(refusal.reason)")
    }
  }

  private func answer(_ path: RelativePath, _ about: PathContext) throws -> Explanation {
    let (state, summary, hint) = about.verdict
    var answer = Explanation(path: path.printable, state: state, summary: summary, hint: hint)
    answer.record = about.row.map { row in
      Explanation.Record(
        size: row.identity.size, digest: row.digest.description, verified: row.isVerified,
        placed: row.placed.rfc3339, adopted: row.isAdopted, etag: row.etag, lastModified: row.lastModified)
    }
    answer.item = try ledger.name(path).map { name in
      Explanation.Item(
        guid: name.guid.map { Printable.escape($0) }, title: Printable.escape(name.title),
        date: name.date?.rfc3339, firstSeen: name.first.rfc3339, recognisedBy: name.rule.rawValue)
    }
    answer.problem = about.problem.map(StatusDocument.ProblemLine.init)
    answer.events = try ledger.events(path: path, limit: 10).map { event in
      Explanation.Happening(
        number: event.number, time: event.when.rfc3339, code: event.code, bytes: event.bytes,
        detail: event.detail)
    }
    let last = answer.events.first?.code
    if about.row == nil, about.present == nil, about.problem == nil, answer.state != "pending",
      let last, ["deleted", "expired"].contains(last)
    {
      let isInTrash = try ledger.trash().contains { $0.path == path }
      (answer.state, answer.summary, answer.hint) = about.gone(last, isInTrash: isInTrash)
    }
    if answer.state == "foreign", last == "trash-restored" {
      answer.summary = "it was taken back from the trash, and is yours since: no pass changes it"
    }
    return answer
  }
}
