/// Tracks names that earlier passes left, while a feed is read: which of them belong to nothing that is still wanted and missing.
struct Unsettled<Name: Hashable> {
  /// The names about which nothing is known so far.
  private(set) var unnamed: Set<Name> = []
  /// The names of what is in place, or left as the policy says.
  private var settled: Set<Name> = []

  init(_ names: [Name] = []) { unnamed = Set(names) }

  /// Notes that the feed wants it.
  ///
  /// - Parameter isSettled: true when nothing of it is missing any more.
  mutating func want(_ name: Name, isSettled: Bool) {
    guard !unnamed.isEmpty, unnamed.remove(name) != nil, isSettled else { return }
    settled.insert(name)
  }

  mutating func settle(_ name: Name) { settled.insert(name) }

  /// Keeps a name, because its problem or file exists again or still.
  mutating func keep(_ name: Name) {
    unnamed.remove(name)
    settled.remove(name)
  }

  /// Returns the names that are over.
  ///
  /// - Parameter saysAll: true when the feed says all that it wants, and the folder was read whole.
  func over(saysAll: Bool) -> Set<Name> { saysAll ? settled.union(unnamed) : settled }
}
