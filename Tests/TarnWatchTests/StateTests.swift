import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnWatch

extension WatchSuite {
  @Suite struct StateTests {
    private let id = WatchID(1)
    private let path = Array("/srv/a".utf8)
    private let died = WatchBlindness(.watcherDied, "died")

    /// Within a quarter of so many seconds.
    private func isAbout(_ wait: Duration, _ seconds: Double) -> Bool {
      wait >= .seconds(seconds * 3 / 4) && wait <= .seconds(seconds * 5 / 4)
    }

    private func running(now: Instant = 0) -> WatcherState {
      var state = WatcherState(random: SeededRandom(seed: 3))
      #expect(state.dueAt == nil && state.tick(now) == [])
      #expect(state.watch(id, request: 1, path: path, now: now) == [.start])
      #expect(state.started(now) == [.send(.watch(wire: 1, path: path))])
      return state
    }

    @Test func newsAreTranslated() {
      var state = running()
      // What changed before `ready` is not told: `ready` says to look at everything.
      #expect(state.received(.tree(wire: 1, path: []), now: 0) == [])
      #expect(
        state.received(.ready(wire: 1, directories: 3), now: 0)
          == [.tell(request: 1, WatchNews(id, .ready(directories: 3)))])
      let path = RelativePath(trusted: [0x61])
      #expect(
        state.received(.dirty(wire: 1, path: [0x61]), now: 0) == [
          .tell(request: 1, WatchNews(id, .dirty(path)))
        ])
      #expect(
        state.received(.tree(wire: 1, path: []), now: 0) == [.tell(request: 1, WatchNews(id, .tree(nil)))])
      #expect(state.received(.dirty(wire: 2, path: [0x61]), now: 0) == [])
    }

    @Test func anOverflowEndsByItself() {
      var state = running()
      _ = state.received(.ready(wire: 1, directories: 1), now: 0)
      let why = WatchBlindness(.overflow, "lost")
      #expect(state.received(.blind(wire: 1, why), now: 0) == [.tell(request: 1, WatchNews(id, .blind(why)))])
      #expect(state.dueAt == nil)
      #expect(state.received(.tree(wire: 1, path: []), now: 0) == [])
      #expect(state.received(.ready(wire: 1, directories: 1), now: 0).count == 1)
    }

    @Test func whatCannotBeWatchedIsAskedForAgainAndSaidOnce() {
      var state = running()
      let why = WatchBlindness(.watchLimit, "full")
      var waits: [Duration] = []
      var now: Instant = 0
      for attempt in 0..<6 {
        let wire = UInt64(attempt + 1)
        let told = state.received(.blind(wire: wire, why), now: now)
        #expect(told == (attempt == 0 ? [.tell(request: 1, WatchNews(id, .blind(why)))] : []))
        guard let due = state.dueAt else {
          Issue.record("no retry is planned")
          return
        }
        waits.append(due - now)
        #expect(state.tick(due + .nanoseconds(-1)) == [])
        now = due
        #expect(
          state.tick(now) == [.send(.forget(wire: wire)), .send(.watch(wire: wire + 1, path: path))])
      }
      for (wait, named) in zip(waits, [60, 120, 240, 480, 600, 600] as [Double]) {
        #expect(isAbout(wait, named))
      }
      #expect(state.received(.ready(wire: 7, directories: 1), now: now).count == 1)
      #expect(state.dueAt == nil)
    }

    @Test(
      arguments: [
        (WatchBlindness.Code.gone, 5), (.replaced, 5), (.unmounted, 5), (.unsupported, 600),
        (.unreadable, 5),
        (.instanceLimit, 60), (.error, 60),
      ] as [(WatchBlindness.Code, Double)])
    func eachReasonHasItsPace(code: WatchBlindness.Code, named: Double) throws {
      var state = running()
      _ = state.received(.blind(wire: 1, WatchBlindness(code, "x")), now: 0)
      let due = try #require(state.dueAt)
      #expect(isAbout(due - 0, named))
    }

    @Test func machinesDoNotTryInStep() {
      let dues = (UInt64(1)...8).map { seed in
        var state = WatcherState(random: SeededRandom(seed: seed))
        _ = state.watch(id, request: 1, path: path, now: 0)
        _ = state.started(0)
        _ = state.received(.blind(wire: 1, WatchBlindness(.watchLimit, "full")), now: 0)
        return state.dueAt
      }
      #expect(Set(dues).count == 8)
    }

    @Test func aProgramThatDiesIsStartedAgainEverMoreSlowly() throws {
      var state = running()
      var now: Instant = 0
      var waits: [Duration] = []
      for turn in 0..<12 {
        // The same is said once.
        #expect(state.failed(died, now: now).count == (turn == 0 ? 1 : 0))
        let due = try #require(state.dueAt)
        waits.append(due - now)
        now = due
        #expect(state.tick(now) == [.start])
        #expect(state.started(now).count == 1)
      }
      #expect(waits[0] == .zero)
      for (wait, named) in zip(waits.dropFirst(), [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300] as [Double]) {
        #expect(isAbout(wait, named))
      }
      // It ran for a minute: the count begins anew.
      now += .seconds(60)
      _ = state.failed(died, now: now)
      #expect(state.dueAt == now)
    }

    @Test func afterADeathAllAreBlindAndAskedForAnew() {
      var state = running()
      let other = WatchID(2)
      #expect(
        state.watch(other, request: 2, path: path, now: 0) == [.send(.watch(wire: 2, path: path))])
      _ = state.received(.ready(wire: 1, directories: 1), now: 0)
      #expect(
        state.failed(died, now: 0) == [
          .tell(request: 1, WatchNews(id, .blind(died))), .tell(request: 2, WatchNews(other, .blind(died))),
        ])
      #expect(state.received(.dirty(wire: 1, path: [0x61]), now: 0) == [])
      // Words of the dead are nobody's.
      #expect(state.received(.ready(wire: 1, directories: 1), now: 0) == [])
      #expect(state.tick(0) == [.start])
      #expect(
        state.started(0) == [.send(.watch(wire: 3, path: path)), .send(.watch(wire: 4, path: path))])
    }

    @Test func withoutFoldersNothingIsStarted() {
      var state = running()
      #expect(state.forget(id) == [.send(.forget(wire: 1))])
      #expect(state.forget(id) == [])
      #expect(state.failed(died, now: 0) == [])
      #expect(state.dueAt == nil && state.tick(.distantFuture) == [])
    }

    @Test(arguments: ["", "relative", "/" + String(repeating: "x", count: 4_095), "/a\u{0}b"])
    func aPathThatIsNoneIsBlindAtOnce(path: String) {
      var state = running()
      let actions = state.watch(WatchID(9), request: 5, path: Array(path.utf8), now: 0)
      guard case .tell(5, let news) = actions.first, case .blind(let why) = news.event else {
        Issue.record("\(actions)")
        return
      }
      #expect(actions.count == 1 && why.code == .error)
    }
  }

  @Suite struct RecordTests {
    private func read(_ text: String) -> WatchRecord? { WatchRecord(Array(text.utf8)) }

    @Test func records() {
      #expect(read("ready 7 12") == .ready(wire: 7, directories: 12))
      #expect(read("dirty 0 a b ") == .dirty(wire: 0, path: Array("a b ".utf8)))
      #expect(read("tree 18446744073709551615 ") == .tree(wire: .max, path: []))
      #expect(
        read("blind 1 watch-limit the \u{1B} limit")
          == .blind(wire: 1, WatchBlindness(.watchLimit, "the \\x1b limit")))
      #expect(read("blind 1 newer why") == .blind(wire: 1, WatchBlindness(.error, "why")))
      #expect(read("blind 1 gone") == .blind(wire: 1, WatchBlindness(.gone, "")))
    }

    @Test(arguments: [
      "", "ready", "ready 1", "ready 1 x", "ready 1 -2", "ready x 1", "dirty 1 ", "tree 1", "look 1 a",
      "dirty +1 a", "dirty 18446744073709551616 a", " dirty 1 a",
    ])
    func whatIsNoRecord(text: String) {
      #expect(read(text) == nil)
    }

    @Test(arguments: [1, 2, 7, 100]) func recordsComeInPieces(size: Int) {
      let bytes = Array("tree 1 \0ready 1 3\0dirty 1 a\0".utf8)
      var reader = WatchRecordReader()
      var records: [WatchRecord] = []
      for start in stride(from: 0, to: bytes.count, by: size) {
        let piece = Array(bytes[start..<min(start + size, bytes.count)])
        records += piece.withUnsafeBytes { reader.read($0) } ?? []
      }
      #expect(
        records == [
          .tree(wire: 1, path: []), .ready(wire: 1, directories: 3), .dirty(wire: 1, path: [0x61]),
        ])
    }

    @Test func aRecordWithoutEndIsRefused() {
      var reader = WatchRecordReader()
      let bytes = [UInt8](repeating: 0x61, count: WatchRecord.maximumLength)
      #expect(bytes.withUnsafeBytes { reader.read($0) } == [])
      #expect([0x61].withUnsafeBytes { reader.read($0) } == nil)
    }
  }
}
