package import TarnCore
package import TarnEngine
import TarnFeeds
import TarnFolder
import TarnLedger
package import TarnRuntime

extension Tarn {
  /// Returns the status of a mirror, even during a pass.
  package func status(
    folder: String, state: String?, name: String? = nil, problemLimit: Int
  ) throws(PassFailure) -> StatusDocument {
    let home = try home(folder: folder, state: state, name: name)
    return try asking(home) { ledger in
      var document = try StatusQuery(ledger: ledger).document(
        name: folder, folder: home.folder, holder: home.holder(), problemLimit: problemLimit)
      document.options = PassOptions(encoded: try ledger.fact(.options) ?? "").withoutPasswords.named
      let doubt = try ledger.fact(.complete).flatMap { $0.hasPrefix("no: ") ? String($0.dropFirst(4)) : nil }
      document.incompleteReason = doubt.flatMap { FeedParser.isOfWindow($0) ? nil : $0 }
      if name == nil, hasLeft(try ledger.fact(.settings), folder: home.folder) {
        document.leftSettings = true
      }
      return document
    }
  }

  /// - Parameters:
  ///   - path: a path below the folder, or an absolute one within it.
  ///   - name: the path as it was given: it may be a name that a pass refused, and any bytes.
  ///   - configured: the name of a mirror of the settings.
  ///   - agentsName: returns the name that an agent that answers has for the mirror.
  package func explain(
    folder: String, state: String?, path: [UInt8], name: [UInt8], configured: String? = nil,
    agentsName: @escaping () -> String? = { nil }
  ) throws(PassFailure) -> Explanation {
    let home = try home(folder: folder, state: state)
    return try asking(home) { ledger in
      let query = ExplainQuery(
        ledger: ledger, folder: try home.open(), holder: home.holder(), configured: configured,
        agentsName: agentsName)
      if let refused = try query.explain(refused: name, mirror: folder) { return refused }
      let text = String(validating: path, as: UTF8.self)
      let relative: RelativePath
      do throws(PassFailure) {
        relative = if let text { try self.path(text, in: home) } else { try self.relative(path, of: path) }
      } catch {
        if let leftOut = try query.explain(leftOut: name) { return leftOut }
        throw error
      }
      return try query.explain(relative, mirror: folder)
    }
  }

  /// - Parameter repairs: true when a sync follows.
  package func verify(
    folder: String, state: String?, repairs: Bool, observer: any PassObserver, progress: PassProgress,
    stop: StopFlag
  ) throws(PassFailure) -> VerifyReport {
    let home = try home(folder: folder, state: state)
    func verification(_ ledger: any LedgerPort, _ folder: LocalFolder) -> Verification {
      Verification(
        ledger: ledger, clock: SystemClock(), folder: folder, observer: observer, progress: progress,
        stop: stop)
    }
    // Works without the lock, for places that nobody can write, or when the result matters only to this
    // report.
    func runBesideOthers() throws(PassFailure) -> VerifyReport {
      let ledger = try readLedger(home)
      defer { ledger.close() }
      return try PassFailure.translating {
        var verification = verification(ledger, try home.open())
        verification.isReadOnly = true
        return try verification.run()
      }
    }
    if MountedFileSystem.isReadOnly(home.stateDirectory) {
      guard !repairs else {
        throw PassFailure(
          .inputOutput, code: "read-only", "\(Printable.escape(home.folder)) is on a read-only file system",
          hint: "verify it without --repair, or mount it writable")
      }
      return try runBesideOthers()
    }
    do throws(PassFailure) {
      return try withMirror(home) { mirror in
        try mirror.ledger.requireWhole()
        try recover(mirror)
        var verification = verification(mirror.ledger, mirror.folder)
        verification.catalog = SQLiteCatalog(directory: home.stateDirectory)
        return try verification.run()
      }
    } catch {
      // On a full disk, where not even the ledger's log fits, files can be compared nevertheless.
      guard error.isLackOfSpace, !repairs, let report = try? runBesideOthers() else { throw error }
      return report
    }
  }

  /// Returns the held plan and its first paths.
  package func heldPaths(
    folder: String, state: String?, limit: Int
  ) throws(PassFailure) -> (plan: HeldPlan, paths: [RelativePath])? {
    try asking(home(folder: folder, state: state)) { ledger in
      guard let plan = try ledger.held() else { return nil }
      return (plan, try ledger.heldPaths(plan: plan.id, after: nil, limit: limit))
    }
  }

  /// - Throws: the failures of `approve`.
  func heldPlan(folder: String, state: String?, plan: String?) throws(PassFailure) -> HeldPlan {
    try asking(home(folder: folder, state: state)) { try Approval.held(plan, in: $0) }
  }

  /// - Parameter ownWrites: the agent's own writes in the folder; `nil` when it is not watched.
  package func approve(
    folder: String, state: String?, plan: String?, observer: any PassObserver, stop: StopFlag,
    ownWrites: OwnWrites? = nil
  ) throws(PassFailure) -> ApprovalReport {
    try withMirror(home(folder: folder, state: state)) { mirror in
      try recover(mirror)
      return try Approval(
        ledger: mirror.ledger, folder: mirror.folder, clock: SystemClock(), random: SystemRandom(),
        observer: observer, stop: stop, engine: mirror.engine, ownWrites: ownWrites
      ).run(plan: plan)
    }
  }

  /// The meaning of a word where a FEED or a MIRROR may stand.
  package enum Word: Sendable {
    /// It has a scheme, is `-`, or is a feed's path to something other than a directory.
    case feed
    /// It is a file, but is written like a mirror.
    case file
    /// It is a directory that is no mirror.
    case directory
    /// It is a mirror, or does not exist.
    case other
  }

  package func meaning(of text: String) -> Word {
    if text == "-" || FeedText.scheme(of: text) != nil { return .feed }
    let path = absolute(text)
    if TextFile.isDirectory(path) { return [.empty, .foreign].contains(look(path)) ? .directory : .other }
    guard TextFile.status(path) != nil else { return .other }
    return FeedText.isPath(text) ? .feed : .file
  }

  /// The folders that this user's Tarn has made mirrors of, in the order of their making. A folder with
  /// several paths appears once. The list itself has each path, for a link may lead nowhere one day.
  package func knownFolders() -> [String] {
    let mirrors = registry?.mirrors() ?? []
    let counts = Dictionary(mirrors.map { ($0.id, 1) }, uniquingKeysWith: +)
    var seen: Set<[UInt8]> = []
    return mirrors.filter { mirror in
      counts[mirror.id] == 1 || seen.insert(realPlace(mirror.folder)).inserted
    }.map(\.folder)
  }

  /// True when a mirror's ledger has a path: as a file, as a directory of files, with a problem, or as a file that
  /// was there.
  package func records(_ path: String, in folder: String) -> Bool {
    guard let home = try? home(folder: folder, state: nil),
      let path = try? self.path(absolute(path), in: home)
    else { return false }
    let isKnown = try? asking(home) { ledger in
      let isKnownNow =
        try ledger.row(path) != nil || ledger.rowCount(below: path) > 0 || ledger.partial(path) != nil
        || ledger.problem(name: path.bytes) != nil
      if isKnownNow { return true }
      return try !ledger.events(path: path, limit: 1).isEmpty || ledger.trash().contains { $0.path == path }
    }
    return isKnown ?? false
  }

  /// The folder of the mirror that contains a path, by the settings or the list of this user's mirrors: the
  /// folder may be gone.
  package func knownFolder(around path: String) -> String? {
    let path = absolute(path)
    return (configuredFolders().map { absolute($0.folder) } + knownFolders()).first { isBelow($0, path) }
  }

  /// The mirror that contains a directory; `nil` when there is none.
  package func mirrorFolder(containing directory: String) -> String? {
    var path = absolute(directory)
    while true {
      if look(path)?.home != nil { return path }
      guard path != "/", let slash = path.lastIndex(of: "/") else { return nil }
      path = slash == path.startIndex ? "/" : String(path[..<slash])
    }
  }

  // MARK: Parts

  /// Runs the body with the mirror's folder locked. A damaged ledger is refused: only a pass makes a new one.
  func withMirror<Result>(
    _ home: FolderHome, _ body: (OpenMirror) throws -> Result
  ) throws(PassFailure) -> Result {
    let mirror = try mirrors.open(home, now: now)
    defer { mirrors.close(mirror) }
    do {
      return try body(mirror)
    } catch {
      let failure = PassFailure(translating: error)
      if failure.isDamage { try? mirror.ledger.distrust() }
      throw failure.explained(for: home)
    }
  }

  /// Asks a mirror's ledger. A damaged ledger is marked for the next pass to check.
  func asking<Answer>(
    _ home: FolderHome, _ body: (any LedgerPort) throws -> Answer
  ) throws(PassFailure) -> Answer {
    let ledger = try readLedger(home)
    defer { ledger.close() }
    do {
      return try body(ledger)
    } catch {
      let failure = PassFailure(translating: error)
      if failure.isDamage { distrust(home) }
      throw failure.explained(for: home)
    }
  }

  /// Marks the ledger as damaged. While somebody else holds the folder nothing is written; the next question
  /// does it.
  private func distrust(_ home: FolderHome) { _ = write(home) { try $0.distrust() } }

  /// - Returns: false when somebody else holds the folder, or it cannot be written.
  func write(_ home: FolderHome, _ body: (SQLiteLedger) throws -> Void) -> Bool {
    guard let lock = try? home.lock() else { return false }
    defer { lock.release() }
    guard let ledger = try? SQLiteLedger(directory: home.stateDirectory) else { return false }
    defer { ledger.close() }
    return (try? body(ledger)) != nil
  }

  /// Recovers from a crash before anything is decided about the mirror.
  func recover(_ mirror: OpenMirror) throws {
    try mirror.engine.prepareOnce {
      try Recovery(ledger: mirror.ledger, folder: mirror.folder, clock: SystemClock()).run()
    }
  }

  func readLedger(_ home: FolderHome) throws(PassFailure) -> any LedgerPort {
    do {
      return try SQLiteLedger(directory: home.stateDirectory, mode: .readOnly)
    } catch  where error.code == .missing {
      return AbsentLedger()
    } catch  where error.code == .older && write(home, { _ in }) {
      // Opening it for writing updates it.
      return try readLedger(home)
    } catch {
      throw PassFailure(error).explained(for: home)
    }
  }

  private func relative(_ bytes: [UInt8], of name: [UInt8]) throws(PassFailure) -> RelativePath {
    do {
      return try RelativePath(bytes)
    } catch {
      throw PassFailure(.usage, code: error.rawValue, "'\(Printable.escape(name))': \(error.reason)")
    }
  }

  func path(_ text: String, in home: FolderHome) throws(PassFailure) -> RelativePath {
    var relative = text
    if text.hasPrefix("/") {
      let full = absolute(text)
      guard full.hasPrefix(home.folder + "/") else {
        let name = full.split(separator: "/").last.map(String.init) ?? "PATH"
        throw PassFailure(
          .usage, code: "path-outside",
          "\(Printable.escape(text)) is not in \(Printable.escape(home.folder))",
          hint: "give a path within that folder, such as \(ShellWord.quote(name))")
      }
      relative = String(full.dropFirst(home.folder.count + 1))
    }
    while relative.hasPrefix("./") { relative = String(relative.dropFirst(2)) }
    return try self.relative(Array(relative.utf8), of: Array(text.utf8))
  }
}
