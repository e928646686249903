import TarnCore
import TestSupport
import Testing

@Suite struct DeletionGuardTests {
  private static let day = DeletionGuard.window
  private static let start = Timestamp(nanoseconds: 1_800_000_000_000_000_000)

  private func book(_ entries: [(hours: Int64, loss: Int, rows: Int)], now: Int64 = 0) -> LossBook {
    var book = LossBook()
    for entry in entries {
      book.add(
        LossBook.Entry(
          ended: Self.start.adding(seconds: entry.hours * 3600), loss: entry.loss, rows: entry.rows, event: 1)
      )
    }
    return book.within(at: Self.start.adding(seconds: now * 3600))
  }

  private func isHeld(
    _ planned: Int, of rows: Int, published: Int = 0, limit: DeleteLimit = .standard,
    book: LossBook = LossBook(), makesWay: Bool = false
  ) -> Bool {
    let question = DeletionGuard.Question(
      planned: planned, rows: rows, published: published, makesWay: makesWay, format: "list")
    return DeletionGuard(limit: limit, book: book).judge(question) != .allow
  }

  @Test(
    arguments: [
      (0, 0, false), (0, 10, false), (3, 9, false), (4, 9, true), (3, 6, false), (4, 100, false),
      (10, 100, false),
      (11, 100, true), (1000, 10_000, false), (1001, 1_000_000, true), (1000, 1_000_000, false),
      // Fewer than half are kept.
      (3, 5, true), (2, 4, false), (3, 4, true), (1, 1, true), (.max, .max, true), (1, .min, true),
    ] as [(Int, Int, Bool)])
  func theStandardLimit(planned: Int, rows: Int, isHeld: Bool) {
    #expect(self.isHeld(planned, of: rows) == isHeld)
  }

  @Test(
    arguments: [
      ("25%", 25, 100, false), ("25%", 26, 100, true), ("5", 5, 1000, false), ("5", 6, 1000, true),
      ("off", 500, 1000, false), ("off", 501, 1000, true), ("1%", 3, 20, false),
      ("100%", 20_000, 50_000, false),
      ("0.5%", 5, 1000, false), ("0.5%", 6, 1000, true),
    ] as [(String, Int, Int, Bool)])
  func aLimitThatIsSet(text: String, planned: Int, rows: Int, isHeld: Bool) throws {
    let limit = try #require(DeleteLimit(text))
    #expect(self.isHeld(planned, of: rows, limit: limit) == isHeld)
  }

  @Test(arguments: ["", "2", "0", "-5", "0%", "101%", "ten", "1e9x", "%", "on", "10 %x"])
  func whatIsNoLimit(text: String) {
    #expect(DeleteLimit(text) == nil)
  }

  @Test func whateverTheLimitSays() {
    let off = DeletionGuard(limit: .off, book: LossBook())
    var question = DeletionGuard.Question(planned: 1, rows: 100, manifestIsEmpty: true, format: "list")
    #expect(off.judge(question) == .hold(reason: "the list is empty"))
    question.manifestIsEmpty = false
    #expect(off.judge(question) == .allow)
    question.earlierFormat = "checksum list"
    #expect(off.judge(question) == .hold(reason: "the format of the list changed from checksum list to list"))
    question.planned = 0
    #expect(off.judge(question) == .allow)
  }

  /// Files that take the place of others are no loss, but only once they are there.
  @Test func onlyWhatWasPublishedGivesCredit() {
    #expect(isHeld(30, of: 100))
    #expect(!isHeld(30, of: 100, published: 30))
    #expect(!isHeld(40, of: 100, published: 30))
    #expect(isHeld(41, of: 100, published: 30))
  }

  /// A list of as many other files keeps none of them, however small it is and whatever has come.
  @Test(arguments: [1, 2, 3, 4, 51]) func anotherListIsHeldWhateverItsSize(count: Int) {
    #expect(isHeld(count, of: count, published: count, limit: .off))
    #expect(isHeld(count, of: 2 * count - 1, published: count, limit: .off))
    #expect(!isHeld(count, of: 2 * count, limit: .off))
  }

  /// A directory that became a file, or the other way round: what the list names cannot come while the old files are there.
  @Test func aFewFilesMakeWay() {
    #expect(
      !isHeld(1, of: 1, published: 1, makesWay: true) && !isHeld(3, of: 3, published: 3, makesWay: true))
    #expect(isHeld(1, of: 1, makesWay: true) && isHeld(3, of: 3, published: 2, makesWay: true))
    #expect(isHeld(4, of: 4, published: 4, makesWay: true))
  }

  @Test func aDayIsCountedTogether() {
    let grown = book([(-30, 0, 100), (-2, 6, 94)])
    #expect(!isHeld(4, of: 94, book: grown))
    #expect(isHeld(5, of: 94, book: grown))
    // What came later makes up for it; what came before does not.
    #expect(!isHeld(10, of: 100, book: book([(-30, 0, 100), (-2, 6, 94), (-1, -6, 100)])))
    #expect(isHeld(11, of: 100, book: book([(-30, 0, 100), (-3, -50, 150), (-2, 6, 144)])))
    // A day later it is forgotten, and so is what it did to the number of files.
    #expect(!isHeld(9, of: 94, book: book([(-30, 0, 100), (-2, 6, 94)], now: 23)))
    #expect(isHeld(10, of: 94, book: book([(-30, 0, 100), (-2, 6, 94)], now: 23)))
  }

  /// 3,000 files that a junk list adds leave the limit at a tenth of what was there before.
  @Test func junkDoesNotRaiseTheLimit() {
    let book = book([(-30, 0, 1000), (-1, -3000, 4000)])
    #expect(!isHeld(100, of: 4000, book: book))
    #expect(isHeld(101, of: 4000, book: book))
    #expect(isHeld(200, of: 3500, book: self.book([(-2, -500, 500), (-1, -3000, 3500)])))
  }

  /// However a mirror is emptied pass by pass, a day takes no more than its share.
  @Test(arguments: [1, 9, 10, 57, 100, 999, 12_345, 50_000]) func aDayTakesNoMoreThanItsShare(start: Int) {
    var random = Seeded(UInt64(start))
    var book = LossBook()
    var now = Self.start
    book.add(LossBook.Entry(ended: now, loss: -start, rows: start, event: 0))
    var rows = start
    for _ in 0..<500 {
      now = now.adding(seconds: Int64(random.below(120)))
      book = book.within(at: now)
      let planned = 1 + random.below(max(1, start / 20))
      guard !isHeld(planned, of: rows, book: book) else { continue }
      rows -= planned
      book.add(LossBook.Entry(ended: now, loss: planned, rows: rows, event: 0))
    }
    #expect(start - rows <= min(1000, max(DeletionGuard.least, start / 10)))
    #expect(rows < start || start < 2)
  }

  @Test func theBookIsKept() {
    var book = LossBook()
    var random = Seeded(7)
    for hour in 0..<1000 {
      book.add(
        LossBook.Entry(
          ended: Self.start.adding(seconds: Int64(hour)), loss: random.below(5) - 2, rows: 100 + hour,
          event: Int64(hour)))
    }
    #expect(LossBook(encoded: book.encoded) == book)
    #expect(book.entries.count <= 256)
    #expect(book.event == 999)
    #expect(LossBook(encoded: "1 2\nx y z w\n\n5 6 7 8").entries.count == 1)
  }

  /// Passes that change nothing take no room, and the time of the last one is known.
  @Test func quietPassesAreOne() {
    var book = LossBook()
    book.add(LossBook.Entry(ended: Self.start, loss: -100, rows: 100, event: 100))
    for minute in 1..<2000 {
      book.add(
        LossBook.Entry(ended: Self.start.adding(seconds: Int64(minute) * 60), loss: 0, rows: 100, event: 100))
    }
    #expect(book.entries.count == 2 && book.entries.last?.ended == Self.start.adding(seconds: 1999 * 60))
  }
}

@Suite struct RetryPolicyTests {
  @Test(
    arguments: [
      // attempt, transient, asked, random, pause (nil: give up)
      (1, true, nil, 0.0, 0.0), (1, true, nil, 0.5, 0.25), (2, true, nil, 0.5, 0.5), (3, true, nil, 0.5, 1.0),
      (5, true, nil, 0.5, 4.0), (6, true, nil, 0.5, nil), (1, false, nil, 0.5, nil), (1, false, 5, 0.5, nil),
      (1, true, 5, 0.5, 5.0), (1, true, 0, 0.5, 0.25), (1, true, -7, 0.5, 0.25), (1, true, 120, 0.0, 120.0),
      (1, true, 121, 0.0, nil), (1, true, .max, 0.0, nil), (1, true, .min, 0.0, 0.0), (5, true, 2, 0.5, 4.0),
      (.max, true, nil, 0.5, nil), (0, true, nil, 0.5, 0.25), (.min, true, nil, 0.5, 0.25),
    ] as [(Int, Bool, Int64?, Double, Double?)])
  func judges(attempt: Int, isTransient: Bool, asked: Int64?, random: Double, pause: Double?) {
    let verdict = RetryPolicy(retries: 5).judge(
      attempt: attempt, isTransient: isTransient, asked: asked, random: random)
    #expect(verdict == (pause.map { .retry(after: $0) } ?? .giveUp))
  }

  /// A minute is worth waiting; whoever rests longer has failed several times by now.
  @Test func aHostThatRestsLongIsNotWaitedFor() {
    let policy = RetryPolicy(retries: 5)
    for (asked, verdict) in [(60, RetryPolicy.Verdict.retry(after: 60)), (61, .giveUp)] {
      #expect(
        policy.judge(attempt: 1, isTransient: true, asked: Int64(asked), isResting: true, random: 0)
          == verdict)
    }
  }

  @Test func pausesAreCapped() {
    let policy = RetryPolicy(retries: .max)
    for attempt in [7, 8, 20, 21, 64, 65, 1000, .max] {
      #expect(policy.judge(attempt: attempt, isTransient: true, asked: nil, random: 0.5) == .retry(after: 15))
    }
    #expect(RetryPolicy(retries: 0).judge(attempt: 1, isTransient: true, asked: nil, random: 0) == .giveUp)
  }
}

@Suite struct HTTPStatusTests {
  @Test func onlySomeMaySucceedLater() {
    let transient = (0...999).filter { HTTPStatus($0).isTransient }
    #expect(transient == [408, 425, 429, 500, 502, 503, 504, 507, 509] + Array(512...599))
  }

  @Test func everyStatusHasANameAndAMessage() {
    for code in [-1, 0] + Array(100...599) + [999, .max] {
      #expect(HTTPStatus(code).name == "http-\(code)")
      #expect(HTTPStatus(code).message.contains("\(code)"))
    }
  }
}
