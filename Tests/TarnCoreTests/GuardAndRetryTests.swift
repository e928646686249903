import TarnCore
import Testing

@Suite struct DeletionGuardTests {
  @Test(
    arguments: [
      // planned, recent, rows, empty manifest, what goes through at most (nil: all)
      (0, 0, 0, true, nil), (0, 5000, 10, false, nil), (1, 0, 0, false, nil), (1, 0, 5, false, nil),
      (2, 0, 5, false, 1),
      (1, 0, 19, false, nil), (2, 0, 19, false, 1), (2, 0, 20, false, nil), (10, 0, 100, false, nil),
      (11, 0, 100, false, 10), (1000, 0, 10_000, false, nil), (1000, 0, 1_000_000, false, nil),
      (1001, 0, 1_000_000, false, 1000), (1, 0, 1_000_000, true, 0), (1, 0, 0, true, 0),
      // The window counts: the share is of the rows that there were before its deletions.
      (5, 5, 95, false, nil), (6, 5, 95, false, 5), (1, 10, 90, false, 0), (1, 9, 91, false, nil),
      (1, 1000, 1_000_000, false, 0), (1, 999, 1_000_000, false, nil), (1, 5000, 100, false, 0),
      (1, 1, 0, false, 0),
      (1, .max, .max, false, 0), (.max, 0, .max, false, 1000), (1, .min, 10, false, nil),
      (1, 0, .min, false, nil),
      (2, 0, .min, false, 1),
    ] as [(Int, Int, Int, Bool, Int?)])
  func judges(planned: Int, recent: Int, rows: Int, isEmpty: Bool, limit: Int?) {
    let verdict = DeletionGuard.judge(planned: planned, recent: recent, rows: rows, manifestIsEmpty: isEmpty)
    #expect(verdict == (limit.map { .hold(limit: $0) } ?? .allow))
  }

  /// However a mirror is emptied pass by pass, a day takes no more than its share.
  @Test(arguments: [1, 9, 10, 57, 100, 999, 12_345, 50_000]) func aDayTakesNoMoreThanItsShare(start: Int) {
    var random = Seeded(UInt64(start))
    var rows = start
    var gone = 0
    for _ in 0..<200 {
      let planned = 1 + random.below(max(1, start / 20))
      guard planned <= rows,
        DeletionGuard.judge(planned: planned, recent: gone, rows: rows, manifestIsEmpty: false) == .allow
      else { continue }
      rows -= planned
      gone += planned
    }
    #expect(gone <= min(1000, max(1, start / 10)))
    #expect(gone > 0)
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
    #expect(transient == [408, 425, 429, 500, 502, 503, 504])
  }

  @Test func everyStatusHasANameAndAMessage() {
    for code in [-1, 0] + Array(100...599) + [999, .max] {
      #expect(HTTPStatus(code).name == "http-\(code)")
      #expect(HTTPStatus(code).message.contains("\(code)"))
    }
  }
}
