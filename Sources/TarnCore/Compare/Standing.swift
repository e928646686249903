/// How the folder stands against the ledger's rows: how many rows there are, and a sum over those whose files are not as
/// recorded. Two that are equal mean that nothing changed between them that a pass would act on, given the same feed
/// and the same policy.
package struct Standing: Sendable, Equatable {
  package var rows: Int
  /// Rows whose files are not as recorded.
  package private(set) var odd: Int
  /// Of the marks of these, in any order.
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

  /// What stands in place of what a row records, as a number (FNV-1a).
  ///
  /// - Parameter isBelowFile: nothing stands there, for something above it is no directory.
  /// - Returns: nil when it is as recorded.
  package static func mark(_ row: Row, present: Present?, isBelowFile: Bool) -> UInt64? {
    if let present, present.kind == .regular, row.identity.isSame(as: present.identity) { return nil }
    var hash = Hash()
    hash.add(row.path.bytes)
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

  private struct Hash {
    private(set) var value: UInt64 = 0xcbf2_9ce4_8422_2325

    mutating func add(_ bytes: [UInt8]) {
      add(UInt64(bytes.count))
      for byte in bytes { take(byte) }
    }

    mutating func add(_ number: UInt64) {
      for shift in stride(from: UInt64(0), to: 64, by: 8) { take(UInt8(truncatingIfNeeded: number >> shift)) }
    }

    private mutating func take(_ byte: UInt8) {
      value = (value ^ UInt64(byte)) &* 0x100_0000_01b3
    }
  }
}
