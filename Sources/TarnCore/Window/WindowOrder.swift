/// Which files of a window are newer: by their dates, and by the order of the feed where dates do not tell.
///
/// Feeds name the newest item first. One whose dates mostly rise runs the other way.
package struct WindowOrder: Sendable {
  /// In the order of the feed; nil for an item without a date that can be read.
  private let dates: [Timestamp?]
  private let runsBackwards: Bool

  /// - Parameter dates: of the files, in the order of the feed; none of them still to come.
  package init(dates: [Timestamp?]) {
    self.dates = dates
    // What is on top may be pinned there.
    let told = dates.dropFirst().compactMap { $0 }
    let rising = zip(told, told.dropFirst()).count { $0 < $1 }
    let falling = zip(told, told.dropFirst()).count { $0 > $1 }
    runsBackwards = rising > falling
  }

  /// The smaller, the newer, of files of one age.
  package func rank(of index: Int) -> Int { runsBackwards ? dates.count - 1 - index : index }

  /// When files without a date that are seen now count as seen first: no file is newer than the item with a date that the
  /// feed holds for newer, and none is older than what stands below it. Some nanoseconds keep their order once the feed names
  /// them no more.
  ///
  /// - Parameter known: for each file of the feed, when it was seen first; nil for one with a date, and for one that is new.
  /// - Returns: for each file of the feed.
  package func firstSights(known: [Timestamp?], now: Timestamp) -> [Timestamp] {
    let indices = runsBackwards ? Array(dates.indices.reversed()) : Array(dates.indices)
    var newer: [Timestamp?] = []
    var last: Timestamp?
    for index in indices {
      last = dates[index] ?? last
      newer.append(last)
    }
    // An item on top of all may be pinned there. Where nothing below it has a date, it tells the age of nothing.
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

  /// Files are told apart by seconds, and those of one second by their order: what comes after others comes in another one.
  private func beginning(_ latest: Timestamp?, _ now: Timestamp) -> Timestamp {
    guard let latest, (0..<60).contains(latest.seconds - now.seconds) else { return now }
    return Timestamp(seconds: latest.seconds + 1) ?? now
  }

  private func later(_ moment: Timestamp, _ index: Int) -> Timestamp {
    Timestamp(nanoseconds: moment.nanoseconds &+ Int64(dates.count - rank(of: index)))
  }
}
