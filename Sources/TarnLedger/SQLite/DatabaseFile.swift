import Glibc
import TarnCore

/// A database file in its directory, and the files that SQLite makes beside it.
struct DatabaseFile: Sendable {
  /// The file name of every ledger.
  static let ledger = "ledger.sqlite"

  /// The directory with all links resolved. SQLite then refuses any link that is left.
  let directory: String
  let name: String
  let path: String

  /// - Throws: `.missing` when there is no such directory.
  init(directory: String, name: String) throws(LedgerFailure) {
    guard let resolved = realpath(directory, nil) else {
      let message = "\(directory): cannot be opened: \(String(cString: strerror(errno)))"
      throw LedgerFailure(ErrorTable.system[errno] ?? .inputOutput, Printable.escape(message))
    }
    defer { free(resolved) }
    // A repaired name would belong to another file.
    guard let real = String(validatingCString: resolved) else {
      throw LedgerFailure(.other, Printable.escape("\(directory): its real path is not UTF-8"))
    }
    self.directory = real
    self.name = name
    path = self.directory + "/" + name
  }

  var logPath: String { path + "-wal" }
  var journalPath: String { path + "-journal" }
  private var indexPath: String { path + "-shm" }

  /// Returns the size in bytes; `nil` when there is no file.
  func size(of path: String) throws(LedgerFailure) -> Int64? {
    var status = stat()
    guard lstat(path, &status) == 0 else {
      if errno == ENOENT { return nil }
      throw failure(errno, "looking at it")
    }
    switch status.st_mode & S_IFMT {
    case S_IFREG: return Int64(status.st_size)
    case S_IFLNK: throw ErrorTable.failure(.permission, "it is a symbolic link", file: path)
    default: throw ErrorTable.failure(.corrupt, "it is not a regular file", file: path)
    }
  }

  /// Returns true when the write-ahead log is not empty.
  func hasLog() throws(LedgerFailure) -> Bool {
    try size(of: logPath) ?? 0 > 0
  }

  /// Makes an empty file that only its owner can read. SQLite gives its own files the same mode.
  func create(_ path: String) throws(LedgerFailure) {
    let descriptor = open(path, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw failure(errno, "creating it") }
    close(descriptor)
  }

  /// Removes files that SQLite left of a database that is gone. They belong to no other database.
  func removeLeftovers() {
    unlink(logPath)
    unlink(indexPath)
    unlink(journalPath)
  }

  /// Renames the database and its log. The directory is durable on return.
  ///
  /// - Returns: the new name of the database.
  func setAside(stamp: String) throws(LedgerFailure) -> String {
    var name = "\(self.name).corrupt-\(stamp)"
    var number = 1
    while access(directory + "/" + name, F_OK) == 0 {
      number += 1
      name = "\(self.name).corrupt-\(stamp).\(number)"
    }
    let target = directory + "/" + name
    // The database is renamed first: without its log it might open as an older state that nobody notices. A log without its
    // database is dropped when the next database is created.
    guard rename(path, target) == 0 else { throw failure(errno, "setting it aside") }
    for suffix in ["-wal", "-shm", "-journal"] where rename(path + suffix, target + suffix) != 0 {
      guard errno == ENOENT else { throw failure(errno, "setting its \(suffix) file aside") }
    }
    try makeDirectoryDurable()
    return name
  }

  func makeDirectoryDurable() throws(LedgerFailure) {
    try makeDurable(directory)
  }

  func makeDurable(_ path: String) throws(LedgerFailure) {
    let descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
    guard descriptor >= 0 else { throw failure(errno, "making it durable") }
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 else { throw failure(errno, "making it durable") }
  }

  func failure(_ code: Int32, _ doing: String) -> LedgerFailure {
    let detail = "\(doing): \(String(cString: strerror(code))) (errno \(code))"
    return ErrorTable.failure(ErrorTable.system[code] ?? .inputOutput, detail, errno: code, file: path)
  }

  /// The path as a URI that SQLite reads without locks and without the files beside it. It may be used only when nobody can write
  /// the file.
  var immutableURI: String {
    "file:" + String(decoding: Percent.encode(path: path.utf8), as: UTF8.self) + "?immutable=1"
  }
}
