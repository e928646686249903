/// A named value in the ledger: text, written and read whole. Times are RFC 3339, numbers decimal, unless said otherwise.
///
/// The raw values are stored; one that is gone from here is never given another meaning.
package enum LedgerFact: String, Sendable, CaseIterable {
  // MARK: What the mirror follows, and how

  /// The feed's address, without passwords.
  case feed
  /// The options that hold for every pass (`PassOptions.encoded`).
  case options
  /// The settings that named the mirror at its last pass (`SettingsPaths.place`); missing where none did.
  case settings
  /// The listing that the feed was read as: `checksum list`.
  case format
  /// The format that lists are held against: the first one, then the one whose deletions were last carried out or approved.
  case deletingFormat = "deleting-format"
  /// Where the feed's own list lies: the path in Base64.
  case keptList = "kept-list"
  /// The highest version of a manifest that was accepted.
  case manifestVersion = "manifest-version"
  /// The latest time at which a feed was accepted: nanoseconds since 1970.
  case latestTime = "latest-time"
  /// Seconds for which the feed wants to be left alone.
  case refresh
  /// When the feed last changed, by its server.
  case upstreamChanged = "upstream-changed"
  /// What is known of a feed that has not changed since (`FeedRecord`). A pass removes it as it begins.
  case feedRecord = "feed-record"
  /// The catalog of the last accepted manifest: its id, and the settings that it was made with.
  case catalog
  /// Items of a window that were taken for files that are there: a digest of those told last.
  case windowDoubts = "window-doubts"

  // MARK: The last pass

  /// When it began.
  case attempt
  /// The same, in nanoseconds since 1970.
  case began
  /// When it ended.
  case ended
  /// When one last ended in sync.
  case success
  /// `running`, `in-sync`, `partial`, `held`, `stopped`, `failed`.
  case outcome
  /// Why it did not do its work.
  case failure
  /// How to mend that.
  case failureHint = "failure-hint"
  /// Of the last event that told of a pass that failed, while no later pass has done its work.
  case toldFailure = "told-failure"
  /// What it is at.
  case phase
  /// `yes`, or `no: ` and why the list is not complete.
  case complete
  /// Entries that the feed names and the filters let through.
  case entriesWanted = "entries-wanted"
  case entriesCurrent = "entries-current"
  /// Edited by the user, and left so.
  case entriesKept = "entries-kept"
  /// Named by the feed, and left out by the patterns or for their age.
  case entriesExcluded = "entries-excluded"
  /// Recorded, and named by the feed no more.
  case entriesUnlisted = "entries-unlisted"
  case bytesWanted = "bytes-wanted"
  case bytesCurrent = "bytes-current"
  /// Entries of which nobody tells the size.
  case sizesUnknown = "sizes-unknown"
  /// Problems that have no row, by kind (`UnnamedProblems`).
  case problemsUnnamed = "problems-unnamed"

  // MARK: What is at work

  case feedTransfer = "feed-transfer"
  case progress
  /// Transfers that wait for a place, of those that are listed.
  case transfersWaiting = "transfers-waiting"
  /// So many more wait.
  case transfersUnlisted = "transfers-unlisted"

  // MARK: Repairs and verification

  /// When one last ended.
  case repaired
  /// What it did, for a person.
  case repair
  /// What one has begun to bring back (`RepairPending`).
  case repairPending = "repair-pending"
  /// When all files were last verified.
  case verified

  // MARK: Deletions and events

  /// The losses of the last passes (`LossBook`).
  case lossBook = "loss-book"
  /// Why the held plan is held.
  case heldReason = "held-reason"
  /// The plan that only an approval lets go: also while it is not held, for a pass that deletes nothing drops what is.
  case heldForPerson = "held-for-person"
  /// Seconds for which the last pass kept what it moved to the trash; missing for ever.
  case trashKept = "trash-kept"
  /// The number of the last event that was dropped.
  case eventsDropped = "events-dropped"
}
