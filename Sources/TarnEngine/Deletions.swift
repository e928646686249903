import TarnCore

/// What becomes of a plan's deletions, of files that make way for directories and of all others alike: judged once,
/// before anything is carried out.
enum DeletionVerdict: Equatable {
  case allowed
  /// Allowed if the new files that the list promises are in place by then: asked again just before.
  case allowedIfReplaced
  /// More than the guard lets go: all of them wait.
  case held(HeldPlan)
  /// Nothing may be deleted by this pass, and so nothing is held either; why.
  case forbidden(String)

  var mayGo: Bool { self == .allowed || self == .allowedIfReplaced }

  /// Of an entry below a file that stays for now. The file itself is told by the plan that holds it, or by this.
  ///
  /// - Returns: of kind `held` or `conflict`; nil when nothing stays.
  func problem(of path: RelativePath, below blocker: RelativePath, seen: Timestamp) -> Problem? {
    let file = Self.inTheWay(blocker)
    switch self {
    case .allowed, .allowedIfReplaced: return nil
    case .held(let plan):
      return Problem(
        name: path.bytes, kind: .held, code: Self.waiting,
        message: "\(file); its deletion needs approval, in plan \(plan.id)", seen: seen)
    case .forbidden(let reason):
      return Problem(
        name: path.bytes, kind: .conflict, code: "parent-not-a-directory",
        message: "\(file), but nothing is deleted: \(reason)", seen: seen)
    }
  }

  /// The code of entries below a file whose deletion is held.
  static let waiting = "waits-for-approval"

  static func inTheWay(_ blocker: RelativePath) -> String {
    "\(blocker.printable) is a file, and the feed now has a directory there"
  }
}

/// Asks the guard (I8) over all deletions of a plan, and keeps the set that it holds. On the pass's thread.
struct DeletionHold {
  private let ports: PassPorts
  private let guarded: DeletionGuard
  private let question: DeletionGuard.Question
  /// New files that the plan fetches.
  private let promised: Int
  /// Events after this one are of this pass, or of one that was cut short.
  private let lastEvent: Int64
  /// The feed's own list, where it is not in place so far: it makes up for no other file.
  private let newList: RelativePath?
  /// The plan that is held already, if any: the journal has it.
  private let heldBefore: HeldPlan?

  /// Reads the ledger as it is before the plan is carried out.
  init(_ ports: PassPorts, _ policy: PassPolicy, _ feed: PlannedFeed) throws {
    let plan = feed.plan
    self.ports = ports
    promised = plan.work.new
    heldBefore = try ports.ledger.held()
    // The feed's own list is no file that is mirrored.
    let list = try Self.list(ports, policy, plan)
    let hasList = try list.map { try ports.ledger.row($0.path) != nil } ?? false
    newList = list.flatMap { $0.isWanted && !hasList ? $0.path : nil }
    let planned = max(0, plan.work.deletions - (hasList && list?.isWanted == false ? 1 : 0))
    let rows = planned > 0 ? try ports.ledger.rowCount() - (hasList ? 1 : 0) - plan.filteredRows : 0
    let book = try LossBook.read(ports)
    lastEvent = try book.event ?? ports.ledger.lastEvent()
    guarded = DeletionGuard(limit: policy.deleteLimit, book: book)
    let earlier = try ports.ledger.fact(.deletingFormat) ?? ports.ledger.fact(.format)
    question = DeletionGuard.Question(
      planned: planned, rows: rows, unfollowed: plan.filteredRows,
      manifestIsEmpty: plan.feed.entries == 0 && feed.walk?.hasSkipped != true, makesWay: plan.makesWay,
      earlierFormat: earlier == feed.end.format ? nil : earlier, format: feed.end.format)
  }

  /// The list that is wanted, or else the one that was kept before.
  private static func list(
    _ ports: PassPorts, _ policy: PassPolicy, _ plan: Plan
  ) throws -> (path: RelativePath, isWanted: Bool)? {
    if let path = plan.feed.listPath { return (path, true) }
    // One that a filter keeps is among the files that are not followed.
    guard let known = try ports.ledger.fact(.keptList), let bytes = Base64.decode(Array(known.utf8)),
      let path = try? RelativePath(bytes), !policy.filter.excludes(path)
    else { return nil }
    return (path, false)
  }

  /// Reads the ledger and writes nothing: a plan asks what a pass would be told.
  ///
  /// - Parameter areReplaced: takes the new files that the list promises for published.
  /// - Returns: nil when they may go, else the set that has to wait, which `keep` records.
  func judge(areReplaced: Bool = false) throws -> HeldPlan? {
    // Nothing to ask about, and what is asked costs a look at the journal.
    guard question.planned > 0 else { return nil }
    var question = question
    question.deleted = try ports.ledger.eventCount(code: "deleted", after: lastEvent)
    question.published = try LossBook.published(ports, after: lastEvent)
    if let newList, try ports.ledger.row(newList) != nil { question.published -= min(question.published, 1) }
    if areReplaced { question.published = question.published.addingSaturated(promised) }
    switch guarded.judge(question) {
    case .allow: return try heldAgain()
    case .hold(let reason, let isForPerson): return try plan(reason, isForPerson: isForPerson)
    }
  }

  /// The set that a person is to look at, where it is still the same.
  private func heldAgain() throws -> HeldPlan? {
    guard let id = try ports.ledger.fact(.heldForPerson) else { return nil }
    let reason =
      heldBefore.flatMap { $0.id == id ? $0.reason : nil } ?? "it was held before, and was not approved"
    let now = try plan(reason, isForPerson: true)
    return now.id == id ? now : nil
  }

  /// The set under an id of its paths and digests. `forget` needs no asking: nothing is lost by it, but it waits with
  /// the others, so that the set stays one.
  private func plan(_ reason: String, isForPerson: Bool) throws -> HeldPlan {
    let hasher = ports.hashing.hasher(.sha256)
    var count = 0
    try eachDeletion { action in
      count += 1
      (action.path.bytes + [0] + (action.row?.digest.bytes ?? [])).withUnsafeBytes { hasher.update($0) }
    }
    return HeldPlan(
      id: String(hasher.finish().hex.prefix(8)), when: ports.now, count: count, reason: reason,
      isForPerson: isForPerson)
  }

  /// Changes in one transaction.
  private static let mostAtOnce = 4096

  /// Records the plan and its paths, for `approve`; durable when it returns.
  func keep(_ plan: HeldPlan) throws {
    // The paths first, in parts: without its plan a path means nothing, and there may be millions.
    var changes: [LedgerChange] = []
    try eachDeletion { action in
      changes.append(.heldPath(plan: plan.id, path: action.path))
      guard changes.count >= Self.mostAtOnce else { return }
      try ports.ledger.apply(changes)
      changes = []
    }
    changes.append(.hold(plan))
    if plan.id != heldBefore?.id {
      changes.append(
        .event(
          when: plan.when, code: "deletions-held",
          detail:
            "plan \(plan.id): \(Units.count(plan.count, "deletion")) held until approved: \(plan.reason)"))
    }
    try ports.ledger.apply(changes)
  }

  private func eachDeletion(_ body: (Action) throws -> Void) throws {
    let actions = try ports.stage.actions()
    while let action = try actions.next() {
      if action.kind == .delete { try body(action) }
    }
  }
}

extension LossBook {
  /// As of now.
  static func read(_ ports: PassPorts) throws -> LossBook {
    let text = try ports.ledger.fact(.lossBook) ?? ""
    return LossBook(encoded: text).within(at: ports.now)
  }

  /// New files, wherever their bytes came from.
  static func published(_ ports: PassPorts, after event: Int64) throws -> Int {
    try ["fetched", "copied"].reduce(0) { try $0 + ports.ledger.eventCount(code: $1, after: event) }
  }

  /// What the pass that ends now adds to it.
  ///
  /// - Parameter beganAfter: the last event before the pass; counts for a mirror that has no book so far.
  static func change(_ ports: PassPorts, beganAfter: Int64) throws -> LedgerChange {
    var book = try read(ports)
    let last = book.event ?? beganAfter
    let deleted = try ports.ledger.eventCount(code: "deleted", after: last)
    let published = try published(ports, after: last)
    book.add(
      Entry(
        ended: ports.now, loss: deleted.subtractingSaturated(published), rows: try ports.ledger.rowCount(),
        event: try ports.ledger.lastEvent()))
    return .fact(.lossBook, book.encoded)
  }
}
