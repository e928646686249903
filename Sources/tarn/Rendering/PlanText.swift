import TarnCore
import TarnEngine

/// What a sync would do, for people.
enum PlanText {
  /// `fetch       1.2 MiB  path`; a deletion that would be held is called `hold`.
  static func line(_ action: Action, isHeld: Bool = false, style: Style) -> String {
    let size = action.sizeToTell.map(Units.show) ?? (action.entry == nil ? "" : "-")
    let word = style.paint(
      Columns.padded(isHeld ? "hold" : action.kind.rawValue, 10), isHeld ? .warning : paint(action.kind))
    return "\(word)  \(Columns.padded(size, 10, right: true))  \(action.path.printable)"
  }

  /// `--delete --exclude '*.tmp'`.
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
  ///   - kinds: how many actions of each kind, without deletions that would be held.
  ///   - targets: of the plan, as the user would type them: a mirror, or a feed and a folder.
  static func summary(_ report: PassReport, kinds: [Action.Kind: Int], targets: String, style: Style)
    -> [String]
  {
    // No ledger knows them: only a pass records what it finds.
    let problems =
      SyncSummary.problems(report, showAll: "tarn plan --json \(targets)", style: style) + held(report)
      + SyncSummary.doubt(report)
    let what = Action.Kind.allCases.compactMap { kind in
      kinds[kind].map { "\(Numbers.grouped($0)) to \(kind.rawValue)" }
    }
    let current =
      "\(Numbers.grouped(report.counts.current)) of \(Numbers.count(report.counts.wanted, "file")) current"
    guard !what.isEmpty else { return [style.paint("nothing to do:", .good) + " \(current)"] + problems }
    let bytes = report.bytes.planned > 0 ? "\(Units.show(report.bytes.planned)) to download, " : ""
    return [style.paint("to do:", .strong) + " \(what.joined(separator: ", ")); \(bytes)\(current)"]
      + problems
  }

  private static func held(_ report: PassReport) -> [String] {
    guard let held = report.held else { return [] }
    let waiting = report.counts.waiting
    let files = waiting > 0 ? ", and \(Numbers.count(waiting, "file")) would wait for that" : ""
    let deletions = Numbers.count(held.count, "deletion")
    return ["  \(deletions) would be held as plan \(held.id) until approved\(held.why)\(files)"]
  }
}
