/// One step that makes the folder match the manifest: a value that can be printed, tested or only planned.
package struct Action: Sendable, Equatable {
  /// When the action is carried out: payload before index (contract: `--publish-last`), the feed's own list when all files that it
  /// names are in place, deletions last.
  package enum Phase: UInt8, Sendable, Comparable {
    case payload = 0
    case index = 1
    case list = 2
    case deletion = 3
    /// The phases that bring files, in their order.
    package static let transfers = [payload, index, list]
    package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
  }

  /// What the action does. The raw value is stored in the stage and shown by `tarn plan`.
  package enum Kind: String, Sendable, CaseIterable {
    /// Fetch; nothing stands at the path.
    case fetch
    /// Fetch a new version; the file that Tarn placed stands at the path unchanged.
    case update
    /// Fetch again; the file vanished.
    case restore
    /// Fetch again; the file was edited, or something else took its place. What stands there goes to the trash.
    case replace
    /// Hash what stands at the path, then decide again.
    case inspect
    /// Ask the server whether its copy is still the recorded one (no size, time or digest in the feed).
    case revalidate
    /// Record in the ledger that the wanted version is in place. `row` is the new row.
    case adopt
    /// Move the file to the trash: it is no longer in the manifest.
    case delete
    /// Remove from the ledger the row of a file that is neither wanted nor in place.
    case forget
  }

  package var kind: Kind
  package var phase: Phase
  package var path: RelativePath
  /// The wanted entry; nil for `delete` and `forget`.
  package var entry: Entry?
  /// The file that the plan saw at the path.
  package var present: FileIdentity?
  /// The row of the path in the ledger.
  package var row: Row?
  /// A file of Tarn's that has to make way first, because the path lies below it.
  package var blocker: RelativePath?
  /// True for an `adopt` that restores the mode of a file that Tarn placed.
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
  /// True when Tarn's file stands there with its old bytes: only times in the ledger change.
  package var isRecorded: Bool { kind == .adopt && row?.isAdopted == false && !restoresMode }

  /// The kind that a plan shows: a restored mode counts as `restore`, as in its event.
  package var kindToTell: Kind { restoresMode ? .restore : kind }
}

extension Action.Kind {
  /// Returns the code of the event for bytes that were in the folder already, or that came from a server. `copied` is about new
  /// files, as `fetched` is.
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
