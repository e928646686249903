/// Decides which deletions wait for approval (I8). It counts the net loss over 24 hours: files deleted less files added. What
/// `keep` and `max-age` expire is the user's own order and needs no approval here. Pure.
package struct DeletionGuard: Sendable {
  /// The time over which losses count, in seconds.
  package static let window: Int64 = 24 * 3600
  /// The lowest limit, in files. Without it a small mirror could never change.
  package static let least = 3

  package enum Verdict: Sendable, Equatable {
    case allow
    /// - Parameters:
    /// - reason: the reason for people.
    /// - isForPerson: true when new files that come meanwhile do not release the old ones.
    case hold(reason: String, isForPerson: Bool = false)
  }

  /// The facts about the folder and the list.
  package struct Question: Sendable {
    /// Deletions of this pass.
    package var planned: Int
    /// Files that were recorded before the pass.
    package var rows: Int
    /// Recorded files that a filter keeps out of the pass: they say nothing about the list.
    package var unfollowed: Int
    /// New files that were published since the last pass ended.
    package var published: Int
    /// Deletions since the last pass ended, by a pass that was cut short or by an approval.
    package var deleted: Int
    /// True for a complete manifest that names nothing.
    package var manifestIsEmpty: Bool
    /// True when some of the files stand in the way of others that the list names, which can come only afterwards.
    package var makesWay: Bool
    /// The earlier format of the list, when it was a different one.
    package var earlierFormat: String?
    package var format: String

    package init(
      planned: Int, rows: Int, unfollowed: Int = 0, published: Int = 0, deleted: Int = 0,
      manifestIsEmpty: Bool = false, makesWay: Bool = false,
      earlierFormat: String? = nil, format: String = ""
    ) {
      self.planned = planned
      self.rows = rows
      self.unfollowed = unfollowed
      self.published = published
      self.deleted = deleted
      self.manifestIsEmpty = manifestIsEmpty
      self.makesWay = makesWay
      self.earlierFormat = earlierFormat
      self.format = format
    }
  }

  private let limit: DeleteLimit
  private let book: LossBook

  package init(limit: DeleteLimit, book: LossBook) {
    self.limit = limit
    self.book = book
  }

  package func judge(_ question: Question) -> Verdict {
    guard question.planned > 0 else { return .allow }
    let (planned, rows) = (question.planned, max(0, question.rows))
    if question.manifestIsEmpty { return .hold(reason: "the list is empty") }
    if let earlier = question.earlierFormat {
      return .hold(
        reason: "the format of the list changed from \(Printable.escape(earlier)) to \(question.format)")
    }
    // Where a directory becomes a file or a file becomes a directory, a small list is still the same list.
    let left = (rows - min(rows, planned)).addingSaturated(question.published)
    let isReshaped = question.makesWay && planned <= Self.least && left >= planned
    guard planned <= rows - planned || isReshaped else {
      return .hold(
        reason: "the list keeps \(Units.grouped(max(0, rows - planned))) of \(Units.count(rows, "file")), "
          + "fewer than half", isForPerson: true)
    }
    let most = limit.most(of: book.rowsBefore.map { max(0, $0 - question.unfollowed) } ?? rows)
    let loss = book.loss.addingSaturated(question.deleted).addingSaturated(planned)
      .subtractingSaturated(question.published)
    guard loss > most else { return .allow }
    return .hold(
      reason:
        "\(Units.count(loss, "file")) would be lost within 24 hours, and the limit is \(Units.grouped(most))")
  }
}

/// The net loss of each pass of the last 24 hours. New files make up for the loss of their own pass and of earlier ones, but do not
/// allow more loss later. A value, kept in the ledger.
package struct LossBook: Sendable, Equatable {
  package struct Entry: Sendable, Equatable {
    package var ended: Timestamp
    /// Files deleted less files published; negative when the folder grew.
    package var loss: Int
    /// The number of recorded files at the end of the pass.
    package var rows: Int
    /// The number of the last event at that time.
    package var event: Int64

    package init(ended: Timestamp, loss: Int, rows: Int, event: Int64) {
      self.ended = ended
      self.loss = loss
      self.rows = rows
      self.event = event
    }
  }

  /// The passes, oldest first.
  package private(set) var entries: [Entry] = []
  private static let most = 256

  package init() {}

  /// The loss that new files have not made up for so far.
  package var loss: Int { entries.reduce(0) { max(0, $0.addingSaturated($1.loss)) } }

  /// The number of files before the passes of the window added any; `nil` for a mirror without passes.
  package var rowsBefore: Int? { entries.first { $0.rows > 0 }?.rows }

  /// The number of the last event when the last pass ended; nil before the first.
  package var event: Int64? { entries.last?.event }

  /// Returns the book without the passes before the window. The last of them stays without its loss, because it gives the number of
  /// files.
  package func within(window: Int64 = DeletionGuard.window, at now: Timestamp) -> LossBook {
    var book = self
    let start = now.adding(seconds: -window)
    let old = entries.prefix { $0.ended < start }
    book.entries.removeFirst(max(0, old.count - 1))
    if !old.isEmpty { book.entries[0].loss = 0 }
    return book
  }

  package mutating func add(_ entry: Entry) {
    if entry.loss == 0, entries.count > 1, entries.last?.loss == 0 {
      entries[entries.count - 1].ended = entry.ended
      entries[entries.count - 1].event = entry.event
      return
    }
    entries.append(entry)
    guard entries.count > Self.most else { return }
    // The oldest two are merged at the later time: loss is forgotten later, never sooner.
    let first = entries.removeFirst()
    entries[0].loss = max(0, first.loss).addingSaturated(entries[0].loss)
    entries[0].rows = first.rows
  }

  /// The book as text, one line of `ended loss rows event` for each pass. Reading it back yields the same book.
  package var encoded: String {
    entries.map { "\($0.ended.nanoseconds) \($0.loss) \($0.rows) \($0.event)" }.joined(separator: "\n")
  }

  /// Reads the text and leaves out lines that are not understood.
  package init(encoded: String) {
    entries = encoded.split(separator: "\n").compactMap { line in
      let numbers = line.split(separator: " ").compactMap { Int64($0) }
      guard numbers.count == 4 else { return nil }
      return Entry(
        ended: Timestamp(nanoseconds: numbers[0]), loss: Int(clamping: numbers[1]),
        rows: Int(clamping: numbers[2]),
        event: numbers[3])
    }
  }
}
