import TarnCore

/// Problems that are counted and have no name in the ledger, which has room for `PassReport.mostProblems` of a pass.
struct UnnamedProblems: Equatable {
  private(set) var counts: [Problem.Kind: Int] = [:]

  private static let kinds: [Problem.Kind] = [.failed, .refused, .conflict]

  init() {}

  /// - Parameters:
  ///   - all: how many there are.
  ///   - named: how many of them have names.
  init(all: [Problem.Kind: Int], named: [Problem.Kind: Int]) {
    for kind in Self.kinds { counts[kind] = max(0, (all[kind] ?? 0) - (named[kind] ?? 0)) }
  }

  /// As the ledger has them, beside those that it names.
  ///
  /// Names of earlier passes, which one that was cut short leaves, may be of what it counted: as many of the counted are taken
  /// for them, so that none is there twice.
  ///
  /// - Parameter failedSince: without those of kind `failed` that are of an earlier pass; nil for all.
  init(_ ledger: any LedgerPort, failedSince: Timestamp?) throws(LedgerFailure) {
    let numbers = try ledger.fact(.problemsUnnamed)?.split(separator: " ").compactMap { Int64($0) } ?? []
    guard numbers.count == Self.kinds.count + 1 else { return }
    let began = Timestamp(nanoseconds: numbers[Self.kinds.count])
    var older = try ledger.problemCounts(seenBefore: began)
    if failedSince != nil { older[.failed] = nil }
    for (kind, number) in zip(Self.kinds, numbers) {
      counts[kind] = max(0, Int(clamping: number) - (older[kind] ?? 0))
    }
    if let failedSince, began < failedSince { counts[.failed] = 0 }
  }

  /// - Parameter began: when the pass did that counted them.
  func change(began: Timestamp) -> LedgerChange {
    guard counts.values.contains(where: { $0 > 0 }) else { return .fact(.problemsUnnamed, nil) }
    let numbers = Self.kinds.map { String(counts[$0] ?? 0) } + [String(began.nanoseconds)]
    return .fact(.problemsUnnamed, numbers.joined(separator: " "))
  }

  static func + (left: Self, right: Self) -> Self {
    var sum = left
    sum.counts.merge(right.counts, uniquingKeysWith: +)
    return sum
  }
}

extension PassReport {
  var unnamed: UnnamedProblems {
    UnnamedProblems(
      all: [
        .failed: counts.failed + listingFailures, .refused: counts.refused, .conflict: counts.conflict,
      ], named: problems.countsByKind)
  }
}

extension Collection<Problem> {
  var countsByKind: [Problem.Kind: Int] { Dictionary(map { ($0.kind, 1) }, uniquingKeysWith: +) }
}
