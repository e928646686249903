import Foundation
package import TarnCore

/// The stage in memory.
package final class MemoryStage: StagePort, @unchecked Sendable {
  // Safe because the three are touched only with `lock` held.
  private let lock = NSLock()
  private var entryList: [Entry] = []
  private var actionList: [Action] = []
  private var additions = 0
  private var failures: [Int: LedgerFailure] = [:]

  package init() {}

  /// The `number`th addition from now (1 is the next) fails and keeps nothing.
  package func failAdd(_ number: Int, with failure: LedgerFailure = LedgerFailure(.noSpace, "as told")) {
    lock.withLock { failures[additions + number] = failure }
  }

  package func add(_ entry: Entry) throws(LedgerFailure) {
    lock.lock()
    defer { lock.unlock() }
    try count()
    entryList.append(entry)
  }

  package func add(_ action: Action) throws(LedgerFailure) {
    lock.lock()
    defer { lock.unlock() }
    try count()
    actionList.append(action)
  }

  package func clear() throws(LedgerFailure) {
    lock.withLock {
      entryList = []
      actionList = []
    }
  }

  package func entries() throws(LedgerFailure) -> any EntryCursor {
    let list = lock.withLock { entryList }
    // Stable by hand: the order of equal paths is part of the contract, and `sort` promises none.
    let sorted = list.enumerated().sorted { ($0.element.path, $0.offset) < ($1.element.path, $1.offset) }
    return MemoryEntryCursor(sorted.map(\.element))
  }

  package func actions() throws(LedgerFailure) -> any ActionCursor {
    let list = lock.withLock { actionList }
    let sorted = list.enumerated().sorted { left, right in
      (left.element.phase, left.element.path, left.offset)
        < (right.element.phase, right.element.path, right.offset)
    }
    return MemoryActionCursor(sorted.map(\.element))
  }

  package func actionCount() throws(LedgerFailure) -> Int {
    lock.withLock { actionList.count }
  }

  private func count() throws(LedgerFailure) {
    additions += 1
    if let failure = failures[additions] { throw failure }
  }
}

private final class MemoryEntryCursor: EntryCursor {
  private var entries: ArraySlice<Entry>
  init(_ entries: [Entry]) { self.entries = entries[...] }
  func next() throws(LedgerFailure) -> Entry? { entries.popFirst() }
}

private final class MemoryActionCursor: ActionCursor {
  private var actions: ArraySlice<Action>
  init(_ actions: [Action]) { self.actions = actions[...] }
  func next() throws(LedgerFailure) -> Action? { actions.popFirst() }
}
