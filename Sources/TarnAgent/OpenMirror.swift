import Glibc
import TarnCore
import TarnEngine
import TarnFolder
import TarnLedger
import TarnRuntime

/// The mirrors that this process has open for writing. Each is open once: further calls get the same lock,
/// ledger and engine. Callable on any thread.
final class OpenMirrors: Sendable {
  /// Identifies the state directory, whatever path leads to it.
  struct Place: Hashable {
    let device: UInt64
    let inode: UInt64
  }

  private enum State {
    /// A thread is opening it, or the last one is closing it.
    case changing
    case open(OpenMirror, count: Int)
  }

  private let mirrors = LockedCondition<[Place: State]>([:])

  /// - Throws: `locked` when another process holds the folder, naming it.
  func open(
    _ home: FolderHome, now: Timestamp, damage: OpenMirror.Damage = .refused
  ) throws(PassFailure) -> OpenMirror {
    guard let place = Self.place(home) else { return try OpenMirror.open(home, now: now, damage: damage) }
    let known = mirrors.wait { mirrors -> OpenMirror?? in
      switch mirrors[place] {
      case .changing: return nil
      case .open(let mirror, let count):
        mirrors[place] = .open(mirror, count: count + 1)
        return mirror
      case nil:
        mirrors[place] = .changing
        return .some(nil)
      }
    }
    if let known { return try share(known, damage) }
    do throws(PassFailure) {
      var mirror = try OpenMirror.open(home, now: now, damage: damage)
      mirror.place = place
      mirrors.change { $0[place] = .open(mirror, count: 1) }
      return mirror
    } catch {
      mirrors.change { $0[place] = nil }
      throw error
    }
  }

  /// Refuses to share a mirror whose damaged ledger is to be set aside: only its sole user may do that.
  private func share(_ mirror: OpenMirror, _ damage: OpenMirror.Damage) throws(PassFailure) -> OpenMirror {
    guard case .known = damage else {
      var mirror = mirror
      mirror.setAside = nil
      return mirror
    }
    close(mirror)
    throw PassFailure(
      LedgerFailure(
        .corrupt, "\(Printable.escape(mirror.home.stateDirectory))/ledger.sqlite is damaged, and still in use"
      ))
  }

  /// Closes the mirror for one user. The last one waits for the engine and releases the folder.
  ///
  /// - Parameter ending: runs before that for the last user; nobody else can open the mirror meanwhile.
  func close(_ mirror: OpenMirror, ending: () -> Void = {}) {
    guard let place = mirror.place else {
      ending()
      return mirror.close()
    }
    let isLast = mirrors.change { mirrors -> Bool in
      guard case .open(let mirror, let count)? = mirrors[place], count > 1 else {
        mirrors[place] = .changing
        return true
      }
      mirrors[place] = .open(mirror, count: count - 1)
      return false
    }
    guard isLast else { return }
    ending()
    mirror.close()
    mirrors.change { $0[place] = nil }
  }

  /// True when nobody else in this process has the mirror open.
  func isAlone(_ mirror: OpenMirror) -> Bool {
    guard let place = mirror.place, case .open(_, let count)? = mirrors.withLock({ $0[place] }) else {
      return true
    }
    return count == 1
  }

  private static func place(_ home: FolderHome) -> Place? {
    var status = stat()
    guard stat(home.stateDirectory, &status) == 0 else { return nil }
    return Place(device: UInt64(status.st_dev), inode: UInt64(status.st_ino))
  }
}

/// A mirror that is open for writing: its folder locked, its ledger up to date.
struct OpenMirror {
  let home: FolderHome
  let folder: LocalFolder
  let lock: FolderLock
  let ledger: SQLiteLedger
  let engine = TransferEngine()
  /// Its place among the open mirrors of the process.
  fileprivate var place: OpenMirrors.Place?
  /// The name under which a damaged ledger was set aside; then a new one was begun.
  var setAside: String?

  /// What to do with a damaged ledger. Only a pass can fill a new one, so only a pass sets the old one aside.
  enum Damage: Equatable {
    case refused
    /// - Parameter unlessFeedIsLost: true to refuse all the same when the feed cannot be read. Without a new
    ///   FEED no pass could fill the new ledger.
    case setAside(unlessFeedIsLost: Bool)
    /// The damage was found while reading: the ledger is set aside without another check.
    case known(unlessFeedIsLost: Bool)
  }

  /// - Throws: `locked` when another Tarn holds the folder, naming it.
  fileprivate static func open(
    _ home: FolderHome, now: Timestamp, damage: Damage
  ) throws(PassFailure) -> OpenMirror {
    let folder = try PassFailure.translating { try home.open() }
    let lock = try takeLock(home)
    do {
      // Before the lock was taken, another process may have ended the mirror.
      guard try folder.isIntact() else { throw vanished(home) }
      let (ledger, setAside) = try openLedger(home, folder, now: now, damage: damage)
      return OpenMirror(home: home, folder: folder, lock: lock, ledger: ledger, setAside: setAside)
    } catch {
      lock.release()
      throw PassFailure(translating: error).explained(for: home)
    }
  }

  private static func vanished(_ home: FolderHome) -> PassFailure {
    PassFailure(
      .folderUnusable, code: "marker-missing",
      "\(Printable.escape(home.folder)) stopped being this mirror a moment ago; nothing was changed",
      hint: "look at it, and try again")
  }

  static func takeLock(_ home: FolderHome) throws(PassFailure) -> FolderLock {
    let name = Printable.escape(home.folder)
    do {
      return try home.lock()
    } catch let busy as FolderBusy {
      throw PassFailure(
        .locked, code: "folder-busy",
        "another Tarn holds \(name): \(holder(busy))",
        hint: "wait for it, or look at 'tarn status \(name)'")
    } catch let failure as FolderFailure where failure.code == .missing {
      throw vanished(home)
    } catch {
      throw PassFailure(translating: error).explained(for: home)
    }
  }

  private static func holder(_ busy: FolderBusy) -> String {
    guard busy.process != 0 else { return "another process" }
    return "process \(busy.process)" + (busy.command.isEmpty ? "" : " (\(Printable.escape(busy.command)))")
  }

  /// True when the mirror has recorded nothing yet. False when that is unknown.
  var recordsNothing: Bool {
    // The feed comes first: it is usually there, and counting takes longer the more there is.
    let isBlank =
      try? setAside == nil && ledger.fact(.feed) == nil && ledger.rowCount() == 0 && ledger.trash().isEmpty
      && ledger.partials().isEmpty
    return isBlank ?? false
  }

  /// True when nothing lies in the trash or is being fetched. False when that is unknown.
  var holdsNothing: Bool {
    let isEmpty = try? folder.trashed().isEmpty && folder.partials().isEmpty
    return isEmpty ?? false
  }

  fileprivate func close() {
    engine.close()
    ledger.close()
    lock.release()
  }

  /// Opens the ledger. On a full disk not even its log may fit: then unfinished downloads are removed first,
  /// as in `Recovery`.
  private static func openLedger(
    _ home: FolderHome, _ folder: LocalFolder, now: Timestamp, damage: Damage
  ) throws(LedgerFailure) -> (SQLiteLedger, String?) {
    do throws(LedgerFailure) {
      return try openLedger(home.stateDirectory, now: now, damage: damage)
    } catch {
      guard error.code == .noSpace,
        let reader = try? SQLiteLedger(directory: home.stateDirectory, mode: .readOnly)
      else { throw error }
      let isRoomier = try? Recovery(ledger: reader, folder: folder, clock: SystemClock()).makeRoom()
      reader.close()
      guard isRoomier == true else { throw error }
      return try openLedger(home.stateDirectory, now: now, damage: damage)
    }
  }

  private static func openLedger(
    _ directory: String, now: Timestamp, damage: Damage
  ) throws(LedgerFailure) -> (SQLiteLedger, String?) {
    if case .known(let needsFeed) = damage {
      return try beginAnew(directory, now: now, needsFeed: needsFeed)
    }
    do {
      return (try SQLiteLedger(directory: directory), nil)
    } catch {
      guard error.code == .corrupt, case .setAside(let needsFeed) = damage else { throw error }
      return try beginAnew(directory, now: now, needsFeed: needsFeed)
    }
  }

  /// Keeps the damaged ledger under another name. The new one takes over the feed and the settings, if they
  /// can be read.
  private static func beginAnew(
    _ directory: String, now: Timestamp, needsFeed: Bool
  ) throws(LedgerFailure) -> (SQLiteLedger, String?) {
    if needsFeed, rememberedFeed(directory) == nil {
      throw LedgerFailure(
        .corrupt,
        "\(Printable.escape(directory))/ledger.sqlite is damaged, and no longer names its feed")
    }
    let old = try? SQLiteLedger(directory: directory, mode: .readOnly)
    let facts = [LedgerFact.feed, .options, .settings, .manifestVersion].compactMap { name in
      (try? old?.fact(name)).map { LedgerChange.fact(name, $0) }
    }
    old?.close()
    let aside = try SQLiteLedger.setAside(directory: directory, now: now)
    let ledger = try SQLiteLedger(directory: directory)
    try ledger.apply(facts)
    return (ledger, aside)
  }

  /// The feed that a damaged ledger remembers, if it can be read.
  fileprivate static func rememberedFeed(_ directory: String) -> String? {
    guard let ledger = try? SQLiteLedger(directory: directory, mode: .readOnly) else { return nil }
    defer { ledger.close() }
    return try? ledger.fact(.feed)
  }
}

extension PassFailure {
  /// True when a ledger cannot be read.
  var isDamage: Bool { code == LedgerFailure.Code.corrupt.rawValue }

  /// True when there was no space to write.
  var isLackOfSpace: Bool {
    code == LedgerFailure.Code.noSpace.rawValue || code == FolderFailure.Code.quota.rawValue
  }

  /// Returns the failure with a hint where one helps: the bytes in the trash for a full disk, or the way out
  /// of a damaged ledger.
  func explained(for home: FolderHome) -> PassFailure {
    guard hint == nil || hint == LedgerFailure.makeRoom else { return self }
    let folder = ShellWord.quote(home.folder)
    var failure = self
    if isLackOfSpace {
      let bytes = ((try? home.trashed()) ?? []).reduce(UInt64(0)) { $0.addingSaturated($1.identity.size) }
      guard bytes > 0 else { return self }
      failure.hint =
        "the trash of this mirror holds \(Units.show(bytes)); to remove it for good: tarn trash empty \(folder)"
    } else if code == LedgerFailure.Code.older.rawValue {
      failure.hint = "to bring it up to date: tarn sync \(folder)"
    } else if isDamage {
      let sync =
        OpenMirror.rememberedFeed(home.stateDirectory) == nil
        ? "tarn sync FEED \(folder), with the options that the mirror had" : "tarn sync \(folder)"
      failure.hint = "to keep the damaged ledger and make a new one: \(sync)"
    }
    return failure
  }
}
