/// The name that a file of a window (RSS, Atom, JSON Feed) got at first sight, and the values by which it is recognised.
package struct NameRow: Sendable, Equatable {
  /// How a file of a window was recognised.
  package enum Rule: String, Sendable, CaseIterable {
    /// The file was seen for the first time.
    case new
    /// The file has the guid of a known item.
    case guid
    /// The file has a known URL, without the query where that is enough to tell it from the others of the feed.
    case url
    /// The file has the title and date of a known item.
    case titleDate = "title-date"
    /// The mirror now follows another feed, which does not name the file.
    case earlierFeed = "earlier-feed"
  }

  /// The path below the folder.
  package var path: RelativePath
  package var guid: [UInt8]?
  /// The number of the file within its item, from 0.
  package var ordinal: Int
  /// The URL without query and fragment.
  package var place: [UInt8]
  /// The full URL when `place` last changed; the present one for a place that several files share.
  package var url: [UInt8]
  /// The title of the item at first sight; may be empty.
  package var title: [UInt8]
  /// The date of the item at first sight.
  package var date: Timestamp?
  /// When the file was first seen; for an item without a date, at most what its neighbours in the feed show (`WindowOrder`).
  package var first: Timestamp
  /// How the file was last recognised.
  package var rule: Rule

  package init(
    path: RelativePath, guid: [UInt8]?, ordinal: Int, place: [UInt8], url: [UInt8], title: [UInt8],
    date: Timestamp?, first: Timestamp, rule: Rule
  ) {
    self.path = path
    self.guid = guid
    self.ordinal = ordinal
    self.place = place
    self.url = url
    self.title = title
    self.date = date
    self.first = first
    self.rule = rule
  }

  /// Returns whether the date shows the age; a date in the future does not.
  package func hasDate(by now: Timestamp) -> Bool { date.map { $0 <= now } ?? false }

  /// Returns the time that the age is counted from. A date in the future does not count: no file is younger than its first sight.
  package static func age(date: Timestamp?, first: Timestamp, now: Timestamp) -> Timestamp {
    guard let date, date <= now else { return first }
    return date
  }
}
