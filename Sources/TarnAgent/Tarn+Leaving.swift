package import TarnCore
import TarnEngine
import TarnFolder
import TarnLedger
import TarnRuntime

/// `tarn forget`, and mirrors that their settings no longer name.
extension Tarn {
  /// True when the settings named this mirror at its last pass, and no longer do. Unknown, and so false, when
  /// that pass used other settings than this process.
  ///
  /// - Parameter settings: the settings' place that its ledger holds.
  func hasLeft(_ settings: String?, folder: String) -> Bool {
    guard let settings, settings == settingsPlace() else { return false }
    return configuredName(at: folder) == nil
  }

  /// True when a mirror has left its settings, by its folder; false when its ledger cannot be read.
  package func hasLeftSettings(folder: String, state: String?) -> Bool {
    guard let home = try? home(folder: folder, state: state) else { return false }
    return (try? asking(home) { hasLeft(try $0.fact(.settings), folder: home.folder) }) ?? false
  }

  /// Returns the file of `--config` that named a mirror at its last pass, when that is still there and is not read now.
  package func otherSettings(of folder: String, state: String?) -> String? {
    guard let home = try? home(folder: folder, state: state),
      let file = (try? asking(home) { try $0.fact(.settings) }) ?? nil, file != settingsPlace(), isFile(file)
    else { return nil }
    return file
  }

  /// The two choices for a mirror that its settings no longer name.
  package static func stepsIfLeft(_ folder: String) -> String {
    let folder = ShellWord.quote(folder)
    return "to forget it: tarn forget \(folder); to keep it as one made by hand: tarn sync \(folder)"
  }

  /// What was forgotten.
  package enum Forgotten: Sendable {
    /// - Parameters:
    ///   - trashed: the number of files in its trash, which are removed as well.
    ///   - hasFiles: true when its folder is not empty.
    case mirror(trashed: Int, hasFiles: Bool)
    /// There was no mirror any more, only its entry in the list of this user's mirrors.
    case line
  }

  /// Forgets a mirror: removes Tarn's own directory and keeps the files. Refused while the trash holds a file
  /// that no row says Tarn placed, or that was changed there: it would be removed as well. So a new ledger,
  /// after the old one was lost or damaged, vouches for nothing.
  ///
  /// - Parameter name: the mirror of the settings that names its state.
  package func forget(
    folder: String, state: String?, name: String? = nil
  ) throws(PassFailure) -> Forgotten {
    try refuseEmptyNames(folder, state)
    let path = absolute(folder)
    let trashed: Int
    switch try inspect(path, state: state.map(absolute), name: name) {
    case .mirror(let home) where original(ofCopy: home) != nil:
      // The record belongs to the other mirror.
      _ = try PassFailure.translating { try FolderHome.removePointer(folder: path) }
      trashed = 0
    case .mirror(let home): trashed = try leave(home, as: folder)
    case .markerMissing(let reason):
      trashed = try leaveRemains(path, state: state.map(absolute), reason)
    case .missing, .empty, .foreign, .notDirectory:
      guard wasMirror(path) else {
        try refuseTransfer(folder)
        try refuseInside(path)
        throw PassFailure(
          .folderUnusable, code: "not-a-mirror",
          "\(Printable.escape(path)) is no mirror: there is nothing to forget",
          hint: nearName(folder).map { "did you mean '\(Printable.escape($0))'?" }
            ?? "'tarn status' lists the mirrors that are known")
      }
      removeFromList(path)
      return .line
    }
    removeFromList(path)
    return .mirror(trashed: trashed, hasFiles: !isGone(path))
  }

  /// Refuses a mirror that `forget` would refuse because of its trash. Changes nothing. Any other folder passes,
  /// such as one without a marker, and one whose trash cannot be read.
  package func refuseForeignTrash(folder: String, state: String?) throws(PassFailure) {
    guard case .mirror(let home)? = try? inspect(absolute(folder), state: state.map(absolute)),
      original(ofCopy: home) == nil, let files = try? trash(folder: folder, state: state)
    else { return }
    let foreign = files.count { !$0.isOwn }
    if foreign > 0 { throw foreignTrash(home, foreign, hint: Self.emptying(folder)) }
  }

  /// True when a mirror of this user was there, and nothing is there now, or what is no folder.
  package func isLost(_ folder: String) -> Bool {
    let path = absolute(folder)
    return wasMirror(path) && [.missing, .notDirectory].contains(try? inspect(path, state: nil))
  }

  /// True when a mirror of this user was there, and its folder is gone or empty.
  package func isLostOrEmptied(_ folder: String) -> Bool {
    let path = absolute(folder)
    return wasMirror(path) && isGone(path)
  }

  /// Removes all mirrors from the list whose folder is gone. Those on another file system stay, for that may
  /// only be unmounted.
  ///
  /// - Parameter kept: the folders that stay in it.
  /// - Returns: the folders that were removed from it.
  package func forgetGone(but kept: [String]) -> [String] {
    let kept = Set(kept.map(realPlace))
    return knownFolders().filter { folder in
      guard !kept.contains(realPlace(folder)), isLost(folder),
        (try? refuseUnmounted(folder)) != nil
      else { return false }
      removeFromList(folder)
      return true
    }
  }

  /// - Returns: the number of files in its trash.
  private func leave(_ home: FolderHome, as name: String) throws(PassFailure) -> Int {
    try withMirror(home) { mirror in
      try recover(mirror)
      return try remove(home, mirror.ledger, hint: Self.emptying(name))
    }
  }

  private static func emptying(_ name: String) -> String {
    "look at what is there: tarn trash list \(ShellWord.quote(name)); "
      + "restore it, or: tarn trash empty \(ShellWord.quote(name))"
  }

  /// Removes what is left of a mirror's state after its marker is gone, if that is certainly its own.
  private func leaveRemains(_ path: String, state: String?, _ reason: String) throws(PassFailure) -> Int {
    let remains = try PassFailure.translating { try FolderHome.remains(folder: path, state: state) }
    guard let home = remains else {
      guard try PassFailure.translating({ try FolderHome.removePointer(folder: path) }) else {
        throw markerMissing(path, reason)
      }
      return 0
    }
    try refuseOthers(home)
    let lock = try OpenMirror.takeLock(home)
    defer { lock.release() }
    return try PassFailure.translating {
      let ledger = try SQLiteLedger(directory: home.stateDirectory)
      defer { ledger.close() }
      // Without the folder nothing can be recovered: a file that no row vouches for is somebody else's.
      return try remove(
        home, ledger,
        hint:
          "take what is there out of \(Printable.escape(home.stateDirectory))/trash, then 'tarn forget' again"
      )
    }
  }

  /// - Returns: the number of files in its trash.
  private func remove(_ home: FolderHome, _ ledger: SQLiteLedger, hint: String) throws -> Int {
    let rows = try Dictionary(ledger.trash().map { ($0.name, $0) }) { first, _ in first }
    let trashed = try home.trashed()
    let foreign = trashed.count { rows[$0.name]?.lying($0.identity).isOwn != true }
    guard foreign == 0 else { throw foreignTrash(home, foreign, hint: hint) }
    ledger.close()
    try home.remove()
    return trashed.count
  }

  private func foreignTrash(_ home: FolderHome, _ files: Int, hint: String) -> PassFailure {
    PassFailure(
      .usage, code: "trash-not-empty",
      "the trash of \(Printable.escape(home.folder)) holds \(Units.count(files, "file")) that Tarn did not place, "
        + "or does not know of", hint: hint)
  }

  /// Refuses the state of another mirror, for a state directory serves only one.
  ///
  /// - Throws: `usage` when the list of mirrors says that it belongs to another one.
  func refuseOthers(_ path: String, state: String?, name: String?) throws(PassFailure) {
    guard state != nil else { return }
    let remains = try PassFailure.translating { try FolderHome.remains(folder: path, state: state) }
    guard let home = remains else { return }
    try refuseOthers(home)
    guard name == nil else { return }
    // A folder that this user never had may be a mistake, and the state may belong to somebody's mirror
    // elsewhere.
    guard registry == nil || wasMirror(path) || !isGone(home.folder) else {
      throw PassFailure(
        .usage, code: "state-of-another",
        "\(Printable.escape(home.stateDirectory)) is the state of a mirror, and there is none in \(Printable.escape(home.folder))",
        hint: "give the folder that it was made with, as its user; or give this one another --state")
    }
  }

  private func refuseOthers(_ home: FolderHome) throws(PassFailure) {
    let known = registry?.mirrors() ?? []
    let state = Printable.escape(home.stateDirectory)
    if let other = known.first(where: { $0.id == home.id && !isSamePlace($0.folder, home.folder) }) {
      throw PassFailure(
        .usage, code: "state-of-another", "\(state) is the state of \(Printable.escape(other.folder))",
        hint: "each mirror needs a directory of its own: give this one another --state")
    }
    if known.contains(where: { $0.isAt(home.folder) && $0.id != home.id }), !home.id.isEmpty {
      throw PassFailure(
        .usage, code: "state-of-another", "\(state) is not the state of \(Printable.escape(home.folder))",
        hint: "give the --state that it was made with")
    }
  }
}
