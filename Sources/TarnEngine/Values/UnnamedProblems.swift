import TarnCore

/// The problems that are only counted, because the ledger names at most `PassReport.mostProblems` of a pass.
struct UnnamedProblems: Equatable {
  private(set) var counts: [Problem.Kind: Int] = [:]

  private static let kinds: [Problem.Kind] = [.failed, .refused, .conflict]

  init() {}

  /// - Parameters:
  ///   - all: the numbers of all problems.
  ///   - named: the numbers of those that have names.
  init(all: [Problem.Kind: Int], named: [Problem.Kind: Int]) {
    for kind in Self.kinds { counts[kind] = max(0, (all[kind] ?? 0) - (named[kind] ?? 0)) }
  }

  /// Reads the unnamed problems of the ledger.
  ///
  /// A pass that was cut short leaves names of earlier passes, which may belong to problems that it counted. As many of the counted
  /// are subtracted, so that none counts twice.
  ///
  /// - Parameter failedSince: a time that excludes earlier passes' problems of kind `failed`; `nil` for all.
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

  /// - Parameter began: the begin of the pass that counted them.
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
