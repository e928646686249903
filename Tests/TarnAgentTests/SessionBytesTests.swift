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

/// What a session's tasks have on disk: partial files, quotas, places, and answers whose end nothing marks.
@Suite struct SessionBytesTests {
  private let bench: SessionBench

  init() throws { bench = try SessionBench() }

  // MARK: Bytes

  @Test func bytesOfSomebodyElseAreUsed() throws {
    let body = (0..<2_000_000).map { UInt8(truncatingIfNeeded: $0 >> 8) }
    bench.answer("a", FakeAnswer(etag: "\"1\"", body: body))
    let begun = bench.path + "/other/begun"
    try Data(body.prefix(1_500_000)).write(to: URL(fileURLWithPath: begun))
    var resuming = TaskRequest.Resuming(file: begun)
    resuming.etag = "\"1\""
    let task = try bench.add("a") { $0.resuming = resuming }
    try bench.finish(task)
    #expect(bench.asked.withLock { $0.map(\.offset) } == [1_500_000])
    #expect(try Data(contentsOf: URL(fileURLWithPath: bench.path + "/out/a")) == Data(body))
    #expect(FileManager.default.fileExists(atPath: begun))
  }

  @Test func bytesOfAnotherVersionAreNot() throws {
    bench.answer("a", FakeAnswer(etag: "\"2\"", body: Array("right".utf8), honoursRanges: false))
    let begun = bench.path + "/other/begun"
    try "wro".write(toFile: begun, atomically: true, encoding: .utf8)
    var resuming = TaskRequest.Resuming(file: begun)
    resuming.etag = "\"1\""
    let task = try bench.add("a") { $0.resuming = resuming }
    try bench.finish(task)
    #expect(bench.text("out/a") == "right")
    #expect(throws: TaskRequest.Refusal.self) {
      try bench.add("b") { $0.resuming = TaskRequest.Resuming(file: begun) }
    }
  }

  /// Its code is not that of a destination, for another one would help nothing.
  @Test(arguments: ["other/nowhere", "nowhere/begun", "other"])
  func bytesThatCannotBeReadAreNotTheDestinations(_ name: String)
    throws
  {
    let task = try bench.add("a") {
      $0.resuming = TaskRequest.Resuming(file: bench.path + "/" + name)
      $0.resuming?.etag = "\"1\""
    }
    try bench.finish(task)
    let failed = try #require(try bench.ledger.task(task))
    #expect(failed.state == .failed && failed.code == "file-not-readable", "\(failed)")
    #expect(failed.message?.hasPrefix("\(bench.path)/\(name) cannot be read: ") == true, "\(failed)")
    #expect(bench.files.isEmpty && bench.asked.withLock(\.isEmpty))
  }

  @Test func aPartialFileIsKeptForAWhile() throws {
    let task = try bench.beginLarge("a")
    #expect(try bench.session.partialFiles.total().files == 1)
    bench.clock.setWall(SystemClock().time.nanoseconds)
    bench.clock.advance(.seconds(29 * 86_400))
    _ = try bench.session.advance()
    #expect(try bench.session.partialFiles.total().files == 1)
    bench.clock.advance(.seconds(2 * 86_400))
    _ = try bench.session.advance()
    #expect(try bench.session.partialFiles.total().files == 0 && bench.files.isEmpty)
    #expect(try bench.state(task) == .failed && bench.ledger.partial(RelativePath(task: task)) == nil)
  }

  /// It is not older for a clock that runs ahead when the agent starts.
  @Test func aClockThatRunsAheadDropsNoPartialFile() throws {
    let task = try bench.beginLarge("a")
    bench.clock.setWall(SystemClock().time.adding(seconds: 40 * 86_400).nanoseconds)
    try bench.reopen()
    _ = try bench.session.advance()
    #expect(bench.files == [".tarn-s-\(task).part"])
    bench.clock.advance(.seconds(29 * 86_400))
    _ = try bench.session.advance()
    #expect(bench.files == [".tarn-s-\(task).part"])
    // An agent in between does not make it young again.
    try bench.reopen()
    bench.clock.advance(.seconds(2 * 86_400))
    _ = try bench.session.advance()
    #expect(bench.files.isEmpty)
  }

  @Test func theOldestPartialFileGoesFirst() throws {
    let (first, second) = (try bench.beginLarge("a"), try bench.beginLarge("b"))
    let old = bench.path + "/out/.tarn-s-\(first).part"
    try FileManager.default.setAttributes(
      [.modificationDate: Date(timeIntervalSinceNow: -3600)], ofItemAtPath: old)
    var settings = SessionSettings()
    settings.quota = SessionQuota()
    settings.quota?.kept = 2_000_000
    try bench.session.set(settings, nil)
    bench.clock.advance(.seconds(600))
    _ = try bench.session.advance()
    #expect(bench.files == [".tarn-s-\(second).part"])
  }

  @Test func aQuotaOfBytesHolds() throws {
    var settings = SessionSettings()
    settings.quota = SessionQuota()
    settings.quota?.bytes = 1_000_000
    try bench.session.set(settings, nil)
    bench.answer("large", FakeAnswer(body: Array(repeating: 1, count: 2_000_000)))
    let large = try bench.add("large")
    try bench.finish(large)
    #expect(try bench.ledger.task(large)?.code == "larger-than-quota")
    // One that runs leaves no room for the next: that one waits.
    let gate = AnswerGate()
    var answer = FakeAnswer(body: Array(repeating: 1, count: 800_000))
    answer.pause = (1000, gate)
    bench.answer("one", answer)
    bench.answer("two", FakeAnswer(body: Array(repeating: 1, count: 800_000)))
    let one = try bench.add("one")
    try bench.run(until: "the server has answered") {
      try bench.codes().filter { $0 == .response }.count == 2
    }
    let two = try bench.add("two")
    try bench.run(until: "it waits") { try bench.state(two) == .waiting }
    #expect(try bench.ledger.task(two)?.code == "quota-exceeded")
    gate.open()
    try bench.finish(one)
    bench.clock.advance(.seconds(60))
    try bench.finish(two)
    #expect(bench.files == ["one", "two"])
  }

  private func setQuota(bytes: UInt64) throws {
    var settings = SessionSettings()
    settings.quota = SessionQuota()
    settings.quota?.bytes = bytes
    try bench.session.set(settings, nil)
  }

  /// The server does not say how large it is.
  @Test func whatOutgrowsTheQuotaKeepsNothing() throws {
    try setQuota(bytes: 1_000_000)
    var answer = FakeAnswer(etag: "\"1\"", body: Array(repeating: 1, count: 3_000_000))
    answer.hasLength = false
    bench.answer("large", answer)
    let large = try bench.add("large")
    try bench.finish(large)
    #expect(try bench.ledger.task(large)?.code == "larger-than-quota" && bench.files.isEmpty)
    bench.answer("small", FakeAnswer(body: Array(repeating: 1, count: 900_000)))
    let small = try bench.add("small")
    try bench.finish(small)
    #expect(try bench.state(small) == .finished)
  }

  /// The server does not say how large they are, and the client does.
  @Test func expectedBytesCountForOthers() throws {
    try setQuota(bytes: 1_000_000)
    let gate = AnswerGate()
    var answer = FakeAnswer(body: Array(repeating: 1, count: 600_000))
    answer.hasLength = false
    bench.answer("two", answer)
    answer.pause = (1000, gate)
    bench.answer("one", answer)
    let one = try bench.add("one") { $0.expectedBytes = 600_000 }
    try bench.run(until: "the server has answered") { try bench.codes().contains(.response) }
    let two = try bench.add("two") { $0.expectedBytes = 600_000 }
    try bench.run(until: "it waits") { try bench.state(two) == .waiting }
    #expect(try bench.ledger.task(two)?.code == "quota-exceeded")
    gate.open()
    try bench.finish(one)
    #expect(try bench.state(one) == .finished)
  }

  /// Nobody says how large they are: only one of them is begun, and no byte is on the disk beyond the quota.
  @Test func filesWithoutASizeComeOneAfterTheOther() throws {
    try setQuota(bytes: 4_000_000)
    let gate = AnswerGate()
    var answer = FakeAnswer(body: Array(repeating: 1, count: 3_000_000))
    (answer.hasLength, answer.pause) = (false, (1_500_000, gate))
    for name in ["a", "b", "c", "d"] {
      bench.answer(name, answer)
      try bench.add(name)
    }
    try bench.run(until: "only one is at work") {
      try bench.codes().contains(.response) && bench.session.running == 1
    }
    #expect(try bench.session.partialFiles.total().bytes <= 1_500_000)
    // Nothing else begins beside it.
    let other = try bench.add("other")
    bench.clock.advance(.seconds(300))
    _ = try bench.session.advance()
    #expect(try bench.session.running == 1 && bench.state(other) == .queued)
    gate.open()
    try bench.run(until: "all have finished") {
      #expect(try bench.session.partialFiles.total().bytes <= 4_000_000)
      return try bench.states().allSatisfy { $0 == .finished }
    }
    // Each of those that were begun before the first answer asks once more.
    #expect(bench.asked.withLock { $0.count { $0.url != "http://h/other" } } <= 7)
  }

  /// What a file has on the disk is reserved before it is written.
  @Test func aFileWithoutASizeStopsAtTheQuota() throws {
    let (first, gate) = try bench.beginPaused("first")
    try setQuota(bytes: 3_000_000)
    let end = AnswerGate()
    var answer = FakeAnswer(etag: "\"1\"", body: Array(repeating: 1, count: 2_500_000))
    (answer.hasLength, answer.pause) = (false, (2_400_000, end))
    bench.answer("second", answer)
    let second = try bench.add("second")
    try bench.run(until: "it waits") {
      try bench.state(second) == .waiting && !bench.session.isAtWork(second)
    }
    #expect(try bench.ledger.task(second)?.code == "quota-exceeded")
    let kept = try #require(try bench.ledger.task(second).flatMap { bench.session.partialFiles.kept(of: $0) })
    #expect(kept > 500_000 && kept <= 3_000_000 - (2 << 20))
    gate.open()
    end.open()
    try bench.finish(first)
    try bench.finish(second)
    #expect(try bench.state(second) == .finished)
    #expect(bench.asked.withLock { $0.last?.offset ?? 0 } > 0)
  }

  /// No time passes, and nothing is asked in vain.
  @Test(arguments: ["end", "cancel", "quota"]) func freedRoomIsTakenAtOnce(by what: String) throws {
    try setQuota(bytes: 1_000_000)
    let gate = AnswerGate()
    var answer = FakeAnswer(body: Array(repeating: 1, count: 800_000))
    bench.answer("two", answer)
    answer.pause = (1000, gate)
    bench.answer("one", answer)
    let one = try bench.add("one")
    try bench.run(until: "the server has answered") { try bench.codes().contains(.response) }
    let two = try bench.add("two")
    try bench.run(until: "it waits") {
      try bench.state(two) == .waiting && !bench.session.isAtWork(two)
    }
    let waiting = try #require(try bench.ledger.task(two))
    #expect(waiting.code == "quota-exceeded" && waiting.nextAttempt == nil && waiting.attempts == 0)
    bench.clock.advance(.seconds(1000))
    _ = try bench.session.advance()
    #expect(try bench.state(two) == .waiting)
    switch what {
    case "end": gate.open()
    case "cancel": #expect(try bench.session.give(.wish(.cancel(keeps: false)), one))
    default: try setQuota(bytes: 2_000_000)
    }
    try bench.finish(two)
    #expect(try bench.state(two) == .finished)
    #expect(bench.asked.withLock { $0.count { $0.url == "http://h/two" } } == 2)
    gate.open()
  }

  /// Two that wait for each other's room would wait for ever.
  @Test func oneOfThoseThatWaitForTheQuotaKeepsItsBytes() throws {
    let lost = DownloadFailure(.reset, "the connection was lost", isTransient: true)
    let body = Array(repeating: UInt8(7), count: 2 << 20)
    for name in ["one", "two"] {
      bench.answer(name, FakeAnswer(etag: "\"1\"", body: body, failure: (1_500_000, lost)))
      try bench.add(name)
    }
    try bench.run(until: "both wait") {
      try bench.states() == [.waiting, .waiting] && bench.session.running == 0
    }
    #expect(bench.files == [".tarn-s-1.part", ".tarn-s-2.part"])
    try setQuota(bytes: 3_000_000)
    for name in ["one", "two"] { bench.answer(name, FakeAnswer(etag: "\"1\"", body: body)) }
    try bench.run(until: "both have finished") {
      bench.clock.advance(.seconds(60))
      return try bench.states() == [.finished, .finished]
    }
  }

  // MARK: Places

  /// Its task may go on later.
  @Test func aSuspendedTaskKeepsItsName() throws {
    let (task, _) = try bench.beginPaused("x/same") { $0.to = bench.path + "/out/" }
    #expect(try bench.session.give(.wish(.suspend), task))
    try bench.run(until: "it stands still") { try bench.state(task) == .suspended }
    for reopens in [false, true] {
      if reopens { try bench.reopen() }
      let other = try bench.add("\(reopens)/same") { $0.to = bench.path + "/out/" }
      try bench.finish(other)
      #expect(try bench.ledger.task(other)?.code == "in-the-way")
    }
    let beside = try bench.add("z/same") { ($0.to, $0.existing) = (bench.path + "/out/", .keepBoth) }
    try bench.finish(beside)
    #expect(bench.text("out/same (1)") == "hello")
    bench.answer("x/same", FakeAnswer(etag: "\"1\"", body: Array(repeating: 7, count: 2 << 20)))
    #expect(try bench.session.queue([task], from: [.suspended]) == [task])
    try bench.finish(task)
    #expect(try bench.state(task) == .finished && bench.files == ["same", "same (1)"])
    // The name is free again once the task has ended.
    try FileManager.default.removeItem(atPath: bench.path + "/out/same")
    let last = try bench.add("last/same") { $0.to = bench.path + "/out/" }
    try bench.finish(last)
    #expect(try bench.state(last) == .finished)
  }

  /// The new name is reserved from the move on, and the old one is free.
  @Test(arguments: [true, false]) func aTaskThatIsMovedTakesItsNameAlong(isRunning: Bool) throws {
    var settings = SessionSettings()
    settings.transfers = 1
    try bench.session.set(settings, nil)
    let (task, gate) = try bench.beginPaused("a")
    bench.answer("a", FakeAnswer(etag: "\"1\"", body: Array(repeating: 7, count: 2 << 20)))
    bench.answer("busy", FakeAnswer(hangs: true))
    let busy = try bench.add("busy") { $0.priority = .high }
    if !isRunning {
      #expect(try bench.session.give(.wish(.suspend), task))
      try bench.run(until: "it is suspended") { try bench.state(task) == .suspended }
    }
    var order = SessionOrder(.answer, task: task)
    order.to = bench.path + "/other/b"
    #expect(try bench.session.answer(order, task))
    try bench.run(until: "another one runs") { try bench.state(busy) == .running }
    #expect(try bench.state(task) == (isRunning ? .queued : .suspended))
    // These come before it.
    let old = try bench.add("old") { ($0.to, $0.priority) = (bench.path + "/out/a", .high) }
    let new = try bench.add("new") { ($0.to, $0.priority) = (bench.path + "/other/b", .high) }
    #expect(try bench.session.give(.wish(.cancel(keeps: false)), busy))
    for other in [old, new] { try bench.finish(other) }
    #expect(try bench.state(old) == .finished && bench.ledger.task(new)?.code == "in-the-way")
    if !isRunning { #expect(try bench.session.queue([task], from: [.suspended]) == [task]) }
    try bench.finish(task)
    #expect(try bench.state(task) == .finished && bench.text("other/b")?.utf8.count == 2 << 20)
    gate.open()
  }

  /// A task that cannot even begin has ended, and holds its name no longer.
  @Test func whatFailsAtItsBeginningHoldsNoName() throws {
    let lost = DownloadFailure(.reset, "lost", isTransient: true)
    let body = Array(repeating: UInt8(7), count: 2 << 20)
    bench.answer("x", FakeAnswer(etag: "\"1\"", body: body, failure: (1_500_000, lost)))
    let task = try bench.add("x")
    try bench.run(until: "it waits") { try bench.state(task) == .waiting && !bench.session.isAtWork(task) }
    try "mine".write(toFile: bench.path + "/out/x", atomically: true, encoding: .utf8)
    #expect(try bench.session.queue([task], from: [.waiting]) == [task])
    try bench.finish(task)
    #expect(try bench.ledger.task(task)?.code == "in-the-way")
    try FileManager.default.removeItem(atPath: bench.path + "/out/x")
    let other = try bench.add("y") { $0.to = bench.path + "/out/x" }
    try bench.finish(other)
    #expect(try bench.state(other) == .finished && bench.text("out/x") == "hello")
  }

  /// The bytes are in the directory, whatever it is called by now.
  @Test func aDirectoryThatIsRenamedKeepsTheBytes() throws {
    let (task, gate) = try bench.beginPaused("a")
    try FileManager.default.moveItem(atPath: bench.path + "/out", toPath: bench.path + "/renamed")
    gate.open()
    try bench.run(until: "it has failed") {
      try bench.state(task)?.isOpen == false || bench.state(task) == .waiting
    }
    #expect(bench.fileExists("renamed/.tarn-s-1.part"))
    bench.answer("a", FakeAnswer(etag: "\"1\"", body: Array(repeating: 7, count: 2 << 20)))
    var order = SessionOrder(.retry, task: task)
    order.to = bench.path + "/other/a"
    #expect(try bench.session.answer(order, task))
    try bench.finish(task)
    #expect(try bench.state(task) == .finished && bench.fileExists("other/a"))
    #expect(!bench.fileExists("renamed/.tarn-s-1.part"))
    #expect(bench.asked.withLock { $0.last?.offset ?? 0 } != 0 || bench.asked.withLock { $0.count } == 1)
  }

  /// The bytes are kept, and go along to another place.
  @Test func aPlaceThatIsGoneKeepsTheBytes() throws {
    let (task, gate) = try bench.beginPaused("a")
    // Somebody else takes the name meanwhile.
    try "mine".write(toFile: bench.path + "/out/a", atomically: true, encoding: .utf8)
    gate.open()
    try bench.finish(task)
    #expect(try bench.ledger.task(task)?.code == "in-the-way" && bench.files == [".tarn-s-1.part", "a"])
    var order = SessionOrder(.retry, task: task)
    order.to = bench.path + "/other/b"
    #expect(try bench.session.answer(order, task))
    let body = Array(repeating: UInt8(7), count: 2 << 20)
    bench.answer("a", FakeAnswer(etag: "\"1\"", body: body))
    try bench.finish(task)
    #expect(try bench.state(task) == .finished)
    #expect(try Data(contentsOf: URL(fileURLWithPath: bench.path + "/other/b")) == Data(body))
    #expect(bench.files == ["a"] && bench.text("out/a") == "mine")
    // Nothing was fetched twice.
    #expect(bench.asked.withLock { $0.dropFirst().allSatisfy { $0.offset >= 1_500_000 } })
    // It is known by what it was added with.
    #expect(try bench.add("a") == task)
  }

  @Test func thePlaceIsChangedWhileItRuns() throws {
    let body = Array(repeating: UInt8(7), count: 2 << 20)
    let gate = AnswerGate()
    var answer = FakeAnswer(etag: "\"1\"", body: body)
    answer.pause = (1_500_000, gate)
    bench.answer("a", answer)
    let task = try bench.add("a")
    try bench.run(until: "the server has answered") { try bench.codes().contains(.response) }
    answer.pause = nil
    bench.answer("a", answer)
    var order = SessionOrder(.answer, task: task)
    order.to = bench.path + "/other/b"
    #expect(try bench.session.answer(order, task))
    try bench.finish(task)
    #expect(try Data(contentsOf: URL(fileURLWithPath: bench.path + "/other/b")) == Data(body))
    #expect(bench.files.isEmpty)
  }

  /// Another place, another URL and other headers in one answer.
  @Test func allOfAnAnswerHolds() throws {
    let body = Array(repeating: UInt8(7), count: 2 << 20)
    let gate = AnswerGate()
    var answer = FakeAnswer(etag: "\"1\"", body: body)
    answer.pause = (1_500_000, gate)
    bench.answer("a", answer)
    answer.pause = nil
    bench.answer("a?new", answer)
    let task = try bench.add("a")
    try bench.run(until: "the server has answered") { try bench.codes().contains(.response) }
    var order = SessionOrder(.answer, task: task)
    (order.to, order.url, order.headers) = (bench.path + "/other/b", "http://h/a?new", ["X-Own: b"])
    #expect(try bench.session.answer(order, task))
    try bench.finish(task)
    let last = try #require(bench.asked.withLock { $0.last })
    #expect(last.url == "http://h/a?new" && last.headers == ["X-Own: b"])
    #expect(bench.text("other/b")?.utf8.count == body.count && bench.files.isEmpty)
  }

  /// Another URL goes on where the one before ended, if the server has the same version there; else from zero.
  @Test(arguments: [true, false]) func anotherURLIsProvedByItsETag(isSame: Bool) throws {
    let body = Array(repeating: UInt8(7), count: 2 << 20)
    let broken = DownloadFailure(.reset, "lost", isTransient: true)
    bench.answer("a", FakeAnswer(etag: "\"1\"", body: body, failure: (1_500_000, broken)))
    let task = try bench.add("a")
    try bench.run(until: "it waits") { try bench.state(task) == .waiting }
    let other = isSame ? body : Array(repeating: UInt8(8), count: 2 << 20)
    bench.answer("a?new", FakeAnswer(etag: isSame ? "\"1\"" : "\"2\"", body: other, honoursRanges: isSame))
    var order = SessionOrder(.answer, task: task)
    order.url = "http://h/a?new"
    #expect(try bench.session.answer(order, task))
    try bench.finish(task)
    let last = bench.asked.withLock { $0.filter { $0.url == "http://h/a?new" } }
    #expect(last.first?.offset ?? 0 > 0 && last.first?.ifRange == "\"1\"")
    #expect(try Data(contentsOf: URL(fileURLWithPath: bench.path + "/out/a")) == Data(other))
  }

  /// Another host or path is another file, whatever its ETag. Only a digest proves the bytes there.
  @Test(arguments: ["http://other/a", "http://h:81/a", "http://h/b"], [true, false])
  func anotherFileBeginsAnew(url: String, hasDigest: Bool) throws {
    let body = Array(repeating: UInt8(7), count: 2 << 20)
    let other = hasDigest ? body : Array(repeating: UInt8(8), count: 2 << 20)
    let broken = DownloadFailure(.reset, "lost", isTransient: true)
    bench.answer("a", FakeAnswer(etag: "\"1\"", body: body, failure: (1_500_000, broken)))
    let digest = OpenSSLHashing().digest(.sha256, of: body).labelled
    let task = try bench.add("a") { $0.digest = hasDigest ? digest : nil }
    try bench.run(until: "it waits") { try bench.state(task) == .waiting }
    bench.answers.withLock { $0[url] = FakeAnswer(etag: "\"1\"", body: other) }
    #expect(try bench.session.partialFiles.beginsAnew(task, at: url) == !hasDigest)
    var order = SessionOrder(.answer, task: task)
    order.url = url
    #expect(try bench.session.answer(order, task))
    try bench.finish(task)
    #expect(try Data(contentsOf: URL(fileURLWithPath: bench.path + "/out/a")) == Data(other))
    let offset = bench.asked.withLock { $0.first { $0.url == url }?.offset }
    #expect(hasDigest ? offset ?? 0 >= 1_000_000 : offset == 0)
  }

  /// The ETag of a finished file says nothing about another file.
  @Test(arguments: ["http://h/b", "http://h/a?new"]) func aFinishedFileIsComparedWithItsOwnURL(
    url: String
  ) throws {
    let task = try bench.add("a")
    try bench.finish(task)
    var order = SessionOrder(.retry, task: task)
    order.url = url
    #expect(try bench.session.answer(order, task))
    try bench.finish(task)
    #expect(bench.asked.withLock { $0.last?.ifNoneMatch } == (url.hasSuffix("b") ? nil : "\"1\""))
    #expect(try bench.state(task) == .finished)
  }

  /// An agent that was killed has left it.
  @Test func anUnchangedFileLeavesNoPartialFile() throws {
    let task = try bench.add("a")
    try bench.finish(task)
    try "half".write(toFile: bench.path + "/out/.tarn-s-1.part", atomically: true, encoding: .utf8)
    bench.answer("a", FakeAnswer(status: 304, etag: "\"1\""))
    try bench.add("a")
    try bench.finish(task)
    #expect(try bench.state(task) == .finished && bench.ledger.task(task)?.directory == nil)
    #expect(bench.files == ["a"])
  }

  /// The file is there by its digest, and what was fetched of another version is of no use.
  @Test func aFileThatIsThereLeavesNoPartialFile() throws {
    let task = try bench.add("a")
    try bench.finish(task)
    var answer = FakeAnswer(etag: "\"2\"", body: Array(repeating: 7, count: 2 << 20))
    answer.pause = (1_500_000, AnswerGate())
    bench.answer("a", answer)
    try bench.add("a")
    try bench.run(until: "much of it is there") {
      try bench.session.partialFiles.total().bytes >= 1_000_000
    }
    #expect(try bench.session.give(.wish(.cancel(keeps: true)), task))
    try bench.finish(task)
    #expect(bench.files.count == 2)
    try bench.add("a") { $0.digest = OpenSSLHashing().digest(.sha256, of: Array("hello".utf8)).labelled }
    try bench.finish(task)
    #expect(try bench.state(task) == .finished && bench.asked.withLock { $0.count } == 2)
    #expect(try bench.files == ["a"] && bench.session.partialFiles.total().files == 0)
  }

  /// The agent was killed before it had removed it.
  @Test(arguments: [true, false]) func whatIsLeftBesideAFinishedFileGoes(isForgotten: Bool) throws {
    let task = try bench.add("a")
    try bench.finish(task)
    try "half".write(toFile: bench.path + "/out/.tarn-s-1.part", atomically: true, encoding: .utf8)
    try bench.ledger.update(task) { task in
      var task = task
      task.directory = 1
      return (task, [])
    }
    #expect(try bench.session.partialFiles.total().files == 1)
    if isForgotten {
      bench.session.dropAll()
    } else {
      bench.clock.advance(.seconds(DownloadSession.upkeepEvery))
      _ = try bench.session.advance()
    }
    #expect(bench.files == ["a"])
  }

  /// The answer came while the task ran: its transfer stops, and what it leaves goes on from the other URL.
  @Test func anotherURLForARunningTaskGoesOnWithTheBytes() throws {
    let (task, _) = try bench.beginPaused("a")
    bench.answer("a?new", FakeAnswer(etag: "\"1\"", body: Array(repeating: 7, count: 2 << 20)))
    var order = SessionOrder(.answer, task: task)
    order.url = "http://h/a?new"
    #expect(try bench.session.answer(order, task))
    try bench.finish(task)
    let last = bench.asked.withLock { $0.filter { $0.url == "http://h/a?new" } }
    #expect(
      last.first?.offset ?? 0 > 0 && last.first?.ifRange == "\"1\"", "\(bench.asked.withLock { $0 })"
    )
    #expect(bench.text("out/a") == String(repeating: "\u{7}", count: 2 << 20))
  }

  /// The server proves the bytes that are there, and the digest judges the file.
  @Test func aDigestThatComesLaterKeepsTheBytes() throws {
    let (task, gate) = try bench.beginPaused("a")
    try bench.suspend(task, atBytes: 1_000_000)
    gate.open()
    let digest = OpenSSLHashing().digest(.sha256, of: Array(repeating: 7, count: 2 << 20)).labelled
    let again = try bench.add("a") { $0.digest = digest }
    #expect(try again == task && bench.session.queue([task], from: [.suspended]) == [task])
    try bench.finish(task)
    #expect(try bench.state(task) == .finished && bench.ledger.task(task)?.digest == digest)
    #expect(bench.asked.withLock { $0.last?.offset ?? 0 } >= 1_000_000)
  }

  /// A small file has no row while it comes, and gets one when it is interrupted.
  @Test func aSuspendedSmallFileGoesOn() throws {
    let (body, gate) = ((0..<900_000).map { UInt8(truncatingIfNeeded: $0 >> 8) }, AnswerGate())
    var answer = FakeAnswer(etag: "\"1\"", body: body)
    answer.pause = (600_000, gate)
    bench.answer("a", answer)
    let task = try bench.add("a")
    try bench.suspend(task, atBytes: 500_000)
    gate.open()
    #expect(try bench.session.queue([task], from: [.suspended]) == [task])
    try bench.finish(task)
    #expect(bench.asked.withLock { $0.last?.offset ?? 0 } >= 500_000)
    #expect(try Data(contentsOf: URL(fileURLWithPath: bench.path + "/out/a")) == Data(body))
  }

  @Test func cancelLeavesNothingOfASmallFile() throws {
    let gate = AnswerGate()
    var answer = FakeAnswer(body: Array(repeating: 7, count: 200_000))
    answer.pause = (100_000, gate)
    bench.answer("a", answer)
    let task = try bench.add("a")
    try bench.run(until: "the server has answered") { try bench.codes().contains(.response) }
    #expect(try bench.session.give(.wish(.suspend), task))
    try bench.run(until: "it is suspended") { try bench.state(task) == .suspended }
    #expect(try bench.session.give(.wish(.cancel(keeps: false)), task))
    #expect(bench.files.isEmpty)
    #expect(try bench.session.partialFiles.total().files == 0)
    gate.open()
  }

  /// What was cancelled while its disk was away goes when that is back.
  @Test(arguments: [true, false], [true, false])
  func cancelLeavesNothingOnADiskThatIsAway(hasMountPoint: Bool, reopens: Bool) throws {
    let (task, gate) = try bench.beginPaused("a")
    #expect(try bench.session.give(.wish(.suspend), task))
    try bench.run(until: "it is suspended") { try bench.state(task) == .suspended }
    gate.open()
    let (place, away) = (bench.path + "/out", bench.path + "/away")
    try FileManager.default.moveItem(atPath: place, toPath: away)
    if hasMountPoint {
      try FileManager.default.createDirectory(atPath: place, withIntermediateDirectories: false)
    }
    #expect(try bench.session.give(.wish(.cancel(keeps: false)), task))
    bench.clock.advance(.seconds(600))
    _ = try bench.session.advance()
    #expect(bench.fileExists("away/.tarn-s-1.part"))
    if hasMountPoint { try FileManager.default.removeItem(atPath: place) }
    try FileManager.default.moveItem(atPath: away, toPath: place)
    if reopens { try bench.reopen() } else { bench.clock.advance(.seconds(600)) }
    _ = try bench.session.advance()
    #expect(try bench.files.isEmpty && bench.ledger.task(task)?.directory == nil)
  }

  /// A folder that somebody renames while it is filled gets no file, and none is told to be there.
  @Test func aFolderThatIsRenamedIsTold() throws {
    let gate = AnswerGate()
    var answer = FakeAnswer(etag: "\"1\"", body: Array(repeating: 7, count: 2 << 20))
    answer.pause = (1_500_000, gate)
    bench.answer("a", answer)
    let task = try bench.add("a")
    try bench.run(until: "the server has answered") { try bench.codes().contains(.response) }
    try FileManager.default.moveItem(atPath: bench.path + "/out", toPath: bench.path + "/renamed")
    gate.open()
    try bench.finish(task)
    #expect(try bench.state(task) == .failed && bench.ledger.task(task)?.code == "not-there")
    let left = try FileManager.default.contentsOfDirectory(atPath: bench.path + "/renamed")
    #expect(left == [".tarn-s-1.part"])
  }

  // MARK: Ends that nothing marks

  private func unframed(_ count: Int) -> FakeAnswer {
    var answer = FakeAnswer(body: Array(repeating: 7, count: count))
    answer.isFramed = false
    return answer
  }

  /// Nobody could tell a cut: it has failed at once, and says what would help.
  @Test func whatHasNoEndIsNoFile() throws {
    bench.answer("a", unframed(2000))
    let task = try bench.add("a")
    try bench.finish(task)
    #expect(try bench.state(task) == .failed && bench.ledger.task(task)?.code == "length-unknown")
    #expect(bench.files.isEmpty)
  }

  @Test func aNumberOfBytesMarksTheEnd() throws {
    bench.answer("a", unframed(2000))
    let task = try bench.add("a") { $0.expectedBytes = 2000 }
    try bench.finish(task)
    #expect(try bench.state(task) == .finished && bench.files == ["a"])
    // Another number is a cut, which may not happen again.
    let other = try bench.add("b") { $0.expectedBytes = 3000 }
    bench.answer("b", unframed(2000))
    try bench.run(until: "it waits") { try bench.state(other) == .waiting }
    #expect(try bench.ledger.task(other)?.code == "body-truncated")
    bench.answer("b", unframed(3000))
    bench.clock.advance(.seconds(60))
    try bench.finish(other)
    #expect(try bench.state(other) == .finished)
  }

  /// It is another file than the program expects. Trying it for ever would not make it shorter.
  @Test func moreBytesThanExpectedEndTheTaskAtTheSecondAttempt() throws {
    bench.answer("a", unframed(3000))
    let task = try bench.add("a") { $0.expectedBytes = 2000 }
    try bench.run(until: "it waits") { try bench.state(task) == .waiting }
    #expect(try bench.ledger.task(task)?.code == "size-mismatch")
    bench.clock.advance(.seconds(60))
    try bench.finish(task)
    #expect(try bench.state(task) == .failed && bench.ledger.task(task)?.code == "size-mismatch")
    #expect(bench.files.isEmpty)
  }

  @Test func aRuleTakesWhatHasNoEnd() throws {
    bench.answer("a", unframed(2000))
    let task = try bench.add("a") { $0.rules = [ResponseRule(.accept)] }
    try bench.finish(task)
    #expect(try bench.state(task) == .finished && bench.text("out/a")?.utf8.count == 2000)
  }

  /// Where no size is told the bytes are counted as they come.
  @Test func aQuotaHoldsWithoutASize() throws {
    var settings = SessionSettings()
    settings.quota = SessionQuota()
    settings.quota?.bytes = 9_000_000
    try bench.session.set(settings, nil)
    bench.answer("a", unframed(30_000_000))
    let task = try bench.add("a") { $0.rules = [ResponseRule(.accept)] }
    try bench.finish(task)
    #expect(try bench.state(task) == .failed && bench.ledger.task(task)?.code == "larger-than-quota")
    #expect(!bench.files.contains("a"))
  }

  // MARK: Places after a crash

  /// The process ends between the order and the move, or between the move and its record.
  @Test(arguments: [true, false]) func whatWasToMoveGoesAlongAfterACrash(isMoved: Bool) throws {
    let task = try bench.beginLarge("a")
    var order = SessionOrder(.retry, task: task)
    order.to = bench.path + "/other/b"
    #expect(try bench.session.answer(order, task))
    #expect(try bench.session.partialFiles.total().files == 1)
    if isMoved {
      try FileManager.default.moveItem(
        atPath: bench.path + "/out/.tarn-s-1.part", toPath: bench.path + "/other/.tarn-s-1.part")
    }
    bench.answer("a", FakeAnswer(etag: "\"1\"", body: Array(repeating: 7, count: 2 << 20)))
    try bench.reopen()
    try bench.finish(task)
    #expect(try bench.state(task) == .finished && bench.text("other/b")?.utf8.count == 2 << 20)
    #expect(bench.files.isEmpty && !bench.fileExists("other/.tarn-s-1.part"))
    #expect(bench.asked.withLock { $0.last?.offset ?? 0 } >= 1_000_000)
  }

  /// It is moved twice before it begins, and back.
  @Test func whatIsMovedAgainIsFound() throws {
    let task = try bench.beginLarge("a")
    try FileManager.default.createDirectory(
      atPath: bench.path + "/third", withIntermediateDirectories: false)
    for place in ["/other/b", "/third/b", "/out/c"] {
      var order = SessionOrder(.retry, task: task)
      order.to = bench.path + place
      #expect(try bench.session.answer(order, task))
    }
    bench.answer("a", FakeAnswer(etag: "\"1\"", body: Array(repeating: 7, count: 2 << 20)))
    try bench.finish(task)
    #expect(bench.files == ["c"] && bench.asked.withLock { $0.last?.offset ?? 0 } >= 1_000_000)
  }

  @Test(arguments: [true, false]) func cancelEndsAMove(isMoved: Bool) throws {
    let task = try bench.beginLarge("a")
    var order = SessionOrder(.retry, task: task)
    order.to = bench.path + "/other/b"
    #expect(try bench.session.answer(order, task))
    if isMoved {
      try FileManager.default.moveItem(
        atPath: bench.path + "/out/.tarn-s-1.part", toPath: bench.path + "/other/.tarn-s-1.part")
    }
    #expect(try bench.session.give(.wish(.cancel(keeps: false)), task))
    #expect(bench.files.isEmpty && !bench.fileExists("other/.tarn-s-1.part"))
    #expect(try bench.session.partialFiles.total().files == 0)
  }

  /// The session goes on with others while bytes are copied, and an order ends the copy.
  @Test func anOrderEndsACopy() throws {
    let begun = bench.path + "/other/begun"
    let file = try #require(fopen(begun, "w"))
    #expect(ftruncate(fileno(file), 64 << 20) == 0)
    fclose(file)
    var resuming = TaskRequest.Resuming(file: begun)
    resuming.etag = "\"1\""
    let task = try bench.add("a") { $0.resuming = resuming }
    _ = try bench.session.advance()
    #expect(try bench.session.give(.wish(.cancel(keeps: false)), task))
    try bench.finish(task)
    #expect(try bench.state(task) == .cancelled && bench.files.isEmpty)
    #expect(bench.asked.withLock { $0.isEmpty })
  }
}
