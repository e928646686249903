import TarnCore

/// Plans what a feed wants: filters its items and compares them with the folder.
///
/// A feed in path order is compared while it is read. Any other feed is first sorted in the stage.
final class FeedPlanner {
  let writer: PlanWriter
  private let empty: Plan
  /// The running comparison; `nil` for a feed that is sorted first.
  private var comparison: Comparison?
  /// Records what the manifest wants, for repairs; `nil` when no catalog is kept.
  private(set) var catalog: CatalogWriter?

  init(_ pass: Pass, _ folder: any FolderReading, started: Timestamp) {
    empty = Plan(pass.ports.stage, policy: pass.request.policy, deletions: .all, started: started)
    writer = PlanWriter(empty, pass, folder)
  }

  /// Starts over.
  ///
  /// - Parameter isInOrder: true to compare the items as they come. `add` then throws `Comparison.OutOfOrder` when they are not in
  ///   path order.
  func begin(isInOrder: Bool) throws {
    try begin(empty, isInOrder: isInOrder)
  }

  /// Starts over for a window. Files that it does not name stay, except those older than what is kept.
  func begin(_ window: WindowCatalog.Resolution) throws {
    var plan = empty
    (plan.policy, plan.deletions) = (policy.ofWindow, .expired(window.expired))
    plan.feed.newest = window.newest
    plan.counts.excluded = window.tooOld
    try begin(plan, isInOrder: true)
  }

  private var policy: PassPolicy { empty.policy }

  private func begin(_ plan: Plan, isInOrder: Bool) throws {
    var plan = plan
    // At most as many problems as a report holds; the pass learns of the others at its end. The feed says nothing about emptied
    // directories.
    let known = try writer.pass.ports.ledger.problems(limit: PassReport.mostProblems)
    plan.old = Unsettled(known.filter { $0.code != Problem.leftoverCode }.map(\.name))
    plan.feed.listDoubt = known.first { $0.code == DownloadFailure.Code.lengthUnknown.rawValue }?.message
    try writer.begin(plan)
    // The earlier writer removes its file, and both use the same name.
    catalog = nil
    catalog = CatalogWriter(writer.pass.ports.catalog, writer.pass.observer)
    comparison = isInOrder ? try makeComparison() : nil
  }

  private func makeComparison() throws -> Comparison {
    writer.pass.ports.engine.beginComparison()
    return try writer.comparison { [unowned self] finding in
      if writer.takeFailure(finding) { return }
      if let entry = finding.entry, !entry.isRefused, finding.refusal == nil { catalog?.add(entry) }
      try writer.add(finding)
    }
  }

  func add(_ item: FeedItem) throws {
    switch item {
    case .entry(let entry) where entry.isVoucher: try want(entry)
    case .entry(let entry):
      writer.plan.feed.entries += 1
      if writer.plan.feed.entries & 1023 == 0 { noteProgress() }
      guard !policy.filter.excludes(entry.path) else {
        writer.plan.counts.excluded += 1
        return
      }
      if !entry.hasFingerprint, entry.digest == nil { writer.plan.feed.asksForEach = true }
      if entry.isList { writer.plan.feed.listPath = entry.path }
      try want(entry)
    case .refused(let refusal):
      if refuse(refusal), let path = refusal.path { try want(Entry(refused: path)) }
    // Enclosures have no path yet: the window's catalog passes them on as entries.
    case .directory, .deleted, .enclosure: break
    }
  }

  /// Adds a refused item. In a window its name is not a path, so it protects no file.
  ///
  /// - Returns: false when patterns exclude it.
  @discardableResult func refuse(_ refusal: Refusal) -> Bool {
    writer.plan.feed.entries += 1
    guard !isLeftOut(refusal) else {
      writer.plan.counts.excluded += 1
      return false
    }
    writer.plan.counts.wanted += 1
    // An address in the feed may contain a password.
    let name =
      refusal.path == nil
      ? Array(Redaction.address(String(decoding: refusal.name, as: UTF8.self)).utf8) : refusal.name
    writer.report(name: name, kind: .refused, code: refusal.code, message: Redaction.text(refusal.reason))
    return true
  }

  private func isLeftOut(_ refusal: Refusal) -> Bool {
    if let path = refusal.path { return policy.filter.excludes(path) }
    let isName = PathRefusal(rawValue: refusal.code) != nil
    return policy.filter.exclusion(ofRefused: refusal.name, isName: isName) != nil
  }

  private func want(_ entry: Entry) throws {
    if let comparison { try comparison.want(entry) } else { try writer.pass.ports.stage.add(entry) }
  }

  /// Finishes the plan once the feed is read.
  func finish() throws {
    noteProgress()
    let running = comparison
    let comparison = try running ?? makeComparison()
    if running == nil {
      let entries = try writer.pass.ports.stage.entries()
      while let entry = try entries.next() { try comparison.want(entry) }
    }
    try comparison.finish()
    self.comparison = nil
  }

  private func noteProgress() {
    writer.pass.progress.change { $0.entriesRead = writer.plan.feed.entries }
  }
}

extension PassPolicy {
  /// The policy with a window's treatment of local changes.
  var ofWindow: PassPolicy {
    var policy = self
    policy.localChanges = window.localChanges
    return policy
  }
}

/// Writes the catalog of what a manifest wants, for repairs. A failure costs a repair, never a pass.
final class CatalogWriter {
  private var catalog: (any CatalogMaking)?
  private let observer: any PassObserver
  private var count = 0
  /// The most entries of a catalog. A larger one would cost more than reading the feed again.
  private static let most = 4 << 20

  /// - Parameter port: the catalog; `nil` when none is kept.
  init?(_ port: (any CatalogPort)?, _ observer: any PassObserver) {
    self.observer = observer
    guard let port else { return nil }
    keep { () throws(LedgerFailure) in catalog = try port.make() }
  }

  func add(_ entry: Entry) {
    guard let catalog else { return }
    count += 1
    guard count <= Self.most else { return self.catalog = nil }
    keep { () throws(LedgerFailure) in try catalog.add(entry) }
  }

  /// Replaces the previous catalog.
  ///
  /// - Returns: the new catalog's id; `nil` when there is none.
  func commit(isWindow: Bool) -> String? {
    var id: String?
    keep { () throws(LedgerFailure) in id = try catalog?.commit(isWindow: isWindow) }
    return id
  }

  private func keep(_ body: () throws(LedgerFailure) -> Void) {
    do throws(LedgerFailure) {
      try body()
    } catch {
      catalog = nil
      observer.notice(error.code.rawValue, "no catalog is kept: \(error.message)")
    }
  }
}
