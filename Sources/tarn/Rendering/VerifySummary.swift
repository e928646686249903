import TarnCore
import TarnEngine

/// The result of a verification, for people.
enum VerifySummary {
  /// - Parameters:
  ///   - mirror: the mirror, as the user would type it.
  ///   - name: the name of a mirror of the settings.
  ///   - repairs: true when a sync follows.
  static func lines(
    _ report: VerifyReport, mirror: String, configured name: String? = nil, repairs: Bool, style: Style
  ) -> [String] {
    let checked = "\(Numbers.count(report.checked, "file")) checked, \(Units.show(report.bytes)) read"
    if report.wasStopped { return [style.paint("stopped:", .warning) + " \(checked)"] }
    if report.isBlank {
      // As sync itself would say: FEED is needed when nothing remembers it.
      let feed = report.knowsFeed ? "" : "FEED "
      let next = repairs ? [] : ["next: tarn sync \(feed)\(mirror)"]
      return [style.paint("nothing verified:", .bad) + " no file is recorded"] + next
    }
    if report.isGood { return [style.paint("all good:", .good) + " \(checked)"] }
    let named: [(Int, String)] = [
      (report.damaged.count, "damaged"), (report.missing.count, "missing"), (report.changed.count, "changed"),
      (report.problems.count, "unreadable"),
    ]
    let what = named.filter { $0.0 > 0 }.map { "\(Numbers.grouped($0.0)) \($0.1)" }.joined(separator: ", ")
    var lines = [style.paint("not good:", .bad) + " \(what); \(checked)"]
    lines += findings(report, style: style)
    return lines + next(report, mirror: mirror, configured: name, repairs: repairs)
  }

  private static func next(
    _ report: VerifyReport, mirror: String, configured name: String?, repairs: Bool
  ) -> [String] {
    let isLeft = report.leavesLocalChanges && !(report.missing.isEmpty && report.changed.isEmpty)
    var lines: [String] = []
    if isLeft { lines.append("  what is missing or changed here stays as it is, because of --local-changes") }
    if !repairs, !isLeft || !report.damaged.isEmpty || !report.problems.isEmpty {
      lines.append("next: tarn verify --repair \(mirror)")
    }
    if isLeft { lines.append(ProblemAdvice.undo(mirror: mirror, configured: name)) }
    return lines
  }

  private static func findings(_ report: VerifyReport, style: Style) -> [String] {
    let all =
      report.damaged.map { ("damaged", $0.printable) } + report.missing.map { ("missing", $0.printable) }
      + report.changed.map { ("changed", $0.printable) } + report.problems.map { ("unreadable", $0.line) }
    let width = all.map(\.0.count).max() ?? 0
    var lines = all.prefix(SyncSummary.mostProblems).map { kind, text in
      "  \(style.paint(Columns.padded(kind, width), .bad))  \(text)"
    }
    if all.count > lines.count {
      lines.append("  and \(Numbers.grouped(all.count - lines.count)) more: --json has them all")
    }
    return lines
  }
}
