import TarnCore
import TarnEngine

/// The explanation of why a path is here, missing, held, refused or gone, for people.
enum ExplainText {
  static func lines(_ answer: Explanation, now: Timestamp, style: Style) -> [String] {
    let isGood = answer.state == "current"
    let state = answer.state == "foreign" ? "not Tarn's" : answer.state
    var lines = ["\(Message.safe(answer.path)): \(style.paint(state, isGood ? .good : .warning))"]
    lines.append("  \(Message.safe(answer.summary))")
    if let record = answer.record { lines += self.record(record, now: now) }
    if let item = answer.item { lines += self.item(item) }
    if let problem = answer.problem {
      let passes = problem.attempts > 1 ? ", seen in \(Numbers.grouped(problem.attempts)) passes" : ""
      lines.append("  since   \(when(problem.since, now: now))\(passes)")
    }
    if !answer.events.isEmpty {
      let rows = answer.events.map { event in
        [event.time, event.code, event.bytes.map(Units.show) ?? "", Message.safe(event.detail)].map {
          Table.Cell($0)
        }
      }
      lines.append("events, the newest first:")
      lines += Table.lines(rows, right: [2], style: style).map { "  \($0)" }
    }
    if let hint = answer.hint { lines.append("next: \(Message.safe(hint))") }
    return lines
  }

  private static func record(_ record: Explanation.Record, now: Timestamp) -> [String] {
    var rows = [
      ("size", "\(Units.show(record.size)) (\(Units.count(record.size, "byte")))"),
      ("digest", record.digest + (record.verified ? ", as the feed said" : ", not from the feed")),
      (record.adopted ? "adopted" : "placed", when(record.placed, now: now)),
    ]
    if let etag = record.etag { rows.append(("etag", Printable.escape(etag))) }
    if let modified = record.lastModified { rows.append(("changed", Printable.escape(modified))) }
    return rows.map { "  \(Columns.padded($0.0, 7)) \($0.1)" }
  }

  private static func item(_ item: Explanation.Item) -> [String] {
    let rule =
      switch item.recognisedBy {
      case "guid": "by its guid"
      case "url": "by its URL"
      case "title-date": "by its title and date"
      case "earlier-feed": "by nothing now: it came with an earlier feed"
      default: "by nothing so far: it was seen once"
      }
    var rows = [("item", Message.safe(item.title)), ("known", rule)]
    if let guid = item.guid { rows.insert(("guid", Message.safe(guid)), at: 1) }
    if let date = item.date { rows.insert(("date", date), at: rows.count - 1) }
    return rows.map { "  \(Columns.padded($0.0, 7)) \($0.1)" }
  }

  private static func when(_ text: String, now: Timestamp) -> String {
    guard let moment = Timestamp(rfc3339: text) else { return Printable.escape(text) }
    return "\(Durations.ago(moment, now: now)) (\(text))"
  }
}
