import Testing

@testable import TarnCore

/// What is known of a watched folder, and when which part of it is looked at.
@Suite struct WatchBookTests {
  static let second: UInt64 = 1_000_000_000
  var second: UInt64 { Self.second }
  private let died = WatchBlindness(.watcherDied, "was killed by signal 9")

  func path(_ text: String) -> RelativePath { RelativePath(trusted: Array(text.utf8)) }

  /// Random numbers of 0.5 leave a period as it is.
  private func book(isWatched: Bool = true, pace: WatchBook.Pace = .init(), now: UInt64 = 0) -> WatchBook {
    WatchBook(isWatched: isWatched, pace: pace, now: now, random: 0.5)
  }

  /// Is seen, and was looked at at that time.
  func seen(now: UInt64 = 0) -> WatchBook {
    var book = book(now: now)
    book.take(.ready(directories: 3), now: now, random: 0.5)
    #expect(book.begin(now: now) == [.everything])
    book.end(isDone: true, now: now, random: 0.5)
    #expect(book.isAsLeft)
    return book
  }

  // MARK: - News

  @Test func whoIsNotWatchedIsNeverDue() {
    var book = book(isWatched: false)
    book.take(.dirty(path("a")), now: 1, random: 0.5)
    book.take(.ready(directories: 1), now: 2, random: 0.5)
    book.take(.blind(died), now: 3, random: 0.5)
    #expect(book.wait(now: .max) == nil && book.begin(now: .max) == [] && !book.isAsLeft)
    #expect(book.status == ("off", "the next pass finds local changes") && book.takeNotes() == [])
  }

  @Test func onceItIsSeenAllOfItIsLookedAt() {
    var book = book()
    #expect(book.status == ("polling", "starting to watch") && !book.isAsLeft)
    #expect(book.wait(now: 0) == 300 * second)
    book.take(.ready(directories: 3), now: second, random: 0.5)
    #expect(book.status == ("watching", "") && !book.isAsLeft)
    #expect(book.wait(now: second) == 0 && book.begin(now: second) == [.everything])
    // At work: neither due nor as it was left.
    #expect(book.wait(now: .max) == nil && book.begin(now: .max) == [] && !book.isAsLeft)
    book.end(isDone: true, now: second, random: 0.5)
    #expect(book.isAsLeft && book.takeNotes() == [])
  }

  @Test func whatIsNotThereIsMissingUntilItIsSeen() {
    var book = book()
    #expect(!book.isMissing)
    book.take(.blind(died), now: 1, random: 0.5)
    #expect(!book.isMissing)
    book.take(.blind(WatchBlindness(.gone, "there is no directory")), now: 2, random: 0.5)
    #expect(book.isMissing)
    // That a pass has been there does not yet mean that it is seen.
    book.looked(since: 2, now: 3, random: 0.5)
    #expect(book.isMissing && !book.isAsLeft)
    book.take(.ready(directories: 1), now: 4, random: 0.5)
    #expect(!book.isMissing)
  }

  @Test func newsAreDueWhenItIsQuiet() {
    var book = seen()
    book.take(.dirty(path("b")), now: 10 * second, random: 0.5)
    book.take(.dirty(path("a")), now: 10 * second, random: 0.5)
    book.take(.tree(path("t")), now: 10 * second, random: 0.5)
    #expect(!book.isAsLeft && book.wait(now: 10 * second) == DirtySet.quiet)
    #expect(book.begin(now: 10 * second) == [])
    let due = 10 * second + DirtySet.quiet
    #expect(book.wait(now: due) == 0)
    #expect(
      book.begin(now: due) == [
        Region(path("a"), .itself), Region(path("b"), .itself), Region(path("t"), .tree),
      ])
    book.end(isDone: true, now: due, random: 0.5)
    #expect(book.isAsLeft)
  }

  @Test func whatComesWhileARepairIsAtWorkIsLeftForTheNextOne() {
    var book = seen()
    book.take(.dirty(path("a")), now: 0, random: 0.5)
    #expect(book.begin(now: second) == [Region(path("a"), .itself)])
    book.take(.dirty(path("b")), now: second, random: 0.5)
    book.end(isDone: true, now: second, random: 0.5)
    #expect(!book.isAsLeft && book.begin(now: 2 * second) == [Region(path("b"), .itself)])
  }

  @Test func manyNewsAreAFolderOrAll() {
    var book = seen()
    for number in 0...DirtySet.entryLimit { book.take(.dirty(path("d/\(number)")), now: 0, random: 0.5) }
    #expect(book.begin(now: second) == [Region(path("d"), .children)])
    book.end(isDone: true, now: second, random: 0.5)
    for number in 0...DirtySet.directoryLimit {
      book.take(.tree(path("\(number)")), now: second, random: 0.5)
    }
    #expect(book.begin(now: 3 * second) == [.everything])
  }

  // MARK: - Blindness

  @Test func blindnessIsTold() {
    var book = seen()
    #expect(book.takeNotes() == [])
    book.take(.blind(died), now: second, random: 0.5)
    #expect(book.status == ("polling", "watcher-died: was killed by signal 9") && !book.isAsLeft)
    #expect(book.takeNotes() == [.init(code: "watch-lost", detail: "watcher-died: was killed by signal 9")])
    #expect(book.takeNotes() == [])
    book.take(.ready(directories: 1), now: 2 * second, random: 0.5)
    #expect(
      book.takeNotes() == [
        .init(code: "watch-restored", detail: "1 directory watched again after: was killed by signal 9")
      ])
    #expect(book.status == ("watching", "") && book.begin(now: 2 * second) == [.everything])
  }

  @Test func theSameBlindnessIsToldOnce() {
    var book = seen()
    book.take(.blind(.init(.watchLimit, "8 watches")), now: second, random: 0.5)
    let due = book.wait(now: second)
    book.take(.blind(.init(.watchLimit, "9 watches")), now: 2 * second, random: 1)
    #expect(book.takeNotes().map(\.detail) == ["watch-limit: 8 watches"])
    // But its newest words are shown, and the look does not move away.
    #expect(book.status.reason == "watch-limit: 9 watches")
    #expect(book.wait(now: second) == due)
    book.take(.blind(died), now: 3 * second, random: 0.5)
    #expect(book.takeNotes().map(\.detail) == ["watcher-died: was killed by signal 9"])
  }

  @Test func aFolderThatIsNotSeenIsPolled() {
    var pace = WatchBook.Pace()
    pace.poll = 60
    var book = book(pace: pace)
    book.take(.blind(died), now: second, random: 0)
    #expect(book.wait(now: second) == 45 * second)
    #expect(book.begin(now: 46 * second) == [.everything])
    book.end(isDone: true, now: 46 * second, random: 1)
    #expect(!book.isAsLeft && book.wait(now: 46 * second) == 75 * second)
  }

  // MARK: - The pace

  @Test func whatIsSeenIsLookedAtFromTimeToTime() {
    var pace = WatchBook.Pace()
    pace.rescan = 3600
    var book = book(pace: pace)
    book.take(.ready(directories: 1), now: 0, random: 0.5)
    _ = book.begin(now: 0)
    book.end(isDone: true, now: 0, random: 0)
    #expect(book.wait(now: 0) == 2700 * second)
    #expect(book.begin(now: 2700 * second - 1) == [])
    // What was told by then is a part of it.
    book.take(.dirty(path("a")), now: 2700 * second, random: 0.5)
    #expect(book.begin(now: 2700 * second) == [.everything])
    book.end(isDone: true, now: 2700 * second, random: 0.5)
    #expect(book.isAsLeft && book.wait(now: 2700 * second) == 3600 * second)
  }

  @Test func aLookAtAPartDoesNotPutOffTheLookAtAll() {
    var book = seen()
    let due = book.wait(now: 0)
    book.take(.dirty(path("a")), now: 0, random: 0.5)
    _ = book.begin(now: second)
    book.end(isDone: true, now: second, random: 1)
    #expect(due == 86_400 * second && book.wait(now: second) == due.map { $0 - second })
  }

  @Test func aPassThatBeganWhileItWasSeenHasLookedAtAll() {
    var book = book()
    book.take(.ready(directories: 1), now: 5 * second, random: 0.5)
    // It may have passed by before the folder was seen.
    book.looked(since: 4 * second, now: 9 * second, random: 0.5)
    #expect(!book.isAsLeft && book.wait(now: 9 * second) == 0)
    book.looked(since: 6 * second, now: 9 * second, random: 0.5)
    #expect(book.isAsLeft && book.wait(now: 9 * second) == 86_400 * second)
    // Of what is blind it says something for a while.
    book.take(.blind(died), now: 10 * second, random: 0.5)
    book.looked(since: 11 * second, now: 100 * second, random: 0.5)
    #expect(!book.isAsLeft && book.wait(now: 100 * second) == 300 * second)
  }

  /// It may have looked there before.
  @Test func newsOutliveAPass() {
    var book = seen()
    book.take(.dirty(path("a")), now: second, random: 0.5)
    book.looked(since: 0, now: 2 * second, random: 0.5)
    #expect(!book.isAsLeft && book.begin(now: 2 * second) == [Region(path("a"), .itself)])
  }

  // MARK: - Ends of repairs

  /// Of parts, for a second at most.
  @Test func aRepairRestsForAsLongAsItLooked() {
    var book = seen()
    book.take(.tree(nil), now: 0, random: 0.5)
    #expect(book.begin(now: 10 * second) == [.everything])
    book.take(.dirty(path("a")), now: 11 * second, random: 0.5)
    book.end(isDone: true, looked: 5 * second, now: 15 * second, random: 0.5)
    #expect(book.wait(now: 15 * second) == 5 * second && book.begin(now: 20 * second - 1) == [])
    #expect(book.begin(now: 20 * second) == [Region(path("a"), .itself)])
    book.take(.dirty(path("a")), now: 21 * second, random: 0.5)
    book.end(isDone: true, looked: 5 * second, now: 25 * second, random: 0.5)
    #expect(book.begin(now: 26 * second - 1) == [] && book.wait(now: 25 * second) == second)
    #expect(book.begin(now: 26 * second) == [Region(path("a"), .itself)])
    // Transfers give no rest.
    book.end(isDone: true, now: 25 * second, random: 0.5)
    book.take(.dirty(path("a")), now: 25 * second, random: 0.5)
    #expect(book.wait(now: 25 * second) == DirtySet.quiet)
  }

  @Test func whatFailedInPartsIsLookedAtWhole() {
    var book = seen()
    for number in 0...DirtySet.entryLimit { book.take(.dirty(path("d/\(number)")), now: 0, random: 0.5) }
    #expect(book.begin(now: second) == [Region(path("d"), .children)])
    book.end(isDone: false, now: second, random: 0.5)
    #expect(book.begin(now: 3 * second) == [Region(path("d"), .tree)])
    book.end(isDone: true, now: 3 * second, random: 0.5)
    book.take(.ready(directories: 1), now: 4 * second, random: 0.5)
    #expect(book.begin(now: 4 * second) == [.everything])
    book.end(isDone: false, now: 4 * second, random: 0.5)
    #expect(!book.isAsLeft && book.begin(now: 6 * second) == [.everything])
  }

  @Test func timesAtTheEndOfTheClockDoNotTrap() {
    let end = UInt64.max
    var book = book(now: end)
    book.take(.blind(died), now: end, random: 1)
    book.take(.ready(directories: 1), now: end, random: 1)
    #expect(book.begin(now: end) == [.everything])
    book.end(isDone: false, now: end, random: 1)
    #expect(book.begin(now: end) == [.everything])
    book.end(isDone: true, now: end, random: 1)
    book.looked(since: end, now: end, random: 1)
    #expect(book.wait(now: end) == 0)
    // Later than any clock can show is not long ago.
    #expect(self.book(now: end - second).wait(now: end - second) == second)
  }

  // MARK: - Paths that change all the time

  /// Takes what is due a second after each news of a path; the seconds at which it was looked at.
  private func looks(_ book: inout WatchBook, every: UInt64, until: UInt64) -> [UInt64] {
    var looks: [UInt64] = []
    for now in stride(from: every, to: until, by: UInt64.Stride(every)) {
      book.take(.dirty(path("log")), now: now * second, random: 0.5)
      let due = (now + 1) * second
      guard book.wait(now: due) == 0 else { continue }
      if book.begin(now: due).contains(Region(path("log"), .itself)) { looks.append(now) }
      book.end(isDone: true, now: due, random: 0.5)
    }
    return looks
  }

  @Test func whoWritesAllTheTimeWaitsLongerAndLonger() {
    var book = seen()
    let looks = looks(&book, every: 2, until: 1000)
    #expect(Array(looks.prefix(32)) == (1...32).map { $0 * 2 })
    let pauses = zip(looks.dropFirst(31), looks.dropFirst(32)).map { $1 - $0 }
    #expect(pauses.count > 3 && pauses.count < 12 && pauses == pauses.sorted(), "\(pauses)")
    // It is never forgotten, and said; and others do not wait.
    #expect(!book.isAsLeft && book.status.mode == "watching" && book.status.reason.hasPrefix("1 path that"))
    book.take(.dirty(path("other")), now: 2000 * second, random: 0.5)
    #expect(book.begin(now: 2001 * second).contains(Region(path("other"), .itself)))
  }

  @Test func whoWritesNowAndThenNeverWaits() {
    var book = seen()
    #expect(looks(&book, every: 90, until: 4000).count == 44)
  }

  @Test func aFolderThatIsHeldByOthersIsTriedEachSecond() {
    var book = seen()
    book.take(.dirty(path("a")), now: 0, random: 0.5)
    for now in 1...20 as ClosedRange<UInt64> {
      #expect(book.begin(now: now * second) == [Region(path("a"), .itself)])
      book.end(isDone: false, isBusy: true, now: now * second, random: 0.5)
    }
  }

  /// It comes a second after the last one, or after twenty times as long as that took.
  @Test func countingIsForALookAtEverything() {
    var book = seen()
    book.take(.dirty(path("a")), now: 0, random: 0.5)
    #expect(book.begin(now: second / 2) == [Region(path("a"), .itself)])
    book.end(isDone: true, wantsCount: true, now: second / 2, random: 0.5)
    #expect(book.wait(now: second / 2) == second / 2)
    #expect(book.begin(now: second) == [.everything] && book.onlyCounts)
    book.end(isDone: true, looked: second, now: 2 * second, random: 0.5)
    book.take(.dirty(path("a")), now: 2 * second, random: 0.5)
    #expect(book.begin(now: 3 * second) == [Region(path("a"), .itself)])
    book.end(isDone: true, wantsCount: true, now: 3 * second, random: 0.5)
    #expect(book.wait(now: 3 * second) == 19 * second)
    // What changed goes first, and what calls for a look at everything is more than counting.
    book.take(.dirty(path("b")), now: 22 * second, random: 0.5)
    #expect(book.begin(now: 23 * second) == [Region(path("b"), .itself)] && !book.onlyCounts)
    book.end(isDone: true, now: 23 * second, random: 0.5)
    #expect(book.begin(now: 24 * second) == [.everything] && book.onlyCounts)
    book.end(isDone: false, now: 24 * second, random: 0.5)
    #expect(book.begin(now: 30 * second) == [.everything] && book.onlyCounts)
    book.end(isDone: true, wantsCount: true, now: 30 * second, random: 0.5)
    book.take(.ready(directories: 1), now: 60 * second, random: 0.5)
    #expect(book.begin(now: 60 * second) == [.everything] && !book.onlyCounts)
  }

  @Test func whatAPassIsLentComesBack() {
    var book = seen()
    book.take(.dirty(path("a")), now: 0, random: 0.5)
    #expect(book.lend(hasLooked: false, now: 0) == [])
    #expect(book.lend(hasLooked: false, now: second) == [Region(path("a"), .itself)])
    #expect(book.lend(hasLooked: false, now: second) == [] && !book.isAsLeft && book.begin(now: second) == [])
    book.passEnded(now: 2 * second)
    #expect(book.begin(now: 3 * second) == [Region(path("a"), .itself)])
    book.end(isDone: true, now: 3 * second, random: 0.5)
    book.take(.tree(nil), now: 4 * second, random: 0.5)
    #expect(
      book.lend(hasLooked: false, now: 5 * second) == [.everything] && book.begin(now: 5 * second) == [])
    book.passEnded(now: 6 * second)
    #expect(book.begin(now: 6 * second) == [.everything])
  }

  /// A pass looks at the folder first, and then transfers for long.
  @Test(arguments: [true, false]) func whatAsksForAllDuringAPassIsNotSeenByIt(_ isLost: Bool) {
    var book = seen()
    if isLost { book.take(.blind(died), now: 20 * second, random: 0.5) }
    if isLost { book.take(.ready(directories: 3), now: 21 * second, random: 0.5) }
    if !isLost { book.take(.tree(nil), now: 21 * second, random: 0.5) }
    // Where a look is short the pass does it meanwhile, and it is done again afterwards.
    #expect(
      book.lend(hasLooked: false, now: 22 * second) == [.everything]
        && book.lend(hasLooked: false, now: 23 * second) == [])
    book.looked(since: 10 * second, now: 30 * second, random: 0.5)
    book.passEnded(now: 30 * second)
    #expect(!book.isAsLeft && book.begin(now: 30 * second) == [.everything])
  }

  /// As long as it has not looked itself: it is going to.
  @Test func aLongLookIsNotForAPassThatStillLooks() {
    var book = seen()
    book.take(.tree(nil), now: 0, random: 0.5)
    #expect(book.begin(now: second) == [.everything])
    book.end(isDone: true, looked: 4 * second, now: 5 * second, random: 0.5)
    book.take(.tree(nil), now: 20 * second, random: 0.5)
    #expect(book.lend(hasLooked: false, now: 22 * second) == [])
    book.looked(since: 10 * second, now: 30 * second, random: 0.5)
    #expect(book.lend(hasLooked: true, now: 31 * second) == [.everything])
    book.passEnded(now: 40 * second)
    #expect(!book.isAsLeft && book.begin(now: 40 * second) == [.everything])
  }

  /// Nobody has looked at all of it so far, and the pass does not any more.
  @Test func whatAFirstPassDidNotSeeItIsLent() {
    var book = book()
    book.take(.ready(directories: 3), now: second, random: 0.5)
    #expect(book.lend(hasLooked: false, now: 2 * second) == [])
    book.take(.blind(died), now: 3 * second, random: 0.5)
    book.take(.ready(directories: 3), now: 4 * second, random: 0.5)
    book.take(.dirty(path("a")), now: 4 * second, random: 0.5)
    #expect(book.lend(hasLooked: true, now: 5 * second) == [.everything, Region(path("a"), .itself)])
    #expect(book.lend(hasLooked: true, now: 6 * second) == [])
    book.passEnded(now: 7 * second)
    #expect(book.begin(now: 8 * second) == [.everything])
  }

  /// A look at everything was lent, or is too long to be: what changes then is lent all the same.
  @Test(arguments: [1, 4] as [UInt64]) func partsAreLentBesideEverything(_ duration: UInt64) {
    var book = seen()
    book.take(.tree(nil), now: 0, random: 0.5)
    #expect(book.begin(now: second) == [.everything])
    book.end(isDone: true, looked: duration * second, now: (1 + duration) * second, random: 0.5)
    book.take(.tree(nil), now: 20 * second, random: 0.5)
    #expect(book.lend(hasLooked: false, now: 22 * second) == (duration == 1 ? [.everything] : []))
    book.take(.dirty(path("a")), now: 30 * second, random: 0.5)
    #expect(book.lend(hasLooked: false, now: 31 * second) == [Region(path("a"), .itself)])
    book.passEnded(now: 40 * second)
    #expect(book.begin(now: 40 * second) == [.everything])
  }

  /// Days in which nobody begins a repair: who writes all the time fills the trash no faster.
  @Test func whatAPassIsLentAgainAndAgainWaits() {
    var (book, lent) = (seen(), 0)
    for now in 1...1000 as ClosedRange<UInt64> {
      book.take(.dirty(path("log")), now: now * 2 * second, random: 0.5)
      lent += book.lend(hasLooked: true, now: (now * 2 + 1) * second).count
    }
    #expect(lent > 32 && lent < 60, "\(lent)")
  }

  /// Where folders are polled a watch that is lost again and again must not put the look off for ever.
  @Test func whoIsBlindedAgainAndAgainIsLookedAtInTime() {
    var book = seen()
    book.take(.blind(died), now: second, random: 0.5)
    let due = second + 300 * second
    for minute in 1...4 as ClosedRange<UInt64> {
      book.take(
        .blind(WatchBlindness(.gone, "there is no directory")), now: minute * 60 * second, random: 0.5)
      book.take(.blind(died), now: minute * 61 * second, random: 0.5)
      #expect(book.wait(now: minute * 61 * second) == due - minute * 61 * second)
    }
    #expect(book.begin(now: due) == [.everything])
  }

  /// A repair that waits for a server takes up what changes meanwhile, and it is looked at again.
  @Test func aRepairIsLentWhatChanges() {
    var book = seen()
    book.take(.dirty(path("a")), now: 0, random: 0.5)
    #expect(book.begin(now: second) == [Region(path("a"), .itself)])
    book.take(.dirty(path("b")), now: 2 * second, random: 0.5)
    #expect(book.lend(hasLooked: false, now: 3 * second) == [Region(path("b"), .itself)])
    #expect(book.begin(now: 4 * second) == [])
    book.end(isDone: true, now: 60 * second, random: 0.5)
    #expect(book.begin(now: 61 * second) == [Region(path("b"), .itself)])
  }

  /// Of a repair that belonged to an earlier book.
  @Test func theEndOfNothingChangesNothing() {
    var book = seen(now: 1000 * second)
    book.end(isDone: true, now: 2000 * second, random: 0.5)
    book.take(.dirty(path("a")), now: 2000 * second, random: 0.5)
    #expect(book.begin(now: 2001 * second) == [Region(path("a"), .itself)])
  }

  // MARK: - Before there is a journal

  /// A first pass makes the folder, and takes it back when it cannot read its feed: again and again.
  @Test(arguments: [WatchBlindness.Code.gone, .replaced]) func whatAFirstPassTakesBackIsNoLoss(
    code: WatchBlindness.Code
  ) {
    var book = WatchBook(isWatched: true, hasJournal: false, pace: .init(), now: 0, random: 0.5)
    for time in [1, 3, 5] as [UInt64] {
      book.take(.ready(directories: 1), now: time, random: 0.5)
      #expect(book.status == ("watching", "") && !book.isMissing)
      book.take(.blind(WatchBlindness(code, "it is not there any more")), now: time + 1, random: 0.5)
      #expect(book.status == ("polling", "the folder is not there so far") && book.isMissing)
    }
    #expect(book.takeNotes() == [])
    // Once it follows its feed, it is one like any other.
    book.take(.ready(directories: 1), now: 7, random: 0.5)
    book.begunJournal()
    book.take(.blind(WatchBlindness(code, "it is not there any more")), now: 8, random: 0.5)
    #expect(
      book.takeNotes().map(\.code) == ["watch-lost"] && book.status.reason.contains("not there any more"))
  }

  /// What is none of Tarn's doing is told from the beginning.
  @Test func aWatcherThatDiesIsALossFromTheBeginning() {
    var book = WatchBook(isWatched: true, hasJournal: false, pace: .init(), now: 0, random: 0.5)
    book.take(.ready(directories: 1), now: 1, random: 0.5)
    book.take(.blind(died), now: 2, random: 0.5)
    #expect(book.takeNotes().map(\.code) == ["watch-lost"])
  }
}
