import TarnCore

/// The contents of the trash, for people.
enum TrashText {
  /// - Parameter lifetime: the seconds that files stay; `nil` when nothing expires.
  static func lines(_ rows: [TrashRow], lifetime: Int64?, mirror: String, now: Timestamp, style: Style)
    -> [String]
  {
    guard let first = rows.first else { return ["the trash is empty"] }
    let length = idLength(rows.map(\.name))
    let head = ["ID", "WHEN", "UNTIL", "WHY", "SIZE", "PATH"].map { Table.Cell($0, .faint) }
    let cells = rows.map { row in
      [
        String(row.name.prefix(length)), Durations.ago(row.when, now: now), until(row, lifetime, now),
        why(row), Units.show(row.size),
        row.path.printable,
      ].map { Table.Cell($0) }
    }
    let bytes = rows.reduce(UInt64(0)) { $0.addingSaturated($1.size) }
    return Table.lines([head] + cells, right: [4], style: style) + [
      "\(Numbers.count(rows.count, "file")), \(Units.show(bytes)); "
        + "to put one back: tarn trash restore \(mirror) \(first.name.prefix(length))"
    ]
  }

  private static func until(_ row: TrashRow, _ lifetime: Int64?, _ now: Timestamp) -> String {
    guard let until = row.until(lifetime) else { return "you empty it" }
    return until <= now ? "the next pass" : "in \(Durations.span(until.seconds - now.seconds + 59))"
  }

  private static func why(_ row: TrashRow) -> String {
    if row.isOwn { return row.reason.rawValue }
    return row.reason == .edited ? "changed here" : "\(row.reason.rawValue), not Tarn's"
  }

  /// Returns the number of characters, 8 at least, that distinguish each id from every other.
  static func idLength(_ names: [String]) -> Int {
    let names = names.sorted()
    var length = 8
    for (left, right) in zip(names, names.dropFirst()) {
      length = max(length, left.commonPrefix(with: right) + 1)
    }
    return length
  }
}

extension TrashRow {
  /// Returns when the file may be removed; `nil` when only a person removes it.
  ///
  /// - Parameter lifetime: the seconds that files stay.
  func until(_ lifetime: Int64?) -> Timestamp? {
    guard isOwn, let lifetime else { return nil }
    return when.adding(seconds: lifetime)
  }
}

extension String {
  fileprivate func commonPrefix(with other: String) -> Int {
    zip(self, other).prefix { $0 == $1 }.count
  }
}
