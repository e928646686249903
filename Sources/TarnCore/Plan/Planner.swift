/// Decides over one path from what the feed wants, what the ledger records and what stands in the folder. Pure and total.
package struct Planner: Sendable {
  package let policy: PassPolicy

  package static let directoryInTheWay = "directory-in-the-way"

  package init(policy: PassPolicy) {
    self.policy = policy
  }

  /// Decides over a wanted entry.
  package func decide(_ entry: Entry, row: Row?, present: Present?) -> Decision {
    guard let present else { return decideAbsent(entry, row: row) }
    switch present.kind {
    case .directory:
      return decideOther(Self.directoryInTheWay, "a directory", entry, row: row, present: present)
    case .symbolicLink:
      return decideOther("link-in-the-way", "a symbolic link", entry, row: row, present: present)
    case .special:
      return decideOther(
        "special-file-in-the-way", "a FIFO, socket or device", entry, row: row, present: present)
    case .regular:
      guard let row else { return decideForeign(entry, present: present.identity) }
      guard row.identity.isSame(as: present.identity) else {
        return .action(action(.inspect, entry, present: present.identity, row: row))
      }
      return decideIntact(entry, row: row)
    }
  }

  /// Decides again once the file that stands at the path was hashed.
  ///
  /// - Parameters:
  /// - digest: the digest by the algorithm that `inspectionAlgorithm` returned.
  /// - identity: the identity of the hashed file.
  package func decide(_ entry: Entry, row: Row?, inspected digest: Digest, identity: FileIdentity) -> Decision
  {
    if entry.digests.contains(digest) { return .adopt(digest, isVerified: true) }
    guard let row else {
      if entry.digest == nil, quickCheck(entry, identity) { return .adopt(digest, isVerified: false) }
      return foreign
    }
    if digest == row.digest {
      var touched = row
      touched.identity = identity
      touched.isAdopted = !row.isTarns(identity, digest)
      switch decideIntact(entry, row: touched) {
      case .current: return .adopt(digest, isVerified: row.isVerified)
      case .action(let action) where action.kind == .inspect:
        return .action(self.action(.update, entry, present: identity, row: touched))
      case let other: return other
      }
    }
    // The algorithm differs from the recorded one, so only stat can show that nobody edited the file.
    if digest.algorithm != row.digest.algorithm, row.identity.isSame(as: identity) {
      return .action(action(.update, entry, present: identity, row: row))
    }
    if row.isDoubtful { return .action(action(.replace, entry, present: identity, row: row)) }
    switch policy.localChanges {
    case .restore: return .action(action(.replace, entry, present: identity, row: row))
    case .keep: return .kept(code: "local-edit-kept", message: "edited locally; kept by policy")
    case .report:
      return .conflict(code: "locally-changed", message: "edited locally; left as it is by policy (report)")
    }
  }

  /// Returns the algorithm to hash the file at the path with.
  package static func inspectionAlgorithm(_ entry: Entry, row: Row?) -> DigestAlgorithm {
    if let row, entry.digests.contains(where: { $0.algorithm == row.digest.algorithm }) {
      return row.digest.algorithm
    }
    return entry.digest?.algorithm ?? row?.digest.algorithm ?? .sha256
  }

  /// Decides over a recorded path that the manifest does not name. The decision holds only when the manifest is complete: otherwise
  /// whoever carries the plan out drops these actions.
  package func decideUnlisted(_ row: Row, present: Present?) -> Decision {
    guard !policy.filter.excludes(row.path) else { return .unlisted }
    guard let present else {
      return .action(Action(.forget, phase: .deletion, path: row.path, row: row))
    }
    guard policy.deletes else { return .unlisted }
    guard present.kind == .regular, row.identity.isSameContents(as: present.identity) else {
      return .action(Action(.forget, phase: .deletion, path: row.path, present: present.identity, row: row))
    }
    return .action(
      Action(.delete, phase: .deletion, path: row.path, present: present.identity, row: row))
  }

  private func decideAbsent(_ entry: Entry, row: Row?) -> Decision {
    guard let row else { return .action(action(.fetch, entry, present: nil, row: nil)) }
    switch policy.localChanges {
    case .restore: return .action(action(.restore, entry, present: nil, row: row))
    case .keep: return .kept(code: "local-deletion-kept", message: "deleted locally; kept so by policy")
    case .report:
      return .conflict(code: "locally-deleted", message: "deleted locally; left so by policy (report)")
    }
  }

  /// Decides over an object that is not a file. Where Tarn had placed a file it counts as an edit.
  private func decideOther(
    _ code: String, _ what: String, _ entry: Entry, row: Row?, present: Present
  ) -> Decision {
    let conflict = Decision.conflict(code: code, message: "\(what) stands where the file belongs")
    guard let row else { return conflict }
    switch policy.localChanges {
    case .restore: return .action(action(.replace, entry, present: present.identity, row: row))
    case .keep: return .kept(code: "local-edit-kept", message: "\(what) took its place; kept by policy")
    case .report: return conflict
    }
  }

  private func decideForeign(_ entry: Entry, present: FileIdentity) -> Decision {
    if let size = entry.size, size != present.size { return foreign }
    if entry.digest == nil, !quickCheck(entry, present) {
      return .conflict(
        code: "foreign-file",
        message:
          "a file that Tarn has no record of, or that was taken back from the trash, stands here, and the feed has no digest to compare it by; move it away to get the mirror's"
      )
    }
    return .action(action(.inspect, entry, present: present, row: nil))
  }

  /// Decides whether a file that is as Tarn left it is the wanted version.
  private func decideIntact(_ entry: Entry, row: Row) -> Decision {
    if entry.digest != nil {
      guard let same = entry.digests.first(where: { $0.algorithm == row.digest.algorithm }) else {
        return .action(action(.inspect, entry, present: row.identity, row: row))
      }
      guard same != row.digest else { return .current }
      return .action(action(.update, entry, present: row.identity, row: row))
    }
    if !entry.hasFingerprint || row.isOfUnknownVersion {
      return .action(action(.revalidate, entry, present: row.identity, row: row))
    }
    if entry.fingerprint == row.fingerprint { return .current }
    return .action(action(.update, entry, present: row.identity, row: row))
  }

  /// Compares size and time with the feed's, which is all there is without a digest. A listing that shows only minutes is compared
  /// by the minute.
  private func quickCheck(_ entry: Entry, _ present: FileIdentity) -> Bool {
    guard let size = entry.size, size == present.size, let modified = entry.modified else { return false }
    let difference = present.modified.seconds - modified.seconds
    return entry.modifiedIsExact ? difference == 0 : (0..<60).contains(difference)
  }

  private var foreign: Decision {
    .conflict(
      code: "foreign-file",
      message:
        "a file that Tarn has no record of stands here, with other contents; move it away to get the mirror's"
    )
  }

  private func action(_ kind: Action.Kind, _ entry: Entry, present: FileIdentity?, row: Row?) -> Action {
    Action(
      kind, phase: policy.phase(of: entry), path: entry.path,
      entry: entry,
      present: present, row: row)
  }
}

/// The decision over one path.
package enum Decision: Sendable, Equatable {
  indirect case action(Action)
  /// The file is as wanted: nothing to do.
  case current
  /// What stands there is what is wanted: only the ledger has to record it.
  case adopt(Digest, isVerified: Bool)
  /// Nothing is done, and the pass reports it (exit status 3).
  case conflict(code: String, message: String)
  /// The file is left as the user made it, by policy; no failure.
  case kept(code: String, message: String)
  /// The path is recorded, is not in the manifest, and stays.
  case unlisted
}

extension FileIdentity {
  /// Returns whether inode, size and modification time are the same. The change time is left out, because renaming, linking and
  /// chmod change it.
  package func isSameContents(as other: FileIdentity) -> Bool {
    inode == other.inode && size == other.size && modified == other.modified
  }
}
