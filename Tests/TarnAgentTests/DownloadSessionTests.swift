import Foundation
import TarnCore
import TarnCrypto
import TarnEngine
import TarnFolder
import TarnLedger
import TarnRuntime
import TestSupport
import Testing

@testable import TarnAgent

/// A session's time, questions and leftovers, with a clock of the test's own.
@Suite struct DownloadSessionTests {
  private let bench: SessionBench

  init() throws { bench = try SessionBench() }

  // MARK: Not before, and requests that grow old

  @Test func aTaskDoesNotBeginBeforeItsTime() throws {
    let task = try bench.add("a") {
      $0.notBefore = bench.clock.time.adding(seconds: 3000)
      // They count from that moment.
      $0.limits = TaskLimits(whole: 120, stall: 60)
    }
    _ = try bench.session.advance()
    #expect(try bench.state(task) == .waiting && bench.ledger.task(task)?.code == "not-before")
    bench.clock.advance(.seconds(3000))
    // Whoever handed it over is asked first: a signed URL may be over by then.
    _ = try bench.session.advance()
    #expect(try bench.codes() == [.needsRequest] && bench.ledger.task(task)?.code == "request-old")
    bench.clock.advance(.seconds(29))
    _ = try bench.session.advance()
    #expect(try bench.state(task) == .waiting && bench.asked.withLock { $0.isEmpty })
    bench.clock.advance(.seconds(1))
    try bench.finish(task)
    #expect(bench.files == ["a"])
  }

  @Test func aBetterRequestBeginsAtOnce() throws {
    let task = try bench.add("a") { $0.notBefore = bench.clock.time.adding(seconds: 10) }
    bench.clock.advance(.seconds(10))
    _ = try bench.session.advance()
    var order = SessionOrder(.answer, task: task)
    order.url = "http://h/a?signature=2"
    #expect(try bench.session.answer(order, task))
    try bench.finish(task)
    #expect(bench.asked.withLock { $0.map(\.url) } == ["http://h/a?signature=2"])
  }

  @Test func aSessionMayHoldOldRequests() throws {
    var settings = SessionSettings()
    (settings.holdsOld, settings.transfers) = (true, 1)
    try bench.session.set(settings, nil)
    let task = try bench.add("a") { $0.suspended = true }
    bench.clock.advance(.seconds(7200))
    // To resume is to say that it is good still.
    #expect(try bench.session.queue([task], from: [.suspended]) == [task])
    try bench.finish(task)
    let second = try bench.add("b") { $0.notBefore = bench.clock.time.adding(seconds: 60) }
    bench.clock.advance(.seconds(86_400))
    _ = try bench.session.advance()
    bench.clock.advance(.seconds(86_400))
    _ = try bench.session.advance()
    #expect(try bench.state(second) == .waiting)
    #expect(try bench.session.answer(SessionOrder(.answer, task: second), second))
    try bench.finish(second)
  }

  /// What has waited long in the queue is asked about, all that is next at once.
  @Test func aLongQueueIsAskedAboutAtOnce() throws {
    for number in 0..<20 { try bench.add("\(number)") }
    bench.clock.advance(.seconds(3600))
    _ = try bench.session.advance()
    #expect(try bench.states() == Array(repeating: .waiting, count: 20))
    #expect(try bench.codes() == Array(repeating: .needsRequest, count: 20))
    bench.clock.advance(.seconds(30))
    try bench.run(until: "all are done") { try bench.states().allSatisfy { $0 == .finished } }
    #expect(try bench.codes().filter { $0 == .needsRequest }.count == 20)
  }

  // MARK: Time-outs

  @Test func theWholeTimeEndsATask() throws {
    bench.answer("a", FakeAnswer(status: 503))
    let task = try bench.add("a") { $0.limits = TaskLimits(whole: 100) }
    try bench.run(until: "it waits") { try bench.state(task) == .waiting }
    bench.clock.advance(.seconds(99))
    try bench.run(until: "it waits again") { try bench.ledger.task(task)?.attempts ?? 0 > 1 }
    bench.clock.advance(.seconds(1))
    _ = try bench.session.advance()
    #expect(try bench.state(task) == .failed && bench.ledger.task(task)?.code == "time-over")
    #expect(try bench.codes().suffix(2) == [.failed, .allDelivered])
  }

  /// Waiting counts, suspension does not.
  @Test func suspensionCostsNoTime() throws {
    bench.answer("a", FakeAnswer(status: 503))
    let task = try bench.add("a") { $0.limits = TaskLimits(whole: 100) }
    try bench.run(until: "it waits") { try bench.state(task) == .waiting }
    bench.clock.advance(.seconds(60))
    #expect(try bench.session.give(.wish(.suspend), task))
    bench.clock.advance(.seconds(100_000))
    _ = try bench.session.advance()
    #expect(try bench.state(task) == .suspended)
    #expect(try bench.session.queue([task], from: [.suspended]) == [task])
    bench.clock.advance(.seconds(39))
    _ = try bench.session.advance()
    #expect(try bench.state(task)?.isEnd == false)
    try bench.run(until: "it waits") { try bench.state(task) == .waiting }
    bench.clock.advance(.seconds(1))
    _ = try bench.session.advance()
    #expect(try bench.ledger.task(task)?.code == "time-over")
  }

  @Test func aTaskWaitsAsLongAsTheServerAsked() throws {
    bench.answer("a", FakeAnswer(status: 503))
    bench.downloader.leaveAlone("http://h/a", seconds: 3000)
    let task = try bench.add("a")
    try bench.run(until: "it waits") { try bench.state(task) == .waiting }
    #expect(try bench.ledger.task(task)?.nextAttempt == bench.clock.time.adding(seconds: 3000))
  }

  /// A clock without a battery runs years ahead until the network sets it.
  @Test func aClockThatIsSetBackHoldsNoTaskForYears() throws {
    let right = bench.clock.time.nanoseconds
    bench.clock.setWall(right + 400 * 86_400_000_000_000)
    bench.answer("a", FakeAnswer(status: 503))
    let task = try bench.add("a")
    let later = try bench.add("b") { $0.notBefore = bench.clock.time.adding(seconds: 86_400 * 900) }
    try bench.run(until: "it waits") { try bench.state(task) == .waiting }
    bench.clock.setWall(right)
    bench.answer("a", FakeAnswer(etag: "\"1\"", body: Array("hello".utf8)))
    try bench.run(until: "it has finished") { try bench.state(task) == .finished }
    #expect(try bench.state(later) == .waiting, "its request delays it")
  }

  @Test func aClockThatIsSetBackDelaysNoAttempt() throws {
    bench.answer("a", FakeAnswer(status: 503))
    let task = try bench.add("a")
    let later = try bench.add("b") { $0.notBefore = bench.clock.time.adding(seconds: 60) }
    try bench.run(until: "it waits") { try bench.state(task) == .waiting }
    bench.clock.setWall(bench.clock.time.nanoseconds - 7200 * 1_000_000_000)
    bench.answer("a", FakeAnswer(etag: "\"1\"", body: Array("hello".utf8)))
    bench.clock.advance(.seconds(8))
    try bench.run(until: "it has finished") { try bench.state(task) == .finished }
    #expect(try bench.state(later) == .waiting, "its request names a moment")
  }

  /// The first one waits half a minute for a better request.
  @Test func nobodyOvertakesWhoIsAskedAbout() throws {
    var settings = SessionSettings()
    settings.transfers = 1
    try bench.session.set(settings, nil)
    let old = try bench.add("old")
    bench.clock.advance(.seconds(3700))
    let young = try bench.add("young")
    let urgent = try bench.add("urgent") { $0.priority = .high }
    try bench.finish(urgent)
    #expect(try bench.state(old) == .waiting && bench.state(young) == .queued)
    bench.clock.advance(.seconds(31))
    try bench.finish(young)
    #expect(bench.asked.withLock { $0.map(\.url) } == ["http://h/urgent", "http://h/old", "http://h/young"])
  }

  @Test func whoIsAskedAboutTakesOnlyOneSlot() throws {
    var settings = SessionSettings()
    settings.transfers = 4
    try bench.session.set(settings, nil)
    let start = bench.clock.time
    let delays: [Int64] = [3, 13, 23]
    for delay in delays { try bench.add("\(delay)") { $0.notBefore = start.adding(seconds: delay) } }
    for delay in delays {
      bench.clock.setWall(start.adding(seconds: delay).nanoseconds)
      _ = try bench.session.advance()
    }
    #expect(try bench.ledger.tasks(limit: 9).map(\.code) == ["request-old", "request-old", "request-old"])
    let plain = try bench.add("plain")
    try bench.finish(plain)
    #expect(bench.asked.withLock { $0.map(\.url) } == ["http://h/plain"])
  }

  /// One after the other is asked about, and so somebody always is.
  @Test func whoHasWaitedForAskedTasksBegins() throws {
    var settings = SessionSettings()
    settings.transfers = 1
    try bench.session.set(settings, nil)
    let start = bench.clock.time
    let delays: [Int64] = [3, 23, 43]
    for delay in delays { try bench.add("\(delay)") { $0.notBefore = start.adding(seconds: delay) } }
    bench.clock.advance(.seconds(3))
    _ = try bench.session.advance()
    let plain = try bench.add("plain")
    _ = try bench.session.advance()
    bench.clock.advance(.seconds(20))
    _ = try bench.session.advance()
    let codes = ["request-old", "request-old", "not-before", nil]
    #expect(try bench.ledger.tasks(limit: 9).map(\.code) == codes)
    bench.clock.advance(.seconds(10))
    try bench.finish(1)
    try bench.finish(plain)
    #expect(bench.asked.withLock { $0.map(\.url) } == ["http://h/3", "http://h/plain"])
  }

  @Test func withoutAByteATaskEnds() throws {
    bench.answer("a", FakeAnswer(status: 503))
    let task = try bench.add("a") { $0.limits = TaskLimits(stall: 500) }
    try bench.run(until: "it waits") { try bench.state(task) == .waiting }
    bench.clock.advance(.seconds(500))
    _ = try bench.session.advance()
    #expect(try bench.ledger.task(task)?.code == "no-progress")
  }

  @Test func aByteOfProgressIsProgress() throws {
    let broken = DownloadFailure(.reset, "lost", isTransient: true)
    var answer = FakeAnswer(
      etag: "\"1\"", body: Array(repeating: 7, count: 2 << 20), failure: (600_000, broken))
    bench.answer("a", answer)
    let task = try bench.add("a") { $0.limits = TaskLimits(stall: 500) }
    bench.clock.advance(.seconds(400))
    try bench.run(until: "it waits") { try bench.state(task) == .waiting }
    bench.clock.advance(.seconds(400))
    _ = try bench.session.advance()
    #expect(try bench.state(task)?.isEnd == false)
    answer.failure = nil
    bench.answer("a", answer)
    bench.clock.advance(.seconds(90))
    try bench.finish(task)
    #expect(try bench.state(task) == .finished)
  }

  /// The clock of another boot may run ahead.
  @Test func betweenBootsADayIsProven() {
    func at(_ seconds: UInt64) -> Instant { Instant(nanoseconds: seconds * 1_000_000_000) }
    let start = Timestamp(nanoseconds: 1_700_000_000_000_000_000)
    var age = SessionAge(wall: start, boot: "a", uptime: at(100))
    age.advance(wall: start.adding(seconds: 3600), boot: "b", uptime: at(5))
    #expect(age.seconds == 3600 && age.proven == 3600)
    age.advance(wall: start.adding(seconds: 40 * 86_400), boot: "c", uptime: at(5))
    #expect(age.seconds == 40 * 86_400 && age.proven == 3600 + 86_400)
    age.advance(wall: start.adding(seconds: 40 * 86_400 + 60), boot: "c", uptime: at(65))
    #expect(age.proven == 3600 + 86_400 + 60)
  }

  /// Across boots the wall clock counts, and one that was set back counts nothing.
  @Test func ageIsThatOfTheMachine() {
    func at(_ seconds: UInt64) -> Instant { Instant(nanoseconds: seconds * 1_000_000_000) }
    let start = Timestamp(nanoseconds: 1_700_000_000_000_000_000)
    var age = SessionAge(wall: start, boot: "one", uptime: at(100))
    // The clock is set forward by a year: nobody waited for that.
    age.advance(wall: start.adding(seconds: 31_536_000), boot: "one", uptime: at(150))
    #expect(age.seconds == 50)
    age.advance(wall: start.adding(seconds: 31_536_100), boot: "two", uptime: at(10))
    #expect(age.seconds == 150)
    age.advance(wall: start, boot: "three", uptime: at(10))
    #expect(age.seconds == 150)
    age.advance(wall: start, boot: "three", uptime: Instant(nanoseconds: 10_900_000_000))
    age.advance(wall: start, boot: "three", uptime: Instant(nanoseconds: 11_100_000_000))
    #expect(age.seconds == 151)
  }

  /// An age that an earlier version stored is read.
  @Test func ageInTheLedger() throws {
    let text = #"{"boot":"one","seconds":5,"uptime":100500000000,"wall":"2026-01-02T03:04:05Z"}"#
    var age = try JSONDecoder().decode(SessionAge.self, from: Data(text.utf8))
    age.advance(wall: Timestamp(nanoseconds: 0), boot: "one", uptime: Instant(nanoseconds: 102_600_000_000))
    #expect(age.seconds == 7)
    let stored = String(decoding: try JSONEncoder().encode(age), as: UTF8.self)
    #expect(stored.contains(#""uptime":102500000000"#))
  }

  // MARK: The end of a session

  @Test func nobodysSessionEnds() throws {
    try bench.session.age.touch()
    bench.clock.advance(.seconds(89 * 86_400))
    #expect(try !bench.session.age.isAbandoned())
    try bench.reopen()
    bench.clock.advance(.seconds(86_400))
    #expect(try bench.session.age.isAbandoned())
    try bench.session.age.touch()
    #expect(try !bench.session.age.isAbandoned())
  }

  // MARK: What is no GET

  @Test func aPostIsNotRepeatedSilently() throws {
    bench.answer("a", FakeAnswer(status: 503))
    let task = try bench.add("a") { ($0.method, $0.body) = ("POST", "{}") }
    try bench.run(until: "it asks") { try bench.codes().contains(.needsRequest) }
    bench.clock.advance(.seconds(86_400))
    _ = try bench.session.advance()
    #expect(try bench.state(task) == .waiting && bench.asked.withLock { $0.count } == 1)
    let request = try #require(bench.asked.withLock { $0.first })
    #expect(request.method == "POST" && request.body == "{}")
    bench.answer("a", FakeAnswer(body: [1]))
    #expect(try bench.session.answer(SessionOrder(.answer, task: task), task))
    try bench.finish(task)
    #expect(bench.asked.withLock { $0.count } == 2 && bench.files == ["a"])
  }

  /// Not by the next process either.
  @Test func aPostThatWasInterruptedIsNotRepeated() throws {
    bench.answer("a", FakeAnswer(hangs: true))
    let task = try bench.add("a") { $0.method = "POST" }
    let get = try bench.add("b")
    bench.answer("b", FakeAnswer(hangs: true))
    try bench.run(until: "both were asked for") { bench.asked.withLock { $0.count } == 2 }
    try bench.reopen()
    #expect(try bench.state(task) == .waiting && bench.ledger.task(task)?.code == "interrupted")
    #expect(try bench.state(get) == .queued && bench.codes() == [.needsRequest])
  }

  // MARK: Answers

  @Test func aRuleHoldsWhatTheServerSends() throws {
    var answer = FakeAnswer(body: Array("hello".utf8))
    answer.contentType = "text/html; charset=utf-8"
    bench.answer("a", answer)
    var rule = ResponseRule(.hold)
    rule.types = ["text/*"]
    let task = try bench.add("a") { $0.rules = [rule] }
    try bench.run(until: "it is held") { try bench.state(task) == .waiting }
    #expect(try bench.ledger.task(task)?.code == "held" && bench.files.isEmpty)
    let event = try #require(try bench.ledger.events(after: 0, limit: 9).last)
    #expect(event.code == .needsRequest && event.response?.contentType == "text/html; charset=utf-8")
    bench.clock.advance(.seconds(86_400))
    _ = try bench.session.advance()
    #expect(try bench.state(task) == .waiting)
    var order = SessionOrder(.answer, task: task)
    order.to = bench.path + "/other/page.html"
    #expect(try bench.session.answer(order, task))
    try bench.finish(task)
    #expect(bench.text("other/page.html") == "hello" && bench.files.isEmpty)
  }

  @Test func aRuleRefusesWhatTheServerSends() throws {
    var rule = ResponseRule(.cancel)
    rule.leastBytes = 5
    var settings = SessionSettings()
    settings.rules = [rule]
    try bench.session.set(settings, nil)
    let task = try bench.add("a")
    try bench.finish(task)
    #expect(try bench.ledger.task(task)?.code == "refused-by-rule" && bench.files.isEmpty)
    // The task's own go first.
    let other = try bench.add("b") { $0.rules = [ResponseRule(.accept)] }
    try bench.finish(other)
    #expect(bench.files == ["b"])
  }

  @Test func aRuleNamesTheDestination() throws {
    var answer = FakeAnswer(body: Array("sound".utf8))
    answer.contentType = "audio/mpeg"
    bench.answer("a", answer)
    var rule = ResponseRule(.place)
    (rule.types, rule.to) = (["audio/*"], bench.path + "/other/")
    let task = try bench.add("a") { ($0.to, $0.rules) = (bench.path + "/out/", [rule]) }
    let text = try bench.add("b") { ($0.to, $0.rules) = (bench.path + "/out/", [rule]) }
    try bench.finish(task)
    try bench.finish(text)
    #expect(bench.text("other/a") == "sound" && bench.files == ["b"])
    #expect(try bench.ledger.task(task)?.path == bench.path + "/other/a")
  }

  @Test func anErrorPageIsAFileOnlyWhereThatIsAllowed() throws {
    bench.answer("a", FakeAnswer(status: 404, body: Array("gone".utf8)))
    let task = try bench.add("a")
    try bench.finish(task)
    let failed = try #require(try bench.ledger.events(after: 0, limit: 9).first { $0.code == .failed })
    #expect(failed.reason == "http-404" && failed.body == "gone" && failed.response?.status == 404)
    #expect(bench.files.isEmpty)
    bench.answer("b", FakeAnswer(status: 404, body: Array("gone".utf8)))
    var rule = ResponseRule(.accept)
    rule.status = [404]
    let allowed = try bench.add("b") { $0.rules = [rule] }
    try bench.finish(allowed)
    #expect(bench.text("out/b") == "gone")
  }

  /// What came of the attempt before is no part of the next answer.
  @Test func anAnswerBearsNoEarlierFailure() throws {
    bench.answer("a", FakeAnswer(status: 503))
    let task = try bench.add("a")
    try bench.run(until: "it waits") { try bench.state(task) == .waiting && !bench.session.isAtWork(task) }
    bench.answer("a", FakeAnswer(body: Array("hello".utf8)))
    bench.clock.advance(.seconds(60))
    try bench.finish(task)
    let answers = try bench.ledger.events(after: 0, limit: 99).filter { $0.code == .response }
    #expect(answers.count == 2 && answers.allSatisfy { $0.reason == nil && $0.message == nil })
  }

  /// Of a long error page its beginning is told.
  @Test func ofARefusedBodyTheBeginningIsKept() throws {
    bench.answer("a", FakeAnswer(status: 410, body: Array(repeating: 0x61, count: 300_000)))
    let task = try bench.add("a")
    try bench.finish(task)
    let failed = try #require(try bench.ledger.events(after: 0, limit: 9).first { $0.code == .failed })
    #expect(failed.reason == "http-410" && failed.body?.utf8.count == 65_536)
  }

  // MARK: What is finished

  @Test func whatIsFinishedIsRevalidated() throws {
    let task = try bench.add("a")
    try bench.finish(task)
    bench.answer("a", FakeAnswer(status: 304, etag: "\"1\""))
    #expect(try bench.add("a") == task)
    #expect(try bench.state(task) == .queued)
    try bench.finish(task)
    #expect(bench.asked.withLock { $0.last?.ifNoneMatch } == "\"1\"" && bench.text("out/a") == "hello")
    #expect(try bench.codes().filter { $0 == .finished }.count == 2)
    // Another version takes its place, though nothing else would.
    bench.answer("a", FakeAnswer(etag: "\"2\"", body: Array("other".utf8)))
    try bench.add("a")
    try bench.finish(task)
    let message = try bench.ledger.task(task)?.message
    #expect(message == nil)
    #expect(bench.text("out/a") == "other" && bench.files == ["a"])
    bench.answer("a", FakeAnswer(status: 304))
    try bench.add("a")
    try bench.finish(task)
    #expect(bench.asked.withLock { $0.last?.ifNoneMatch } == "\"2\"")
  }

  /// - Parameter day: the day of its Last-Modified.
  private func dated(_ day: Int64, _ text: String = "", status: Int = 200) -> FakeAnswer {
    var answer = FakeAnswer(status: status, body: Array(text.utf8))
    answer.lastModified = Timestamp(seconds: 1_600_000_000 + day * 86_400)
    return answer
  }

  /// A refusal says nothing about the file in place, whatever its head has.
  @Test func aRefusalDoesNotChangeWhatTheFileIsAskedWith() throws {
    bench.answer("a", dated(2, "old"))
    let task = try bench.add("a")
    try bench.finish(task)
    bench.answer("a", dated(4, status: 503))
    try bench.add("a")
    try bench.run(until: "it waits") { try bench.state(task) == .waiting }
    bench.answer("a", dated(3, "new"))
    bench.clock.advance(.seconds(60))
    try bench.finish(task)
    #expect(bench.asked.withLock { $0.last?.ifModifiedSince } == dated(2).lastModified?.rfc3339)
    #expect(bench.text("out/a") == "new")
  }

  private static let lost = DownloadFailure(.reset, "lost", isTransient: true)

  /// Nor does an answer whose file never got its name.
  @Test(arguments: ["cut", "cancelled", "killed"])
  func onlyTheAnswerThatBroughtAFileIdentifiesIt(end: String) throws {
    let task = try bench.add("a")
    try bench.finish(task)
    let (whole, gate) = (FakeAnswer(etag: "\"2\"", body: Array("another".utf8)), AnswerGate())
    var answer = whole
    if end == "cut" { answer.failure = (3, Self.lost) } else { answer.pause = (3, gate) }
    bench.answer("a", answer)
    try bench.add("a")
    try bench.run(until: "the server has answered again") {
      try bench.codes().filter { $0 == .response }.count == 2
    }
    switch end {
    case "cut": try bench.run(until: "it waits") { try bench.state(task) == .waiting }
    case "killed": try bench.reopen()
    default:
      #expect(try bench.session.give(.wish(.cancel(keeps: false)), task))
      try bench.finish(task)
    }
    bench.answer("a", whole)
    bench.clock.advance(.seconds(60))
    if end == "cancelled" { try bench.add("a") }
    try bench.finish(task)
    #expect(bench.asked.withLock { $0.last?.ifNoneMatch } != "\"2\"")
    #expect(try bench.state(task) == .finished && bench.text("out/a") == "another")
  }

  /// The file in place came from another URL until the one from this URL has its name.
  @Test func aCutAnswerOfAnotherURLSaysNothingAboutTheFile() throws {
    let task = try bench.add("a")
    try bench.finish(task)
    var answer = FakeAnswer(etag: "\"b\"", body: Array("of b".utf8), failure: (2, Self.lost))
    bench.answer("b", answer)
    var order = SessionOrder(.retry, task: task)
    order.url = "http://h/b"
    #expect(try bench.session.answer(order, task))
    try bench.run(until: "it waits") { try bench.state(task) == .waiting }
    answer.failure = nil
    bench.answer("b", answer)
    bench.clock.advance(.seconds(60))
    try bench.finish(task)
    #expect(bench.asked.withLock { $0.last?.ifNoneMatch } == nil && bench.text("out/a") == "of b")
    // From now on it is the file of this URL.
    #expect(try bench.session.answer(order, task))
    try bench.finish(task)
    #expect(bench.asked.withLock { $0.last?.ifNoneMatch } == "\"b\"")
  }

  /// One name that is led to another file in time, such as that of the latest version. A new signature or token is no other file.
  @Test(
    arguments: [
      ("http://c/1/f?signature=2", "\"123456\"", "first"), ("https://c/2/f", "\"123456\"", "first"),
      ("http://c/1/g", "\"123456\"", "second"), ("http://c/1/f?signature=2", "\"1\"", "second"),
      ("https://c/2/f", "\"1\"", "second"), ("https://c/1/f?signature=1", "\"1\"", "first"),
    ])
  func aFileIsUnchangedWhereItCameFrom(_ second: String, _ etag: String, _ expected: String) throws {
    var answer = FakeAnswer(etag: etag, body: Array("first".utf8))
    answer.finalURL = "http://c/1/f?signature=1"
    bench.answer("a", answer)
    let task = try bench.add("a")
    try bench.finish(task)
    (answer.finalURL, answer.body) = (second, Array("second".utf8))
    bench.answer("a", answer)
    try bench.add("a")
    try bench.finish(task)
    #expect(try bench.state(task) == .finished && bench.text("out/a") == expected && bench.files == ["a"])
    let conditions = bench.asked.withLock { $0.map(\.ifNoneMatch) }
    #expect(conditions == (expected == "first" ? [nil, etag] : [nil, etag, nil]))
  }

  /// Two queries may be of two files, which a date does not tell apart.
  @Test func aDateIsThatOfOneURL() throws {
    bench.answer("a", dated(2, "old"))
    let task = try bench.add("a")
    try bench.finish(task)
    bench.answer("a?b", dated(1, "new"))
    var order = SessionOrder(.retry, task: task)
    order.url = "http://h/a?b"
    #expect(try bench.session.answer(order, task))
    try bench.finish(task)
    #expect(bench.asked.withLock { $0.last?.ifModifiedSince } == nil && bench.text("out/a") == "new")
  }

  /// As with what has failed: the new request holds, and the file stays where it is.
  @Test func whatIsFinishedTakesTheNewRequest() throws {
    var settings = SessionSettings()
    settings.headers = ["X-A: session", "x-b: session"]
    try bench.session.set(settings, nil)
    let task = try bench.add("a") { ($0.headers, $0.label) = (["X-A: one"], "one") }
    try bench.finish(task)
    #expect(bench.asked.withLock { $0.last?.headers } == ["x-b: session", "X-A: one"])
    try bench.add("a") { ($0.headers, $0.label, $0.priority) = (["X-B: two"], "two", .low) }
    try bench.finish(task)
    #expect(bench.asked.withLock { $0.last?.headers } == ["X-A: session", "X-B: two"])
    let event = try bench.ledger.events(after: 0, limit: 99).last { $0.code == .finished }
    #expect(event?.label == "two" && bench.files == ["a"])
    // It may begin suspended, and with a key it stays one request.
    try bench.add("a") { $0.suspended = true }
    #expect(try bench.state(task) == .suspended && bench.ledger.task(task)?.request.label == nil)
  }

  /// What somebody has changed since is left to them.
  @Test func whatWasEditedIsNotTakenAway() throws {
    let task = try bench.add("a")
    try bench.finish(task)
    try "mine".write(toFile: bench.path + "/out/a", atomically: true, encoding: .utf8)
    try bench.add("a")
    try bench.finish(task)
    #expect(try bench.state(task) == .failed && bench.ledger.task(task)?.code == "in-the-way")
    #expect(bench.text("out/a") == "mine")
  }

  @Test func aDigestNeedsNoServer() throws {
    let digest = OpenSSLHashing().digest(.sha256, of: Array("hello".utf8)).labelled
    let task = try bench.add("a") { $0.digest = digest }
    try bench.finish(task)
    try bench.add("a") { $0.digest = digest }
    try bench.finish(task)
    #expect(bench.asked.withLock { $0.count } == 1)
    #expect(try bench.codes().filter { $0 == .finished }.count == 2)
  }

  /// The attempt before it had reserved the name of its file.
  @Test func aTaskThatNeedsNoServerLeavesItsName() throws {
    let task = try bench.add("a")
    try bench.finish(task)
    bench.answer("a", FakeAnswer(status: 503))
    try bench.add("a")
    try bench.run(until: "it waits") {
      try bench.state(task) == .waiting && !bench.session.isAtWork(task)
    }
    let digest = OpenSSLHashing().digest(.sha256, of: Array("hello".utf8)).labelled
    #expect(try bench.add("a") { $0.digest = digest } == task)
    bench.clock.advance(.seconds(60))
    try bench.finish(task)
    #expect(try bench.state(task) == .finished && bench.asked.withLock { $0.count } == 2)
    bench.answer("b", FakeAnswer(body: Array("other".utf8)))
    let other = try bench.add("b") { ($0.to, $0.existing) = (bench.path + "/out/a", .replace) }
    try bench.finish(other)
    #expect(try bench.state(other) == .finished && bench.text("out/a") == "other")
  }

  /// A client that missed the answer adds its tasks once more: nothing begins anew.
  @Test func aKeyIsAddedOnce() throws {
    let task = try bench.add("a") { $0.key = "k" }
    try bench.finish(task)
    let before = try bench.codes()
    #expect(try bench.add("a") { $0.key = "k" } == task)
    #expect(try bench.state(task) == .finished && bench.codes() == before)
    // Without the key it is asked about.
    #expect(try bench.add("a") == task && bench.state(task) == .queued)
  }

  /// Each key of a task is that of one request, also the second one, and after the agent was restarted.
  @Test func eachKeyIsAddedOnce() throws {
    let task = try bench.add("a") { $0.key = "1" }
    try bench.finish(task)
    bench.answer("a", FakeAnswer(hangs: true))
    #expect(try bench.add("a") { $0.key = "2" } == task && bench.state(task) == .queued)
    #expect(try bench.session.give(.wish(.cancel(keeps: false)), task))
    for reopens in [false, true] {
      if reopens { try bench.reopen() }
      for key in ["1", "2"] {
        #expect(try bench.add("a") { $0.key = key } == task && bench.ledger.knows(key: key))
        #expect(try bench.state(task) == .cancelled)
      }
    }
    #expect(try !bench.ledger.knows(key: "3"))
    // A key is that of its task, whatever comes with it.
    #expect(try bench.add("b") { $0.key = "2" } == task)
  }

  /// Another client gives the request its first key: it is no repetition, and what is gone comes back.
  @Test func aFirstKeyIsNoRepetition() throws {
    let task = try bench.add("a")
    try bench.finish(task)
    try FileManager.default.removeItem(atPath: bench.path + "/out/a")
    #expect(try bench.add("a") { $0.key = "k" } == task)
    try bench.finish(task)
    #expect(bench.files == ["a"])
  }

  /// A number is what the name ends with, however long it is.
  @Test func longNamesAreNumbered() throws {
    let long = String(repeating: "n", count: 220)
    for number in 0..<3 {
      let task = try bench.add(long + "?\(number)") {
        ($0.to, $0.existing) = (bench.path + "/out/", .keepBoth)
      }
      try bench.finish(task)
      #expect(try bench.state(task) == .finished)
    }
    #expect(bench.files.count == 3 && bench.files.allSatisfy { $0.utf8.count <= 200 })
  }

  /// The digest of a request that comes later holds.
  @Test func aDigestThatIsGivenLaterHolds() throws {
    let task = try bench.add("a") { $0.suspended = true }
    #expect(try bench.add("a") { $0.digest = "sha256:" + String(repeating: "0", count: 64) } == task)
    #expect(try bench.session.queue([task], from: [.suspended]) == [task])
    try bench.run(until: "it is not what was asked for") { try bench.state(task) == .waiting }
    #expect(try bench.ledger.task(task)?.code == "digest-mismatch" && bench.files.isEmpty)
  }

  /// Also that of one that comes while the task runs.
  @Test(arguments: [true, false]) func aDigestThatIsGivenMeanwhileHolds(isRight: Bool) throws {
    let body = Array(repeating: UInt8(7), count: 2 << 20)
    let (task, gate) = try bench.beginPaused("a")
    let digest = OpenSSLHashing().digest(.sha256, of: isRight ? body : [1]).labelled
    #expect(try bench.add("a") { $0.digest = digest } == task && bench.state(task) == .running)
    gate.open()
    if isRight {
      try bench.finish(task)
      #expect(try bench.ledger.task(task)?.digest == digest && bench.asked.withLock { $0.count } == 1)
    } else {
      try bench.run(until: "it is not what was asked for") {
        try bench.ledger.task(task)?.code == "digest-mismatch"
      }
    }
  }

  /// The agent was killed when the file had its name, before its digest was compared.
  @Test(arguments: [true, false]) func aDigestThatWasGivenBeforeACrashHolds(isRight: Bool) throws {
    let task = try bench.add("a")
    try bench.finish(task)
    let digest = OpenSSLHashing().digest(.sha256, of: Array((isRight ? "hello" : "other").utf8)).labelled
    try bench.ledger.update(task) { task in
      var task = task
      task.request.digest = digest
      return (task, [])
    }
    try bench.reopen()
    #expect(try bench.state(task) == (isRight ? TaskState.finished : TaskState.queued))
    guard !isRight else { return }
    bench.answer("a", FakeAnswer(etag: "\"1\"", body: Array("other".utf8)))
    try bench.finish(task)
    #expect(try bench.ledger.task(task)?.digest == digest && bench.text("out/a") == "other")
  }

  /// Orders for all leave nothing that begins meanwhile.
  @Test func allAreSuspended() throws {
    for number in 0..<20 {
      bench.answer("\(number)", FakeAnswer(hangs: true))
      try bench.add("\(number)")
    }
    try bench.run(until: "some run") { try bench.states().contains(.running) }
    #expect(try bench.session.giveAll(.wish(.suspend), in: TaskState.allCases.filter { !$0.isEnd }) == 20)
    try bench.run(until: "all are suspended") { try bench.states().allSatisfy { $0 == .suspended } }
  }

  @Test func settingsThatWouldEndTheAgentAreRefused() {
    var settings = SessionSettings()
    settings.quota = SessionQuota()
    settings.quota?.keptFor = .min
    #expect(throws: TaskRequest.Refusal.self) { try settings.validate() }
    #expect(TaskPlace("/out/.tarn-s-5.part") == nil)
  }

  /// What is suspended holds nothing up: the others are told to be done.
  @Test func suspensionOfTheLastEndsTheRest() throws {
    let done = try bench.add("a")
    try bench.finish(done)
    bench.answer("b", FakeAnswer(hangs: true))
    let other = try bench.add("b")
    let third = try bench.add("c")
    try bench.finish(third)
    #expect(try bench.codes().last == .finished)
    #expect(try bench.session.give(.wish(.suspend), other))
    try bench.run(until: "it is suspended") { try bench.state(other) == .suspended }
    let events = try bench.ledger.events(after: 0, limit: 99)
    #expect(events.last?.code == .allDelivered && events.last?.finished == 1)
  }

  @Test func cancelKeepsThePartialFileIfAskedTo() throws {
    let task = try bench.beginLarge("a")
    #expect(try bench.session.queue([task], from: [.failed]) == [task])
    #expect(try bench.session.give(.wish(.cancel(keeps: true)), task))
    #expect(bench.files == [".tarn-s-1.part"])
    #expect(try bench.session.queue([task], from: [.cancelled]) == [task])
    #expect(try bench.session.give(.wish(.cancel(keeps: false)), task))
    #expect(bench.files.isEmpty)
  }

  /// The second order comes to a task that has ended.
  @Test func cancelDropsThePartialFileThatAnEarlierOneKept() throws {
    let task = try bench.beginLarge("a")
    #expect(try bench.session.queue([task], from: [.failed]) == [task])
    #expect(try bench.session.give(.wish(.cancel(keeps: true)), task))
    #expect(try !bench.session.give(.wish(.cancel(keeps: true)), task))
    #expect(bench.files == [".tarn-s-1.part"])
    #expect(try !bench.session.give(.wish(.cancel(keeps: false)), task))
    #expect(bench.files.isEmpty)
  }
}
