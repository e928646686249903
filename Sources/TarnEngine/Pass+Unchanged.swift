import TarnCore
import TarnRuntime

/// Handles a feed that has not changed since a pass that ended in sync. Its result is the same as then, if the folder is as it was.
/// UnchangedFeed.md says when this may be used, and what else must hold.
extension Pass {
  enum Opening {
    case document(FeedReader.Document)
    /// The feed is unchanged, and the folder is as it was, by a scan or by the word of a watcher.
    case unchanged(FeedRecord, PassReport.Unchanged)
  }

  /// Returns the record of the feed; `nil` when the feed has to be read whole.
  func knownFeed(at now: Timestamp) throws -> FeedRecord? {
    // A mirror that keeps a catalog must read the feed to make one.
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
      // The text may be the same although its date is new or missing.
      guard sent.isWhole, sent.url == known.url, sent.digest == known.text else { return .document(sent) }
      same.validators = sent.head.flatMap { FeedValidators($0) }
    }
    if request.isAsLeft?() == true { return .unchanged(same, .watched) }
    enter(.planning)
    if try fingerprint(of: folder) == known.fingerprint { return .unchanged(same, .scanned) }
    // Only the entries say what has to be done.
    enter(.reading)
    return .document(try sent ?? reader.open(request.feed))
  }

  /// Returns the fingerprint of the folder now. `nil` when a part of it cannot be read.
  private func fingerprint(of folder: any FolderReading) throws -> FolderFingerprint? {
    try FolderFingerprint.of(ports.ledger.recorded(), folder.scan()) {
      try stop.throwIfSet()
    }
  }

  /// Returns the report of a pass over an unchanged feed, which equals that of a pass that reads it whole.
  func unchanged(_ known: FeedRecord, _ how: PassReport.Unchanged, started: Timestamp) -> PassReport {
    var report = PassReport(feed: request.feed.text, folder: request.folderName, started: started)
    report.unchanged = how
    report.manifest = known.manifest
    report.refreshSeconds = known.refreshSeconds
    report.counts = known.counts
    report.bytes = known.bytes
    return report
  }

  /// Returns the record that the next pass may use, after a pass that carried out all of its plan.
  ///
  /// - Returns: `nil` when an unchanged feed does not mean that there is nothing to do.
  func feedRecord(
    _ document: FeedReader.Document, _ end: FeedEnd, _ plan: Plan, _ report: PassReport
  ) throws -> FeedRecord? {
    guard let settings = request.settings, report.isInSync, let head = document.head else { return nil }
    // The feed must be a single response that says everything wanted, at any time, and says it about the contents of files. A list
    // that is not complete allows no deletions, so its plan was not carried out.
    guard document.isWhole, !end.isIndex, end.next == nil else { return nil }
    guard end.expires == nil, !plan.feed.asksForEach,
      !plan.isWindow || request.policy.window.maxAge == nil
    else { return nil }
    var fingerprint = plan.left
    fingerprint.rows = try ports.ledger.rowCount()
    // Every wanted entry must have a row. Otherwise only what was left may have one.
    guard fingerprint.rows == report.counts.inPlace + plan.left.rows else { return nil }
    guard let text = document.digest else { return nil }
    var record = FeedRecord(
      validators: FeedValidators(head), url: head.url, text: text,
      settings: settings, read: report.started, fingerprint: fingerprint, manifest: report.manifest,
      refreshSeconds: report.refreshSeconds)
    // The source of the counts is not recorded.
    (record.counts, record.bytes) = (report.counts, report.bytes)
    (record.counts.current, record.bytes.current) = (report.counts.inPlace, report.bytes.inPlace)
    return record
  }
}
