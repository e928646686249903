/// Which deletions wait for approval (I8). It counts net loss over 24 hours: files that went, less files that came. What
/// `keep` and `max-age` expire is the user's own order and is never asked about here. Pure.
package struct DeletionGuard: Sendable {
  /// Seconds.
  package static let window: Int64 = 24 * 3600
  /// No limit is lower: a small mirror could never change otherwise.
  package static let least = 3

  package enum Verdict: Sendable, Equatable {
    case allow
    /// - Parameters:
    ///   - reason: for a person.
    ///   - isForPerson: new files that come meanwhile are no reason to let the old ones go.
    case hold(reason: String, isForPerson: Bool = false)
  }

  /// What the folder and the list come to.
  package struct Question: Sendable {
    /// Deletions of this pass.
    package var planned: Int
    /// Files recorded before the pass that it follows.
    package var rows: Int
    /// Files recorded that a filter keeps out of the pass: they tell nothing of the list.
    package var unfollowed: Int
    /// New files that were published since the last pass ended.
    package var published: Int
    /// Deletions since the last pass ended: of one that was cut short, or approved.
    package var deleted: Int
    /// A complete manifest that names nothing.
    package var manifestIsEmpty: Bool
    /// Some of the files stand in the way of others that the list names: those come only when these have gone.
    package var makesWay: Bool
    /// The list's format before, when it was another one.
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
    // Where a directory becomes a file, or a file a directory, a small list is no other one.
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

/// The net loss of each pass of the last 24 hours. New files make up for the loss of their own pass and of earlier ones;
/// they earn no right to lose more later. A value, kept in the ledger.
package struct LossBook: Sendable, Equatable {
  package struct Entry: Sendable, Equatable {
    package var ended: Timestamp
    /// Files deleted less files published; negative when the folder grew.
    package var loss: Int
    /// Files recorded at its end.
    package var rows: Int
    /// The number of the last event then.
    package var event: Int64

    package init(ended: Timestamp, loss: Int, rows: Int, event: Int64) {
      self.ended = ended
      self.loss = loss
      self.rows = rows
      self.event = event
    }
  }

  /// Oldest first.
  package private(set) var entries: [Entry] = []
  private static let most = 256

  package init() {}

  /// Loss that is not made up for so far.
  package var loss: Int { entries.reduce(0) { max(0, $0.addingSaturated($1.loss)) } }

  /// Files that there were before the window's passes added any; nil for a mirror without passes.
  package var rowsBefore: Int? { entries.first { $0.rows > 0 }?.rows }

  /// The number of the last event when the last pass ended; nil before the first.
  package var event: Int64? { entries.last?.event }

  /// Drops what is older than the window; the last of that stays, for it tells how many files there were, but not its loss.
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
    // The oldest two as one, at the later time: loss is forgotten later, never sooner.
    let first = entries.removeFirst()
    entries[0].loss = max(0, first.loss).addingSaturated(entries[0].loss)
    entries[0].rows = first.rows
  }

  /// `ended loss rows event` a line; reads back as the same.
  package var encoded: String {
    entries.map { "\($0.ended.nanoseconds) \($0.loss) \($0.rows) \($0.event)" }.joined(separator: "\n")
  }

  /// What is not understood is left out.
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
