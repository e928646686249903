import TarnCore

/// Files that are there already: only the ledger learns them.
extension Conductor {
  /// Those that Tarn placed are told of only where their mode was put back: a touched file has another time of change, and on a FUSE
  /// or network file system any file may.
  func flushAdoptions() throws {
    guard !adoptions.isEmpty else { return }
    let restored = restoreModes()
    try folder.flush()
    let now = ports.now
    func code(_ row: Row) -> String? {
      row.isAdopted ? "adopted" : restored[row.path] != nil ? "restored" : nil
    }
    try ports.ledger.apply(
      adoptions.flatMap { row -> [LedgerChange] in
        let event = code(row).map {
          Event(
            when: now, code: $0, path: row.path, bytes: row.identity.size, detail: restored[row.path] ?? "")
        }
        return [.row(row), .dropProblem(name: row.path.bytes)] + (event.map { [.event($0)] } ?? [])
      })
    for row in adoptions {
      let code = code(row)
      switch code {
      case "adopted": counts.adopted += 1
      case "restored": counts.restored += 1
      default: counts.revalidated += 1
      }
      bytes.confirmed.addSaturated(row.identity.size)
      if let code { observer.pass(.done(code: code, path: row.path, bytes: row.identity.size)) }
      progress.finish(nil, bytes: 0)
    }
    adoptions = []
  }

  /// Of files that Tarn placed: nobody changes it under `restore`. One that cannot be set is left as it is.
  ///
  /// - Returns: those whose mode was another one, and which, for people.
  private func restoreModes() -> [RelativePath: String] {
    guard policy.localChanges == .restore else { return [:] }
    var restored: [RelativePath: String] = [:]
    for (index, row) in adoptions.enumerated() where !row.isAdopted {
      do throws(FolderFailure) {
        guard let (identity, before) = try folder.restoreMode(of: row.path, expected: row.identity) else {
          continue
        }
        // By a chmod the file has another time of change.
        if !identity.isSame(as: row.identity) {
          let mode = String(before, radix: 8)
          restored[row.path] = "its mode was \(String(repeating: "0", count: max(0, 3 - mode.count)))\(mode)"
        }
        adoptions[index].identity = identity
        ports.ownWrites?.note(row.path, identity)
      } catch {
        observer.pass(.notice(code: error.code.rawValue, message: error.message))
      }
    }
    return restored
  }
}
