import TarnAgent
import TarnCore
import TarnEngine

/// The progress of a pass, as lines.
enum ProgressText {
  static let mostTransfers = 6

  /// Returns `[0:12] 43%  1,234 of 5,678 files  1.2 of 2.8 GiB  12.3 MiB/s  ETA 0:42`.
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
      return [PassWords.name(snapshot.phase)] + [feed, rate].compactMap { $0 } + entries
    case .deleting: return [PassWords.name(snapshot.phase)]
    case .transferring, .publishing, .verifying: return share(snapshot)
    }
  }

  private static func share(_ snapshot: PassProgress.Snapshot) -> [String] {
    let progress =
      snapshot.progress
      ?? StatusDocument.Progress(
        filesDone: 0, filesTotal: 0, bytesDone: snapshot.bytesDone, bytesTotal: 0, unknownSizes: 0,
        rate: snapshot.rate)
    return share(progress)
      + (snapshot.failed > 0 ? ["\(Numbers.grouped(snapshot.failed)) failed"] : [])
  }

  /// Returns `43%`, `1,234 of 5,678 files`, `1.2 of 2.8 GiB`, `12.3 MiB/s` and `ETA 0:42`, as far as they are
  /// known.
  ///
  /// - Parameters:
  ///   - countsFiles: false when the files are counted elsewhere; they are shown anyway without a percentage.
  ///   - countsBytes: false when there is no room for the bytes.
  static func share(
    _ progress: StatusDocument.Progress, countsFiles: Bool = true, countsBytes: Bool = true
  ) -> [String] {
    let isKnown =
      progress.bytesTotal > 0 && progress.unknownSizes == 0 && progress.bytesDone <= progress.bytesTotal
    let percent = isKnown ? Numbers.percent(progress.bytesDone, of: progress.bytesTotal) : nil
    var parts = [percent].compactMap { $0 }
    if countsFiles || percent == nil {
      parts.append("\(Numbers.grouped(progress.filesDone)) of \(Numbers.count(progress.filesTotal, "file"))")
    }
    if countsBytes {
      parts.append(
        isKnown
          ? Numbers.part(progress.bytesDone, of: progress.bytesTotal) : Units.show(progress.bytesDone))
    }
    if progress.rate > 0 { parts.append(Numbers.rate(progress.rate)) }
    if isKnown, progress.rate > 0, progress.bytesDone < progress.bytesTotal {
      let seconds = Double(progress.bytesTotal - progress.bytesDone) / Double(progress.rate)
      parts.append("ETA \(Durations.clock(seconds))")
    }
    return parts
  }

  /// Returns the block at the bottom of a terminal: the noteworthy transfers, the oldest first, and the
  /// total. The total continues in a second line when the first one is too short for it.
  ///
  /// - Parameter width: the columns of the terminal; no line reaches the last one, where some terminals wrap.
  static func block(_ snapshot: PassProgress.Snapshot, elapsed: Double, width: Int) -> [String] {
    let width = max(1, width - 1)
    let running = snapshot.transfers.dropLast(snapshot.waiting)
    let shown = running.filter { isTelling(received: $0.received, total: $0.total) }.prefix(mostTransfers)
    var lines = transfers(Array(shown), width: width)
    let more = snapshot.transfers.count - shown.count
    if more > 0, !shown.isEmpty { lines.append("  and \(Numbers.grouped(more)) more") }
    lines += fold(["[\(Durations.clock(elapsed))] "] + parts(snapshot), width)
    return lines.map { Columns.front($0, width) }
  }

  /// True for a transfer that is worth a line: it has received bytes, and is not over in a moment.
  static func isTelling(received: UInt64, total: UInt64?) -> Bool {
    received > 0 && total.map { $0 > 64 << 10 } ?? true
  }

  /// - Parameter parts: the parts of the line. The first one is at the front, and its width is the indent of
  ///   further lines.
  private static func fold(_ parts: [String], _ width: Int) -> [String] {
    let indent = String(repeating: " ", count: min(Columns.width(parts[0]), max(0, width / 3)))
    var lines: [String] = []
    var line = parts[0]
    var isEmpty = true
    for part in parts.dropFirst() {
      let next = line + (isEmpty ? "" : "  ") + part
      if !isEmpty, Columns.width(next) > width {
        lines.append(line)
        line = indent + part
      } else {
        line = next
      }
      isEmpty = false
    }
    return lines + [line]
  }

  private static func transfers(_ transfers: [Activity], width: Int) -> [String] {
    let details = Table.lines(
      transfers.map { detail($0).map { Table.Cell($0) } }, right: [0, 1, 2], style: Style(isOn: false))
    let widest = details.map(Columns.width).max() ?? 0
    let room = max(8, width - widest - 4)
    let names = transfers.map { Columns.end($0.path.printable, room) }
    let column = names.map(Columns.width).max() ?? 0
    return zip(names, details).map { "  \(Columns.padded($0, column))  \($1)" }
  }

  private static func detail(_ transfer: Activity) -> [String] {
    let rate = transfer.rate > 0 ? Numbers.rate(transfer.rate) : ""
    guard let total = transfer.total, let percent = Numbers.percent(transfer.received, of: total) else {
      return ["", Units.show(transfer.received), rate]
    }
    return [percent, Numbers.part(transfer.received, of: total), rate]
  }
}
