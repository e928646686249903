import Foundation
import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnEngine

/// Plans that come from any client at any time: single downloads, beside others or alone.
@Suite struct SubmissionTests {
  private let world = World()

  private func plan(_ entries: [Entry]) throws -> Plan {
    let stage = MemoryStage()
    for entry in entries { try stage.add(Action(.fetch, path: entry.path, entry: entry)) }
    return Plan(stage, policy: world.policy, deletions: .none, started: world.clock.time)
  }

  private func submit(
    _ entries: [Entry], priority: TransferPriority = .normal, _ downloader: any Downloading
  ) throws -> Transfers {
    world.reopenStop()
    return try world.engine.submit(
      plan(entries), for: world.pass(downloader).client(world.folder), priority: priority, observer: world.log
    )
  }

  @Test func singleDownloadsMayComeAtAnyTime() throws {
    let downloader = try world.server.downloader()
    defer { downloader.shutDown() }
    for name in ["a", "b"] {
      let transfers = try submit([world.serve(name, "text of \(name)")], downloader)
      try transfers.wait()
      #expect(transfers.account.counts.fetched == 1 && transfers.account.problems.isEmpty)
      #expect(world.text(name) == "text of \(name)" && world.row(name) != nil)
      // The thread ends with it, and begins again with the next.
      world.engine.close()
    }
  }

  @Test func aFailureIsOfItsOwnPlan() throws {
    world.policy.retries = 0
    let downloader = try world.server.downloader()
    defer { downloader.shutDown() }
    let gone = world.serve("gone", "text")
    world.server.answer(World.host + "gone", FakeAnswer(status: 404))
    let (bad, good) = (try submit([gone], downloader), try submit([world.serve("a", "text")], downloader))
    try bad.wait()
    try good.wait()
    #expect(bad.account.problems.map(\.code) == ["http-404"] && bad.account.counts.failed == 1)
    #expect(good.account.problems.isEmpty && good.account.counts.fetched == 1)
  }

  @Test func aCancelEndsItsOwnPlanOnly() throws {
    let downloader = try world.server.downloader()
    defer { downloader.shutDown() }
    world.server.answer(World.host + "a", FakeAnswer(hangs: true))
    let hanging = try submit([world.entry("a", "text of a")], downloader)
    let other = try submit([world.serve("b", "text of b")], downloader)
    try other.wait()
    hanging.cancel()
    try hanging.wait()
    #expect(hanging.account.counts == PassCounts() && hanging.account.problems.isEmpty)
    #expect(world.files == ["b": "text of b"])
  }

  /// Beyond what is remembered a pass tells that the next one has to look, and a repair looks at all of it again.
  @Test(arguments: [TransferPriority.normal, .urgent]) func whatIsStaleIsBounded(
    priority: TransferPriority
  ) throws {
    let downloader = try world.server.downloader()
    defer { downloader.shutDown() }
    let entries = (0..<5).map { number in
      world.folder.write("f\(number)".path, "another text".bytes)
      return world.serve("f\(number)", "text of \(number)")
    }
    world.reopenStop()
    var client = world.pass(downloader).client(world.folder)
    client.mostStale = 2
    let transfers = try world.engine.submit(
      plan(entries), for: client, priority: priority, observer: world.log)
    try transfers.wait()
    let (isUrgent, submission) = (priority == .urgent, transfers.submission)
    #expect(submission.isSuperseded == isUrgent && submission.stale.count == (isUrgent ? 0 : 2))
    #expect(transfers.account.problems.count == (isUrgent ? 0 : 3))
  }

  /// All places are taken for as long as nobody ends it.
  @Test func aPlanThatWaitsIsEndedAtOnce() throws {
    let downloader = try world.server.downloader()
    defer { downloader.shutDown() }
    let all = (0..<1600).map { number in
      world.server.answer(World.host + "f\(number)", FakeAnswer(hangs: true))
      return world.bareEntry("f\(number)")
    }
    let hanging = try submit(all, downloader)
    let waiting = try submit([world.serve("a", "text of a")], downloader)
    waiting.cancel()
    try waiting.wait()
    #expect(waiting.account.counts == PassCounts() && world.files.isEmpty)
    hanging.cancel()
    try hanging.wait()
  }

  /// However many clients are in a hurry, no more is at work for them than there may be files.
  @Test func urgentPlansWaitAsWell() throws {
    let downloader = try world.server.downloader()
    defer { downloader.shutDown() }
    var all = try (0..<400).map { number in
      world.server.answer(World.host + "f\(number)", FakeAnswer(hangs: true))
      return try submit([world.bareEntry("f\(number)")], priority: .urgent, downloader)
    }
    // What comes behind them is asked for once one of them has ended.
    all.append(try submit([world.bareEntry("last")], priority: .urgent, downloader))
    let first = all.removeFirst()
    first.cancel()
    try first.wait()
    for transfers in all { transfers.cancel() }
    for transfers in all { try transfers.wait() }
    #expect(world.server.urls.count <= 257)
  }

  /// Those of urgent plans go before them.
  @Test func manyPlansWait() throws {
    let count = ProcessInfo.processInfo.environment["TARN_WAITING_PLANS"].flatMap { Int($0) } ?? 2000
    let downloader = try world.server.downloader()
    defer { downloader.shutDown() }
    let entries = (0..<count).map { number in
      world.server.put(World.host + "f\(number)", "text \(number)".bytes)
      return world.bareEntry("f\(number)")
    }
    let all = try entries.map { try submit([$0], downloader) }
    let urgent = try submit([world.serve("urgent", "text")], priority: .urgent, downloader)
    try urgent.wait()
    for transfers in all { try transfers.wait() }
    #expect(all.allSatisfy { $0.account.counts.fetched == 1 })
    #expect(world.files.count == count + 1)
  }
}
