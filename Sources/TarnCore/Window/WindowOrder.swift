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
    let told = dates.compactMap { $0 }
    let rising = zip(told, told.dropFirst()).count { $0 < $1 }
    let falling = zip(told, told.dropFirst()).count { $0 > $1 }
    runsBackwards = rising > falling
  }

  /// The smaller, the newer, of files of one age.
  package func rank(of index: Int) -> Int { runsBackwards ? dates.count - 1 - index : index }

  /// When files without a date that are seen now count as seen first: no file is newer than the item with a date that the
  /// feed holds for newer. Some nanoseconds keep their order once the feed names them no more.
  ///
  /// - Returns: for each file of the feed.
  package func firstSights(now: Timestamp) -> [Timestamp] {
    var newer: [Timestamp?] = []
    var last: Timestamp?
    let indices = runsBackwards ? Array(dates.indices.reversed()) : Array(dates.indices)
    for index in indices {
      last = dates[index] ?? last
      newer.append(last)
    }
    var sights = dates.indices.map { later(now, $0) }
    last = nil
    for (index, newer) in zip(indices, newer).reversed() {
      last = dates[index] ?? last
      // An old item may stand above newer ones, as one that is pinned to the top.
      if let newer { sights[index] = later(min(now, max(newer, last ?? newer)), index) }
    }
    return sights
  }

  private func later(_ moment: Timestamp, _ index: Int) -> Timestamp {
    Timestamp(nanoseconds: moment.nanoseconds &+ Int64(dates.count - rank(of: index)))
  }
}
