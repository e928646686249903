import TarnCore
import TarnEngine
import TarnFolder
import TarnLedger

/// A mirror that is open for writing: its folder locked, its ledger up to date. Close it.
struct OpenMirror {
  let home: FolderHome
  let folder: LocalFolder
  let lock: FolderLock
  let ledger: SQLiteLedger
  /// The ledger was damaged, set aside under this name and begun anew.
  let setAside: String?

  /// - Throws: `locked` when another Tarn holds the folder, naming it.
  ///
  /// - Parameter isDamaged: the ledger was found damaged while it was read: set it aside.
  static func open(
    _ home: FolderHome, now: Timestamp, isDamaged: Bool = false
  ) throws(PassFailure) -> OpenMirror {
    let folder = try openFolder(home)
    let lock = try takeLock(home)
    do {
      let (ledger, setAside) = try openLedger(home.stateDirectory, now: now, isDamaged: isDamaged)
      return OpenMirror(home: home, folder: folder, lock: lock, ledger: ledger, setAside: setAside)
    } catch {
      lock.release()
      throw PassFailure(error)
    }
  }

  private static func openFolder(_ home: FolderHome) throws(PassFailure) -> LocalFolder {
    do {
      return try home.open()
    } catch {
      throw PassFailure(error)
    }
  }

  private static func takeLock(_ home: FolderHome) throws(PassFailure) -> FolderLock {
    let name = Printable.escape(home.folder)
    do {
      return try home.lock()
    } catch let busy as FolderBusy {
      throw PassFailure(
        .locked, code: "folder-busy",
        "another Tarn holds \(name): process \(busy.process) (\(Printable.escape(busy.command)))",
        hint: "wait for it, or look at 'tarn status \(name)'")
    } catch let failure as FolderFailure {
      throw PassFailure(failure)
    } catch {
      throw PassFailure(.defect, code: "defect", "\(error)")
    }
  }

  func close() {
    ledger.close()
    lock.release()
  }

  private static func openLedger(
    _ directory: String, now: Timestamp, isDamaged: Bool
  ) throws(LedgerFailure) -> (SQLiteLedger, String?) {
    if isDamaged { return try beginAnew(directory, now: now) }
    do {
      return (try SQLiteLedger(directory: directory), nil)
    } catch  where error.code == .corrupt {
      return try beginAnew(directory, now: now)
    }
  }

  /// Keeps the damaged ledger under another name, and takes over what the mirror follows, if that can be read.
  private static func beginAnew(
    _ directory: String, now: Timestamp
  ) throws(LedgerFailure) -> (SQLiteLedger, String?) {
    let names = ["feed", "options", "manifest-version"]
    var facts: [LedgerChange] = []
    if let old = try? SQLiteLedger(directory: directory, mode: .readOnly) {
      for name in names {
        if let value = try? old.fact(name) { facts.append(.fact(name, value)) }
      }
      old.close()
    }
    let aside = try SQLiteLedger.setAside(directory: directory, now: now)
    let ledger = try SQLiteLedger(directory: directory)
    try ledger.apply(facts)
    return (ledger, aside)
  }
}
