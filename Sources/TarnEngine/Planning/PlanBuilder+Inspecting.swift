import TarnCore
import TarnRuntime

/// What only the bytes of a file of the folder can say.
extension PlanBuilder {
  /// Hashes what stands at the path, and decides again.
  func inspect(_ action: Action) throws {
    guard let entry = action.entry, let present = action.present else { return }
    let algorithm = Planner.inspectionAlgorithm(entry, row: action.row)
    let decision: Decision
    var identity = present
    do throws(FolderFailure) {
      if let (digest, hashed) = try hash(action.path, algorithm) {
        identity = hashed
        decision = planner.decide(entry, row: action.row, inspected: digest, identity: hashed)
      } else {
        decision = .conflict(code: "changing", message: "the file changes while it is read; try again later")
      }
    } catch {
      if error.code == .stopped { throw PassFailure(.stopped, code: "stopped", "ended on request") }
      // Nobody can say what it holds, but Tarn placed one there that could be read.
      if error.code == .permission, action.row != nil, planner.policy.localChanges == .restore {
        var replacing = action
        replacing.kind = .replace
        return try plan(replacing)
      }
      report(name: action.path.bytes, kind: .failed, code: error.code.rawValue, message: error.message)
      return
    }
    if case .adopt(let digest, let isVerified) = decision {
      if entry.size == nil {
        var learned = LearnedSizes()
        learned.add(identity.size, before: action.sizeCounted(of: entry))
        learned.apply(to: &bytes)
      }
      var adoption = action
      adoption.kind = .adopt
      if try ports.ledger.partial(action.path) != nil { partials.settled.insert(action.path) }
      let tarns = action.row.flatMap { $0.isTarns(identity, digest) ? $0 : nil }
      adoption.row = Row(
        path: action.path, identity: identity, digest: digest, isVerified: isVerified,
        fingerprint: entry.fingerprint, etag: action.row?.etag, lastModified: action.row?.lastModified,
        placed: tarns?.placed ?? started, isAdopted: tarns == nil)
      return try plan(adoption)
    }
    var finding = Finding(path: action.path, entry: entry, row: action.row, decision: decision)
    finding.mark = action.row.flatMap { row in
      let present = Present(path: row.path, kind: .regular, identity: identity)
      return FolderFingerprint.mark(row, present: present, isBelowFile: false)
    }
    finding.row?.identity = identity
    try settle(finding)
  }

  private func hash(
    _ path: RelativePath, _ algorithm: DigestAlgorithm
  ) throws(FolderFailure) -> (Digest, FileIdentity)? {
    let begun = ports.clock.monotonic()
    defer { hashedFor += ports.clock.monotonic() - begun }
    return try folder.digest(of: path, algorithm) { _ in !stop.isSet }
  }
}
