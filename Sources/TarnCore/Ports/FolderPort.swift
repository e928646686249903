/// The values of stat that tell whether a file is still the same.
package struct FileIdentity: Hashable, Sendable {
  /// The device number, comparable only within one boot.
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

  /// Returns whether it is the same inode with the same contents, as far as stat shows. Devices are not compared, since they are
  /// renumbered between boots.
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
    /// A FIFO, socket or device.
    case special
  }
  package var path: RelativePath
  package var kind: Kind
  /// What stat says; that of a directory changes with its contents.
  package var identity: FileIdentity
  /// False for a regular file whose mode is not the one that Tarn gives its files.
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
    /// The contents are not what the feed declares: a web page for an audio file, or nothing at all.
    case contentMismatch = "content-mismatch"
    case markerMissing = "marker-missing"
    case stopped = "stopped"
    case other = "folder-error"
  }
  package var code: Code
  /// What was tried, on what, and the kernel's answer.
  package var message: String
  /// The errno; 0 when the failure is not the kernel's.
  package var errno: Int32
  /// The number of good bytes before the wrong piece, for `pieceMismatch`.
  package var goodPrefix: UInt64?
  /// The path in the folder that the failure is about. From a scan it is the directory whose contents are unknown; `nil` for the
  /// folder itself.
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

/// The requirements for the bytes of a download.
package struct ContentCheck: Sendable, Equatable {
  /// The exact size in bytes; `nil` when it is not known.
  package var size: UInt64?
  /// The digest that decides. `nil` when the feed gives none: then SHA-256 is computed and recorded.
  package var digest: Digest?
  package var pieces: Pieces?

  package init(size: UInt64? = nil, digest: Digest? = nil, pieces: Pieces? = nil) {
    self.size = size
    self.digest = digest
    self.pieces = pieces
  }
}

/// A file that is complete and checked, but not yet durable and not yet under its final name.
package struct Sealed: Sendable, Equatable {
  package var identity: FileIdentity
  package var digest: Digest
  /// True when the feed gave a digest and it matches.
  package var isVerified: Bool

  package init(identity: FileIdentity, digest: Digest, isVerified: Bool) {
    self.identity = identity
    self.digest = digest
    self.isVerified = isVerified
  }
}

/// A file in `partial/`. Used by one thread at a time; blocking. Its descriptor stays open until `close` or `discard`, so that the
/// file that was checked is the one that is renamed.
package protocol PartialFile: AnyObject, Sendable {
  /// The name in `partial/`. Empty for a file that has no name until it is installed, and that vanishes when it is closed before.
  var name: String { get }
  /// Bytes written so far.
  var length: UInt64 { get }
  /// Returns at most so many of its first bytes; empty where they cannot be read.
  func opening(most: Int) -> [UInt8]
  /// Restarts the contents: keeps the first `keep` bytes (read again and hashed), drops the rest, and reserves room for
  /// `check.size`.
  ///
  /// - Returns: the bytes kept; less than `keep` when the file is shorter or a piece of them is wrong.
  func begin(keeping keep: UInt64, check: ContentCheck) throws(FolderFailure) -> UInt64
  /// Appends, hashes and checks pieces.
  ///
  /// - Throws: `sizeMismatch` before a byte beyond `check.size` is written. `pieceMismatch` with the good prefix, to which the file
  ///   is cut; the next bytes continue there. Otherwise the kernel's error.
  func append(_ bytes: UnsafeRawBufferPointer) throws(FolderFailure)
  /// Appends like `append`, but hashing may continue after the return. A wrong piece may be reported by a later call, at the latest
  /// by `settle` or `seal`.
  ///
  /// - Parameters:
  ///   - bytes: must stay unchanged until `whenRead` is called.
  ///   - whenRead: called once from any thread, also when this throws, at the latest by `settle` or `seal`. It must not hold
  ///     references that keep the folder alive.
  func append(
    lent bytes: UnsafeRawBufferPointer, whenRead: @escaping @Sendable () -> Void
  ) throws(FolderFailure)
  /// Waits until everything that was appended is hashed.
  ///
  /// - Throws: `pieceMismatch` as `append` does.
  func settle() throws(FolderFailure)
  /// Makes what was written so far durable (fdatasync). Any thread, concurrently with `append`.
  ///
  /// - Returns: the number of bytes that are certainly durable.
  func sync() throws(FolderFailure) -> UInt64
  /// Checks size and digest, and sets mode and time. Then the file can be installed.
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

  /// Makes a partial file in the one place that holds all of this folder.
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
    /// This object stands there, whatever it is. It goes to the trash as `trashName`, a directory with its contents.
    case present(FileIdentity)
  }
  package var path: RelativePath
  package var partial: any PartialFile
  package var expectation: Expectation
  /// The trash name of what is displaced; empty where nothing is.
  package var trashName: String

  package init(path: RelativePath, partial: any PartialFile, expectation: Expectation, trashName: String) {
    self.path = path
    self.partial = partial
    self.expectation = expectation
    self.trashName = trashName
  }
}

/// The outcome of an installation or a removal.
package enum PublishOutcome: Sendable, Equatable {
  /// The file has its final name; the identity after the rename. `displaced` is what now lies in the trash.
  case installed(FileIdentity, displaced: FileIdentity?)
  /// The file is in the trash, with this identity. `leftover` says why a directory that it emptied stays.
  case removed(FileIdentity, leftover: FolderFailure?)
  /// The folder is not as the plan saw it; nothing was changed. The path is compared again.
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

/// The objects of a folder, sorted by path bytes, one at a time. A directory comes once, at its own path, before its contents.
/// `.tarn` at the top is left out. Links are not followed.
package protocol SnapshotCursor: AnyObject {
  /// Returns the next object; `nil` at the end. Throws `permission` for a directory that cannot be read, and continues after it.
  func next() throws(FolderFailure) -> Present?
}

/// Looks at the paths of a folder. Blocking; any thread.
package protocol FolderLooking: Sendable {
  /// Returns what stands at one path; `nil` for nothing.
  func look(_ path: RelativePath) throws(FolderFailure) -> Present?
}

/// The part of a folder that a plan needs: nothing is changed. Blocking; any thread.
package protocol FolderReading: FolderLooking {
  /// Returns the objects of a region; none where its path leads through something that is not a directory. A directory at the path
  /// of the region is included.
  func scan(_ region: Region) -> any SnapshotCursor
  /// Returns the digest of a regular file, and its identity, which is the same before and after reading. `nil` when it changed
  /// while it was read, or is not a regular file.
  ///
  /// - Parameter watch: called with the size of each part that was read, at most 1 MiB; false ends the reading with `stopped`.
  func digest(
    of path: RelativePath, _ algorithm: DigestAlgorithm, watch: (Int) -> Bool
  ) throws(FolderFailure) -> (Digest, FileIdentity)?
}

extension FolderReading {
  /// Returns all objects of the folder.
  package func scan() -> any SnapshotCursor { scan(.everything) }

  package func digest(
    of path: RelativePath, _ algorithm: DigestAlgorithm
  ) throws(FolderFailure) -> (Digest, FileIdentity)? {
    try digest(of: path, algorithm) { _ in true }
  }
}

/// The folder to which the engine transfers. Blocking; any thread.
package protocol TransferFolder: FolderLooking {
  /// Makes a new, empty partial file.
  ///
  /// - Parameters:
  ///   - path: the path that the file is for.
  ///   - mayBeUnnamed: true when it is to be installed where nothing stands and is not needed after this process. Where the file
  ///     system supports it, the file has no name until then.
  func makePartial(for path: RelativePath, mayBeUnnamed: Bool) throws(FolderFailure) -> any PartialFile
  /// Opens the partial file of that name; `nil` when it is gone.
  func openPartial(_ name: String) throws(FolderFailure) -> (any PartialFile)?
  /// Makes a partial file with the bytes of a file of the folder (reflink, or else a copy), with `begin` and every `append` done.
  /// `nil` when that file is no longer `expected`.
  func copyPartial(
    of path: RelativePath, expected: FileIdentity, check: ContentCheck
  ) throws(FolderFailure) -> (any PartialFile)?
  /// Returns at most so many first bytes of a regular file; `nil` when they cannot be read.
  func opening(of path: RelativePath, most: Int) -> [UInt8]?
  /// Returns the disk bytes of a partial file, including the room reserved for it; 0 when it is gone.
  func partialAllocation(_ name: String) throws(FolderFailure) -> UInt64
  func removePartial(_ name: String) throws(FolderFailure)

  /// Makes the contents of sealed files durable, all together. Returns one result per file, in order.
  func makeDurable(_ files: [any PartialFile]) -> [FolderFailure?]
  /// Renames, then calls fsync for every directory touched. Returns one result per item, in order.
  func install(_ items: [Installation]) -> [PublishOutcome]
  /// Moves files to the trash, calls fsync, and removes empty parent directories. Returns one result per item, in order.
  func remove(_ items: [Removal]) -> [PublishOutcome]
  /// Returns the identity of an object in the trash; `nil` when it is gone.
  func trashIdentity(_ name: String) throws(FolderFailure) -> FileIdentity?
  /// Restores the mode of a file that Tarn placed.
  ///
  /// - Returns: its identity afterwards and its mode before; `nil` when it is no longer `expected`.
  func restoreMode(
    of path: RelativePath, expected: FileIdentity
  ) throws(FolderFailure) -> (identity: FileIdentity, before: UInt32)?

  /// Makes everything on the folder's file system durable (syncfs), before the ledger records files that others placed.
  func flush() throws(FolderFailure)

  /// Returns the free bytes for unprivileged writers, the size of the file system, and how many more files it can hold. `files` is
  /// `nil` when it sets no number.
  func space() throws(FolderFailure) -> (free: UInt64, total: UInt64, files: UInt64?)
  /// Returns whether this is still the folder that was opened: the same directory at its path, and a marker with the same ID.
  ///
  /// - Throws: when the process has no descriptors left, so that the answer is unknown.
  func isIntact() throws(FolderFailure) -> Bool
}

/// The folder of one mirror, held open by a descriptor. Every path is resolved beneath it without following links (openat2,
/// RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV). Partial files lie in `partial/`; what is displaced or removed lies in
/// `trash/`.
package protocol FolderPort: FolderReading, TransferFolder {
  /// Makes a new, empty file in `partial/`; see `makePartial(for:mayBeUnnamed:)`.
  func makePartial(mayBeUnnamed: Bool) throws(FolderFailure) -> any PartialFile
  /// Returns the names and sizes in `partial/`.
  func partials() throws(FolderFailure) -> [(name: String, size: UInt64)]
  /// Returns the identity of a file in `partial/`; `nil` when it is gone.
  func partialIdentity(_ name: String) throws(FolderFailure) -> FileIdentity?
  /// Removes a directory and then its parents, as far as they are empty; durable on return. What is gone, has contents or is not a
  /// directory stays as it is.
  ///
  /// - Throws: why a directory stays although it is empty, with its path.
  func removeEmptied(_ directory: RelativePath) throws(FolderFailure)

  /// Returns the names and sizes in `trash/`.
  func trashed() throws(FolderFailure) -> [(name: String, size: UInt64)]
  /// Moves a file out of the trash to a path where nothing stands; durable on return.
  func restoreTrash(_ name: String, to path: RelativePath) throws(FolderFailure) -> FileIdentity
  /// Moves a new file, which waited in the trash to be exchanged, back into `partial/`; durable on return.
  func unstage(_ trashName: String, as name: String) throws(FolderFailure)
  /// Removes an object from the trash, a directory with its contents.
  func removeTrash(_ name: String) throws(FolderFailure)
}
