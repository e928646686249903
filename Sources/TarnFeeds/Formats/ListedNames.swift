import TarnCore

/// What the lines of a list said of names so far, as far as it is kept: 4 MiB of it.
///
/// What is not kept is only told more often, never less: a digest that cannot be checked, beside one that can, is refused.
struct ListedNames {
  private static let maximumBytes = 4 << 20

  private var sizes: [[UInt8]: UInt64] = [:]
  /// Of a line of their own, and without a file so far.
  private var withoutFile: Set<[UInt8]> = []
  /// By their hashes, whose seed nobody knows: mostly all names of a list are here, and nobody asks for them.
  private var checked: Set<Int> = []
  private var unchecked: Set<[UInt8]> = []
  private var bytes = 0

  private mutating func hasRoom(for count: Int) -> Bool {
    bytes += count
    return bytes <= Self.maximumBytes
  }

  /// - Parameter isComment: it says nothing of the name when no file has it.
  mutating func note(size: UInt64, of name: [UInt8], isComment: Bool) {
    guard hasRoom(for: name.count + 64) else { return }
    sizes[name] = size
    if !isComment, !checked.contains(name.hashValue) { withoutFile.insert(name) }
  }

  mutating func size(of name: [UInt8]) -> UInt64? {
    guard !sizes.isEmpty else { return nil }
    withoutFile.remove(name)
    return sizes[name]
  }

  /// A name that has a size and no digest.
  var nameWithoutFile: [UInt8]? { withoutFile.min { $0.lexicographicallyPrecedes($1) } }

  /// The name has a digest that can be checked.
  mutating func noteChecked(_ name: [UInt8]) {
    unchecked.remove(name)
    if hasRoom(for: 16) { checked.insert(name.hashValue) }
  }

  /// The name has a digest that cannot.
  ///
  /// - Returns: false when it is not kept, and has to be refused at once.
  mutating func noteUnchecked(_ name: [UInt8]) -> Bool {
    if checked.contains(name.hashValue) { return true }
    guard hasRoom(for: name.count + 64) else { return false }
    unchecked.insert(name)
    return true
  }

  /// In path order: the names of which no digest can be checked.
  var namesUnchecked: [[UInt8]] { unchecked.sorted { $0.lexicographicallyPrecedes($1) } }
}
