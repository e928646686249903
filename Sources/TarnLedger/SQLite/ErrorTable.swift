import CSQLite
import Glibc
import TarnCore

/// The one place where an SQLite result code becomes a `LedgerFailure`.
///
/// The extended code decides; where SQLite has none for a case, the errno behind it does.
enum ErrorTable {
  /// Extended codes that mean something else than their primary code.
  static let extended: [Int32: LedgerFailure.Code] = [
    SQLITE_IOERR | (2 << 8): .corrupt,  // SHORT_READ: the file ends too early
    SQLITE_IOERR | (32 << 8): .corrupt,  // DATA: a page's checksum is wrong
    SQLITE_IOERR | (12 << 8): .other,  // NOMEM
    SQLITE_IOERR | (15 << 8): .busy,  // LOCK
    // The index of the write-ahead log is grown byte by byte, which fails on a full disk only.
    SQLITE_IOERR | (19 << 8): .noSpace,  // SHMSIZE
    SQLITE_CANTOPEN | (6 << 8): .permission,  // SYMLINK: `Connection` follows none
    SQLITE_READONLY | (4 << 8): .missing,  // DBMOVED: renamed or removed while it was open
    SQLITE_READONLY | (6 << 8): .permission,  // DIRECTORY
  ]

  /// Primary codes.
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

  /// What the kernel said, for the codes that only mean "the call failed": IOERR and CANTOPEN, and READONLY where a
  /// file was opened for reading because it could not be for writing.
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
  ///   - errno: `sqlite3_system_errno`; 0 when no call to the kernel failed.
  static func code(for code: Int32, errno: Int32) -> LedgerFailure.Code {
    if let known = extended[code] { return known }
    let base = code & 0xFF
    if [SQLITE_IOERR, SQLITE_CANTOPEN, SQLITE_READONLY].contains(base), let known = system[errno] {
      return known
    }
    return primary[base] ?? .other
  }

  /// What a disk answers, or a server of files (EINTR); anything else may be left from a call that failed for good reason.
  static let faults: Set<Int32> = [EIO, ENOSPC, EDQUOT, EROFS, ENOMEM, EMFILE, ENFILE, EINTR]

  /// Of a call on this thread that failed just now.
  static func failure(code: Int32, database: OpaquePointer?, file: String) -> LedgerFailure {
    let last = errno
    var number = sqlite3_system_errno(database)
    // SQLite does not look for it when a COMMIT fails, nor when it opens for reading what it cannot for writing: that
    // of the thread is what it would have read.
    if number == 0, [SQLITE_IOERR, SQLITE_READONLY].contains(code & 0xFF), faults.contains(last) {
      number = last
    }
    // A file beside the database could not be opened, and SQLite tells how its second attempt failed.
    if number == ENOENT, code & 0xFF == SQLITE_CANTOPEN, access(file, F_OK) == 0 { number = 0 }
    return failure(code: code, errno: number, detail: String(cString: sqlite3_errmsg(database)), file: file)
  }

  /// - Parameters:
  ///   - detail: SQLite's own message.
  ///   - file: the path of the database, as it goes into the message.
  static func failure(code: Int32, errno: Int32, detail: String, file: String) -> LedgerFailure {
    let meaning = Self.code(for: code, errno: errno)
    let system = errno == 0 ? "" : ", errno \(errno)"
    return failure(meaning, "\(detail) (SQLite \(code)\(system))", errno: errno, file: file)
  }

  /// A failure that Tarn itself found.
  static func failure(
    _ code: LedgerFailure.Code, _ detail: String, errno: Int32 = 0, file: String
  ) -> LedgerFailure {
    let words = code == .noSpace && holdsNoMoreFiles(file) ? noFiles : words(code)
    return LedgerFailure(code, Printable.escape("\(file): \(words): \(detail)"), errno: errno)
  }

  private static let noFiles =
    "the file system can hold no more files, and the database needs some (see 'df -i')"

  /// A lack of space as the kernel tells it may be a lack of inodes, however much is free. Where files are not counted, it is none.
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
