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

  init(_ home: FolderHome, now: Timestamp) throws(PassFailure) {
    self.home = home
    do {
      folder = try home.open()
      lock = try home.lock()
    } catch let failure as FolderBusy {
      throw PassFailure(
        .locked, code: "folder-busy",
        "another Tarn holds \(Printable.escape(home.folder)): process \(failure.process) (\(Printable.escape(failure.command)))",
        hint: "wait for it, or look at 'tarn status \(Printable.escape(home.folder))'")
    } catch let failure as FolderFailure {
      throw PassFailure(failure)
    } catch {
      throw PassFailure(.defect, code: "defect", "\(error)")
    }
    do {
      (ledger, setAside) = try Self.openLedger(home.stateDirectory, now: now)
    } catch {
      lock.release()
      throw PassFailure(error)
    }
  }

  func close() {
    ledger.close()
    lock.release()
  }

  private static func openLedger(
    _ directory: String, now: Timestamp
  ) throws(LedgerFailure) -> (SQLiteLedger, String?) {
    do {
      return (try SQLiteLedger(directory: directory), nil)
    } catch where error.code == .corrupt {
      let name = try SQLiteLedger.setAside(directory: directory, now: now)
      return (try SQLiteLedger(directory: directory), name)
    }
  }
}
