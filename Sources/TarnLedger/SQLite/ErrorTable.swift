import CSQLite
import Glibc
import TarnCore

/// Maps SQLite's result codes to `LedgerFailure`. This is the only place that does.
///
/// The extended code decides. Where SQLite has none for a case, the errno behind it decides.
enum ErrorTable {
  /// The meanings of extended codes that differ from those of their primary code.
  static let extended: [Int32: LedgerFailure.Code] = [
    SQLITE_IOERR | (2 << 8): .corrupt,  // SHORT_READ: the file ends too early
    SQLITE_IOERR | (32 << 8): .corrupt,  // DATA: a page's checksum is wrong
    SQLITE_IOERR | (12 << 8): .other,  // NOMEM
    SQLITE_IOERR | (15 << 8): .busy,  // LOCK
    // The index of the write-ahead log grows byte by byte, which fails only on a full disk.
    SQLITE_IOERR | (19 << 8): .noSpace,  // SHMSIZE
    SQLITE_CANTOPEN | (6 << 8): .permission,  // SYMLINK: `Connection` follows none
    SQLITE_READONLY | (4 << 8): .missing,  // DBMOVED: renamed or removed while it was open
    SQLITE_READONLY | (6 << 8): .permission,  // DIRECTORY
  ]

  /// The meanings of primary codes.
  static let primary: [Int32: LedgerFailure.Code] = [
    SQLITE_CORRUPT: .corrupt,
    SQLITE_NOTADB: .corrupt,
    SQLITE_FORMAT: .corrupt,
    SQLITE_FULL: .noSpace,
    SQLITE_IOERR: .inputOutput,
    SQLITE_CANTOPEN: .inputOutput,
    SQLITE_PERM: .permission,
    SQLITE_AUTH: .permission,
    SQLITE_READONLY: .readOnly,
    SQLITE_BUSY: .busy,
    SQLITE_LOCKED: .busy,
    SQLITE_PROTOCOL: .busy,
  ]

  /// The meanings of errno values, for codes that only say that a call failed. These are IOERR and CANTOPEN, and READONLY when a
  /// file could not be opened for writing and was opened read-only.
  static let system: [Int32: LedgerFailure.Code] = [
    ENOSPC: .noSpace,
    EDQUOT: .noSpace,
    ENOENT: .missing,
    ENOTDIR: .missing,
    EACCES: .permission,
    EPERM: .permission,
    EROFS: .readOnly,
    EMFILE: .tooManyFiles,
    ENFILE: .tooManyFiles,
  ]

  /// - Parameters:
  ///   - code: the extended result code.
  ///   - errno: the value of `sqlite3_system_errno`; 0 when no system call failed.
  static func code(for code: Int32, errno: Int32) -> LedgerFailure.Code {
    if let known = extended[code] { return known }
    let base = code & 0xFF
    if [SQLITE_IOERR, SQLITE_CANTOPEN, SQLITE_READONLY].contains(base), let known = system[errno] {
      return known
    }
    return primary[base] ?? .other
  }

  /// The errno values that are taken for the cause: those of a disk or a file server (EINTR), and of a lack of memory or
  /// descriptors. Other values may be left from a call whose failure was expected.
  static let faults: Set<Int32> = [EIO, ENOSPC, EDQUOT, EROFS, ENOMEM, EMFILE, ENFILE, EINTR]

  /// Returns the failure of a call that has just failed on this thread.
  static func failure(code: Int32, database: OpaquePointer?, file: String) -> LedgerFailure {
    let last = errno
    var number = sqlite3_system_errno(database)
    // SQLite records no errno when a COMMIT fails, nor when it opens read-only what it cannot open for writing. The errno of the
    // thread is the one that it would have recorded.
    if number == 0, [SQLITE_IOERR, SQLITE_READONLY].contains(code & 0xFF), faults.contains(last) {
      number = last
    }
    // A file beside the database could not be opened, and SQLite reports the errno of its second attempt.
    if number == ENOENT, code & 0xFF == SQLITE_CANTOPEN, access(file, F_OK) == 0 { number = 0 }
    return failure(code: code, errno: number, detail: String(cString: sqlite3_errmsg(database)), file: file)
  }

  /// - Parameters:
  ///   - detail: SQLite's own message.
  ///   - file: the path of the database, for the message.
  static func failure(code: Int32, errno: Int32, detail: String, file: String) -> LedgerFailure {
    let meaning = Self.code(for: code, errno: errno)
    let system = errno == 0 ? "" : ", errno \(errno)"
    return failure(meaning, "\(detail) (SQLite \(code)\(system))", errno: errno, file: file)
  }

  /// Returns a failure that Tarn itself found.
  static func failure(
    _ code: LedgerFailure.Code, _ detail: String, errno: Int32 = 0, file: String
  ) -> LedgerFailure {
    let words = code == .noSpace && holdsNoMoreFiles(file) ? noFiles : words(code)
    return LedgerFailure(code, Printable.escape("\(file): \(words): \(detail)"), errno: errno)
  }

  private static let noFiles =
    "the file system can hold no more files, and the database needs some (see 'df -i')"

  /// Returns whether the file system lacks inodes, which the kernel also reports as a lack of space. False where files are not
  /// counted.
  private static func holdsNoMoreFiles(_ file: String) -> Bool {
    let directory = file.lastIndex(of: "/").map { String(file[..<$0]) } ?? "."
    var status = statvfs()
    return statvfs(directory, &status) == 0 && status.f_files > 0 && status.f_favail == 0
  }

  private static func words(_ code: LedgerFailure.Code) -> String {
    switch code {
    case .corrupt: "the database is damaged or is not Tarn's"
    case .newer: "the database was written by a newer Tarn; use that version, the file is left as it is"
    case .older: "the database was written by an older Tarn"
    case .noSpace: "no space left for the database; free some and try again"
    case .readOnly: "the database cannot be written"
    case .permission: "no permission for the database"
    case .inputOutput: "reading or writing the database failed; check the disk"
    case .tooManyFiles: "too many open files; raise the limit (ulimit -n) and try again"
    case .busy: "the database is in use by another process"
    case .missing: "the database is not there"
    case .other: "the database failed"
    }
  }
}
