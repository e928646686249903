/// The order of a window's files by age: by their dates, and by the order of the feed where the dates do not decide.
///
/// Feeds name the newest item first. A feed whose dates mostly rise runs the other way.
package struct WindowOrder: Sendable {
  /// The dates in the order of the feed; `nil` for an item without a readable date.
  private let dates: [Timestamp?]
  private let runsBackwards: Bool

  /// - Parameter dates: the dates of the files, in the order of the feed; none is in the future.
  package init(dates: [Timestamp?]) {
    self.dates = dates
    // The item on top may be pinned there.
    let told = dates.dropFirst().compactMap { $0 }
    let rising = zip(told, told.dropFirst()).count { $0 < $1 }
    let falling = zip(told, told.dropFirst()).count { $0 > $1 }
    runsBackwards = rising > falling
  }

  /// Returns the rank among files of the same age; a smaller one is newer.
  package func rank(of index: Int) -> Int { runsBackwards ? dates.count - 1 - index : index }

  /// Returns when files without a date that are seen now count as first seen. No file is newer than the next newer item with a date
  /// in the feed, and none is older than what stands below it. A few nanoseconds keep their order when the feed no longer names
  /// them.
  ///
  /// - Parameter known: when each file of the feed was first seen; `nil` for a file with a date, and for a new one.
  /// - Returns: the time for each file of the feed.
  package func firstSights(known: [Timestamp?], now: Timestamp) -> [Timestamp] {
    let indices = runsBackwards ? Array(dates.indices.reversed()) : Array(dates.indices)
    var newer: [Timestamp?] = []
    var last: Timestamp?
    for index in indices {
      last = dates[index] ?? last
      newer.append(last)
    }
    // An item on top of all others may be pinned there. If no item below it has a date, it says nothing about their age.
    let lowestDated = indices.last { dates[$0] != nil }
    let datesTell = lowestDated != indices.first
    let begin = beginning(known.compactMap { $0 }.max(), now)
    var sights = dates.indices.map { later(begin, $0) }
    last = nil
    var seen: Timestamp?
    for (index, newer) in zip(indices, newer).reversed() {
      last = dates[index] ?? last
      if datesTell, let newer {
        // An old item may stand above newer ones, too.
        sights[index] = later(min(now, max(newer, last ?? newer, seen ?? newer)), index)
      }
      if let known = known[index] { seen = max(seen ?? known, known) }
    }
    return sights
  }

  /// Returns the time for new files. Files are ordered by seconds and within a second by position, so later files get another
  /// second.
  private func beginning(_ latest: Timestamp?, _ now: Timestamp) -> Timestamp {
    guard let latest, (0..<60).contains(latest.seconds - now.seconds) else { return now }
    return Timestamp(seconds: latest.seconds + 1) ?? now
  }

  private func later(_ moment: Timestamp, _ index: Int) -> Timestamp {
    Timestamp(nanoseconds: moment.nanoseconds &+ Int64(dates.count - rank(of: index)))
  }
}
