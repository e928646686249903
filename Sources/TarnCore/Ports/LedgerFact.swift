/// A named value in the ledger: text, written and read whole. Times are RFC 3339, numbers decimal, unless said otherwise.
///
/// The raw values are stored. A value that was removed here never gets another meaning.
package enum LedgerFact: String, Sendable, CaseIterable {
  // MARK: What the mirror follows, and how

  /// The feed's address, without passwords.
  case feed
  /// The options that hold for every pass (`PassOptions.encoded`).
  case options
  /// The settings that named the mirror at its last pass (`SettingsPaths.place`); missing when none did.
  case settings
  /// The listing that the feed was read as, such as `checksum list`.
  case format
  /// The formats of the feed's own document and of the listings below it (`ListFormats`).
  case listedFormats = "listed-formats"
  /// The formats that lists are compared with: the first ones, then those whose deletions were last carried out or approved.
  case deletingFormat = "deleting-format"
  /// `command` when the last pass deleted because its command said so, and not the settings of the mirror.
  case deleteOrder = "delete-order"
  /// The path of the feed's own list in the folder, in Base64.
  case keptList = "kept-list"
  /// The highest version of an accepted manifest.
  case manifestVersion = "manifest-version"
  /// The latest time at which a feed was accepted, in nanoseconds since 1970.
  case latestTime = "latest-time"
  /// Seconds for which the feed wants to be left alone.
  case refresh
  /// When the feed last changed, as its server said.
  case upstreamChanged = "upstream-changed"
  /// What is known about a feed that has not changed since (`FeedRecord`). A pass removes it when it begins.
  case feedRecord = "feed-record"
  /// The catalog of the last accepted manifest: its ID, and the settings that it was made with.
  case catalog
  /// A digest of the last reported window items that were taken for files in place.
  case windowDoubts = "window-doubts"

  // MARK: The last pass

  /// When the last pass began.
  case attempt
  /// When the last pass began, in nanoseconds since 1970.
  case began
  /// When the last pass ended.
  case ended
  /// When a pass last ended in sync.
  case success
  /// The outcome of the last pass: `running`, `in-sync`, `partial`, `held`, `stopped`, `failed`.
  case outcome
  /// Why the last pass did not do its work.
  case failure
  /// How to fix the failure of the last pass.
  case failureHint = "failure-hint"
  /// The number of the last event about a failed pass, until a later pass does its work.
  case toldFailure = "told-failure"
  /// The phase that the pass is in.
  case phase
  /// Whether the list is complete: `yes`, or `no: ` and the reason.
  case complete
  /// The number of entries that the feed names and the filters let through.
  case entriesWanted = "entries-wanted"
  case entriesCurrent = "entries-current"
  /// The number of entries that the user edited and that stay so.
  case entriesKept = "entries-kept"
  /// The number of entries that the feed names and that patterns or their age leave out.
  case entriesExcluded = "entries-excluded"
  /// The number of recorded files that the feed no longer names.
  case entriesUnlisted = "entries-unlisted"
  case bytesWanted = "bytes-wanted"
  case bytesCurrent = "bytes-current"
  /// The number of entries whose size is unknown.
  case sizesUnknown = "sizes-unknown"
  /// The numbers of problems that have no row, by kind (`UnnamedProblems`).
  case problemsUnnamed = "problems-unnamed"

  // MARK: What is at work

  case feedTransfer = "feed-transfer"
  case progress
  /// The number of listed transfers that wait for a place.
  case transfersWaiting = "transfers-waiting"
  /// The number of waiting transfers that are not listed.
  case transfersUnlisted = "transfers-unlisted"

  // MARK: Repairs and verification

  /// When a repair last ended.
  case repaired
  /// What the last repair did, for people.
  case repair
  /// What a repair has begun to bring back (`RepairPending`).
  case repairPending = "repair-pending"
  /// When all files were last verified.
  case verified

  // MARK: Deletions and events

  /// The losses of the last passes (`LossBook`).
  case lossBook = "loss-book"
  /// Why the held plan is held.
  case heldReason = "held-reason"
  /// The plan that only an approval releases. Kept also while it is not held, since a pass that deletes nothing drops held plans.
  case heldForPerson = "held-for-person"
  /// Seconds for which the last pass kept what it moved to the trash; missing for ever.
  case trashKept = "trash-kept"
  /// The number of the last event that was dropped.
  case eventsDropped = "events-dropped"
}
