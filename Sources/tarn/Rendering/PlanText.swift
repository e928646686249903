import TarnAgent
import TarnCore
import TarnEngine

/// The plan of a sync, for people.
enum PlanText {
  /// Returns `fetch       1.2 MiB  path`. A deletion that would be held is called `hold`, an entry that only
  /// the server can judge `ask`.
  static func line(_ action: Action, isHeld: Bool = false, style: Style) -> String {
    let bytes = action.sizeToTell.map(Units.show) ?? (action.entry == nil ? "" : "-")
    let size = action.restoresMode ? "its mode" : bytes
    let kind = action.kindToTell
    let name = isHeld ? "hold" : kind == .revalidate ? "ask" : kind.rawValue
    let word = style.paint(Columns.padded(name, 10), isHeld ? .warning : paint(kind))
    return "\(word)  \(Columns.padded(size, 10, right: true))  \(action.path.printable)"
  }

  /// Returns the options as words: `--delete --exclude '*.tmp'`.
  static func options(_ options: PassOptions) -> String {
    options.values.isEmpty ? "none" : Message.safe(options.words.joined(separator: " "))
  }

  private static func paint(_ kind: Action.Kind) -> Style.Paint? {
    switch kind {
    case .fetch, .update, .restore: .good
    case .replace, .delete: .bad
    case .adopt, .forget, .inspect, .revalidate: nil
    }
  }

  /// - Parameters:
  ///   - kinds: the number of changes of each kind, without deletions that would be held.
  ///   - targets: the words of the plan, as the user would type them: a mirror, or a feed and a folder.
  ///   - mirror: the mirror among them, for further commands.
  static func summary(
    _ report: PassReport, kinds: [Action.Kind: Int], targets: String, mirror: String, style: Style
  ) -> [String] {
    // No ledger has these problems, for only a pass records them.
    let problems =
      SyncSummary.problems(report, showAll: "tarn plan --json \(targets)", style: style)
      + held(report, mirror) + SyncSummary.doubt(report)
    let what = Action.Kind.allCases.compactMap { kind in
      kinds[kind].map { "\(Numbers.grouped($0)) to \(kind.rawValue)" }
    }
    let standing = standing(report.counts)
    guard !what.isEmpty else {
      let rest = report.held == nil ? "" : " without an approval"
      return [style.paint("\(report.counts.noChange)\(rest):", .good) + " \(standing)"] + problems
    }
    let unknown = report.bytes.unknownSizes
    let sizes = [
      report.bytes.planned > 0 ? Units.show(report.bytes.planned) : nil,
      unknown > 0 ? "\(Numbers.grouped(unknown)) of unknown size" : nil,
    ].compactMap { $0 }
    let bytes = sizes.isEmpty ? "" : "\(sizes.joined(separator: " and ")) to download, "
    return [style.paint("to do:", .strong) + " \(what.joined(separator: ", ")); \(bytes)\(standing)"]
      + problems
  }

  /// Returns `4 of 6 files current, 2 left as changed here`. When only the server can judge some files, it
  /// says `in place` instead.
  private static func standing(_ counts: PassCounts) -> String {
    let files = "\(Numbers.grouped(counts.there)) of \(Numbers.count(counts.wanted, "file"))"
    let kept = counts.kept > 0 ? ", \(Numbers.grouped(counts.kept)) left as changed here" : ""
    let excluded = counts.excluded > 0 ? ", \(Numbers.grouped(counts.excluded)) of the feed left out" : ""
    return "\(files) \(counts.planned.asked > 0 ? "in place" : "current")\(counts.toAsk)\(kept)\(excluded)"
  }

  private static func held(_ report: PassReport, _ mirror: String) -> [String] {
    guard let held = report.held else { return [] }
    let waiting = report.counts.waiting
    let deletions = Numbers.count(held.count, "deletion")
    // A pass has held them before this plan was made.
    if held.when < report.started {
      let files =
        waiting > 0 ? "; \(Numbers.count(waiting, "file")) \(waiting == 1 ? "waits" : "wait") for that" : ""
      return [
        "  \(deletions) held as plan \(held.id)\(held.why)\(files)",
        "next: tarn approve \(mirror) \(held.id)",
      ]
    }
    let files = waiting > 0 ? ", and \(Numbers.count(waiting, "file")) would wait for that" : ""
    return ["  \(deletions) would be held as plan \(held.id) until approved\(held.why)\(files)"]
  }
}
