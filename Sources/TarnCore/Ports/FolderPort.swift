/// What stat says of a file that tells whether it is still the same one.
package struct FileIdentity: Hashable, Sendable {
  /// Compared only within one boot.
  package var device: UInt64
  package var inode: UInt64
  package var size: UInt64
  package var modified: Timestamp
  package var changed: Timestamp

  package init(device: UInt64, inode: UInt64, size: UInt64, modified: Timestamp, changed: Timestamp) {
    self.device = device
    self.inode = inode
    self.size = size
    self.modified = modified
    self.changed = changed
  }

  /// The same inode with the same contents, as far as stat tells; devices are renumbered between boots.
  package func isSame(as other: FileIdentity) -> Bool {
    inode == other.inode && size == other.size && modified == other.modified && changed == other.changed
  }
}

/// What stands at a path of the folder.
package struct Present: Sendable, Equatable {
  package enum Kind: Sendable, Equatable {
    case regular
    case directory
    case symbolicLink
    /// FIFO, socket or device.
    case special
  }
  package var path: RelativePath
  package var kind: Kind
  /// A directory's changes with what lies in it.
  package var identity: FileIdentity
  /// False for a regular file with another mode than the one that Tarn gives its files.
  package var hasOwnMode: Bool

  package init(path: RelativePath, kind: Kind, identity: FileIdentity, hasOwnMode: Bool = true) {
    self.path = path
    self.kind = kind
    self.identity = identity
    self.hasOwnMode = hasOwnMode
  }
}

/// An operation on the folder that failed.
package struct FolderFailure: Error, Sendable, Equatable {
  package enum Code: String, Sendable, CaseIterable {
    case noSpace = "no-space"
    case quota = "quota-exceeded"
    case readOnly = "read-only"
    case permission = "permission-denied"
    case inputOutput = "input-output-error"
    case tooManyFiles = "too-many-open-files"
    case outOfMemory = "out-of-memory"
    case nameTooLong = "name-too-long"
    case notDirectory = "parent-not-a-directory"
    case link = "symbolic-link-in-the-way"
    case otherFileSystem = "other-file-system"
    case missing = "not-there"
    case exists = "in-the-way"
    case digestMismatch = "digest-mismatch"
    case sizeMismatch = "size-mismatch"
    case pieceMismatch = "piece-mismatch"
    /// Not what the feed declares: a web page for an audio file, or nothing at all.
    case contentMismatch = "content-mismatch"
    case markerMissing = "marker-missing"
    case stopped = "stopped"
    case other = "folder-error"
  }
  package var code: Code
  /// What was tried, on what, and what the kernel said.
  package var message: String
  /// errno, 0 when the failure is not the kernel's.
  package var errno: Int32
  /// For `pieceMismatch`: the bytes before the piece that is wrong, all good.
  package var goodPrefix: UInt64?
  /// The path of the folder that it is about; from a scan, the directory whose contents are unknown, nil for
  /// the folder itself.
  package var path: RelativePath?

  package init(
    _ code: Code, _ message: String, errno: Int32 = 0, goodPrefix: UInt64? = nil, path: RelativePath? = nil
  ) {
    self.code = code
    self.message = message
    self.errno = errno
    self.goodPrefix = goodPrefix
    self.path = path
  }
}

/// What the bytes of a download have to be.
package struct ContentCheck: Sendable, Equatable {
  /// Exact bytes; nil when nobody said.
  package var size: UInt64?
  /// The digest that decides; nil when the feed gives none: then SHA-256 is computed and recorded.
  package var digest: Digest?
  package var pieces: Pieces?

  package init(size: UInt64? = nil, digest: Digest? = nil, pieces: Pieces? = nil) {
    self.size = size
    self.digest = digest
    self.pieces = pieces
  }
}

/// A file that is whole and checked, but not yet durable nor under its final name.
package struct Sealed: Sendable, Equatable {
  package var identity: FileIdentity
  package var digest: Digest
  /// True when the feed gave a digest and it fits.
  package var isVerified: Bool

  package init(identity: FileIdentity, digest: Digest, isVerified: Bool) {
    self.identity = identity
    self.digest = digest
    self.isVerified = isVerified
  }
}

/// One file in `partial/`. Confined to one thread at a time; blocking. Its descriptor stays open until
/// `close` or `discard`, so that what is checked is what is renamed.
package protocol PartialFile: AnyObject, Sendable {
  /// The name in `partial/`; empty for a file that has none before it is installed, and is gone when it is closed before.
  var name: String { get }
  /// Bytes written so far.
  var length: UInt64 { get }
  /// Starts the contents over: keeps the first `keep` bytes (read again and hashed), drops the rest, and
  /// reserves room for `check.size`.
  ///
  /// - Returns: the bytes kept, less than `keep` when the file is shorter or a piece in them is wrong.
  func begin(keeping keep: UInt64, check: ContentCheck) throws(FolderFailure) -> UInt64
  /// Appends, hashes and checks pieces.
  ///
  /// - Throws: `sizeMismatch` before a byte beyond `check.size` is written; `pieceMismatch` with the good prefix, to which the file is
  ///   cut: the next bytes go on there; or what the kernel said.
  func append(_ bytes: UnsafeRawBufferPointer) throws(FolderFailure)
  /// The same, but hashing may go on after it returned: a wrong piece may be told by a later call, by `settle` or `seal` at the latest.
  ///
  /// - Parameters:
  ///   - bytes: stay as they are until `whenRead` is called.
  ///   - whenRead: called once, also when this throws, by `settle` or `seal` at the latest; from any thread. It keeps nothing of what
  ///     keeps the folder.
  func append(
    lent bytes: UnsafeRawBufferPointer, whenRead: @escaping @Sendable () -> Void
  ) throws(FolderFailure)
  /// Waits until all that was appended is hashed.
  ///
  /// - Throws: `pieceMismatch` as `append`.
  func settle() throws(FolderFailure)
  /// Makes what is written so far durable (fdatasync). Any thread, beside `append`.
  ///
  /// - Returns: the bytes that are durable for certain.
  func sync() throws(FolderFailure) -> UInt64
  /// Checks size and digest, sets mode and time. The file can then be installed.
  func seal(modified: Timestamp?) throws(FolderFailure) -> Sealed
  /// Closes the descriptor and keeps the file for a later resume.
  func close()
  /// Closes and removes the file.
  func discard()
}

extension FolderPort {
  /// A new, empty file with a name in `partial/`.
  package func makePartial() throws(FolderFailure) -> any PartialFile {
    try makePartial(mayBeUnnamed: false)
  }

  /// All of a folder's partial files lie in one place.
  package func makePartial(
    for path: RelativePath, mayBeUnnamed: Bool
  ) throws(FolderFailure) -> any PartialFile {
    try makePartial(mayBeUnnamed: mayBeUnnamed)
  }
}

extension PartialFile {
  package func append(
    lent bytes: UnsafeRawBufferPointer, whenRead: @escaping @Sendable () -> Void
  ) throws(FolderFailure) {
    defer { whenRead() }
    try append(bytes)
  }

  package func settle() throws(FolderFailure) {}
}

/// One file to move into its final name.
package struct Installation: Sendable {
  package enum Expectation: Sendable, Equatable {
    /// Nothing stands there.
    case absent
    /// This object stands there, whatever it is, and goes to the trash as `trashName`: a directory with all that it holds.
    case present(FileIdentity)
  }
  package var path: RelativePath
  package var partial: any PartialFile
  package var expectation: Expectation
  /// For what is displaced; empty where nothing is.
  package var trashName: String

  package init(path: RelativePath, partial: any PartialFile, expectation: Expectation, trashName: String) {
    self.path = path
    self.partial = partial
    self.expectation = expectation
    self.trashName = trashName
  }
}

/// What became of an installation or a removal.
package enum PublishOutcome: Sendable, Equatable {
  /// Under its final name; the identity after the rename. `displaced` is what now lies in the trash.
  case installed(FileIdentity, displaced: FileIdentity?)
  /// In the trash; its identity there. `leftover`: why a directory that it emptied stays.
  case removed(FileIdentity, leftover: FolderFailure?)
  /// The world is not as the plan saw it; nothing was changed. The path goes back to the comparison.
  case stale(String)
  case failed(FolderFailure)
}

/// A recorded file to move to the trash.
package struct Removal: Sendable, Equatable {
  package var path: RelativePath
  package var expected: FileIdentity
  package var trashName: String

  package init(path: RelativePath, expected: FileIdentity, trashName: String) {
    self.path = path
    self.expected = expected
    self.trashName = trashName
  }
}

/// The objects of a folder, sorted by path bytes, one at a time. A directory is announced once as such, at
/// the place of its own path, before what lies in it. `.tarn` at the top is left out. Links are not followed.
package protocol SnapshotCursor: AnyObject {
  /// nil at the end. Directories that cannot be read throw `permission`; the cursor goes on after them.
  func next() throws(FolderFailure) -> Present?
}

/// What stands at the paths of a folder. Blocking; any thread.
package protocol FolderLooking: Sendable {
  /// What stands at one path; nil when nothing does.
  func look(_ path: RelativePath) throws(FolderFailure) -> Present?
}

/// What a plan needs of a folder: nothing is changed. Blocking; any thread.
package protocol FolderReading: FolderLooking {
  /// The objects of a region; none where its path leads through what is no directory. A directory at the path of the
  /// region is announced, too.
  func scan(_ region: Region) -> any SnapshotCursor
  /// The digest of a regular file, and what stat said before and after reading it (equal, or `stale` as a
  /// nil result: it changed while it was read, or it is no regular file).
  ///
  /// - Parameter watch: called with the bytes of each part that was read, at most 1 MiB; false ends it as `stopped`.
  func digest(
    of path: RelativePath, _ algorithm: DigestAlgorithm, watch: (Int) -> Bool
  ) throws(FolderFailure) -> (Digest, FileIdentity)?
}

extension FolderReading {
  /// All objects.
  package func scan() -> any SnapshotCursor { scan(.everything) }

  package func digest(
    of path: RelativePath, _ algorithm: DigestAlgorithm
  ) throws(FolderFailure) -> (Digest, FileIdentity)? {
    try digest(of: path, algorithm) { _ in true }
  }
}

/// Where the engine puts what it transfers. Blocking; any thread.
package protocol TransferFolder: FolderLooking {
  /// A new, empty partial file.
  ///
  /// - Parameters:
  ///   - path: what it is made for.
  ///   - mayBeUnnamed: it is to be installed where nothing stands, and nobody needs it after this process: where the file
  ///     system can, it has no name before that.
  func makePartial(for path: RelativePath, mayBeUnnamed: Bool) throws(FolderFailure) -> any PartialFile
  /// The file of that name; nil when it is gone.
  func openPartial(_ name: String) throws(FolderFailure) -> (any PartialFile)?
  /// A new partial file with the bytes of a file of the folder (reflink, else copy), `begin` and every
  /// `append` done; nil when that file is not `expected` any more.
  func copyPartial(
    of path: RelativePath, expected: FileIdentity, check: ContentCheck
  ) throws(FolderFailure) -> (any PartialFile)?
  /// Bytes of the disk that a partial file has, with the room that was reserved for it; 0 when it is gone.
  func partialAllocation(_ name: String) throws(FolderFailure) -> UInt64
  func removePartial(_ name: String) throws(FolderFailure)

  /// Makes the contents of sealed files durable, all together. One result per file, in order.
  func makeDurable(_ files: [any PartialFile]) -> [FolderFailure?]
  /// Renames, then fsyncs every directory touched. One result per item, in order.
  func install(_ items: [Installation]) -> [PublishOutcome]
  /// Moves to the trash, then fsyncs; empty parent directories are removed. One result per item, in order.
  func remove(_ items: [Removal]) -> [PublishOutcome]
  /// What stat says of an object in the trash; nil when it is gone.
  func trashIdentity(_ name: String) throws(FolderFailure) -> FileIdentity?
  /// Gives a file that Tarn placed its mode back.
  ///
  /// - Returns: its identity afterwards, and its mode before; nil when it is not `expected` any more.
  func restoreMode(
    of path: RelativePath, expected: FileIdentity
  ) throws(FolderFailure) -> (identity: FileIdentity, before: UInt32)?

  /// Makes everything on the folder's file system durable (syncfs): before the ledger says of files that
  /// others placed that they are there.
  func flush() throws(FolderFailure)

  /// Bytes free for unprivileged writers, and the size of the file system; how many more files it can hold, nil when it sets
  /// no number.
  func space() throws(FolderFailure) -> (free: UInt64, total: UInt64, files: UInt64?)
  /// Still the folder that was opened: same directory at its path, marker with the same id.
  ///
  /// - Throws: when the process has no descriptors to look with: then nobody can tell.
  func isIntact() throws(FolderFailure) -> Bool
}

/// The folder of one mirror, held open by a descriptor: every path is resolved beneath it without following
/// links (openat2, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV). Partial files lie in `partial/`, what is displaced or
/// removed in `trash/`.
package protocol FolderPort: FolderReading, TransferFolder {
  /// A new, empty file in `partial/`; see `makePartial(for:mayBeUnnamed:)`.
  func makePartial(mayBeUnnamed: Bool) throws(FolderFailure) -> any PartialFile
  /// Names and sizes in `partial/`.
  func partials() throws(FolderFailure) -> [(name: String, size: UInt64)]
  /// What stat says of a file in `partial/`; nil when it is gone.
  func partialIdentity(_ name: String) throws(FolderFailure) -> FileIdentity?
  /// Removes a directory, and then its parents, as far as they are empty; durable on return. What is gone, holds something
  /// or is no directory is left as it is.
  ///
  /// - Throws: why one stays although it is empty, with its path.
  func removeEmptied(_ directory: RelativePath) throws(FolderFailure)

  /// Names and sizes in `trash/`.
  func trashed() throws(FolderFailure) -> [(name: String, size: UInt64)]
  /// Moves a file out of the trash to a path where nothing stands; durable on return.
  func restoreTrash(_ name: String, to path: RelativePath) throws(FolderFailure) -> FileIdentity
  /// Moves a new file, that waited in the trash to be exchanged, back into `partial/`; durable on return.
  func unstage(_ trashName: String, as name: String) throws(FolderFailure)
  /// A directory goes with all that it holds.
  func removeTrash(_ name: String) throws(FolderFailure)
}
