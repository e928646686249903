import TarnCore

/// The verdict on a plan's deletions, including files that make way for directories. It is given once, before anything is carried
/// out.
enum DeletionVerdict: Equatable {
  case allowed
  /// The deletions are allowed if the new files that the list promises are in place by then. This is checked again just before.
  case allowedIfReplaced
  /// The deletions exceed the guard's limit: all of them wait.
  case held(HeldPlan)
  /// This pass may delete nothing, for the given reason, and so holds nothing.
  case forbidden(String)

  var mayGo: Bool { self == .allowed || self == .allowedIfReplaced }

  /// Returns the problem of an entry below a file that stays for now. The file itself is reported by the plan that holds it, or by
  /// this problem.
  ///
  /// - Returns: a problem of kind `held` or `conflict`; `nil` when nothing stays.
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

/// Asks the guard (I8) about all deletions of a plan, and records the set that it holds. Used on the pass's thread.
struct DeletionHold {
  private let ports: PassPorts
  private let guarded: DeletionGuard
  private let question: DeletionGuard.Question
  /// The number of new files that the plan fetches.
  private let promised: Int
  /// The number of the last event before this pass, or before one that was cut short.
  private let lastEvent: Int64
  /// The feed's own list, when it is not in place so far. It does not make up for another file.
  private let newList: RelativePath?
  /// The plan that is held already, if any; the journal has it.
  private let heldBefore: HeldPlan?

  /// Reads the ledger as it is before the plan is carried out.
  init(_ ports: PassPorts, _ policy: PassPolicy, _ feed: PlannedFeed) throws {
    let plan = feed.plan
    self.ports = ports
    promised = plan.work.new
    heldBefore = try ports.ledger.held()
    // The feed's own list is not a mirrored file.
    let list = try Self.list(ports, policy, plan)
    let hasList = try list.map { try ports.ledger.row($0.path) != nil } ?? false
    newList = list.flatMap { $0.isWanted && !hasList ? $0.path : nil }
    let planned = max(0, plan.work.deletions - (hasList && list?.isWanted == false ? 1 : 0))
    let rows = planned > 0 ? try ports.ledger.rowCount() - (hasList ? 1 : 0) - plan.filteredRows : 0
    let book = try LossBook.read(ports)
    lastEvent = try book.event ?? ports.ledger.lastEvent()
    guarded = DeletionGuard(limit: policy.deleteLimit, book: book)
    let formats = feed.formats
    let earlier = try (ports.ledger.fact(.deletingFormat) ?? ports.ledger.fact(.format)).map(
      ListFormats.init(text:))
    let other = earlier.flatMap { formats.areKnown(from: $0) ? nil : $0.text }
    question = DeletionGuard.Question(
      planned: planned, rows: rows, unfollowed: plan.filteredRows,
      manifestIsEmpty: plan.feed.entries == 0 && feed.walk?.hasSkipped != true, makesWay: plan.makesWay,
      earlierFormat: other, format: formats.text)
  }

  /// Returns the list that is wanted, or else the one that was kept before.
  private static func list(
    _ ports: PassPorts, _ policy: PassPolicy, _ plan: Plan
  ) throws -> (path: RelativePath, isWanted: Bool)? {
    if let path = plan.feed.listPath { return (path, true) }
    // A list that a filter keeps is among the files that are not followed.
    guard let known = try ports.ledger.fact(.keptList), let bytes = Base64.decode(Array(known.utf8)),
      let path = try? RelativePath(bytes), !policy.filter.excludes(path)
    else { return nil }
    return (path, false)
  }

  /// Asks the guard. Only reads the ledger, because a plan also asks what a pass would be told.
  ///
  /// - Parameter areReplaced: true to count the new files that the list promises as published.
  /// - Returns: `nil` when the deletions may go, else the set that has to wait, which `keep` records.
  func judge(areReplaced: Bool = false) throws -> HeldPlan? {
    // There is nothing to ask about, and asking costs a search of the journal.
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

  /// Returns the set that a person has to look at, when it is still the same, or has at least half of its files.
  private func heldAgain() throws -> HeldPlan? {
    guard let id = try ports.ledger.fact(.heldForPerson) else { return nil }
    let reason =
      heldBefore.flatMap { $0.id == id ? $0.reason : nil } ?? "it was held before, and was not approved"
    let now = try plan(reason, isForPerson: true)
    if now.id == id { return now }
    guard let heldBefore, heldBefore.id == id else { return nil }
    var left = 0
    try eachDeletion { action in left += try ports.ledger.isHeld(action.path, plan: id) ? 1 : 0 }
    return left >= heldBefore.count - left ? now : nil
  }

  /// Returns the set, with an id made from its paths and digests. `forget` loses nothing and needs no approval, but waits with the
  /// others so that the set stays one. It has waited since the first pass that held any set, if each pass since has held one.
  private func plan(_ reason: String, isForPerson: Bool) throws -> HeldPlan {
    let hasher = ports.hashing.hasher(.sha256)
    var count = 0
    try eachDeletion { action in
      count += 1
      (action.path.bytes + [0] + (action.row?.digest.bytes ?? [])).withUnsafeBytes { hasher.update($0) }
    }
    return HeldPlan(
      id: String(hasher.finish().hex.prefix(8)), when: heldBefore?.when ?? ports.now, count: count,
      reason: reason, isForPerson: isForPerson)
  }

  /// The most changes in one transaction.
  private static let mostAtOnce = 4096

  /// Records the plan and its paths, for `approve`. They are durable on return.
  func keep(_ plan: HeldPlan) throws {
    // The paths come first, in parts: they mean nothing without their plan, and there may be millions.
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
          when: ports.now, code: "deletions-held",
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
  /// Reads the book, as of now.
  static func read(_ ports: PassPorts) throws -> LossBook {
    let text = try ports.ledger.fact(.lossBook) ?? ""
    return LossBook(encoded: text).within(at: ports.now)
  }

  /// Returns the number of new files, whatever the source of their bytes.
  static func published(_ ports: PassPorts, after event: Int64) throws -> Int {
    try ["fetched", "copied"].reduce(0) { try $0 + ports.ledger.eventCount(code: $1, after: event) }
  }

  /// Returns what the pass that ends now adds to the book.
  ///
  /// - Parameter beganAfter: the number of the last event before the pass, for a mirror that has no book so far.
  static func change(_ ports: PassPorts, beganAfter: Int64) throws -> LedgerChange {
    var book = try read(ports)
    let last = book.event ?? beganAfter
    let deleted = try ports.ledger.eventCount(code: "deleted", after: last)
    let published = try published(ports, after: last)
    let event = try ports.ledger.lastEvent()
    // To count the rows reads all of their index. Without an event since, they are as many as then.
    let rows = event == book.event ? book.entries.last?.rows : nil
    book.add(
      Entry(
        ended: ports.now, loss: deleted.subtractingSaturated(published),
        rows: try rows ?? ports.ledger.rowCount(), event: event))
    return .fact(.lossBook, book.encoded)
  }
}
