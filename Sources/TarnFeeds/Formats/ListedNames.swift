import TarnCore

/// What the lines of a list have said about names so far, up to 4 MiB of it.
///
/// Beyond that, more is reported, never less: a digest that cannot be checked is refused, even beside one that can be.
struct ListedNames {
  private static let maximumBytes = 4 << 20

  private var sizes: [[UInt8]: UInt64] = [:]
  /// Names that have a line with a size, and no file so far.
  private var withoutFile: Set<[UInt8]> = []
  /// The hashes of names, with a secret seed: usually all names of a list are here, and nobody asks for them.
  private var checked: Set<Int> = []
  private var unchecked: Set<[UInt8]> = []
  private var bytes = 0

  private mutating func hasRoom(for count: Int) -> Bool {
    bytes += count
    return bytes <= Self.maximumBytes
  }

  /// - Parameter isComment: true when the size does not matter if no file has the name.
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

  /// Notes that the name has a digest that can be checked.
  mutating func noteChecked(_ name: [UInt8]) {
    unchecked.remove(name)
    if hasRoom(for: 16) { checked.insert(name.hashValue) }
  }

  /// Notes that the name has a digest that cannot be checked.
  ///
  /// - Returns: false when it is not kept, and must be refused at once.
  mutating func noteUnchecked(_ name: [UInt8]) -> Bool {
    if checked.contains(name.hashValue) { return true }
    guard hasRoom(for: name.count + 64) else { return false }
    unchecked.insert(name)
    return true
  }

  /// The names without a digest that can be checked, in path order.
  var namesUnchecked: [[UInt8]] { unchecked.sorted { $0.lexicographicallyPrecedes($1) } }
}
