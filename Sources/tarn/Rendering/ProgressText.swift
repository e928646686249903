import TarnCore
import TarnEngine

/// How far a pass is, as lines.
enum ProgressText {
  static let mostTransfers = 6

  /// `[0:12] 43%  1,234 of 5,678 files  1.2 of 2.8 GiB  12.3 MiB/s  ETA 0:42`.
  static func total(_ snapshot: PassProgress.Snapshot, elapsed: Double) -> String {
    "[\(Durations.clock(elapsed))] " + parts(snapshot).joined(separator: "  ")
  }

  private static func parts(_ snapshot: PassProgress.Snapshot) -> [String] {
    switch snapshot.phase {
    case .reading, .planning:
      let entries = snapshot.entriesRead > 0 ? [Numbers.count(snapshot.entriesRead, "entry")] : []
      let feed = snapshot.feed.map { feed in
        feed.total.map { Numbers.part(feed.received, of: $0) } ?? Units.show(feed.received)
      }
      let rate = snapshot.feed.flatMap { $0.rate > 0 ? Numbers.rate($0.rate) : nil }
      return [name(snapshot.phase)] + [feed, rate].compactMap { $0 } + entries
    case .deleting: return [name(snapshot.phase)]
    case .transferring, .publishing, .verifying: return share(snapshot)
    }
  }

  private static func share(_ snapshot: PassProgress.Snapshot) -> [String] {
    let files = "\(Numbers.grouped(snapshot.filesDone)) of \(Numbers.count(snapshot.filesTotal, "file"))"
    let isKnown =
      snapshot.bytesTotal > 0 && snapshot.unknownSizes == 0 && snapshot.bytesDone <= snapshot.bytesTotal
    var parts: [String] = []
    if isKnown, let percent = Numbers.percent(snapshot.bytesDone, of: snapshot.bytesTotal) {
      parts.append(percent)
    }
    parts.append(files)
    parts.append(
      isKnown
        ? Numbers.part(snapshot.bytesDone, of: snapshot.bytesTotal) : Units.show(snapshot.bytesDone))
    if snapshot.rate > 0 { parts.append(Numbers.rate(snapshot.rate)) }
    if isKnown, snapshot.rate > 0, snapshot.bytesDone < snapshot.bytesTotal {
      let seconds = Double(snapshot.bytesTotal - snapshot.bytesDone) / Double(snapshot.rate)
      parts.append("ETA \(Durations.clock(seconds))")
    }
    if snapshot.failed > 0 { parts.append("\(Numbers.grouped(snapshot.failed)) failed") }
    return parts
  }

  /// The block at the bottom of a terminal: the running transfers, the oldest first, and the total line.
  ///
  /// - Parameter width: of the terminal; no line reaches its last column, where some terminals wrap.
  static func block(_ snapshot: PassProgress.Snapshot, elapsed: Double, width: Int) -> [String] {
    let width = max(1, width - 1)
    let shown = snapshot.transfers.dropLast(snapshot.waiting).prefix(mostTransfers)
    var lines = transfers(Array(shown), width: width)
    let more = snapshot.transfers.count - shown.count
    if more > 0 { lines.append("  and \(Numbers.grouped(more)) more") }
    lines.append(total(snapshot, elapsed: elapsed))
    return lines.map { Columns.front($0, width) }
  }

  private static func transfers(_ transfers: [Activity], width: Int) -> [String] {
    let details = transfers.map(detail)
    let widest = details.map(Columns.width).max() ?? 0
    let room = max(8, width - widest - 4)
    let names = transfers.map { Columns.end($0.path.printable, room) }
    let column = names.map(Columns.width).max() ?? 0
    return zip(names, details).map { "  \(Columns.padded($0, column))  \($1)" }
  }

  private static func detail(_ transfer: Activity) -> String {
    var parts: [String] = []
    if let total = transfer.total, let percent = Numbers.percent(transfer.received, of: total) {
      parts = [Columns.padded(percent, 4, right: true), Numbers.part(transfer.received, of: total)]
    } else {
      parts = [Units.show(transfer.received)]
    }
    if transfer.rate > 0 { parts.append(Numbers.rate(transfer.rate)) }
    return parts.joined(separator: "  ")
  }

  static func name(_ phase: PassEvent.Phase) -> String {
    switch phase {
    case .reading: "reading the feed"
    case .planning: "comparing"
    case .transferring: "fetching"
    case .publishing: "putting files in place"
    case .deleting: "moving to the trash"
    case .verifying: "verifying"
    }
  }
}
