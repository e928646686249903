import Foundation
import TarnCore
import TarnCrypto
import TarnEngine
import TarnLedger
import TarnRuntime
import TestSupport
import Testing

@testable import TarnAgent

/// Orders to a running task, and what its quotas, times and places come to.
@Suite struct SessionOrderTests {
  private let bench: SessionBench
  private let large = Array(repeating: UInt8(7), count: 2 << 20)
  private let lost = DownloadFailure(.reset, "the connection was lost", isTransient: true)

  init() throws { bench = try SessionBench() }

  /// A task whose transfer stands still after 1.5 MB.
  private func beginPaused(
    _ name: String, _ change: (inout TaskRequest) -> Void = { _ in }
  ) throws -> (task: Int64, gate: AnswerGate) {
    let gate = AnswerGate()
    var answer = FakeAnswer(etag: "\"1\"", body: large)
    answer.pause = (1_500_000, gate)
    bench.answer(name, answer)
    let task = try bench.add(name, change)
    try bench.run(until: "the server has answered") { try bench.codes().contains(.response) }
    return (task, gate)
  }

  /// The agent ends before the transfer does.
  @Test func anOrderToARunningTaskOutlivesTheAgent() throws {
    let (cancelled, first) = try beginPaused("a")
    #expect(try bench.session.give(.cancel(keeps: false), cancelled))
    #expect(try bench.ledger.task(cancelled)?.wish == .cancel(keeps: false))
    let (suspended, second) = try beginPaused("b")
    #expect(try bench.session.give(.suspend, suspended))
    try bench.reopen()
    first.open()
    second.open()
    #expect(try bench.states() == [.cancelled, .suspended])
    #expect(try bench.codes().contains(.cancelled))
    #expect(bench.files == [".tarn-s-2.part"])
    #expect(try bench.ledger.task(suspended)?.wish == nil)
  }

  /// The place that a rule named counts from then on.
  @Test func whatARulePlacedIsResumedThere() throws {
    var answer = FakeAnswer(etag: "\"1\"", body: large, failure: (1_500_000, lost))
    answer.contentType = "audio/mpeg"
    bench.answer("a", answer)
    var rule = ResponseRule(.place)
    (rule.types, rule.to) = (["audio/*"], bench.path + "/other/")
    let task = try bench.add("a") { ($0.to, $0.rules) = (bench.path + "/out/", [rule]) }
    try bench.run(until: "it waits") { try bench.state(task) == .waiting }
    answer.failure = nil
    bench.answer("a", answer)
    bench.clock.advance(.seconds(60))
    try bench.finish(task)
    #expect(try bench.state(task) == .finished && bench.fileExists("other/a") && bench.files.isEmpty)
    let ranges = bench.asked.withLock { $0.filter { $0.offset > 0 } }
    #expect(ranges.count == 1)
  }

  /// The bytes of a task's own partial file are part of its file.
  @Test func aQuotaCountsNoBytesTwice() throws {
    var settings = SessionSettings()
    settings.quota = SessionQuota()
    settings.quota?.bytes = 2_500_000
    try bench.session.set(settings, nil)
    bench.answer("a", FakeAnswer(etag: "\"1\"", body: large, failure: (1_500_000, lost)))
    let task = try bench.add("a")
    try bench.run(until: "it waits") { try bench.state(task) == .waiting }
    bench.answer("a", FakeAnswer(etag: "\"1\"", body: large))
    bench.clock.advance(.seconds(60))
    try bench.run(until: "it was tried again") { try bench.ledger.task(task)?.attempts != 1 }
    #expect(try bench.state(task) == .finished)
  }

  /// All bytes are there, so that no server names the file again.
  @Test func aWholeFileThatGoesToAFolderKeepsItsName() throws {
    let digest = OpenSSLHashing().digest(.sha256, of: large).labelled
    let (task, gate) = try beginPaused("a") { $0.digest = digest }
    try "mine".write(toFile: bench.path + "/out/a", atomically: true, encoding: .utf8)
    gate.open()
    try bench.finish(task)
    #expect(try bench.ledger.task(task)?.code == "in-the-way")
    var order = SessionOrder(.retry, task: task)
    order.to = bench.path + "/other/"
    #expect(try bench.session.answer(order, task))
    try bench.finish(task)
    #expect(try bench.state(task) == .finished && bench.fileExists("other/a"))
  }

  @Test func resumingBeginsNothingBeforeItsTime() throws {
    let time = bench.clock.time.adding(seconds: 3600)
    let task = try bench.add("a") { ($0.notBefore, $0.suspended) = (time, true) }
    #expect(try bench.session.queue([task], from: [.suspended]) == [task])
    #expect(try bench.state(task) == .waiting && bench.ledger.task(task)?.nextAttempt == time)
    _ = try bench.session.give(.suspend, task)
    #expect(try bench.session.queue([task], from: [.suspended]) == [task])
    _ = try bench.session.advance()
    #expect(try bench.state(task) == .waiting && bench.asked.withLock { $0.isEmpty })
  }

  /// Nobody waits ten minutes for the next upkeep.
  @Test func aRunningTaskEndsWhenItsTimeIsOver() throws {
    let (task, gate) = try beginPaused("a") { request in
      request.limits = TaskLimits()
      request.limits?.whole = 30
    }
    let next = try #require(try bench.session.advance())
    #expect(next - bench.clock.time <= .seconds(30))
    bench.clock.advance(.seconds(31))
    _ = try bench.session.advance()
    gate.open()
    try bench.finish(task)
    #expect(try bench.ledger.task(task)?.code == "time-over")
  }

  /// Nothing would know of it any more.
  @Test func aSmallFileThatCannotHaveItsNameLeavesNothing() throws {
    let gate = AnswerGate()
    var answer = FakeAnswer(etag: "\"1\"", body: Array("hello".utf8))
    answer.pause = (2, gate)
    bench.answer("a", answer)
    let task = try bench.add("a")
    try bench.run(until: "the server has answered") { try bench.codes().contains(.response) }
    try "mine".write(toFile: bench.path + "/out/a", atomically: true, encoding: .utf8)
    gate.open()
    try bench.finish(task)
    #expect(try bench.ledger.task(task)?.code == "in-the-way")
    #expect(bench.files == ["a"] && bench.text("out/a") == "mine")
  }
}
