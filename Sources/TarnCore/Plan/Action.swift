/// One thing to do so that the folder matches the manifest: a value that can be printed, tested, dry-run.
package struct Action: Sendable, Equatable {
  /// When it is carried out. Payload before index (contract: `--publish-last`), the feed's own list when all that it names is
  /// in place, deletions last.
  package enum Phase: UInt8, Sendable, Comparable {
    case payload = 0
    case index = 1
    case list = 2
    case deletion = 3
    /// Those that bring files, in their order.
    package static let transfers = [payload, index, list]
    package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
  }

  /// What to do. The raw value is stored in the stage and shown by `tarn plan`.
  package enum Kind: String, Sendable, CaseIterable {
    /// Fetch; nothing stands at the path.
    case fetch
    /// Fetch a new version; what Tarn placed stands at the path, unchanged.
    case update
    /// Fetch again; the file vanished.
    case restore
    /// Fetch again; the file was edited, or something else took its place, which goes to the trash.
    case replace
    /// Hash what stands at the path, then decide again.
    case inspect
    /// Ask the server whether its copy is still the recorded one (no size, time or digest in the feed).
    case revalidate
    /// What stands there is the wanted version: only the ledger learns it. `row` is what it will say.
    case adopt
    /// Move to the trash: no longer in the manifest.
    case delete
    /// Only the ledger changes: the row of a file that is neither wanted nor there.
    case forget
  }

  package var kind: Kind
  package var phase: Phase
  package var path: RelativePath
  /// The wanted entry; nil for `delete` and `forget`.
  package var entry: Entry?
  /// What the plan saw at the path.
  package var present: FileIdentity?
  /// What the ledger says of the path.
  package var row: Row?
  /// A file of Tarn's that has to make way first: the path lies below it.
  package var blocker: RelativePath?
  /// Of `adopt`: what Tarn placed has another mode now, which is put back.
  package var restoresMode = false

  package init(
    _ kind: Kind, phase: Phase = .payload, path: RelativePath, entry: Entry? = nil,
    present: FileIdentity? = nil, row: Row? = nil
  ) {
    self.kind = kind
    self.phase = phase
    self.path = path
    self.entry = entry
    self.present = present
    self.row = row
  }
}

extension Action {
  /// What Tarn placed stands there with the bytes that it had: only the ledger changes, and by nothing but times.
  package var isRecorded: Bool { kind == .adopt && row?.isAdopted == false && !restoresMode }

  /// What a plan calls it: a mode is restored, as its event says.
  package var kindToTell: Kind { restoresMode ? .restore : kind }
}

extension Action.Kind {
  /// The code of the event once it is done with bytes that were in the folder, or that came from a server. `copied` is of new files, as
  /// `fetched` is.
  package func doneCode(isCopy: Bool) -> String { isCopy && self == .fetch ? "copied" : doneCode }

  package var doneCode: String {
    switch self {
    case .fetch: "fetched"
    case .update, .revalidate: "updated"
    case .restore: "restored"
    case .replace: "replaced"
    case .adopt: "adopted"
    case .delete: "deleted"
    case .forget: "forgotten"
    case .inspect: "inspected"
    }
  }
}
