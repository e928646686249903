package import TarnConfig
package import TarnCore
package import TarnEngine
import TarnFolder
import TarnLedger
package import TarnRuntime

/// `tarn trash`.
extension Tarn {
  /// Returns the files in the trash: those of the ledger, and those without a row, which a crash or a lost
  /// ledger leaves. Answers during a pass as well. Rows whose file is gone are left out.
  package func trash(folder: String, state: String?) throws(PassFailure) -> [TrashRow] {
    let home = try home(folder: folder, state: state)
    return try asking(home) { ledger in
      // Files come first: a row that is added meanwhile is not taken for missing.
      let files = try home.trashed()
      let rows = try ledger.trash()
      let intents = try Dictionary(ledger.intents().map { ($0.trashName, $0.path) }) { first, _ in first }
      let known = Set(rows.map(\.name))
      let lying = Dictionary(files.map { ($0.name, $0.identity) }) { first, _ in first }
      let isBusy = home.holder() != nil
      let found = files.filter { !known.contains($0.name) && !(isBusy && intents[$0.name] != nil) }
      // On a full disk, files are removed before their rows.
      let present = known.isSubset(of: lying.keys) ? known : Set(try home.trashed().map(\.name))
      return rows.filter { present.contains($0.name) }.map { row in lying[row.name].map(row.lying) ?? row }
        + found.map { file in
          var row = TrashRow(found: file.name, size: file.identity.size, when: now)
          row.path = intents[file.name] ?? row.path
          return row
        }
    }
  }

  /// The seconds after which passes remove what Tarn placed, as of the last pass; `nil` for never.
  package func trashLifetime(folder: String, state: String?) throws(PassFailure) -> Int64? {
    try asking(home(folder: folder, state: state)) { ledger in
      try ledger.fact(.trashKept).flatMap { Int64($0) }
    }
  }

  /// - Parameters:
  ///   - name: an id, the beginning of one, or the path that the file had (the newest one then).
  ///   - path: the destination; `nil` for the original path.
  ///   - configured: the mirror's settings, when it is configured.
  package func restoreTrash(
    folder: String, state: String?, name: String, to path: String?, configured: MirrorSettings? = nil
  ) throws(PassFailure) -> TrashRow {
    try withMirror(home(folder: folder, state: state)) { mirror in
      try recover(mirror)
      let row = try find(name, among: mirror.ledger.trash(), mirror.home)
      let target = try path.map { path throws(PassFailure) in try self.path(path, in: mirror.home) }
      try refuseUndone(row, at: target ?? row.path, in: mirror, configured)
      try mirror.engine.claiming([target ?? row.path]) {
        try TrashCan(ledger: mirror.ledger, folder: mirror.folder, clock: SystemClock()).restore(
          row, to: target)
      }
      return row
    }
  }

  /// Refuses to put other bytes in the place of the feed's file when the next pass would remove them again.
  private func refuseUndone(
    _ row: TrashRow, at target: RelativePath, in mirror: OpenMirror, _ configured: MirrorSettings?
  ) throws {
    let ledger = mirror.ledger
    // An existing file is never replaced; a later check reports that.
    guard let placed = try ledger.row(target), try mirror.folder.look(target) == nil else { return }
    let options = try configured?.options ?? PassOptions(encoded: ledger.fact(.options) ?? "")
    guard let policy = try? options.policy(),
      (try ledger.followsWindow() ? policy.window.localChanges : policy.localChanges) == .restore
    else { return }
    let trash = try ForeignFolder(folder: mirror.home.stateDirectory + "/trash")
    let (name, algorithm) = (RelativePath(trusted: Array(row.name.utf8)), placed.digest.algorithm)
    if row.size == placed.identity.size, try trash.digest(of: name, algorithm)?.0 == placed.digest { return }
    let keep =
      configured.map {
        "local-changes = \"keep\" below \(TOMLText.mirror($0.name)) of the settings"
      }
      ?? "tarn sync --local-changes keep \(ShellWord.quote(mirror.home.folder))"
    throw PassFailure(
      .usage, code: "would-be-undone",
      "\(target.printable) is a file of the feed, which has other bytes: the next pass would put these back, and this file into the trash",
      hint: "put it elsewhere with --to PATH; or let the mirror keep what is changed here: \(keep)")
  }

  /// Returns what lies in the trash now under these names, each once.
  ///
  /// - Parameter names: ids, the beginnings of ids, or paths, which mean every file that had them; none means
  ///   all.
  package func trash(
    folder: String, state: String?, named names: [String]
  ) throws(PassFailure) -> [TrashRow] {
    let rows = try trash(folder: folder, state: state)
    guard !names.isEmpty else { return rows }
    let home = try home(folder: folder, state: state)
    var wanted: Set<String> = []
    for name in names {
      let found = try find(name, among: rows, home)
      let isID = found.name == name
      wanted.formUnion(
        isID || found.path.bytes != Array(name.utf8)
          ? [found.name] : rows.filter { $0.path == found.path }.map(\.name))
    }
    return rows.filter { wanted.contains($0.name) }
  }

  /// Removes files from the trash for good. Works on a full disk as well. Files that are gone meanwhile are
  /// skipped.
  ///
  /// - Parameter names: complete ids.
  package func emptyTrash(
    folder: String, state: String?, names: Set<String>, stop: StopFlag
  ) throws(PassFailure) -> EmptyReport {
    do throws(PassFailure) {
      return try emptyRecorded(folder, state, names, stop: stop)
    } catch {
      guard error.isLackOfSpace, !stop.isSet,
        let early = try? emptyUnrecorded(home(folder: folder, state: state), names), early.files > 0
      else { throw error }
      // There is room for the ledger now, which forgets the removed files.
      var report = try emptyRecorded(folder, state, names, stop: stop)
      report.files += early.files
      report.bytes.addSaturated(early.bytes)
      return report
    }
  }

  private func emptyRecorded(
    _ folder: String, _ state: String?, _ names: Set<String>, stop: StopFlag
  ) throws(PassFailure) -> EmptyReport {
    try withMirror(home(folder: folder, state: state)) { mirror in
      try recover(mirror)
      let rows = try mirror.ledger.trash().filter { names.contains($0.name) }
      return try TrashCan(ledger: mirror.ledger, folder: mirror.folder, clock: SystemClock()).empty(
        rows, stop: stop)
    }
  }

  /// Removes the files without their rows, when not even the ledger's log fits.
  private func emptyUnrecorded(_ home: FolderHome, _ names: Set<String>) throws -> EmptyReport {
    let folder = try home.open()
    let lock = try OpenMirror.takeLock(home)
    defer { lock.release() }
    let ledger = try SQLiteLedger(directory: home.stateDirectory, mode: .readOnly)
    defer { ledger.close() }
    guard try folder.isIntact() else { return EmptyReport() }
    return try TrashCan(ledger: ledger, folder: folder, clock: SystemClock()).removeFiles(names)
  }

  private func find(
    _ name: String, among rows: [TrashRow], _ home: FolderHome
  ) throws(PassFailure) -> TrashRow {
    if let row = rows.first(where: { $0.name == name }) { return row }
    let named = rows.filter { $0.path.bytes == Array(name.utf8) }.sorted { $0.when > $1.when }
    if let newest = named.first { return newest }
    let matches = rows.filter { name.count >= 4 && $0.name.hasPrefix(name) }
    guard let row = matches.first, matches.count == 1 else {
      let what = matches.isEmpty ? "the trash has no" : "the ids of several files in the trash begin with"
      throw PassFailure(
        .usage, code: "not-in-trash", "\(what) '\(Printable.escape(name))'",
        hint: "tarn trash list \(ShellWord.quote(home.folder))")
    }
    return row
  }
}
