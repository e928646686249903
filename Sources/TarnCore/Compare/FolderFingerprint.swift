/// The state of the folder against the ledger's rows: the number of rows, and a sum over those whose files are not as recorded.
/// When two fingerprints are equal, nothing changed between them that a pass would act on, given the same feed and policy.
package struct FolderFingerprint: Sendable, Equatable {
  package var rows: Int
  /// The number of rows whose files are not as recorded.
  package private(set) var odd: Int
  /// The sum of the marks of the rows whose files are not as recorded, in any order.
  package private(set) var sum: UInt64

  package init(rows: Int = 0, odd: Int = 0, sum: UInt64 = 0) {
    self.rows = rows
    self.odd = odd
    self.sum = sum
  }

  /// Adds a row with its mark.
  package mutating func add(_ mark: UInt64?) {
    rows += 1
    guard let mark else { return }
    odd += 1
    sum = sum &+ mark
  }

  /// Returns a number (FNV-1a) for what stands in place of what a row records.
  ///
  /// - Parameter isBelowFile: true when nothing stands there because something above it is not a directory.
  /// - Returns: `nil` when the file is as recorded.
  package static func mark(_ row: Row, present: Present?, isBelowFile: Bool) -> UInt64? {
    mark(row.path, row.identity, present: present, isBelowFile: isBelowFile)
  }

  private static func mark(
    _ path: RelativePath, _ identity: FileIdentity, present: Present?, isBelowFile: Bool
  ) -> UInt64? {
    if let present, present.kind == .regular, identity.isSame(as: present.identity) { return nil }
    var hash = Hash()
    hash.add(path.bytes)
    guard let present else {
      hash.add(isBelowFile ? 1 : 0)
      return hash.value
    }
    switch present.kind {
    case .regular: hash.add(2)
    case .directory:
      // The times of a directory change with what lies in it.
      hash.add(3)
      return hash.value
    case .symbolicLink: hash.add(4)
    case .special: hash.add(5)
    }
    hash.add(present.identity.inode)
    hash.add(present.identity.size)
    hash.add(UInt64(bitPattern: present.identity.modified.nanoseconds))
    hash.add(UInt64(bitPattern: present.identity.changed.nanoseconds))
    return hash.value
  }

  /// Returns the fingerprint that a comparison without wanted entries would yield, in a fraction of its time.
  ///
  /// - Parameter meanwhile: called for each row.
  /// - Returns: `nil` when a part of the folder cannot be read.
  package static func of(
    _ rows: any RecordedCursor, _ snapshot: any SnapshotCursor, meanwhile: () throws -> Void
  ) throws -> FolderFingerprint? {
    var fingerprint = FolderFingerprint()
    var objects = Objects(snapshot)
    objects.advance()
    while let row = try rows.next() {
      try meanwhile()
      let there = objects.present(at: row.path)
      fingerprint.add(
        mark(row.path, row.identity, present: there, isBelowFile: objects.areAbove(row.path, there)))
    }
    objects.drain()
    return objects.isWhole ? fingerprint : nil
  }

  /// The objects of the folder by path, and those above the rows that are not directories.
  private struct Objects {
    private let snapshot: any SnapshotCursor
    private var next: Present?
    /// Objects that are not directories; the path of each is a prefix of the current row's path.
    private var above: [RelativePath] = []
    private(set) var isWhole = true

    init(_ snapshot: any SnapshotCursor) {
      self.snapshot = snapshot
    }

    mutating func advance() {
      while true {
        do throws(FolderFailure) {
          next = try snapshot.next()
          return
        } catch {
          isWhole = false
        }
      }
    }

    /// Returns what stands at a row's path. Rows come in path order.
    mutating func present(at path: RelativePath) -> Present? {
      while let last = above.last, !path.begins(with: last) { above.removeLast() }
      while let present = next, present.path < path {
        // Paths that begin with a given path follow it directly: when the next row does not, no later one does.
        if present.kind != .directory, path.begins(with: present.path) {
          above.append(present.path)
        }
        advance()
      }
      guard let there = next, there.path == path else { return nil }
      advance()
      if there.kind != .directory { above.append(there.path) }
      return there
    }

    func areAbove(_ path: RelativePath, _ present: Present?) -> Bool {
      present == nil && above.contains { $0.isAncestor(of: path) }
    }

    mutating func drain() {
      while next != nil { advance() }
    }
  }

  private struct Hash {
    private var sum = FNV1a()
    var value: UInt64 { sum.value }

    mutating func add(_ bytes: [UInt8]) {
      add(UInt64(bytes.count))
      for byte in bytes { sum.add(byte) }
    }

    mutating func add(_ number: UInt64) {
      for shift in stride(from: UInt64(0), to: 64, by: 8) {
        sum.add(UInt8(truncatingIfNeeded: number >> shift))
      }
    }
  }
}
