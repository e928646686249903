import TarnCore

/// What a report takes from those who did the work.
extension PassReport {
  mutating func take(_ account: TransferAccount) {
    counts.add(account.counts)
    bytes.current.addSaturated(account.bytes.current)
    bytes.received = account.bytes.received
    bytes.published = account.bytes.published
    bytes.confirmed = account.bytes.confirmed
    account.learned.apply(to: &bytes)
    problems.keep(account.problems)
    namedEarly = Set(account.early?.standing.keys.map { $0 } ?? [])
  }

  /// What deciding again over stale paths added.
  mutating func take(_ plan: Plan, since before: PassCounts) {
    counts.add(plan.counts, since: before)
    let known = Set(problems.map(\.name))
    problems.keep(plan.problems.filter { !known.contains($0.name) })
  }

  mutating func take(_ plan: HeldPlan) {
    held = plan
    counts.held = plan.count
  }
}
