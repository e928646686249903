import CSQLite
import Glibc
import TarnCore

/// The database file of a stage.
struct ScratchFile: Sendable {
  /// The file; `nil` for a temporary file without a name.
  private let file: DatabaseFile?

  private static let schema = """
    CREATE TABLE entries (
      -- The manifest, in runs that are sorted by path: see RunBuffer.
      number INTEGER PRIMARY KEY,  -- run after run, within a run by path
      path BLOB NOT NULL,          -- below the folder
      body BLOB NOT NULL           -- EntryCodec
    ) STRICT;

    CREATE TABLE actions (
      -- The plan in the order to carry it out: see ActionBatches.
      phase INTEGER NOT NULL,    -- Action.Phase
      path BLOB NOT NULL,        -- below the folder: of the first action
      ordinal INTEGER NOT NULL,  -- the order in which they were planned: of the first action
      count INTEGER NOT NULL,    -- of the actions in the body
      body BLOB NOT NULL,        -- ActionCodec, one after another
      PRIMARY KEY (phase, path, ordinal)
    ) STRICT, WITHOUT ROWID;
    """

  /// - Parameter path: a path in an existing directory; `nil` for a temporary file.
  init(path: String?) throws(LedgerFailure) {
    guard let path else {
      file = nil
      return
    }
    // SQLite is told to refuse links anywhere in a path, so links in the directory's path are resolved here.
    let start = path.lastIndex(of: "/").map(path.index(after:)) ?? path.startIndex
    let directory = start == path.startIndex ? "." : String(path[..<start])
    file = try DatabaseFile(directory: directory, name: String(path[start...]))
  }

  /// Makes an empty stage, and deletes an earlier one. The file has no name any more on return, so that the program cannot leave it
  /// behind, however it ends.
  func open() throws(LedgerFailure) -> Connection {
    try remove()
    let connection = try connect()
    try connection.beginUnjournaled(cacheMiB: 2)
    try connection.execute(Self.schema)
    try remove()
    return connection
  }

  private func connect() throws(LedgerFailure) -> Connection {
    guard let file else {
      return try Connection(
        "", flags: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, file: "the stage's temporary file")
    }
    try file.create(file.path)
    return try Connection(file.path, flags: SQLITE_OPEN_READWRITE, file: file.path)
  }

  private func remove() throws(LedgerFailure) {
    guard let file else { return }
    guard unlink(file.path) == 0 || errno == ENOENT else {
      throw file.failure(errno, "removing the one before")
    }
    file.removeLeftovers()
  }
}
