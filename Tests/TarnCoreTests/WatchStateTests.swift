import TestSupport
import Testing

@testable import TarnCore

/// What is known of a watched folder, and when which part of it is looked at.
@Suite struct WatchStateTests {
  let second = Duration.seconds(1)
  private let died = WatchBlindness(.watcherDied, "was killed by signal 9")

  func path(_ text: String) -> RelativePath { RelativePath(trusted: Array(text.utf8)) }

  /// Random numbers of 0.5 leave a period as it is.
  private func book(isWatched: Bool = true, pace: WatchState.Pace = .init(), now: Instant = 0) -> WatchState {
    WatchState(isWatched: isWatched, pace: pace, now: now, random: 0.5)
  }

  /// Is seen, and was looked at at that time.
  func seen(now: Instant = 0) -> WatchState {
    var book = book(now: now)
    book.receive(.ready(directories: 3), now: now, random: 0.5)
    #expect(book.begin(now: now) == [.everything])
    book.end(isDone: true, now: now, random: 0.5)
    #expect(book.isAsLeft)
    return book
  }

  // MARK: - News

  @Test func whoIsNotWatchedIsNeverDue() {
    var book = book(isWatched: false)
    book.receive(.dirty(path("a")), now: 1, random: 0.5)
    book.receive(.ready(directories: 1), now: 2, random: 0.5)
    book.receive(.blind(died), now: 3, random: 0.5)
    #expect(book.wait(now: .distantFuture) == nil && book.begin(now: .distantFuture) == [] && !book.isAsLeft)
    #expect(book.status == ("off", "the next pass finds local changes") && book.takeNotes() == [])
  }

  @Test func onceItIsSeenAllOfItIsLookedAt() {
    var book = book()
    #expect(book.status == ("polling", "starting to watch") && !book.isAsLeft)
    #expect(book.wait(now: 0) == .seconds(300))
    book.receive(.ready(directories: 3), now: .at(1), random: 0.5)
    #expect(book.status == ("watching", "") && !book.isAsLeft)
    #expect(book.wait(now: .at(1)) == .zero && book.begin(now: .at(1)) == [.everything])
    // At work: neither due nor as it was left.
    #expect(book.wait(now: .distantFuture) == nil && book.begin(now: .distantFuture) == [] && !book.isAsLeft)
    book.end(isDone: true, now: .at(1), random: 0.5)
    #expect(book.isAsLeft && book.takeNotes() == [])
  }

  @Test func whatIsNotThereIsMissingUntilItIsSeen() {
    var book = book()
    #expect(!book.isMissing)
    book.receive(.blind(died), now: 1, random: 0.5)
    #expect(!book.isMissing)
    book.receive(.blind(WatchBlindness(.gone, "there is no directory")), now: 2, random: 0.5)
    #expect(book.isMissing)
    // That a pass has been there does not yet mean that it is seen.
    book.looked(since: 2, now: 3, random: 0.5)
    #expect(book.isMissing && !book.isAsLeft)
    book.receive(.ready(directories: 1), now: 4, random: 0.5)
    #expect(!book.isMissing)
  }

  @Test func newsAreDueWhenItIsQuiet() {
    var book = seen()
    book.receive(.dirty(path("b")), now: .at(10), random: 0.5)
    book.receive(.dirty(path("a")), now: .at(10), random: 0.5)
    book.receive(.tree(path("t")), now: .at(10), random: 0.5)
    #expect(!book.isAsLeft && book.wait(now: .at(10)) == DirtySet.quiet)
    #expect(book.begin(now: .at(10)) == [])
    let due = Instant.at(10) + DirtySet.quiet
    #expect(book.wait(now: due) == .zero)
    #expect(
      book.begin(now: due) == [
        Region(path("a"), .itself), Region(path("b"), .itself), Region(path("t"), .tree),
      ])
    book.end(isDone: true, now: due, random: 0.5)
    #expect(book.isAsLeft)
  }

  @Test func whatComesWhileARepairIsAtWorkIsLeftForTheNextOne() {
    var book = seen()
    book.receive(.dirty(path("a")), now: 0, random: 0.5)
    #expect(book.begin(now: .at(1)) == [Region(path("a"), .itself)])
    book.receive(.dirty(path("b")), now: .at(1), random: 0.5)
    book.end(isDone: true, now: .at(1), random: 0.5)
    #expect(!book.isAsLeft && book.begin(now: .at(2)) == [Region(path("b"), .itself)])
  }

  @Test func manyNewsAreAFolderOrAll() {
    var book = seen()
    for number in 0...DirtySet.entryLimit { book.receive(.dirty(path("d/\(number)")), now: 0, random: 0.5) }
    #expect(book.begin(now: .at(1)) == [Region(path("d"), .children)])
    book.end(isDone: true, now: .at(1), random: 0.5)
    for number in 0...DirtySet.directoryLimit {
      book.receive(.tree(path("\(number)")), now: .at(1), random: 0.5)
    }
    #expect(book.begin(now: .at(3)) == [.everything])
  }

  // MARK: - Blindness

  @Test func blindnessIsTold() {
    var book = seen()
    #expect(book.takeNotes() == [])
    book.receive(.blind(died), now: .at(1), random: 0.5)
    #expect(book.status == ("polling", "watcher-died: was killed by signal 9") && !book.isAsLeft)
    #expect(book.takeNotes() == [.init(code: "watch-lost", detail: "watcher-died: was killed by signal 9")])
    #expect(book.takeNotes() == [])
    book.receive(.ready(directories: 1), now: .at(2), random: 0.5)
    #expect(
      book.takeNotes() == [
        .init(code: "watch-restored", detail: "1 directory watched again after: was killed by signal 9")
      ])
    #expect(book.status == ("watching", "") && book.begin(now: .at(2)) == [.everything])
  }

  @Test func theSameBlindnessIsToldOnce() {
    var book = seen()
    book.receive(.blind(.init(.watchLimit, "8 watches")), now: .at(1), random: 0.5)
    let due = book.wait(now: .at(1))
    book.receive(.blind(.init(.watchLimit, "9 watches")), now: .at(2), random: 1)
    #expect(book.takeNotes().map(\.detail) == ["watch-limit: 8 watches"])
    // But its newest words are shown, and the look does not move away.
    #expect(book.status.reason == "watch-limit: 9 watches")
    #expect(book.wait(now: .at(1)) == due)
    book.receive(.blind(died), now: .at(3), random: 0.5)
    #expect(book.takeNotes().map(\.detail) == ["watcher-died: was killed by signal 9"])
  }

  @Test func aFolderThatIsNotSeenIsPolled() {
    var pace = WatchState.Pace()
    pace.poll = 60
    var book = book(pace: pace)
    book.receive(.blind(died), now: .at(1), random: 0)
    #expect(book.wait(now: .at(1)) == .seconds(45))
    #expect(book.begin(now: .at(46)) == [.everything])
    book.end(isDone: true, now: .at(46), random: 1)
    #expect(!book.isAsLeft && book.wait(now: .at(46)) == .seconds(75))
  }

  // MARK: - The pace

  @Test func whatIsSeenIsLookedAtFromTimeToTime() {
    var pace = WatchState.Pace()
    pace.rescan = 3600
    var book = book(pace: pace)
    book.receive(.ready(directories: 1), now: 0, random: 0.5)
    _ = book.begin(now: 0)
    book.end(isDone: true, now: 0, random: 0)
    #expect(book.wait(now: 0) == .seconds(2700))
    #expect(book.begin(now: .before(2700)) == [])
    // What was told by then is a part of it.
    book.receive(.dirty(path("a")), now: .at(2700), random: 0.5)
    #expect(book.begin(now: .at(2700)) == [.everything])
    book.end(isDone: true, now: .at(2700), random: 0.5)
    #expect(book.isAsLeft && book.wait(now: .at(2700)) == .seconds(3600))
  }

  @Test func aLookAtAPartDoesNotPutOffTheLookAtAll() {
    var book = seen()
    let due = book.wait(now: 0)
    book.receive(.dirty(path("a")), now: 0, random: 0.5)
    _ = book.begin(now: .at(1))
    book.end(isDone: true, now: .at(1), random: 1)
    #expect(due == .seconds(86_400) && book.wait(now: .at(1)) == due.map { $0 - second })
  }

  @Test func aPassThatBeganWhileItWasSeenHasLookedAtAll() {
    var book = book()
    book.receive(.ready(directories: 1), now: .at(5), random: 0.5)
    // It may have passed by before the folder was seen.
    book.looked(since: .at(4), now: .at(9), random: 0.5)
    #expect(!book.isAsLeft && book.wait(now: .at(9)) == .zero)
    book.looked(since: .at(6), now: .at(9), random: 0.5)
    #expect(book.isAsLeft && book.wait(now: .at(9)) == .seconds(86_400))
    // Of what is blind it says something for a while.
    book.receive(.blind(died), now: .at(10), random: 0.5)
    book.looked(since: .at(11), now: .at(100), random: 0.5)
    #expect(!book.isAsLeft && book.wait(now: .at(100)) == .seconds(300))
  }

  /// It may have looked there before.
  /// What happened to the folder in its first half nobody has seen.
  @Test func aPassThatBeganBeforePutsNoLookOff() {
    var book = seen(now: .at(5))
    let before = book.wait(now: .at(100))
    book.looked(since: .at(4), now: .at(100), random: 0.5)
    #expect(before != nil && book.wait(now: .at(100)) == before)
    book.looked(since: .at(6), now: .at(100), random: 0.5)
    #expect(book.wait(now: .at(100)) != before)
  }

  /// A repair of everything that was cut short at 5 s is seen to by a pass that looked later, not by one that had begun before.
  @Test(arguments: [4, 6]) func whatAskedForAllDuringAPassIsNotSeenByIt(began: Int) {
    var book = seen()
    book.receive(.tree(nil), now: .at(1), random: 0.5)
    #expect(book.begin(now: .at(2)) == [.everything])
    book.beginBringing(looked: .milliseconds(1), now: .at(2), random: 0.5)
    book.brought([.everything], isDone: false, wantsCount: false, now: .at(5))
    book.looked(since: .at(began), now: .at(8), random: 0.5)
    #expect(book.begin(now: .at(100)) == (began < 5 ? [.everything] : []))
  }

  @Test func newsOutliveAPass() {
    var book = seen()
    book.receive(.dirty(path("a")), now: .at(1), random: 0.5)
    book.looked(since: 0, now: .at(2), random: 0.5)
    #expect(!book.isAsLeft && book.begin(now: .at(2)) == [Region(path("a"), .itself)])
  }

  // MARK: - Ends of repairs

  @Test func aRepairRestsForAsLongAsItLooked() {
    var book = seen()
    book.receive(.tree(nil), now: 0, random: 0.5)
    #expect(book.begin(now: .at(10)) == [.everything])
    book.receive(.dirty(path("a")), now: .at(11), random: 0.5)
    book.end(isDone: true, looked: .seconds(5), now: .at(15), random: 0.5)
    #expect(book.wait(now: .at(15)) == .seconds(5) && book.begin(now: .before(20)) == [])
    #expect(book.begin(now: .at(20)) == [Region(path("a"), .itself)])
    book.receive(.dirty(path("a")), now: .at(21), random: 0.5)
    book.end(isDone: true, looked: .seconds(5), now: .at(25), random: 0.5)
    #expect(book.begin(now: .before(30)) == [] && book.wait(now: .at(25)) == .seconds(5))
    #expect(book.begin(now: .at(30)) == [Region(path("a"), .itself)])
    // Transfers give no rest.
    book.end(isDone: true, now: .at(30), random: 0.5)
    book.receive(.dirty(path("a")), now: .at(30), random: 0.5)
    #expect(book.wait(now: .at(30)) == DirtySet.quiet)
  }

  @Test func whatFailedInPartsIsLookedAtWhole() {
    var book = seen()
    for number in 0...DirtySet.entryLimit { book.receive(.dirty(path("d/\(number)")), now: 0, random: 0.5) }
    #expect(book.begin(now: .at(1)) == [Region(path("d"), .children)])
    book.end(isDone: false, now: .at(1), random: 0.5)
    #expect(book.begin(now: .at(3)) == [Region(path("d"), .tree)])
    book.end(isDone: true, now: .at(3), random: 0.5)
    book.receive(.ready(directories: 1), now: .at(4), random: 0.5)
    #expect(book.begin(now: .at(4)) == [.everything])
    book.end(isDone: false, now: .at(4), random: 0.5)
    #expect(!book.isAsLeft && book.begin(now: .at(6)) == [.everything])
  }

  @Test func timesAtTheEndOfTheClockDoNotTrap() {
    let end = Instant.distantFuture
    var book = book(now: end)
    book.receive(.blind(died), now: end, random: 1)
    book.receive(.ready(directories: 1), now: end, random: 1)
    #expect(book.begin(now: end) == [.everything])
    book.end(isDone: false, now: end, random: 1)
    #expect(book.begin(now: end) == [.everything])
    book.end(isDone: true, now: end, random: 1)
    book.looked(since: end, now: end, random: 1)
    #expect(book.wait(now: end) == .zero)
    // Later than any clock can show is not long ago.
    let near = end + .seconds(-1)
    #expect(self.book(now: near).wait(now: near) == second)
  }

  // MARK: - Paths that change all the time

  /// Takes what is due a second after each news of a path; the seconds at which it was looked at.
  private func looks(_ book: inout WatchState, every: Int, until: Int) -> [Int] {
    var looks: [Int] = []
    for now in stride(from: every, to: until, by: every) {
      book.receive(.dirty(path("log")), now: .at(now), random: 0.5)
      let due = Instant.at(now + 1)
      guard book.wait(now: due) == .zero else { continue }
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
    #expect(book.contested?.path == path("log") && book.contested?.count == 1)
    book.receive(.dirty(path("other")), now: .at(2000), random: 0.5)
    #expect(book.begin(now: .at(2001)).contains(Region(path("other"), .itself)))
  }

  @Test func whoWritesNowAndThenNeverWaits() {
    var book = seen()
    #expect(looks(&book, every: 90, until: 4000).count == 44)
  }

  @Test func aFolderThatIsHeldByOthersIsTriedEachSecond() {
    var book = seen()
    book.receive(.dirty(path("a")), now: 0, random: 0.5)
    for now in 1...20 {
      #expect(book.begin(now: .at(now)) == [Region(path("a"), .itself)])
      book.end(isDone: false, isBusy: true, now: .at(now), random: 0.5)
    }
  }

  /// It comes a second after the last one, or after twenty times as long as that took.
  @Test func countingIsForALookAtEverything() {
    var book = seen()
    book.receive(.dirty(path("a")), now: 0, random: 0.5)
    #expect(book.begin(now: 500_000_000) == [Region(path("a"), .itself)])
    book.end(isDone: true, wantsCount: true, now: 500_000_000, random: 0.5)
    #expect(book.wait(now: 500_000_000) == .milliseconds(500))
    #expect(book.begin(now: .at(1)) == [.everything] && book.onlyCounts)
    book.end(isDone: true, looked: second, now: .at(2), random: 0.5)
    book.receive(.dirty(path("a")), now: .at(2), random: 0.5)
    #expect(book.begin(now: .at(3)) == [Region(path("a"), .itself)])
    book.end(isDone: true, wantsCount: true, now: .at(3), random: 0.5)
    #expect(book.wait(now: .at(3)) == .seconds(19))
    // What changed goes first, and what calls for a look at everything is more than counting.
    book.receive(.dirty(path("b")), now: .at(22), random: 0.5)
    #expect(book.begin(now: .at(23)) == [Region(path("b"), .itself)] && !book.onlyCounts)
    book.end(isDone: true, now: .at(23), random: 0.5)
    #expect(book.begin(now: .at(24)) == [.everything] && book.onlyCounts)
    book.end(isDone: false, now: .at(24), random: 0.5)
    #expect(book.begin(now: .at(30)) == [.everything] && book.onlyCounts)
    book.end(isDone: true, wantsCount: true, now: .at(30), random: 0.5)
    book.receive(.ready(directories: 1), now: .at(60), random: 0.5)
    #expect(book.begin(now: .at(60)) == [.everything] && !book.onlyCounts)
  }

  // MARK: - Beside a pass, and beside each other

  /// What it brings may take hours.
  @Test func aRepairThatBringsLetsAnotherOneLook() {
    var book = seen()
    book.receive(.dirty(path("a")), now: 0, random: 0.5)
    #expect(book.begin(now: .at(1)) == [Region(path("a"), .itself)])
    book.beginBringing(looked: .milliseconds(10), now: .at(1), random: 0.5)
    book.receive(.dirty(path("b")), now: .at(2), random: 0.5)
    #expect(!book.isAsLeft && book.begin(now: .at(3)) == [Region(path("b"), .itself)])
    book.end(isDone: true, now: .at(3), random: 0.5)
    #expect(!book.isAsLeft, "the first one is at work still")
    book.brought([Region(path("a"), .itself)], isDone: true, wantsCount: false, now: .at(60))
    #expect(book.isAsLeft)
  }

  /// Another manifest wants it otherwise, or it was stopped.
  @Test func whatIsNotBroughtIsLookedAtAgain() {
    var book = seen()
    book.receive(.dirty(path("a")), now: 0, random: 0.5)
    #expect(book.begin(now: .at(1)) == [Region(path("a"), .itself)])
    book.beginBringing(looked: .milliseconds(10), now: .at(1), random: 0.5)
    book.brought([Region(path("a"), .itself)], isDone: false, wantsCount: false, now: .at(5))
    #expect(!book.isAsLeft && book.begin(now: .at(5)) == [])
    #expect(book.begin(now: .at(7)) == [Region(path("a"), .itself)])
    book.beginBringing(looked: .milliseconds(10), now: .at(7), random: 0.5)
    book.brought([Region(path("a"), .itself)], isDone: true, wantsCount: true, now: .at(8))
    #expect(book.begin(now: .at(9)) == [.everything] && book.onlyCounts)
    book.beginBringing(looked: .milliseconds(10), now: .at(9), random: 0.5)
    book.brought([.everything], isDone: false, wantsCount: false, now: .at(10))
    #expect(book.begin(now: .at(12)) == [.everything])
  }

  /// A repair that can adopt nothing beside a slow pass looks again ever more seldom; what else changes does not wait for that.
  @Test(arguments: [Region.everything, Region(RelativePath(trusted: Array("a".utf8)), .itself)])
  func whatIsLookedAtInVainHoldsUpNothingElse(region: Region) {
    var book = seen()
    for now in stride(from: 10, to: 5000, by: 10) {
      if now == 10 {
        book.receive(region == .everything ? .tree(nil) : .dirty(path("a")), now: .at(now), random: 0.5)
      }
      let regions = book.begin(now: .at(now + 1))
      guard !regions.isEmpty else { continue }
      book.beginBringing(looked: .milliseconds(1), now: .at(now + 1), random: 0.5)
      book.brought(regions, isDone: false, wantsCount: false, now: .at(now + 1))
    }
    #expect(!book.isAsLeft && (book.wait(now: .at(5000)) ?? .zero) > .seconds(10))
    for now in [5000, 5010, 5020] {
      book.receive(.dirty(path("b")), now: .at(now), random: 0.5)
      #expect(book.begin(now: .at(now + 1)) == [Region(path("b"), .itself)])
      book.beginBringing(looked: .milliseconds(1), now: .at(now + 1), random: 0.5)
      book.brought([Region(path("b"), .itself)], isDone: true, wantsCount: false, now: .at(now + 2))
    }
    // And it is not forgotten.
    #expect((book.wait(now: .at(5030)) ?? .zero) > .zero && book.begin(now: .at(5400)) == [region])
  }

  /// As long as it has not looked itself: it is going to.
  @Test func aLongLookIsNotForBesideAPassThatStillLooks() {
    var book = seen()
    book.receive(.tree(nil), now: 0, random: 0.5)
    #expect(book.begin(now: .at(1)) == [.everything])
    book.end(isDone: true, looked: .seconds(4), now: .at(5), random: 0.5)
    book.receive(.tree(nil), now: .at(20), random: 0.5)
    #expect(book.begin(now: .at(22), isReading: true) == [])
    #expect(!book.isAsLeft && book.wait(now: .at(22), isReading: true) != .zero)
    // Its parts are looked at all the same.
    book.receive(.dirty(path("a")), now: .at(22), random: 0.5)
    #expect(book.wait(now: .at(23), isReading: true) == .zero)
    #expect(book.begin(now: .at(23), isReading: true) == [Region(path("a"), .itself)])
    book.end(isDone: true, now: .at(23), random: 0.5)
    #expect(book.begin(now: .at(24)) == [.everything])
    book.end(isDone: true, looked: second, now: .at(25), random: 0.5)
    // A short one costs nobody anything.
    book.receive(.tree(nil), now: .at(30), random: 0.5)
    #expect(book.begin(now: .at(31), isReading: true) == [.everything])
  }

  /// A pass looks at the folder first, and then transfers for long.
  @Test(arguments: [true, false]) func whatAsksForAllDuringAPassIsNotSeenByIt(_ isLost: Bool) {
    var book = seen()
    if isLost { book.receive(.blind(died), now: .at(20), random: 0.5) }
    if isLost { book.receive(.ready(directories: 3), now: .at(21), random: 0.5) }
    if !isLost { book.receive(.tree(nil), now: .at(21), random: 0.5) }
    book.looked(since: .at(10), now: .at(21), random: 0.5)
    #expect(!book.isAsLeft && book.begin(now: .at(30)) == [.everything])
  }

  /// Who writes all the time fills the trash no faster for days of transfers.
  @Test func whatChangesAgainAndAgainWaits() {
    var (book, looks) = (seen(), 0)
    for now in 1...1000 {
      book.receive(.dirty(path("log")), now: .at(now * 2), random: 0.5)
      let regions = book.begin(now: .at(now * 2 + 1))
      looks += regions.count
      guard !regions.isEmpty else { continue }
      book.beginBringing(looked: .milliseconds(1), now: .at(now * 2 + 1), random: 0.5)
      book.brought(regions, isDone: true, wantsCount: false, now: .at(now * 2 + 1))
    }
    #expect(looks > 32 && looks < 60, "\(looks)")
  }

  /// What cannot be brought by the manifest that is known is not asked for each second until another one is read.
  @Test(arguments: [WatchNews.Event.dirty(RelativePath(trusted: Array("log".utf8))), .tree(nil)])
  func whatIsNotBroughtAgainAndAgainWaits(event: WatchNews.Event) {
    var (book, looks) = (seen(), 0)
    book.receive(event, now: 0, random: 0.5)
    for now in 1...1000 {
      let regions = book.begin(now: .at(now))
      guard !regions.isEmpty else { continue }
      looks += 1
      book.beginBringing(looked: .milliseconds(1), now: .at(now), random: 0.5)
      book.brought(regions, isDone: false, wantsCount: false, now: .at(now))
    }
    #expect(looks > 8 && looks < 20, "\(looks)")
  }

  /// Others recorded something while it looked.
  @Test(arguments: [false, true]) func aLookAtEverythingMayWantAnotherOne(isBringing: Bool) {
    var book = seen()
    book.receive(.tree(nil), now: 0, random: 0.5)
    #expect(book.begin(now: .at(1)) == [.everything])
    if isBringing {
      book.beginBringing(looked: .milliseconds(1), now: .at(1), random: 0.5)
      book.brought([.everything], isDone: true, wantsCount: true, now: .at(2))
    } else {
      book.end(isDone: true, wantsCount: true, now: .at(2), random: 0.5)
    }
    #expect(book.begin(now: .at(4)) == [.everything] && book.onlyCounts)
  }

  /// Where folders are polled a watch that is lost again and again must not put the look off for ever.
  @Test func whoIsBlindedAgainAndAgainIsLookedAtInTime() {
    var book = seen()
    book.receive(.blind(died), now: .at(1), random: 0.5)
    let due = Instant.at(301)
    for minute in 1...4 {
      book.receive(
        .blind(WatchBlindness(.gone, "there is no directory")), now: .at(minute * 60), random: 0.5)
      book.receive(.blind(died), now: .at(minute * 61), random: 0.5)
      #expect(book.wait(now: .at(minute * 61)) == due - .at(minute * 61))
    }
    #expect(book.begin(now: due) == [.everything])
  }

  /// Of a repair that belonged to an earlier book.
  @Test func theEndOfNothingChangesNothing() {
    var book = seen(now: .at(1000))
    book.end(isDone: true, now: .at(2000), random: 0.5)
    book.receive(.dirty(path("a")), now: .at(2000), random: 0.5)
    #expect(book.begin(now: .at(2001)) == [Region(path("a"), .itself)])
  }

  // MARK: - Before there is a journal

  /// A first pass makes the folder, and takes it back when it cannot read its feed: again and again.
  @Test(arguments: [WatchBlindness.Code.gone, .replaced]) func whatAFirstPassTakesBackIsNoLoss(
    code: WatchBlindness.Code
  ) {
    var book = WatchState(isWatched: true, hasJournal: false, pace: .init(), now: 0, random: 0.5)
    for time in [1, 3, 5] {
      book.receive(.ready(directories: 1), now: .at(time), random: 0.5)
      #expect(book.status == ("watching", "") && !book.isMissing)
      book.receive(.blind(WatchBlindness(code, "it is not there any more")), now: .at(time + 1), random: 0.5)
      #expect(book.status == ("polling", "the folder is not there so far") && book.isMissing)
    }
    #expect(book.takeNotes() == [])
    // Once it follows its feed, it is one like any other.
    book.receive(.ready(directories: 1), now: .at(7), random: 0.5)
    book.begunJournal()
    book.receive(.blind(WatchBlindness(code, "it is not there any more")), now: 8, random: 0.5)
    #expect(
      book.takeNotes().map(\.code) == ["watch-lost"] && book.status.reason.contains("not there any more"))
  }

  /// What is none of Tarn's doing is told from the beginning.
  @Test func aWatcherThatDiesIsALossFromTheBeginning() {
    var book = WatchState(isWatched: true, hasJournal: false, pace: .init(), now: 0, random: 0.5)
    book.receive(.ready(directories: 1), now: 1, random: 0.5)
    book.receive(.blind(died), now: 2, random: 0.5)
    #expect(book.takeNotes().map(\.code) == ["watch-lost"])
  }
}
