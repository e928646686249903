import TarnCore

/// The facts of folder and ledger about a path, and the conclusions for `tarn explain`.
struct PathContext {
  /// The extent to which the last pass was carried out.
  enum LastPass: Equatable {
    /// No pass has read the feed so far.
    case none
    /// The pass is running.
    case atWork
    /// The pass was stopped, or failed, with entries that were not processed.
    case cut
    /// - Parameters:
    ///   - isComplete: true when the feed's list names all files.
    ///   - namesAll: true when the ledger has a problem for each entry that was left undone.
    case ended(isComplete: Bool, namesAll: Bool)
  }

  /// What the mirror follows now, which may be another kind of feed than the one that brought the file.
  private enum Followed: Equatable {
    case list
    /// - Parameter hasNamed: true when a window named the file once.
    case window(hasNamed: Bool)
  }

  private let query: ExplainQuery
  /// The mirror as a word of a command.
  private let mirror: String
  let row: Row?
  let present: Present?
  let problem: Problem?
  /// The held plan; `nil` when there is none.
  private let held: HeldPlan?
  private let isHeld: Bool
  /// The filter of the last pass.
  private var filter = PathFilter()
  /// The reason why the last pass left the path out; `nil` when it did not.
  private var exclusion: PathFilter.Exclusion?
  private var localChanges = PassPolicy.LocalChanges.restore
  /// The options `--keep` and `--max-age` that limit a window, as they are typed; `nil` when all items are wanted.
  private var windowLimit: String?
  private let lastPass: LastPass
  /// True when more entries failed, in the running pass or the last one, than the ledger names.
  private let hasUnnamed: Bool
  /// The transfer of the path in the running pass.
  private let transfer: Activity?
  /// An unfinished download, and the bytes of it on disk; `nil` when there is none.
  private let partial: (row: PartialRow, kept: UInt64)?
  /// The number of Tarn's files that the feed did not list when it was last read.
  private let unlisted: Int
  private let isKeptList: Bool
  /// The number of Tarn's files below the path.
  private let below: Int
  private let followed: Followed
  private let trashBytes: UInt64

  init(_ path: RelativePath, _ query: ExplainQuery, mirror: String) throws {
    (self.query, self.mirror) = (query, mirror)
    let (ledger, folder) = (query.ledger, query.folder)
    row = try ledger.row(path)
    present = try folder.look(path)
    problem = try Self.problem(path, present, ledger)
    held = try ledger.held()
    isHeld = try held.map { try ledger.isHeld(path, plan: $0.id) } ?? false
    let isWindow = try ledger.followsWindow()
    followed = try isWindow ? .window(hasNamed: ledger.name(path) != nil) : .list
    // Options of a newer Tarn may have values that this one does not accept.
    let options = PassOptions(encoded: try ledger.fact(.options) ?? "")
    if let policy = try? options.policy() {
      filter = policy.filter
      let mayBeDirectory = row == nil && (present.map { $0.kind == .directory } ?? true)
      exclusion =
        filter.exclusion(of: path) ?? (mayBeDirectory ? filter.exclusion(ofDirectory: path) : nil)
      localChanges = (isWindow ? policy.ofWindow : policy).localChanges
      windowLimit = Self.windowLimit(options)
    }
    unlisted = try ledger.fact(.entriesUnlisted).flatMap { Int($0) } ?? 0
    isKeptList = try ledger.fact(.keptList) == Base64.encode(path.bytes)
    below = try ledger.rowCount(below: path)
    trashBytes = try ledger.trashTotals().bytes
    lastPass = try Self.lastPass(ledger, holder: query.holder)
    hasUnnamed = try ledger.fact(.problemsUnnamed) != nil
    transfer = lastPass == .atWork ? try ledger.activity().first { $0.path == path } : nil
    partial = try ledger.partial(path).flatMap { row in
      try folder.partialIdentity(row.name).map { (row, $0.size) }
    }
  }

  /// Returns the problem of the path. Like the status, it leaves out failures from before the running pass, which are being
  /// retried.
  private static func problem(
    _ path: RelativePath, _ present: Present?, _ ledger: any LedgerPort
  ) throws -> Problem? {
    // The name of a directory of the feed that could not be read ends in a slash.
    let problem =
      try ledger.problem(name: path.bytes) ?? ledger.problem(name: path.bytes + [UInt8(ascii: "/")])
    if let problem {
      let since = problem.kind == .failed ? try StatusQuery(ledger: ledger).failedSince() : nil
      if since.map({ problem.seen >= $0 }) ?? true { return problem }
    }
    // The path is a file where the feed has a directory. The pass reports each entry below, and this file is what to move.
    guard let present, present.kind != .directory else { return nil }
    return try ledger.problem(below: path, code: "parent-not-a-directory")
  }

  private static func windowLimit(_ options: PassOptions) -> String? {
    // These values leave nothing out.
    let given = [(PassOptions.Name.keep, "all"), (.maxAge, "off")].compactMap { name, none in
      options.last(name).flatMap { $0 == none ? nil : "--\(name.rawValue) \(ShellWord.quote($0))" }
    }
    return given.isEmpty ? nil : given.joined(separator: " or ")
  }

  private static func lastPass(_ ledger: any LedgerPort, holder: Int32?) throws -> LastPass {
    let outcome = try ledger.fact(.outcome)
    if holder != nil, outcome == "running" { return .atWork }
    guard outcome != nil, let wanted = try ledger.fact(.entriesWanted).flatMap({ Int($0) }) else {
      return .none
    }
    if outcome == "running" || outcome == "stopped" { return .cut }
    let named = try ledger.problemCounts().values.reduce(0, +)
    let done = try [LedgerFact.entriesCurrent, .entriesKept].reduce(named) { sum, name in
      try sum + (ledger.fact(name).flatMap { Int($0) } ?? 0)
    }
    // A pass that failed before it read the feed leaves the facts of the previous one.
    if outcome == "failed", done < wanted { return .cut }
    let isComplete = try ledger.fact(.complete).map { $0 == "yes" } ?? true
    return .ended(isComplete: isComplete, namesAll: named < PassReport.mostProblems)
  }
}

// MARK: - Sentences

extension PathContext {
  typealias Verdict = (state: String, summary: String, hint: String?)

  var verdict: Verdict {
    if transfer != nil, let unfinished { return unfinished }
    if let held, isHeld {
      let waits =
        held.count == 1 ? "waits" : "is one of \(Units.grouped(held.count)) that wait"
      return (
        "held", "the feed no longer has it; its deletion \(waits) in plan \(held.id)",
        "tarn approve \(mirror) \(held.id)"
      )
    }
    if let problem {
      return (problem.kind.rawValue, "\(problem.message) [\(problem.code)]", hint(problem))
    }
    if let exclusion { return leftOut(exclusion) }
    guard let row else { return present.map(foreign) ?? unfinished ?? unknown }
    guard let present else { return missing(row) }
    guard present.kind == .regular, row.identity.isSame(as: present.identity) else {
      return changed(row, present)
    }
    return unfinished ?? current(row)
  }

  /// Returns the verdict for a path that was deleted and is not wanted again.
  ///
  /// - Parameters:
  ///   - event: the code of the last event, `deleted` or `expired`. After a crash a window may have told of `deleted`, too.
  ///   - isInTrash: true when the trash still holds a file of that path.
  func gone(_ event: String, isInTrash: Bool) -> Verdict {
    let summary =
      event == "expired" || followed == .window(hasNamed: true)
      ? "it was beyond what --keep and --max-age want, and was moved to the trash"
      : "the feed no longer had it, and it was moved to the trash"
    return isInTrash
      ? ("gone", summary, "tarn trash list \(mirror)")
      : ("gone", "\(summary), which does not hold it any more", nil)
  }

  /// Returns what to do about a problem. Where another pass would not help, a person has to act first; for refused names, the
  /// feed's author.
  private func hint(_ problem: Problem) -> String {
    switch problem.kind {
    case .conflict: return afterConflict(problem.code)
    case .held where problem.code == Problem.pausedCode:
      // Only an agent pauses mirrors. It accepts names only, and without it nothing is paused.
      guard let name = query.agentsName() else { return sync }
      return "tarn resume \(ShellWord.quote(name)):\(ShellWord.quote(bytes: problem.name))"
    case .held: return held.map { "tarn approve \(mirror) \($0.id)" } ?? sync
    case .failed where lastPass == .atWork: return next
    case .refused, .failed:
      return ProblemAdvice(
        problem, mirror: mirror, configured: query.configuredName,
        excluded: (try? query.excluded()) ?? [], trashBytes: trashBytes
      ).step
    }
  }

  /// The verdict for a path that is being fetched, or whose download is unfinished; `nil` for any other.
  private var unfinished: Verdict? {
    let before =
      row == nil ? "the feed lists it, and it" : "an earlier version is in place; the one of the feed"
    if let transfer {
      let amount = Self.amount(transfer.received, of: transfer.total)
      return ("pending", "\(before) is being fetched now: \(amount) so far", "tarn status \(mirror)")
    }
    guard let partial else { return nil }
    let amount = Self.amount(partial.kept, of: partial.row.total)
    let rest =
      lastPass == .atWork ? "the current pass has not reached it yet" : "the next pass goes on with it"
    return ("pending", "\(before) is not fetched whole yet: \(amount) kept, and \(rest)", next)
  }

  /// Returns the verdict for a path that a filter leaves out.
  private func leftOut(_ exclusion: PathFilter.Exclusion) -> Verdict {
    let why = exclusion.words(filter)
    let now =
      switch (row, present) {
      case (nil, _) where below > 0: "and what Tarn placed below it stays as it is: no pass looks after that"
      case (nil, nil): "whether the feed lists it or not"
      case (nil, .some): "and Tarn did not place the one that is in the folder: it stays as it is"
      case (.some, nil): "so what Tarn placed before, and what is not there any more, is not fetched again"
      case (.some, .some): "and what Tarn placed before stays as it is: no pass looks after it"
      }
    return ("excluded", "\(why), \(now)", nil)
  }

  /// The verdict for a path that is neither recorded nor present, and about which nothing else is known.
  private var unknown: Verdict {
    let summary: String
    var hint = next
    switch lastPass {
    case .none: summary = "no pass has read the feed so far"
    case .atWork where hasUnnamed, .cut where hasUnnamed:
      summary =
        "it is not there so far: if the feed lists it, it is among what is pending, or has failed, for more has than "
        + "the ledger names"
    case .atWork:
      summary =
        "it is not there so far, and a pass is at work: if the feed lists it, it is among what is pending"
    case .cut:
      summary =
        "it is not there, and the last pass did not get to its end: if the feed lists it, it is among what is pending"
    case .ended(_, namesAll: false):
      summary =
        "it is not there, and the last pass left more undone than the ledger names: it may be among that"
    case .ended(let isComplete, _):
      hint = "tarn plan \(mirror)"
      if followed == .window(hasNamed: true) {
        summary =
          "the feed named it once, and it is no longer wanted: it left the feed, or is beyond --keep or --max-age"
      } else if !isComplete, let windowLimit {
        summary =
          "the ledger does not know it: the feed did not list it when it was last read, or \(windowLimit) left it out"
      } else {
        summary =
          isComplete
          ? "neither the feed when it was last read nor the ledger knows it"
          : "the ledger does not know it, nor does the feed's list, which was not complete when it was last read"
      }
    }
    return ("unknown", summary, hint)
  }

  /// Returns the verdict for a file that is as Tarn placed it.
  private func current(_ row: Row) -> Verdict {
    let how =
      isKeptList
      ? "the feed's own list, as it was read then"
      : row.isVerified
        ? "verified against the digest that the feed gave then" : "the feed gave no checksum to verify it by"
    let placed = "\(row.origin) on \(row.placed.rfc3339), \(how)"
    return ("current", placed + doubt, doubt.isEmpty ? nil : "tarn plan --delete \(mirror)")
  }

  /// A remark on files that the feed dropped, of which only the number is recorded.
  private var doubt: String {
    guard unlisted > 0, !isKeptList, case .ended(let isComplete, _) = lastPass,
      isComplete || followed != .list
    else { return "" }
    let others = "\(Units.count(unlisted, "file")) of this mirror"
    return followed != .list
      ? "; \(others) \(unlisted == 1 ? "is" : "are") beyond --keep or --max-age, and this may be one of them"
      : "; the feed no longer lists \(others), and this may be one of them"
  }

  /// Returns the verdict for an object in the folder that has no row.
  private func foreign(_ present: Present) -> Verdict {
    guard present.kind == .directory, below > 0 else {
      return ("foreign", "it is in the folder, and Tarn did not place it; Tarn leaves it alone", nil)
    }
    return (
      "current", "a directory, with \(Units.count(below, "file")) below it that Tarn placed or adopted", nil
    )
  }

  /// Returns the verdict for a file of Tarn's that is gone.
  private func missing(_ row: Row) -> Verdict {
    guard localChanges != .restore else {
      return ("missing", "\(row.origin), and it is not there any more\(doubt)", sync)
    }
    return ("missing", "\(row.origin), it was deleted here, and \(leftSo)", undo)
  }

  /// Returns the verdict for a file of Tarn's that was changed.
  private func changed(_ row: Row, _ present: Present) -> Verdict {
    let change: String
    if present.kind == .regular {
      if row.isDoubtful {
        return (
          "changed",
          "'tarn verify' found bytes that differ from those that Tarn placed; the next pass deals with that",
          sync
        )
      }
      guard row.identity.size != present.identity.size else {
        return (
          "changed",
          "\(row.origin), and its time was changed since: the next pass looks whether its bytes were\(doubt)",
          sync
        )
      }
      change = "it was changed since"
    } else {
      change =
        present.kind == .directory
        ? "a directory took its place" : "something that is not a file took its place"
    }
    guard localChanges != .restore else { return ("changed", "\(row.origin), and \(change)\(doubt)", sync) }
    return ("changed", "\(row.origin), \(change), and \(leftSo)", undo)
  }

  /// Returns what to do about a conflict. Mostly a person has to make room first.
  private func afterConflict(_ code: String) -> String {
    switch code {
    case "locally-changed", "locally-deleted": undo
    case "changing": sync
    // The object replaced a recorded file, and the policy leaves it so.
    case "directory-in-the-way" where row != nil, "link-in-the-way" where row != nil,
      "special-file-in-the-way" where row != nil:
      undo
    default: "move it away, then: \(sync)"
    }
  }

  private var sync: String { "tarn sync \(mirror)" }

  private var next: String { lastPass == .atWork ? "tarn status \(mirror)" : sync }

  private var leftSo: String { "--local-changes \(localChanges.rawValue) leaves it so" }

  /// The hint to undo all local changes. It applies to the whole mirror, and says so.
  private var undo: String { ProblemAdvice.undo(mirror: mirror, configured: query.configuredName) }

  private static func amount(_ bytes: UInt64, of total: UInt64?) -> String {
    Units.show(bytes) + (total.map { " of \(Units.show($0))" } ?? "")
  }
}

extension PathFilter.Exclusion {
  /// Says which option leaves the path out.
  func words(_ filter: PathFilter) -> String {
    switch self {
    case .excluded(let pattern): "--exclude \(ShellWord.quote(pattern)) leaves it out"
    case .takenBack(let pattern): "--include \(ShellWord.quote(pattern)) leaves it out"
    case .notIncluded:
      "it is left out, because no --include names it: "
        + filter.include.texts.map(ShellWord.quote).joined(separator: ", ")
    }
  }
}

extension Row {
  /// Says how the file's bytes got there.
  fileprivate var origin: String { isAdopted ? "it was there already, and was adopted" : "Tarn placed it" }
}
