import TarnCore

/// Files that are there already: only the ledger learns them.
extension Conductor {
  func flushAdoptions() throws {
    guard !adoptions.isEmpty else { return }
    restoreModes()
    try folder.flush()
    let now = ports.now
    let changes = adoptions.flatMap { row -> [LedgerChange] in
      [
        .row(row), .dropProblem(name: row.path.bytes),
        .event(Event(when: now, code: "adopted", path: row.path, bytes: row.identity.size)),
      ]
    }
    try ports.ledger.apply(changes)
    for row in adoptions {
      counts.adopted += 1
      bytes.confirmed.addSaturated(row.identity.size)
      observer.pass(.done(code: "adopted", path: row.path, bytes: row.identity.size))
      progress.finish(bytes: 0)
    }
    adoptions = []
  }

  /// Of files that Tarn placed: nobody changes it under `restore`. One that cannot be set is left as it is.
  private func restoreModes() {
    guard policy.localChanges == .restore else { return }
    for (index, row) in adoptions.enumerated() where !row.isAdopted {
      do throws(FolderFailure) {
        guard let identity = try folder.restoreMode(of: row.path, expected: row.identity) else { continue }
        adoptions[index].identity = identity
        ports.ownWrites?.note(row.path, identity)
      } catch {
        observer.pass(.notice(code: error.code.rawValue, message: error.message))
      }
    }
  }
}
