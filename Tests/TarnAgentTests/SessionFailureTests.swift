import TarnCore
import TarnLedger
import TarnRuntime
import TestSupport
import Testing

@testable import TarnAgent

/// How often a task has failed, and what that costs.
@Suite struct SessionFailureTests {
  private let bench: SessionBench

  init() throws { bench = try SessionBench() }

  /// All of a file is asked for again only where the rest fails each time.
  @Test(arguments: [503, 429, nil] as [Int?]) func aFailureAtTheRestCostsNoBytes(_ status: Int?) throws {
    let task = try bench.beginLarge("a")
    var answer = FakeAnswer(etag: "\"1\"", body: Array(repeating: 7, count: 2 << 20))
    (answer.rangeStatus, answer.rangeFails) = (status, status == nil)
    bench.answer("a", answer)
    #expect(try bench.session.queue([task], from: [.failed]) == [task])
    for failures in 1...3 {
      try bench.run(until: "it has failed \(failures) times") {
        try bench.ledger.task(task)?.attempts == failures && !bench.session.isAtWork(task)
      }
      #expect(try bench.state(task) == .waiting)
      #expect(bench.files == [".tarn-s-1.part"])
      bench.clock.advance(.seconds(30))
    }
    try bench.finish(task)
    #expect(try bench.state(task) == .finished)
    let rest: UInt64 = 1_500_000
    #expect(bench.asked.withLock { $0.map(\.offset) } == [0, rest, rest, rest, rest, 0])
  }

  /// The code of an earlier failure is no reason for anything once the task is tried again.
  @Test func aTaskAtWorkShowsNoEarlierFailure() throws {
    var task = TaskRecord(
      number: 1, state: .waiting, request: TaskRequest(url: "http://h/a", to: "/a"), added: bench.clock.time)
    (task.code, task.message) = ("quota-exceeded", "it is full")
    for state in TaskState.allCases {
      task.state = state
      let shown = TaskDocument(task).task
      let isKept = ![.queued, .running].contains(state)
      #expect(
        shown.code == (isKept ? task.code : nil) && shown.message == (isKept ? task.message : nil), "\(state)"
      )
    }
  }

  /// A new attempt is no progress.
  @Test func attemptsWithoutAByteAreAStall() throws {
    bench.answer("a", FakeAnswer(status: 503))
    let task = try bench.add("a") { $0.limits = TaskLimits(stall: 60) }
    for _ in 0..<13 {
      try bench.run(until: "it waits, or has ended") {
        try [.waiting, .failed].contains(bench.state(task)) && !bench.session.isAtWork(task)
      }
      bench.clock.advance(.seconds(5))
    }
    try bench.finish(task)
    #expect(try bench.ledger.task(task)?.code == "no-progress" && bench.asked.withLock { $0.count } > 2)
  }

  /// Failures with bytes between them are not in a row.
  @Test func whatBringsBytesBeginsToCountAnew() throws {
    let task = try bench.beginLarge("a")
    #expect(try bench.session.queue([task], from: [.failed]) == [task])
    let lost = DownloadFailure(.reset, "lost", isTransient: true)
    for bytes in [1, 100_000, 2] {
      // Behind what is there.
      bench.answer(
        "a", FakeAnswer(etag: "\"1\"", body: Array(repeating: 7, count: 2 << 20), failure: (bytes, lost)))
      try bench.run(until: "it has failed with \(bytes) more") {
        try bench.state(task) == .waiting && !bench.session.isAtWork(task)
      }
      #expect(try bench.ledger.task(task)?.attempts == (bytes == 2 ? 2 : 1), "\(bytes)")
      bench.clock.advance(.seconds(30))
      try bench.run(until: "it is tried again") { try bench.state(task) != .waiting }
    }
  }
}
