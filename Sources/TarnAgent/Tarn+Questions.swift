package import TarnCore
package import TarnEngine
import TarnFolder
import TarnLedger
import TarnRuntime

extension Tarn {
  /// Answers beside a running pass as well.
  package func status(folder: String, state: String?, problemLimit: Int) throws(PassFailure) -> StatusDocument
  {
    let home = try home(folder: folder, state: state)
    let ledger = try readLedger(home)
    defer { ledger.close() }
    return try PassFailure.translating {
      return try StatusQuery(ledger: ledger).document(
        name: folder, folder: home.folder, holder: home.holder(), problemLimit: problemLimit)
    }
  }

  /// - Parameter path: below the folder, or absolute within it.
  package func explain(folder: String, state: String?, path: String) throws(PassFailure) -> Explanation {
    let home = try home(folder: folder, state: state)
    let ledger = try readLedger(home)
    defer { ledger.close() }
    let local = try openFolder(home)
    let relative = try self.path(path, in: home)
    return try ExplainQuery(ledger: ledger, folder: local).explain(relative, mirror: folder)
  }

  /// - Parameter marking: let the next pass fetch again what is damaged.
  package func verify(
    folder: String, state: String?, marking: Bool, observer: any PassObserver, progress: PassProgress,
    stop: StopFlag
  ) throws(PassFailure) -> VerifyReport {
    let mirror = try OpenMirror.open(home(folder: folder, state: state), now: now)
    defer { mirror.close() }
    try refuseRebuilt(mirror)
    let ports = Verification.VerifyPorts(ledger: mirror.ledger, clock: SystemClock())
    return try Verification(
      ports: ports, folder: mirror.folder, observer: observer, progress: progress, stop: stop
    ).run(forgetDamage: marking)
  }

  package func heldPaths(
    folder: String, state: String?
  ) throws(PassFailure) -> (plan: HeldPlan, paths: [RelativePath])? {
    let ledger = try readLedger(home(folder: folder, state: state))
    defer { ledger.close() }
    return try PassFailure.translating {
      guard let plan = try ledger.held() else { return nil }
      return (plan, try ledger.heldPaths(plan: plan.id))
    }
  }

  package func approve(
    folder: String, state: String?, plan: String?, observer: any PassObserver
  ) throws(PassFailure) -> ApprovalReport {
    let mirror = try OpenMirror.open(home(folder: folder, state: state), now: now)
    defer { mirror.close() }
    try refuseRebuilt(mirror)
    return try Approval(
      ledger: mirror.ledger, folder: mirror.folder, clock: SystemClock(), random: SystemRandom(),
      observer: observer
    ).run(plan: plan)
  }

  package func trash(folder: String, state: String?) throws(PassFailure) -> [TrashRow] {
    let ledger = try readLedger(home(folder: folder, state: state))
    defer { ledger.close() }
    return try PassFailure.translating {
      return try ledger.trash()
    }
  }

  /// - Parameters:
  ///   - name: an id, the beginning of one, or the path that the file had (the newest one then).
  ///   - path: where to put it; nil for where it was.
  package func restoreTrash(
    folder: String, state: String?, name: String, to path: String?
  ) throws(PassFailure) -> TrashRow {
    let mirror = try OpenMirror.open(home(folder: folder, state: state), now: now)
    defer { mirror.close() }
    let row = try find(name, in: mirror)
    let target = try path.map { path throws(PassFailure) in try self.path(path, in: mirror.home) }
    let can = TrashCan(ledger: mirror.ledger, folder: mirror.folder, clock: SystemClock())
    try can.restore(row, to: target)
    return row
  }

  /// - Parameter names: as for `restoreTrash`; none means all.
  package func emptyTrash(
    folder: String, state: String?, names: [String]
  ) throws(PassFailure) -> (files: Int, bytes: UInt64) {
    let mirror = try OpenMirror.open(home(folder: folder, state: state), now: now)
    defer { mirror.close() }
    let rows = try PassFailure.translating {
      names.isEmpty ? try mirror.ledger.trash() : try names.map { try find($0, in: mirror) }
    }
    return try TrashCan(ledger: mirror.ledger, folder: mirror.folder, clock: SystemClock()).empty(rows)
  }

  /// Stops following: Tarn's own directory goes, the files stay. Refused while the trash holds bytes that Tarn
  /// did not place, for they would go with it.
  package func forget(folder: String, state: String?) throws(PassFailure) {
    let path = absolute(folder)
    guard case .mirror(let home)? = try? FolderHome.inspect(folder: path, state: state.map(absolute)) else {
      if registry?.mirrors().contains(where: { $0.isAt(path) }) == true {
        registry?.remove(folder: path)
        return
      }
      _ = try self.home(folder: folder, state: state)
      return
    }
    let mirror = try OpenMirror.open(home, now: now)
    defer { mirror.close() }
    try PassFailure.translating {
      let foreign = try mirror.ledger.trash().filter { !$0.isOwn }
      guard foreign.isEmpty else {
        throw PassFailure(
          .usage, code: "trash-not-empty",
          "the trash of \(Printable.escape(home.folder)) holds \(foreign.count) files that Tarn did not place",
          hint:
            "look at them with 'tarn trash list \(Printable.escape(folder))'; restore them, or 'tarn trash empty'"
        )
      }
      mirror.ledger.close()
      try home.remove()
    }
    registry?.remove(folder: home.folder)
  }

  /// True for what is a FEED when two arguments are given: it has a scheme, is `-`, or leads to a regular file.
  package func isFeed(_ text: String) -> Bool {
    if text == "-" || FeedText.scheme(of: text) != nil { return true }
    guard text.hasPrefix("/") || text.hasPrefix("./") || text.hasPrefix("../") else { return false }
    return TextFile.isRegular(absolute(text))
  }

  /// Folders that this user's Tarn has made mirrors of, in the order that they were made.
  package func knownFolders() -> [String] {
    registry?.mirrors().map(\.folder) ?? []
  }

  /// The mirror that a directory lies in; nil when it lies in none.
  package func mirrorFolder(containing directory: String) -> String? {
    var path = absolute(directory)
    while true {
      if case .mirror? = try? FolderHome.inspect(folder: path, state: nil) { return path }
      guard path != "/", let slash = path.lastIndex(of: "/") else { return nil }
      path = slash == path.startIndex ? "/" : String(path[..<slash])
    }
  }

  // MARK: Parts

  func readLedger(_ home: FolderHome) throws(PassFailure) -> any LedgerPort {
    do {
      return try SQLiteLedger(directory: home.stateDirectory, mode: .readOnly)
    } catch  where error.code == .missing {
      return AbsentLedger()
    } catch {
      let hint =
        error.code == .corrupt
        ? "run 'tarn sync \(Printable.escape(home.folder))': it keeps the damaged ledger and makes a new one"
        : nil
      var failure = PassFailure(error)
      failure.hint = failure.hint ?? hint
      throw failure
    }
  }

  func openFolder(_ home: FolderHome) throws(PassFailure) -> LocalFolder {
    return try PassFailure.translating {
      return try home.open()
    }
  }

  private func refuseRebuilt(_ mirror: OpenMirror) throws(PassFailure) {
    guard let name = mirror.setAside else { return }
    throw PassFailure(
      .inputOutput, code: "ledger-corrupt",
      "the ledger was damaged; it is kept as \(name), and the new one is empty",
      hint: "fill it from what is in the folder: tarn sync FEED \(Printable.escape(mirror.home.folder))")
  }

  private func path(_ text: String, in home: FolderHome) throws(PassFailure) -> RelativePath {
    var relative = text
    if text.hasPrefix("/") {
      let full = absolute(text)
      guard full.hasPrefix(home.folder + "/") else {
        throw PassFailure(
          .usage, code: "path-outside", "\(Printable.escape(text)) is not in \(Printable.escape(home.folder))"
        )
      }
      relative = String(full.dropFirst(home.folder.count + 1))
    }
    while relative.hasPrefix("./") { relative = String(relative.dropFirst(2)) }
    do {
      return try RelativePath(Array(relative.utf8))
    } catch {
      throw PassFailure(.usage, code: error.rawValue, "'\(Printable.escape(text))': \(error.reason)")
    }
  }

  private func find(_ name: String, in mirror: OpenMirror) throws(PassFailure) -> TrashRow {
    let rows = try PassFailure.translating { try mirror.ledger.trash() }
    if let row = rows.first(where: { $0.name == name }) { return row }
    let named = rows.filter { $0.path.bytes == Array(name.utf8) }.sorted { $0.when > $1.when }
    if let newest = named.first { return newest }
    let matches = rows.filter { name.count >= 4 && $0.name.hasPrefix(name) }
    guard let row = matches.first, matches.count == 1 else {
      let what = matches.isEmpty ? "nothing in the trash is" : "several files in the trash begin with"
      throw PassFailure(
        .usage, code: "not-in-trash", "\(what) '\(Printable.escape(name))'",
        hint: "tarn trash list \(Printable.escape(mirror.home.folder))")
    }
    return row
  }
}
