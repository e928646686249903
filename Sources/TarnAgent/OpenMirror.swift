import Glibc
import TarnCore
import TarnEngine
import TarnFolder
import TarnLedger
import TarnRuntime

/// The mirrors that this process has open for writing. Each of them is open once: who opens it while another one has it open gets the
/// same lock, ledger and engine. Any thread.
final class OpenMirrors: Sendable {
  /// Of the state directory: whatever path leads to it.
  struct Place: Hashable {
    let device: UInt64
    let inode: UInt64
  }

  private enum State {
    /// Somebody opens it, or the last one closes it.
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

  /// A damaged ledger is set aside only by who has it alone.
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

  /// The last one waits for the engine, and gives the folder up.
  ///
  /// - Parameter ending: what the last one does before that; nobody else can open it meanwhile.
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

  /// Nobody else in this process has it open.
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
  /// Among those that the process has open.
  fileprivate var place: OpenMirrors.Place?
  /// The ledger was damaged, set aside under this name and begun anew.
  var setAside: String?

  /// What becomes of a damaged ledger. Only a pass can fill a new one, so only a pass sets the old one aside.
  enum Damage: Equatable {
    case refused
    /// - Parameter unlessFeedIsLost: refused all the same when the feed can be read no more: nobody gives it anew, so
    ///   there would be no pass to fill the new ledger.
    case setAside(unlessFeedIsLost: Bool)
    /// Found while it was read: set aside without another look.
    case known(unlessFeedIsLost: Bool)
  }

  /// - Throws: `locked` when another Tarn holds the folder, naming it.
  fileprivate static func open(
    _ home: FolderHome, now: Timestamp, damage: Damage
  ) throws(PassFailure) -> OpenMirror {
    let folder = try PassFailure.translating { try home.open() }
    let lock = try takeLock(home)
    do {
      // Between the look and the lock another Tarn may have ended the mirror.
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

  /// Nothing was recorded in it yet. False when it cannot be told.
  var recordsNothing: Bool {
    // The feed first: it is there as a rule, and what is counted costs the more the more there is.
    let isBlank =
      try? setAside == nil && ledger.fact(.feed) == nil && ledger.rowCount() == 0 && ledger.trash().isEmpty
      && ledger.partials().isEmpty
    return isBlank ?? false
  }

  /// Nothing lies in the trash or is on its way. False when it cannot be told.
  var holdsNothing: Bool {
    let isEmpty = try? folder.trashed().isEmpty && folder.partials().isEmpty
    return isEmpty ?? false
  }

  fileprivate func close() {
    engine.close()
    ledger.close()
    lock.release()
  }

  /// On a full disk the ledger's log may not even be begun: then unfinished downloads go first, as in `Recovery`.
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

  /// Keeps the damaged ledger under another name, and takes over what the mirror follows, if that can be read.
  private static func beginAnew(
    _ directory: String, now: Timestamp, needsFeed: Bool
  ) throws(LedgerFailure) -> (SQLiteLedger, String?) {
    if needsFeed, rememberedFeed(directory) == nil {
      throw LedgerFailure(
        .corrupt,
        "\(Printable.escape(directory))/ledger.sqlite is damaged, and does not tell its feed any more")
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

  /// As far as a damaged ledger can tell.
  fileprivate static func rememberedFeed(_ directory: String) -> String? {
    guard let ledger = try? SQLiteLedger(directory: directory, mode: .readOnly) else { return nil }
    defer { ledger.close() }
    return try? ledger.fact(.feed)
  }
}

extension PassFailure {
  /// A ledger that cannot be read.
  var isDamage: Bool { code == LedgerFailure.Code.corrupt.rawValue }

  /// Bytes that were to be written found no space.
  var isLackOfSpace: Bool {
    code == LedgerFailure.Code.noSpace.rawValue || code == FolderFailure.Code.quota.rawValue
  }

  /// With what the trash would give back of a disk that is full, or with the way out of a damaged ledger, if that is what it
  /// is about.
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
