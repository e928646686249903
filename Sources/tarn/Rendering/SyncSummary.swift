import TarnAgent
import TarnCore
import TarnEngine

/// The result of a pass, for people.
enum SyncSummary {
  static let mostProblems = 10

  /// - Parameter mirror: the mirror, as the user would type it.
  static func lines(_ report: PassReport, mirror: String, style: Style) -> [String] {
    if report.wasStopped { return stopped(report, mirror: mirror, style: style) }
    if report.isInSync { return inSync(report, style: style) + notes(report, mirror: mirror) }
    return notInSync(report, mirror: mirror, style: style) + doubt(report)
  }

  static func doubt(_ report: PassReport) -> [String] {
    let words = PassWords(report)
    return [words.doubt, words.leftOut].compactMap { $0.map { "  \(Message.safe($0))" } }
  }

  /// Returns `5 in sync, 2 not: broken, sixth`.
  ///
  /// - Parameters:
  ///   - names: all mirrors to be worked on, as the user would type them.
  ///   - inSync: whether each is in sync, for the first mirrors, as many as were worked on.
  static func ofSeveral(_ names: [String], _ inSync: [Bool]) -> String {
    let others = names.enumerated().filter { index, _ in index >= inSync.count || !inSync[index] }.map(
      \.element)
    let good = "\(Numbers.grouped(names.count - others.count)) in sync"
    return others.isEmpty
      ? good : "\(good), \(Numbers.grouped(others.count)) not: \(others.joined(separator: ", "))"
  }

  /// Returns the files and their bytes. Feeds such as checksum lists give no sizes; then no bytes are shown.
  private static func amount(_ files: String, _ bytes: UInt64) -> String {
    bytes > 0 ? "\(files), \(Units.show(bytes))" : files
  }

  // MARK: In sync

  /// Returns `in sync: 5 files, 1.2 MiB (3 fetched, 1 updated, 1 already there) in 2.1 s`.
  private static func inSync(_ report: PassReport, style: Style) -> [String] {
    let deeds = deeds(report.counts)
    var done = deeds.isEmpty ? PassWords.ofNoDeeds(report) : deeds.joined(separator: ", ")
    if report.isFeedUnchanged { done += "; the feed has not changed" }
    let all = Numbers.count(report.counts.wanted, "file")
    let isAll = report.counts.kept == 0
    let files = amount(
      isAll ? all : "\(Numbers.grouped(report.counts.inPlace)) of \(all)", report.bytes.inPlace)
    return [
      style.paint("in sync:", .good)
        + " \(files) (\(done)) in \(time(report))"
    ]
  }

  private static func deeds(_ counts: PassCounts) -> [String] {
    let isChanged =
      counts.fetched + counts.updated + counts.restored + counts.replaced + counts.adopted + counts.copied
      + counts.deleted > 0
    let named: [(Int, String)] = [
      (counts.fetched, "fetched"), (counts.updated, "updated"), (counts.restored, "restored"),
      (counts.replaced, "put back"), (counts.copied, "copied"), (counts.adopted, "adopted"),
      (counts.deleted, "moved to the trash"),
      (counts.kept, "left as changed here"),
      (isChanged ? counts.current + counts.revalidated : 0, "already there"),
    ]
    return named.filter { $0.0 > 0 }.map { "\(Numbers.grouped($0.0)) \($0.1)" }
  }

  private static func notes(_ report: PassReport, mirror: String) -> [String] {
    let counts = report.counts
    var notes: [String] = []
    let what = report.manifest.isWindow ? "beyond --keep or --max-age" : "no longer in the feed"
    if report.released > 0 {
      notes.append(
        "  \(Numbers.count(report.released, "file")) \(what), and changed or copied here: left to you"
      )
    }
    if counts.unlisted > 0, report.manifest.isComplete || report.manifest.isWindow {
      notes.append(
        "  \(Numbers.count(counts.unlisted, "file")) \(what); what --delete would do: tarn plan --delete \(mirror)"
      )
    }
    // Told only after changes, which usually means once.
    if counts.hasChanges, lacksList(report) {
      notes.append("  the list itself is not kept in the mirror, because its address has a query")
    }
    if let options = report.options, let note = idleOptions(options, report) { notes.append("  \(note)") }
    return notes + doubt(report)
  }

  /// The options that do nothing with a feed of this format; `nil` when there are none.
  static func idleOptions(_ options: PassOptions, _ report: PassReport) -> String? {
    guard !report.manifest.isWindow else { return nil }
    let idle = [PassOptions.Name.keep, .maxAge, .template].filter { name in
      options.last(name).map { !["all", "off"].contains($0) } ?? false
    }
    guard !idle.isEmpty else { return nil }
    let words = idle.map { "--\($0.rawValue)" }.joined(separator: " and ")
    return "\(words): for RSS, Atom and JSON Feed only; of this \(report.manifest.format) every file is taken"
  }

  private static func lacksList(_ report: PassReport) -> Bool {
    report.manifest.format == "checksum list" && report.feed.contains("?")
      && URLScheme.remotePrefixes.contains { report.feed.hasPrefix($0) }
      && report.options.map { $0.last(.keepList) != "false" } ?? false
  }

  // MARK: Not in sync

  private static func notInSync(_ report: PassReport, mirror: String, style: Style) -> [String] {
    let counts = report.counts
    let place = "\(Numbers.grouped(counts.inPlace)) of \(Numbers.count(counts.wanted, "file")) in place"
    var lines = [
      style.paint("not in sync:", .bad) + " \(PassWords(report).reasons); \(place), in \(time(report))"
    ]
    lines += problems(report, showAll: "tarn status -v \(mirror)", style: style)
    if let held = report.held {
      lines.append(
        "  \(Numbers.count(held.count, "deletion")) held as plan \(held.id)\(held.why)")
      // The files of the list have to arrive before the old ones are deleted.
      let isMissing = counts.failed + counts.conflict + report.paused > 0
      let step = isMissing ? next(report, mirror: mirror) : nil
      lines.append("next: \(step ?? "tarn approve \(mirror) \(held.id)")")
    } else if let next = next(report, mirror: mirror) {
      lines.append("next: \(next)")
    }
    return lines
  }

  /// Returns the command to type next. A host that cannot be reached needs no explanation at first: another
  /// pass may reach it.
  private static func next(_ report: PassReport, mirror: String) -> String? {
    let own = report.problems.lazy.filter {
      !SharedCause.isOfHost($0.code) || $0.attempts >= ProblemAdvice.repeated
    }
    if let next = own.compactMap({ explain($0.name, mirror: mirror) }).first { return next }
    return report.problems.contains { SharedCause.isOfHost($0.code) } ? "tarn sync \(mirror)" : nil
  }

  /// - Parameter name: the name in a problem.
  /// - Returns: `nil` for a name that cannot be asked for: no argument holds a NUL, and the folder itself is
  ///   no path below it.
  static func explain(_ name: [UInt8], mirror: String) -> String? {
    guard !name.contains(0), name != Array(".".utf8) else { return nil }
    let end = name.first == UInt8(ascii: "-") ? "-- " : ""
    return "tarn explain \(end)\(mirror) \(ShellWord.quote(bytes: name))"
  }

  /// - Parameter showAll: the command that shows all problems.
  static func problems(_ report: PassReport, showAll: String, style: Style) -> [String] {
    let groups = ProblemGroup.groups(of: report.problems, by: SharedCause.of)
    let shown = groups.prefix(mostProblems)
    let width = shown.map { $0.first.kind.rawValue.count }.max() ?? 0
    var lines = shown.map { group in
      let text = group.text(name: Printable.escape(group.first.name), message: group.first.message)
      return
        "  \(style.paint(Columns.padded(group.first.kind.rawValue, width), .bad))  \(text) [\(group.first.code)]"
    }
    // A full list leaves problems out; the counts include all.
    let isFull = report.problems.count >= PassReport.mostProblems
    let all = isFull ? max(report.problems.count, report.counts.wanting) : report.problems.count
    let more = all - shown.reduce(0) { $0 + $1.count }
    if more > 0 { lines.append("  and \(Numbers.grouped(more)) more: \(showAll)") }
    return lines
  }

  // MARK: Stopped

  private static func stopped(_ report: PassReport, mirror: String, style: Style) -> [String] {
    let counts = report.counts
    let placed = counts.inPlace - counts.current - counts.revalidated
    let now =
      "\(Units.show(report.bytes.received)) fetched this time, \(Numbers.count(placed, "file")) put in place"
    return [
      style.paint("stopped:", .warning)
        + " \(now); what came is kept, and 'tarn sync \(mirror)' goes on from there"
    ]
  }

  private static func time(_ report: PassReport) -> String {
    Units.length(Durations.between(report.started, report.ended))
  }
}
