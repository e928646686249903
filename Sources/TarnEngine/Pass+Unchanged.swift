import TarnCore
import TarnRuntime

/// A feed that has not changed since a pass that ended in sync: what it came to then it comes to now, as long as the folder
/// stands as it did. The decision says when that may be asked for, and what else has to hold (UnchangedFeed.md).
extension Pass {
  enum Opening {
    case document(FeedReader.Document)
    /// And the folder stands as it did: as a scan found, or as who has watched it says.
    case unchanged(FeedRecord, PassReport.Unchanged)
  }

  /// What is known of the feed; nil when it has to be read whole.
  func knownFeed(at now: Timestamp) throws -> FeedRecord? {
    // Who keeps a catalog has to read the feed for it.
    guard try ports.catalog == nil || openCatalog() != nil else { return nil }
    guard let settings = request.settings,
      let record = try ports.ledger.fact(.feedRecord).flatMap({ FeedRecord(encoded: $0) }),
      record.settings == settings, record.isFresh(at: now)
    else { return nil }
    return record
  }

  /// Opens the feed, unless neither it nor the folder has changed.
  func open(
    since known: FeedRecord?, _ folder: any FolderReading, _ reader: FeedReader
  ) throws -> Opening {
    guard let known, case .remote(let url) = request.feed else {
      return .document(try reader.open(request.feed))
    }
    let sent = try reader.open(url, since: known)
    var same = known
    if let sent {
      // A new date, or none at all, and yet the same text.
      guard sent.isWhole, sent.url == known.url, sent.digest == known.text else { return .document(sent) }
      same.validators = sent.head.flatMap { FeedValidators($0) }
    }
    if request.isAsLeft?() == true { return .unchanged(same, .watched) }
    enter(.planning)
    if try standing(folder) == known.standing { return .unchanged(same, .scanned) }
    // What is to be done about it only the entries say.
    enter(.reading)
    return .document(try sent ?? reader.open(request.feed))
  }

  /// How the folder stands now; nil when a part of it cannot be read.
  private func standing(_ folder: any FolderReading) throws -> FolderFingerprint? {
    try FolderFingerprint.of(ports.ledger.recorded(), folder.scan()) {
      try stop.throwIfSet()
    }
  }

  /// What a pass over an unchanged feed reports: what one that reads it whole would.
  func unchanged(_ known: FeedRecord, _ how: PassReport.Unchanged, started: Timestamp) -> PassReport {
    var report = PassReport(feed: request.feed.text, folder: request.folderName, started: started)
    report.unchanged = how
    report.format = known.format
    report.isComplete = known.isComplete
    (report.isWindow, report.incompleteReason) = (known.isWindow, known.incompleteReason)
    report.refreshSeconds = known.refreshSeconds
    report.counts = known.counts
    report.bytes = known.bytes
    return report
  }

  /// What the next pass may build on, after one that carried out all of its plan.
  ///
  /// - Returns: nil where an unchanged feed does not say that there is nothing to do.
  func feedRecord(
    _ document: FeedReader.Document, _ end: FeedEnd, _ plan: Plan, _ report: PassReport
  ) throws -> FeedRecord? {
    guard let settings = request.settings, report.isInSync, let head = document.head else { return nil }
    // One response that says all that is wanted, from its beginning to its end (a list that is not complete lets nothing be
    // deleted, so its plan was not carried out), and says it of any time and of the files' contents.
    guard document.isWhole, !end.isIndex, end.next == nil else { return nil }
    guard end.expires == nil, !plan.feed.asksForEach,
      !plan.isWindow || request.policy.window.maxAge == nil
    else { return nil }
    var standing = plan.left
    standing.rows = try ports.ledger.rowCount()
    // Every wanted entry has its row, and nothing but these and what was left has one.
    guard standing.rows == report.counts.inPlace + plan.left.rows else { return nil }
    guard let text = document.digest else { return nil }
    var record = FeedRecord(
      validators: FeedValidators(head), url: head.url, text: text,
      settings: settings, read: report.started, standing: standing, format: report.format,
      isComplete: report.isComplete, isWindow: report.isWindow, incompleteReason: report.incompleteReason,
      refreshSeconds: report.refreshSeconds)
    // What it was made of is not written down.
    (record.counts, record.bytes) = (report.counts, report.bytes)
    (record.counts.current, record.bytes.current) = (report.counts.inPlace, report.bytes.inPlace)
    return record
  }
}
