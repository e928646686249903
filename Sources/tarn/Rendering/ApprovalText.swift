import TarnCore
import TarnEngine

/// A held plan and the result of its approval, for people.
enum ApprovalText {
  static let mostPaths = 10

  /// - Parameter most: the number of paths that are shown.
  static func question(
    _ plan: HeldPlan, _ paths: [RelativePath], most: Int = mostPaths, now: Timestamp
  ) -> [String] {
    let files = Numbers.count(plan.count, "file")
    var lines = [
      "plan \(plan.id), held \(Durations.ago(plan.when, now: now)), moves \(files) to the trash\(plan.why):"
    ]
    lines += paths.prefix(most).map { "  \($0.printable)" }
    if paths.isEmpty, plan.count > 0 {
      return lines + ["  only a user who may read the mirror's ledger sees which ones"]
    }
    let more = plan.count - min(paths.count, most)
    if more > 0 { lines.append("  and \(Numbers.grouped(more)) more") }
    return lines
  }

  /// Returns the lines about an approval by the agent.
  static func lines(_ approval: ControlApproval, mirror: String, style: Style) -> [String] {
    if approval.isDeferred {
      return [
        style.paint("approved", .good)
          + " plan \(Printable.escape(approval.plan)): it is carried out as soon as the current pass has ended",
        "to see whether it did: tarn status \(mirror)",
      ]
    }
    var report = ApprovalReport(
      plan: HeldPlan(id: Printable.escape(approval.plan), when: Timestamp(nanoseconds: 0), count: 0))
    report.deleted = approval.deleted
    report.spared = approval.spared
    report.left = approval.left
    var lines = lines(report, mirror: mirror, style: style)
    let problems = approval.problems.map { "  \(style.paint(Message.safe($0), .bad))" }
    lines.insert(contentsOf: problems, at: lines.count - (report.deleted > 0 ? 1 : 0))
    return lines
  }

  static func lines(_ report: ApprovalReport, mirror: String, style: Style) -> [String] {
    var lines = [
      (report.wasStopped ? style.paint("stopped", .warning) : style.paint("approved", .good))
        + " plan \(report.plan.id): \(Numbers.count(report.deleted, "file")) moved to the trash"
    ]
    if report.left > 0 {
      lines.append(
        "  \(Numbers.count(report.left, "file")) still held; to go on: tarn approve \(mirror) \(report.plan.id)"
      )
    }
    if report.spared > 0 {
      lines.append(
        "  \(Numbers.count(report.spared, "file")) left: wanted again, changed or copied here, or gone already"
      )
    }
    lines += report.problems.prefix(SyncSummary.mostProblems).map {
      "  \(style.paint($0.kind.rawValue, .bad))  \($0.line)"
    }
    if report.deleted > 0 {
      lines.append("to see or restore \(Numbers.pronoun(report.deleted)): tarn trash list \(mirror)")
    }
    return lines
  }
}
