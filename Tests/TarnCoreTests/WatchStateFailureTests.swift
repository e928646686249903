import TestSupport
import Testing

@testable import TarnCore

/// Repairs that fail: how long the next one waits.
extension WatchStateTests {
  @Test func whatFailedIsTriedAgainEverMoreSlowly() {
    var book = seen()
    book.receive(.dirty(path("a")), now: 0, random: 0.5)
    book.receive(.tree(path("t")), now: 0, random: 0.5)
    let both = [Region(path("a"), .itself), Region(path("t"), .tree)]
    var now = Instant.at(1)
    var waits: [Double] = []
    for _ in 0..<11 {
      #expect(book.begin(now: now) == both)
      book.end(isDone: false, now: now, random: 0.5)
      guard !book.isAsLeft, let wait = book.wait(now: now) else {
        Issue.record("nothing is left to do")
        return
      }
      waits.append(wait / second)
      now += wait
    }
    #expect(waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300])
    // One that is done ends the row.
    #expect(book.begin(now: now) == both)
    book.end(isDone: true, now: now, random: 0.5)
    book.receive(.dirty(path("a")), now: now, random: 0.5)
    _ = book.begin(now: now + second)
    book.end(isDone: false, now: now + second, random: 0.5)
    #expect(book.wait(now: now + second) == second)
  }

  /// A path changed, and so many repairs failed, each as soon as it was due; `now` is the end of the last.
  private func failed(times: Int) -> (book: WatchState, now: Instant) {
    var book = seen()
    book.receive(.dirty(path("a")), now: 0, random: 0.5)
    var now = Instant.at(1)
    for time in 1...times {
      if time > 1 { now += book.wait(now: now) ?? .zero }
      _ = book.begin(now: now)
      book.end(isDone: false, now: now, random: 0.5)
    }
    return (book, now)
  }

  /// The folder may have been away.
  @Test func whatFailedIsTriedAtOnceWhenTheFolderIsSeenAnew() {
    var (book, now) = failed(times: 6)
    #expect(book.wait(now: now) == .seconds(32))
    book.receive(.ready(directories: 1), now: now, random: 0.5)
    #expect(book.wait(now: now) == .zero && book.begin(now: now) == [.everything])
    book.end(isDone: false, now: now, random: 0.5)
    #expect(book.wait(now: now) == second)
  }

  /// The folder's own mode changed: what kept repairs out may be over.
  @Test func whatFailedIsTriedSoonWhenTheFolderItselfChanges() {
    var (book, now) = failed(times: 10)
    #expect(book.wait(now: now) == .seconds(300))
    book.receive(.tree(path("a")), now: now, random: 0.5)
    #expect(book.wait(now: now) == .seconds(300))
    for _ in 0..<100 { book.receive(.tree(nil), now: now, random: 0.5) }
    #expect(book.wait(now: now) == second && book.begin(now: now) == [])
    #expect(book.begin(now: now + second) == [.everything])
  }
}
