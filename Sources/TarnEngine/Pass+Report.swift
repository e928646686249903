import TarnCore

/// What a report takes from those who did the work.
extension PassReport {
  mutating func take(_ account: TransferAccount) {
    let done = account.counts
    counts.fetched = done.fetched
    counts.updated = done.updated
    counts.restored = done.restored
    counts.replaced = done.replaced
    counts.adopted = done.adopted
    counts.copied = done.copied
    counts.revalidated = done.revalidated
    counts.current += done.current
    bytes.current.addSaturated(account.bytes.current)
    counts.deleted += done.deleted
    counts.failed += done.failed
    counts.conflict += done.conflict
    counts.waiting = done.waiting
    bytes.received = account.bytes.received
    bytes.published = account.bytes.published
    bytes.confirmed = account.bytes.confirmed
    account.learned.apply(to: &bytes)
    problems.keep(account.problems)
    namedEarly = Set(account.early?.standing.keys.map { $0 } ?? [])
  }

  /// What deciding again over stale paths added.
  mutating func take(_ plan: Plan, since before: PassCounts) {
    counts.current += plan.counts.current - before.current
    counts.planned += plan.counts.planned - before.planned
    counts.conflict += plan.counts.conflict - before.conflict
    counts.kept += plan.counts.kept - before.kept
    counts.failed += plan.counts.failed - before.failed
    let known = Set(problems.map(\.name))
    problems.keep(plan.problems.filter { !known.contains($0.name) })
  }

  mutating func take(_ plan: HeldPlan) {
    held = plan
    counts.held = plan.count
  }
}
