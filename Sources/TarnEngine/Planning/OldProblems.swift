import TarnCore

/// Problems that the ledger has of earlier passes, while a feed is read: which of them are of nothing that is still
/// wanted and missing.
struct OldProblems {
  /// Nothing was found out about so far.
  private var unnamed: Set<[UInt8]> = []
  /// Of what is in place, or left as the policy says.
  private var settled: Set<[UInt8]> = []

  init() {}

  /// At most as many as a report holds; of the others a pass hears at its end.
  init(_ ledger: any LedgerPort) throws(LedgerFailure) {
    // Of directories the feed says nothing.
    let known = try ledger.problems(limit: PassReport.mostProblems).filter { $0.code != Problem.leftoverCode }
    unnamed = Set(known.map(\.name))
  }

  /// The feed wants the path.
  mutating func want(_ path: RelativePath, _ decision: Decision) {
    guard !unnamed.isEmpty, unnamed.remove(path.bytes) != nil else { return }
    switch decision {
    case .current, .adopt, .kept: settled.insert(path.bytes)
    default: break
    }
  }

  /// There is one again, or still.
  mutating func keep(_ name: [UInt8]) {
    unnamed.remove(name)
    settled.remove(name)
  }

  /// - Parameter saysAll: the feed says all that it wants, and the folder was read whole.
  func solved(saysAll: Bool) -> Set<[UInt8]> { saysAll ? settled.union(unnamed) : settled }
}
