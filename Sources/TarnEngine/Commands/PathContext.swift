import TarnCore

/// What the ledger says of a path besides its row, its problem and its events: for `tarn explain`.
struct PathContext {
  /// How far the last pass came.
  enum LastPass: Equatable {
    /// No pass has read the feed so far.
    case none
    /// It runs.
    case atWork
    /// It was stopped, or failed, with entries that nobody looked at.
    case cut
    /// - Parameters:
    ///   - isComplete: the feed's list names all there is.
    ///   - namesAll: each entry that it left undone has a problem in the ledger.
    case ended(isComplete: Bool, namesAll: Bool)
  }

  /// Of the last pass.
  private var filter = PathFilter()
  /// Why the last pass left it out; nil when it did not.
  var exclusion: PathFilter.Exclusion?
  var localChanges = PassPolicy.LocalChanges.restore
  /// Which items of a window are wanted: `--keep`, `--max-age`, as they are typed; nil for all.
  private var windowLimit: String?
  var lastPass = LastPass.none
  /// More has failed, in the pass at work or the last one, than the ledger names.
  private var hasUnnamed = false
  /// Now, in the pass at work.
  var transfer: Activity?
  /// A download that is not finished.
  var partial: PartialRow?
  /// Bytes of it that are on disk; nil when there is none.
  var kept: UInt64?
  /// Files of Tarn's that the feed no longer listed when it was last read, all told.
  private var unlisted = 0
  private var isKeptList = false
  /// Files of Tarn's below it.
  var below = 0
  /// A feed without paths named it once (RSS, Atom, JSON Feed).
  var isOfWindow = false
  /// Of a mirror of the settings.
  var configuredName: String?
  private var trashBytes: UInt64 = 0
  /// What an agent that answers calls the mirror.
  var agentsName: () -> String? = { nil }

  /// - Parameters:
  ///   - mayBeDirectory: no file is there, and none is recorded.
  ///   - holder: the process that holds the folder's lock; nil when nobody does.
  init(
    _ path: RelativePath, mayBeDirectory: Bool, ledger: any LedgerPort, folder: any FolderPort,
    holder: Int32?
  ) throws {
    isOfWindow = try ledger.name(path) != nil
    // Options of a newer Tarn may have values that this one does not take.
    let options = PassOptions(encoded: try ledger.fact(.options) ?? "")
    if let policy = try? options.policy() {
      filter = policy.filter
      exclusion =
        filter.exclusion(of: path) ?? (mayBeDirectory ? filter.exclusion(ofDirectory: path) : nil)
      localChanges = isOfWindow ? policy.window.localChanges : policy.localChanges
      windowLimit = Self.windowLimit(options)
    }
    unlisted = try ledger.fact(.entriesUnlisted).flatMap { Int($0) } ?? 0
    isKeptList = try ledger.fact(.keptList) == Base64.encode(path.bytes)
    below = try ledger.rowCount(below: path)
    trashBytes = try ledger.trashTotals().bytes
    lastPass = try Self.lastPass(ledger, holder: holder)
    hasUnnamed = try ledger.fact(.problemsUnnamed) != nil
    if lastPass == .atWork { transfer = try ledger.activity().first { $0.path == path } }
    partial = try ledger.partial(path)
    kept = try partial.flatMap { try folder.partialIdentity($0.name) }?.size
  }

  private static func windowLimit(_ options: PassOptions) -> String? {
    let given = [PassOptions.Name.keep, .maxAge].compactMap { name in
      options.last(name).map { "--\(name.rawValue) \(ShellWord.quote($0))" }
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
    // A pass that failed before it had read the feed leaves what the one before it said.
    if outcome == "failed", done < wanted { return .cut }
    let isComplete = try ledger.fact(.complete).map { $0 == "yes" } ?? true
    return .ended(isComplete: isComplete, namesAll: named < PassReport.mostProblems)
  }
}

// MARK: - Sentences

extension PathContext {
  typealias Verdict = (state: String, summary: String, hint: String?)

  /// Of a path that is being fetched, or whose download is not finished; nil for any other.
  ///
  /// - Parameters:
  ///   - isPlaced: Tarn placed a version before.
  ///   - mirror: as a word of a command.
  func unfinished(isPlaced: Bool, mirror: String) -> Verdict? {
    let before =
      isPlaced ? "an earlier version is in place; the one of the feed" : "the feed lists it, and it"
    if let transfer {
      let amount = Self.amount(transfer.received, of: transfer.total)
      return ("pending", "\(before) is being fetched now: \(amount) so far", "tarn status \(mirror)")
    }
    guard let partial, let kept else { return nil }
    let amount = Self.amount(kept, of: partial.total)
    let rest =
      lastPass == .atWork ? "the pass at work has yet to come to it" : "the next pass goes on with it"
    return (
      "pending", "\(before) is not fetched whole yet: \(amount) kept, and \(rest)", next(mirror)
    )
  }

  /// Of a path that a filter leaves out.
  func leftOut(_ exclusion: PathFilter.Exclusion, row: Row?, present: Present?) -> Verdict {
    let why =
      switch exclusion {
      case .excluded(let pattern): "--exclude \(ShellWord.quote(pattern)) leaves it out"
      case .takenBack(let pattern): "--include \(ShellWord.quote(pattern)) leaves it out"
      case .notIncluded:
        "it is left out, for no --include names it: "
          + filter.include.texts.map(ShellWord.quote).joined(separator: ", ")
      }
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

  /// Of a path that is neither recorded nor there, and of which nothing else is known.
  func unknown(mirror: String) -> Verdict {
    switch lastPass {
    case .none: return ("unknown", "no pass has read the feed so far", next(mirror))
    case .atWork where hasUnnamed, .cut where hasUnnamed:
      return (
        "unknown",
        "it is not there so far: if the feed lists it, it is among what is pending, or has failed, for more has than "
          + "the ledger names", next(mirror)
      )
    case .atWork:
      return (
        "unknown",
        "it is not there so far, and a pass is at work: if the feed lists it, it is among what is pending",
        next(mirror)
      )
    case .cut:
      return (
        "unknown",
        "it is not there, and the last pass did not get to its end: if the feed lists it, it is among what is pending",
        next(mirror)
      )
    case .ended(_, namesAll: false):
      return (
        "unknown",
        "it is not there, and the last pass left more undone than the ledger names: it may be among that",
        next(mirror)
      )
    case .ended where isOfWindow:
      return (
        "unknown",
        "the feed named it once, and wants it no more: it left the feed, or is beyond --keep or --max-age",
        "tarn plan \(mirror)"
      )
    case .ended(isComplete: false, _) where windowLimit != nil:
      return (
        "unknown",
        "the ledger does not know it: the feed did not list it when it was last read, or \(windowLimit ?? "") left it out",
        "tarn plan \(mirror)"
      )
    case .ended(let isComplete, _):
      let list = isComplete ? "the feed" : "the feed's list, which was not complete,"
      return (
        "unknown", "neither \(list) when it was last read nor the ledger knows it", "tarn plan \(mirror)"
      )
    }
  }

  /// Of a file that is as Tarn placed it.
  func current(_ row: Row, mirror: String) -> Verdict {
    let how =
      isKeptList
      ? "the feed's own list, as it was read then"
      : row.isVerified
        ? "verified against the digest that the feed gave then" : "the feed gave no checksum to verify it by"
    let placed = "\(row.origin) on \(row.placed.rfc3339), \(how)"
    return ("current", placed + doubt, doubt.isEmpty ? nil : "tarn plan --delete \(mirror)")
  }

  /// Which files the feed dropped is not recorded, but how many.
  private var doubt: String {
    guard unlisted > 0, !isKeptList, case .ended(let isComplete, _) = lastPass, isComplete || isOfWindow
    else {
      return ""
    }
    let others = unlisted == 1 ? "1 file" : "\(Units.grouped(unlisted)) files"
    guard !isOfWindow else {
      return
        "; \(others) of this mirror \(unlisted == 1 ? "is" : "are") beyond --keep or --max-age, and this may be one of them"
    }
    return "; the feed no longer lists \(others) of this mirror, and this may be one of them"
  }

  /// Of what is in the folder without a row.
  func foreign(_ present: Present) -> Verdict {
    guard present.kind == .directory, below > 0 else {
      return ("foreign", "it is in the folder, and Tarn did not place it; Tarn leaves it alone", nil)
    }
    let files = below == 1 ? "1 file" : "\(Units.grouped(below)) files"
    return ("current", "a directory, with \(files) below it that Tarn placed or adopted", nil)
  }

  /// Of a transfer that is paused. That is the agent's: it takes names only, and without it nothing is paused.
  func resumption(of path: [UInt8], mirror: String) -> String {
    guard let name = agentsName() else { return "tarn sync \(mirror)" }
    return "tarn resume \(ShellWord.quote(name)):\(ShellWord.quote(bytes: path))"
  }

  /// Of a file of Tarn's that is gone.
  func missing(_ row: Row, mirror: String) -> Verdict {
    switch localChanges {
    case .restore:
      ("missing", "\(row.origin), and it is not there any more\(doubt)", "tarn sync \(mirror)")
    case .keep, .report:
      (
        "missing",
        "\(row.origin), it was deleted here, and --local-changes \(localChanges.rawValue) leaves it so",
        undo(mirror)
      )
    }
  }

  /// Of a file of Tarn's that is not as it was placed.
  func changed(_ row: Row, _ present: Present, mirror: String) -> Verdict {
    guard present.kind == .regular else {
      let change =
        present.kind == .directory ? "a directory took its place" : "something that is no file took its place"
      return changed("\(row.origin), and \(change)", "\(row.origin), \(change)", mirror: mirror)
    }
    if row.isDoubtful {
      return (
        "changed", "'tarn verify' found other bytes than Tarn placed, and the next pass sees to it",
        "tarn sync \(mirror)"
      )
    }
    guard row.identity.size != present.identity.size else {
      return (
        "changed",
        "\(row.origin), and its time was changed since: the next pass looks whether its bytes were\(doubt)",
        "tarn sync \(mirror)"
      )
    }
    return changed(
      "\(row.origin), and it was changed since", "\(row.origin), it was changed since", mirror: mirror)
  }

  /// - Parameters:
  ///   - undone: the sentence where the next pass undoes it.
  ///   - left: the beginning of the one where it is left so.
  private func changed(_ undone: String, _ left: String, mirror: String) -> Verdict {
    guard localChanges != .restore else { return ("changed", undone + doubt, "tarn sync \(mirror)") }
    return (
      "changed", "\(left), and --local-changes \(localChanges.rawValue) leaves it so", undo(mirror)
    )
  }

  /// What mends a conflict: mostly a person has to make room first.
  func afterConflict(_ code: String, row: Row?, mirror: String) -> String {
    switch code {
    case "locally-changed", "locally-deleted": return undo(mirror)
    case "changing": return "tarn sync \(mirror)"
    // It took the place of a recorded file, and is left so by policy.
    case "directory-in-the-way", "link-in-the-way", "special-file-in-the-way":
      return row == nil ? "move it away, then: tarn sync \(mirror)" : undo(mirror)
    default: return "move it away, then: tarn sync \(mirror)"
    }
  }

  /// What helps where no pass is at work.
  func step(_ problem: Problem, mirror: String) -> String {
    ProblemAdvice(problem, mirror: mirror, configured: configuredName, trashBytes: trashBytes).step
  }

  func next(_ mirror: String) -> String {
    lastPass == .atWork ? "tarn status \(mirror)" : "tarn sync \(mirror)"
  }

  /// It holds for the whole mirror, and says so.
  private func undo(_ mirror: String) -> String {
    UndoAdvice.text(mirror: mirror, configured: configuredName)
  }

  private static func amount(_ bytes: UInt64, of total: UInt64?) -> String {
    Units.show(bytes) + (total.map { " of \(Units.show($0))" } ?? "")
  }
}

extension Row {
  /// How its bytes came to be there.
  var origin: String { isAdopted ? "it was there already, and was adopted" : "Tarn placed it" }
}
