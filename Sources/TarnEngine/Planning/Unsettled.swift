/// What earlier passes left, while a feed is read: which of it is of nothing that is still wanted and missing.
struct Unsettled<Name: Hashable> {
  /// Nothing was found out about so far.
  private(set) var unnamed: Set<Name> = []
  /// Of what is in place, or left as the policy says.
  private var settled: Set<Name> = []

  init(_ names: [Name] = []) { unnamed = Set(names) }

  /// The feed wants it.
  ///
  /// - Parameter isSettled: nothing is missing of it any more.
  mutating func want(_ name: Name, isSettled: Bool) {
    guard !unnamed.isEmpty, unnamed.remove(name) != nil, isSettled else { return }
    settled.insert(name)
  }

  mutating func settle(_ name: Name) { settled.insert(name) }

  /// There is one again, or still.
  mutating func keep(_ name: Name) {
    unnamed.remove(name)
    settled.remove(name)
  }

  /// - Parameter saysAll: the feed says all that it wants, and the folder was read whole.
  func over(saysAll: Bool) -> Set<Name> { saysAll ? settled.union(unnamed) : settled }
}
