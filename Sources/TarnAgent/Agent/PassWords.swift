package import TarnCore
package import TarnEngine
import TarnFeeds

/// A pass in words, for the log and for those who asked for it, in the wording of `tarn sync`.
package struct PassWords: Sendable {
  let report: PassReport
  /// The counts of the report, with the approvals that followed.
  var counts: PassCounts

  package init(_ report: PassReport) {
    self.report = report
    counts = report.counts
  }

  /// Why the list may be incomplete, and what that prevents. Windows are never complete. Neither are pages
  /// and lists of mirrors, which is told only where it matters.
  package var doubt: String? {
    guard !report.manifest.isComplete, !report.manifest.isWindow, !report.manifest.incompleteReason.isEmpty
    else { return nil }
    let why = "the list may not be whole: \(report.manifest.incompleteReason)"
    if report.options?.isOn(.delete) == true { return "nothing is deleted, because \(why)" }
    return FeedParser.isNeverWhole(report.manifest.incompleteReason) ? nil : why
  }

  /// A note that the feed names nothing, or that nothing it names is wanted; `nil` in a report without options, which cannot name
  /// the reason.
  package var leftOut: String? {
    guard let options = report.options else { return nil }
    return Self.leftOut(
      wanted: report.counts.wanted, excluded: report.counts.excluded,
      hasPatterns: [PassOptions.Name.include, .exclude].contains {
        !(options.values[$0] ?? []).allSatisfy(\.isEmpty)
      }, maxAge: report.manifest.isWindow ? options.last(.maxAge) : nil)
  }

  /// - Parameters:
  ///   - hasPatterns: true when there are patterns of `--include` or `--exclude`.
  ///   - maxAge: the age limit, when age may be a reason as well.
  package static func leftOut(wanted: Int, excluded: Int, hasPatterns: Bool, maxAge: String?) -> String? {
    guard wanted == 0 else { return nil }
    guard excluded > 0 else { return "the feed names no file" }
    let all = "all \(Units.count(excluded, "entry")) of the feed"
    if let maxAge, !hasPatterns { return "--max-age \(Printable.escape(maxAge)) leaves out \(all)" }
    let reasons = "the patterns of --include and --exclude" + (maxAge == nil ? "" : ", or --max-age,")
    return "\(reasons) leave out \(all)"
  }

  private var length: String { Units.length((report.ended - report.started).seconds) }

  /// Returns what a pass says that changed nothing. Some servers send a file again that is in place.
  package static func ofNoDeeds(_ report: PassReport) -> String {
    let again = report.bytes.received
    return again == 0 ? "nothing to do" : "\(Units.show(again)) fetched again, and nothing is new"
  }

  /// The words of a pass in sync: `in sync: 5 files, 1.2 MiB (3 fetched, 2 already there) in 2.1 s`.
  var inSync: String {
    let done = deeds.isEmpty ? Self.ofNoDeeds(report) : deeds.joined(separator: ", ")
    let unchanged = report.isFeedUnchanged ? "; the feed has not changed" : ""
    let there = counts.kept > 0 ? "\(Units.grouped(counts.inPlace)) of " : ""
    let files = there + Self.amount(counts.wanted, report.bytes.inPlace)
    return "in sync: \(files) (\(done)\(unchanged)) in \(length)"
      + [doubt, leftOut].compactMap { $0.map { "; \($0)" } }.joined()
  }

  /// The words of other passes: `not in sync: 1 failed; 4 of 5 files in place (2 fetched, 2 already there), in 2.1 s`.
  var notInSync: String {
    let done = deeds.isEmpty ? "" : " (\(deeds.joined(separator: ", ")))"
    let place = "\(Units.grouped(counts.inPlace)) of \(Units.count(counts.wanted, "file")) in place"
    return "not in sync: \(reasons); \(place)\(done), in \(length)"
  }

  /// The reasons why a pass is not in sync: `1 failed, 2 deletions held`.
  package var reasons: String {
    let reasons: [(Int, String)] = [
      (counts.failed, "failed"), (counts.refused, "refused"), (counts.conflict, "in conflict"),
      (counts.waiting - report.paused, "waiting for approval"), (report.paused, "paused"),
    ]
    var why = reasons.filter { $0.0 > 0 }.map { "\(Units.grouped($0.0)) \($0.1)" }
    if report.listingFailures > 0 {
      why.append(
        report.manifest.isWindow
          ? "the feed read in part" : Units.count(report.listingFailures, "unreadable listing"))
    }
    if counts.held > 0 { why.append(Units.count(counts.held, "deletion") + " held") }
    return why.joined(separator: ", ")
  }

  private var deeds: [String] {
    let named: [(Int, String)] = [
      (counts.fetched, "fetched"), (counts.updated, "updated"), (counts.restored, "restored"),
      (counts.replaced, "put back"), (counts.copied, "copied"), (counts.adopted, "adopted"),
      (counts.deleted, "moved to the trash"), (counts.kept, "left as changed here"),
      (counts.hasChanges ? counts.current + counts.revalidated : 0, "already there"),
    ]
    return named.filter { $0.0 > 0 }.map { "\(Units.grouped($0.0)) \($0.1)" }
  }

  /// The words of a plan: `planned: 4 files, 1.2 MiB and 2 of unknown size; 3 already there, 2 to ask the server about`.
  package static func planned(_ report: PassReport) -> String {
    let there = "\(Units.grouped(report.counts.there)) already there\(report.counts.toAsk)"
    let leftOut = PassWords(report).leftOut.map { "; \($0)" } ?? ""
    guard report.counts.toChange > 0 else { return "\(report.counts.noChange): \(there)\(leftOut)" }
    let unknown =
      report.bytes.planned > 0 && report.bytes.unknownSizes > 0
      ? " and \(Units.grouped(report.bytes.unknownSizes)) of unknown size" : ""
    return "planned: \(amount(report.counts.toChange, report.bytes.planned))\(unknown); \(there)"
  }

  /// The progress of a pass:
  /// `fetching: 43%, 1,234 of 5,678 files, 1.2 GiB of 2.8 GiB, 12.3 MiB/s, 2 min 12 s left`.
  static func progress(_ snapshot: PassProgress.Snapshot) -> String {
    let (phase, parts) = (name(snapshot.phase, onlyAsks: snapshot.onlyAsks), parts(snapshot))
    return parts.isEmpty ? phase : "\(phase): \(parts.joined(separator: ", "))"
  }

  /// - Parameter onlyAsks: true when no change is known before the servers are asked.
  package static func name(_ phase: PassEvent.Phase, onlyAsks: Bool = false) -> String {
    switch phase {
    case .reading: "reading the feed"
    case .planning: "comparing"
    case .transferring: onlyAsks ? "asking the server" : "fetching"
    case .publishing: "putting files in place"
    case .deleting: "moving to the trash"
    case .verifying: "verifying"
    }
  }

  private static func parts(_ snapshot: PassProgress.Snapshot) -> [String] {
    var parts: [String] = []
    switch snapshot.phase {
    case .reading, .planning:
      if let feed = snapshot.feed {
        parts.append(Units.show(feed.received) + (feed.total.map { " of \(Units.show($0))" } ?? ""))
      }
      if snapshot.entriesRead > 0 { parts.append(Units.count(snapshot.entriesRead, "entry")) }
    case .deleting: break
    case .transferring, .publishing, .verifying:
      let (done, total) = (snapshot.bytesDone, snapshot.bytesTotal)
      let isKnown = total > 0 && snapshot.unknownSizes == 0 && done <= total
      if isKnown { parts.append("\(Int(Double(done) / Double(total) * 100))%") }
      parts.append("\(Units.grouped(snapshot.filesDone)) of \(Units.count(snapshot.filesTotal, "file"))")
      parts.append(Units.show(done) + (isKnown ? " of \(Units.show(total))" : ""))
      if snapshot.rate > 0 { parts.append("\(Units.show(snapshot.rate))/s") }
      if isKnown, snapshot.rate > 0, done < total {
        parts.append("\(Units.length(Double(total - done) / Double(snapshot.rate))) left")
      }
      if snapshot.failed > 0 { parts.append("\(Units.grouped(snapshot.failed)) failed") }
    }
    return parts
  }

  /// Returns the files and their bytes. Feeds such as checksum lists give no sizes; then no bytes are shown.
  private static func amount(_ files: Int, _ bytes: UInt64) -> String {
    Units.count(files, "file") + (bytes > 0 ? ", \(Units.show(bytes))" : "")
  }
}

extension PassCounts {
  /// The wanted entries that a plan found in place, including those it only has to record or to ask the
  /// server about.
  package var there: Int { current + planned.recorded + planned.asked }

  /// The entries to ask about, `, 2 to ask the server about`; empty when there are none.
  package var toAsk: String {
    planned.asked > 0 ? ", \(Units.grouped(planned.asked)) to ask the server about" : ""
  }

  /// The words for a plan without a change. Entries to ask the server about may still change.
  package var noChange: String { planned.asked > 0 ? "no change known" : Self.noChanges }
}

extension [Action.Kind: Int] {
  /// Counts the changes of a plan, as far as they are known.
  package mutating func add(_ action: Action) {
    guard !action.isRecorded, action.kind != .revalidate else { return }
    self[action.kindToTell, default: 0] += 1
  }
}
