import TarnCore
import TarnLedger
import TarnRuntime
import TestSupport
import Testing

@testable import TarnAgent

/// The times that hold where nobody says otherwise, as tarn-session(7) tells them.
@Suite struct SessionTimesTests {
  private let bench: SessionBench
  private static let day: Int64 = 86_400

  init() throws { bench = try SessionBench() }

  /// A task that waits, for its server is busy.
  private func addWaiting(_ limits: TaskLimits? = nil) throws -> Int64 {
    bench.answer("a", FakeAnswer(status: 503))
    let task = try bench.add("a") { $0.limits = limits }
    try bench.run(until: "it waits") { try bench.state(task) == .waiting }
    return task
  }

  /// - Returns: why it has failed; nil where it has not ended.
  private func end(of task: Int64, after seconds: Int64) throws -> String? {
    bench.clock.advance(.seconds(seconds))
    try bench.run(until: "it is not at work") {
      let state = try bench.state(task)
      return state != .queued && state != .running
    }
    guard let record = try bench.ledger.task(task), record.state.isEnd else { return nil }
    return record.code
  }

  @Test func aServerMayBeSilentForAMinute() throws {
    #expect(SessionSettings().network.lowSpeedTime == 60 && SessionSettings().network.lowSpeedLimit == 1)
    var settings = SessionSettings()
    settings.limits = TaskLimits(idle: 7)
    #expect(settings.network.lowSpeedTime == 7)
    // A task has its own only where it says so.
    try bench.finish(bench.add("a"))
    try bench.finish(bench.add("b") { $0.limits = TaskLimits(idle: 5) })
    #expect(bench.asked.withLock { $0.map(\.idleTimeout) } == [nil, 5])
  }

  @Test func aTaskMayTakeSevenDays() throws {
    let task = try addWaiting()
    #expect(try end(of: task, after: 7 * Self.day - 1) == nil)
    #expect(try end(of: task, after: 1) == "time-over")
  }

  @Test func aTaskMayBeWithoutProgressForFourteenDays() throws {
    let task = try addWaiting(TaskLimits(whole: 30 * 86_400))
    #expect(try end(of: task, after: 14 * Self.day - 1) == nil)
    #expect(try end(of: task, after: 1) == "no-progress")
  }

  /// What the session says goes before the standard, and what the task says before both.
  @Test func theNearestLimitHolds() throws {
    var settings = SessionSettings()
    settings.limits = TaskLimits(whole: 200, stall: 100)
    try bench.session.set(settings, nil)
    let task = try addWaiting(TaskLimits(stall: 150))
    #expect(try end(of: task, after: 149) == nil)
    #expect(try end(of: task, after: 1) == "no-progress")
  }

  @Test func aSessionLastsNinetyDaysWithoutContact() throws {
    try bench.session.age.touch()
    bench.clock.advance(.seconds(90 * Self.day - 1))
    #expect(try !bench.session.age.isAbandoned())
    bench.clock.advance(.seconds(1))
    #expect(try bench.session.age.isAbandoned())
  }
}
