/// The name that a file of a window (RSS, Atom, JSON Feed) got at first sight, and what it is known by again.
package struct NameRow: Sendable, Equatable {
  /// How a file of a window was recognised.
  package enum Rule: String, Sendable, CaseIterable {
    /// Seen for the first time.
    case new
    /// By the item's guid.
    case guid
    /// By its URL, without the query where that is enough to tell it from the others of the feed.
    case url
    /// By the item's title and date.
    case titleDate = "title-date"
    /// The mirror follows another feed by now, and that one does not name it.
    case earlierFeed = "earlier-feed"
  }

  /// Below the folder.
  package var path: RelativePath
  package var guid: [UInt8]?
  /// The number of the file within its item, from 0.
  package var ordinal: Int
  /// Its URL without query and fragment.
  package var place: [UInt8]
  /// Its URL when the place was last another.
  package var url: [UInt8]
  /// Of the item, at first sight; may be empty.
  package var title: [UInt8]
  /// Of the item, at first sight.
  package var date: Timestamp?
  /// When it was seen first; of an item without a date at most what its neighbours in the feed tell (`WindowOrder`).
  package var first: Timestamp
  /// How it was last recognised.
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

  /// Whether its date tells its age: one that is still to come does not.
  package func hasDate(by now: Timestamp) -> Bool { date.map { $0 <= now } ?? false }

  /// What its age is counted from. A date that is still to come says nothing: no file is younger than its first sight.
  package static func age(date: Timestamp?, first: Timestamp, now: Timestamp) -> Timestamp {
    guard let date, date <= now else { return first }
    return date
  }
}
