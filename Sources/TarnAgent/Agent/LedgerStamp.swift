import Glibc
import TarnConfig
import TarnCore
import TarnFolder

/// A status that was read from a mirror's ledger, and the stamp that tells whether it is current.
struct KeptStatus: Sendable {
  var stamp: LedgerStamp
  /// The settings with which it was read.
  var settings: MirrorSettings
  var document: StatusDocument
}

/// The attributes of a mirror's record files. While they stay the same, nobody has written to the ledger.
struct LedgerStamp: Sendable, Equatable {
  private struct File: Sendable, Equatable {
    var inode: UInt64
    var size: Int64 = 0
    var seconds = 0
    var nanoseconds = 0

    init?(_ path: String) {
      var found = stat()
      guard lstat(path, &found) == 0 else { return nil }
      inode = UInt64(found.st_ino)
      // SQLite creates and removes files in the directory whenever it reads.
      if found.st_mode & S_IFMT == S_IFDIR { return }
      size = Int64(found.st_size)
      (seconds, nanoseconds) = (found.st_mtim.tv_sec, found.st_mtim.tv_nsec)
    }
  }

  private let files: [File?]

  /// - Returns: `nil` when there is no ledger.
  init?(folder: String, state: String?) {
    let marker = "\(folder)/\(FolderHome.markerName)"
    let record = state ?? marker
    let ledger = "\(record)/\(FolderHome.ledgerName)"
    guard let first = File(ledger) else { return nil }
    let log = File(ledger + "-wal").flatMap { $0.size > 0 ? $0 : nil }
    files = [first, log, File(marker), File("\(record)/\(FolderHome.idName)")]
  }

  /// True when the files are old enough. File times are coarse: a file may change twice within one tick.
  func isSettled(now: Timestamp) -> Bool {
    files.allSatisfy { $0.map { Int64($0.seconds) < now.seconds - 1 } ?? true }
  }
}
