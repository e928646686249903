import Foundation
import TarnCore
import TarnCrypto
import TarnEngine
import TarnRuntime
import TestSupport
import Testing

@testable import TarnAgent
@testable import TarnLedger

/// Orders to a running task, and what its quotas, times and places come to.
@Suite struct SessionOrderTests {
  private let bench: SessionBench
  private let large = Array(repeating: UInt8(7), count: 2 << 20)
  private let lost = DownloadFailure(.reset, "the connection was lost", isTransient: true)

  init() throws { bench = try SessionBench() }

  /// The agent ends before the transfer does.
  @Test func anOrderToARunningTaskOutlivesTheAgent() throws {
    let (cancelled, first) = try bench.beginPaused("a")
    let (suspended, second) = try bench.beginPaused("b")
    #expect(try bench.session.give(.wish(.cancel(keeps: false)), cancelled))
    #expect(try bench.ledger.task(cancelled)?.wish == .cancel(keeps: false))
    #expect(try bench.session.give(.wish(.suspend), suspended))
    #expect(bench.files == [".tarn-s-1.part", ".tarn-s-2.part"])
    try bench.reopen()
    first.open()
    second.open()
    #expect(try bench.states() == [.cancelled, .suspended])
    #expect(try bench.codes().contains(.cancelled))
    #expect(bench.files == [".tarn-s-2.part"])
    #expect(try bench.ledger.task(suspended)?.wish == nil)
  }

  /// Until somebody says so nothing is written there: the one before may come back.
  @Test func retryTakesAFolderThatWasMadeAgain() throws {
    let (task, gate) = try bench.beginPaused("a")
    try bench.suspend(task, atBytes: 1_000_000)
    gate.open()
    // Were it removed, the new one might get its inode.
    try FileManager.default.moveItem(atPath: bench.path + "/out", toPath: bench.path + "/gone")
    try FileManager.default.createDirectory(
      atPath: bench.path + "/out", withIntermediateDirectories: false)
    #expect(try bench.session.queue([task], from: [.suspended]) == [task])
    try bench.run(until: "it waits") { try bench.state(task) == .waiting }
    let waiting = try #require(try bench.ledger.task(task))
    #expect(waiting.code == "other-file-system")
    #expect(waiting.message?.contains("'tarn retry session:s/\(task)' begins") == true)
    #expect(bench.files.isEmpty)
    #expect(try bench.session.queue([task], from: [.waiting]) == [task])
    try bench.finish(task)
    #expect(try bench.state(task) == .finished && bench.files == ["a"])
    #expect(bench.asked.withLock { $0.last?.offset } == 0)
  }

  /// Somebody has removed the partial file. The next one has its name, and other bytes.
  @Test func theRowOfASmallFileGoesWithIt() throws {
    let (first, second) = (AnswerGate(), AnswerGate())
    var answer = FakeAnswer(etag: "\"E1\"", body: Array(repeating: 7, count: 900_000))
    answer.pause = (600_000, first)
    bench.answer("a", answer)
    let task = try bench.add("a")
    try bench.suspend(task, atBytes: 500_000)
    first.open()
    let path = RelativePath(task: task)
    #expect(try bench.ledger.partial(path)?.etag == "\"E1\"")
    try FileManager.default.removeItem(atPath: bench.path + "/out/.tarn-s-\(task).part")
    let body = Array(repeating: UInt8(8), count: 900_000)
    answer = FakeAnswer(etag: "\"E2\"", body: body)
    answer.pause = (600_000, second)
    bench.answer("a", answer)
    #expect(try bench.session.queue([task], from: [.suspended]) == [task])
    try bench.run(until: "most of the other one is there") {
      try bench.session.partialFiles.total().bytes >= 500_000
    }
    #expect(try bench.ledger.partial(path) == nil)
    second.open()
    try bench.finish(task)
    #expect(try Data(contentsOf: URL(fileURLWithPath: bench.path + "/out/a")) == Data(body))
  }

  /// The finished file is the wanted one, and is not fetched again.
  @Test func aDigestInCapitalsIsTheSame() throws {
    let digest = OpenSSLHashing().digest(.sha256, of: Array("hello".utf8))
    for _ in 0..<3 {
      let task = try bench.add("a") { $0.digest = "SHA-256:\(digest.hex.uppercased())" }
      try bench.finish(task)
      #expect(try bench.state(task) == .finished && bench.ledger.task(task)?.digest == digest.labelled)
    }
    #expect(bench.asked.withLock { $0.count } == 1)
  }

  /// What the server has said and sent by then comes with the end, as with every other.
  @Test func aCancelledTaskTellsWhatHadCome() throws {
    let (task, _) = try bench.beginPaused("a")
    #expect(try bench.session.give(.wish(.cancel(keeps: false)), task))
    try bench.finish(task)
    func event(_ code: SessionEvent.Code) throws -> SessionEvent? {
      try bench.ledger.events(after: 0, limit: 99).last { $0.code == code }
    }
    #expect(try event(.response)?.times?.response != nil)
    let cancelled = try #require(try event(.cancelled))
    #expect(cancelled.response?.status == 200 && cancelled.times?.response != nil)
    #expect(cancelled.bytes.map { $0 > 0 && $0 <= 1_500_000 } == true)
    // One that waits after an answer tells it, and one that nobody has answered has none.
    bench.answer("b", FakeAnswer(status: 503))
    let waiting = try bench.add("b")
    try bench.run(until: "it waits") { try bench.state(waiting) == .waiting }
    #expect(try bench.session.give(.wish(.cancel(keeps: false)), waiting))
    #expect(try event(.cancelled)?.task == waiting && event(.cancelled)?.response?.status == 503)
    let suspended = try bench.add("c") { $0.suspended = true }
    #expect(try bench.session.give(.wish(.cancel(keeps: false)), suspended))
    #expect(try event(.cancelled)?.task == suspended && event(.cancelled)?.response == nil)
  }

  /// The transfer stops only a moment after the first order.
  @Test func aLaterOrderTakesThePlaceOfAnEarlierOne() throws {
    let (task, _) = try bench.beginPaused("a")
    #expect(try bench.session.give(.wish(.suspend), task))
    #expect(try !bench.session.give(.wish(.suspend), task), "it is so already")
    #expect(try bench.session.queue([task], from: [.suspended]) == [task])
    bench.answer("a", FakeAnswer(etag: "\"1\"", body: large))
    try bench.finish(task)
    #expect(try bench.state(task) == .finished)

    let (other, _) = try bench.beginPaused("b")
    #expect(try bench.session.give(.wish(.cancel(keeps: false)), other))
    #expect(try bench.add("b") == other)
    bench.answer("b", FakeAnswer(etag: "\"1\"", body: large))
    try bench.finish(other)
    #expect(try bench.state(other) == .finished && bench.files == ["a", "b"])
    #expect(try !bench.codes().contains(.cancelled))
  }

  @Test func whatAClientWantsGoesBeforeWhatTheSessionDecides() throws {
    let (task, _) = try bench.beginPaused("a")
    let decided = DownloadSession.StopReason.fail(code: "time-over", message: "it took too long")
    _ = try bench.session.give(decided, task)
    #expect(try bench.session.give(.wish(.suspend), task))
    _ = try bench.session.give(decided, task)
    try bench.run(until: "it is suspended") { try bench.state(task) == .suspended }
  }

  /// What belongs to one origin never goes to another.
  @Test func anotherOriginGetsNoHeaders() throws {
    let task = try bench.add("a") {
      ($0.headers, $0.suspended) = (["Authorization: Bearer secret"], true)
    }
    func headers(after change: (inout SessionOrder) -> Void) throws -> [String]? {
      var order = SessionOrder(.answer, task: task)
      change(&order)
      #expect(try bench.session.answer(order, task))
      return try bench.ledger.task(task)?.request.headers
    }
    #expect(try headers { $0.url = "http://H:80/b" } == ["Authorization: Bearer secret"])
    #expect(try headers { $0.url = "http://h:81/b" } == nil)
    #expect(
      try headers { ($0.url, $0.headers) = ("http://i/b", ["Authorization: Bearer other"]) }
        == ["Authorization: Bearer other"])
    #expect(try headers { $0.url = "https://i/b" } == nil)
  }

  /// Nothing stops any more, and so nothing would obey it.
  @Test(arguments: [TaskState.suspended, .cancelled])
  func anOrderThatComesWhileAFailureIsRecordedIsObeyed(wanted: TaskState) throws {
    bench.answer("a", FakeAnswer(etag: "\"1\"", body: large, failure: (1_500_000, lost)))
    let task = try bench.add("a")
    let (session, given) = (bench.session, Locked(false))
    bench.random.action.withLock {
      $0 = {
        let wish: TaskWish = wanted == .suspended ? .suspend : .cancel(keeps: false)
        _ = try? session.give(.wish(wish), task)
        given.withLock { $0 = true }
      }
    }
    try bench.run(until: "the failure is recorded") { given.withLock { $0 } && !session.isAtWork(task) }
    #expect(try bench.state(task) == wanted)
    #expect(bench.files == (wanted == .suspended ? [".tarn-s-1.part"] : []))
  }

  /// The next look finds the task, and takes it back.
  @Test func anEndThatCannotBeRecordedHoldsNoPlace() throws {
    let (task, gate) = try bench.beginPaused("a")
    bench.ledger.close()
    gate.open()
    #expect(throws: LedgerFailure.self) { try bench.session.ended(task, .stopped) }
    #expect(bench.session.running == 0)
  }

  /// Another task's row cannot be read for a while, and so nobody knows how much room is left.
  @Test func aBeginningThatCannotBeCountedHoldsNoPlace() throws {
    let other = try bench.beginLarge("other")
    var settings = SessionSettings()
    settings.quota = SessionQuota()
    settings.quota?.bytes = 10_000_000
    try bench.session.set(settings, nil)
    func change(_ request: String) throws {
      try bench.ledger.read { connection throws(LedgerFailure) in
        try connection.run("UPDATE tasks SET request = \(request) WHERE number = \(other)")
      }
    }
    try change("'damaged' || request")
    let task = try bench.add("a")
    #expect(throws: LedgerFailure.self) { try bench.session.advance() }
    #expect(bench.session.running == 0)
    #expect(try bench.state(task) == .running)
    try change("replace(request, 'damaged', '')")
    try bench.finish(task)
    #expect(try bench.state(task) == .finished)
  }

  @Test func aRequestThatMayDoSomethingTwiceIsAskedAbout() throws {
    let (task, _) = try bench.beginPaused("a") { $0.method = "POST" }
    #expect(try bench.session.give(.wish(.suspend), task))
    try bench.run(until: "it stands still") { try bench.state(task) == .suspended }
    #expect(try bench.session.queue([task], from: [.suspended]) == [task])
    #expect(try bench.state(task) == .waiting && bench.ledger.task(task)?.code == "interrupted")
    #expect(try bench.codes().last == .needsRequest && bench.asked.withLock { $0.count } == 1)
    let (moved, _) = try bench.beginPaused("b") { $0.method = "POST" }
    #expect(try bench.session.give(.wish(.move(to: bench.path + "/other/", nil)), moved))
    try bench.run(until: "it asks") { try bench.state(moved) == .waiting }
    #expect(bench.asked.withLock { $0.count } == 2)
  }

  /// It would be finished with the file of the other URL.
  @Test(arguments: [SessionOrder.Verb.answer, .retry], [false, true])
  func aRunningTaskIsFetchedFromItsNewURL(_ verb: SessionOrder.Verb, isSuspended: Bool) throws {
    let (task, _) = try bench.beginPaused("a")
    bench.answer("b", FakeAnswer(etag: "\"1\"", body: Array("another".utf8)))
    if isSuspended { #expect(try bench.session.give(.wish(.suspend), task)) }
    var order = SessionOrder(verb, task: task)
    order.url = "http://h/b"
    #expect(try bench.session.answer(order, task))
    // The same answer comes again, for its sender missed that it was taken.
    #expect(try bench.session.answer(order, task))
    if isSuspended {
      try bench.run(until: "it stands still") { try bench.state(task) == .suspended }
      #expect(try bench.session.queue([task], from: [.suspended]) == [task])
    }
    try bench.finish(task)
    #expect(try bench.state(task) == .finished && bench.text("out/a") == "another")
    #expect(try bench.codes().filter { $0 == .finished }.count == 1)
  }

  /// Headers alone: the same file, asked for with them.
  @Test func aRunningTaskIsAskedForWithItsNewHeaders() throws {
    let (task, _) = try bench.beginPaused("a")
    var order = SessionOrder(.answer, task: task)
    order.headers = ["X-Key: 1"]
    #expect(try bench.session.answer(order, task))
    bench.answer("a", FakeAnswer(etag: "\"1\"", body: Array(repeating: 7, count: 2 << 20)))
    try bench.finish(task)
    let asked = bench.asked.withLock { $0 }
    #expect(asked.count == 2 && asked.last?.offset ?? 0 > 0, "\(asked)")
    #expect(try bench.state(task) == .finished)
  }

  /// To stop it and to send it again may do something twice.
  @Test func aRunningRequestThatIsNoGetIsNotStopped() throws {
    let (task, gate) = try bench.beginPaused("a") { $0.method = "POST" }
    var order = SessionOrder(.answer, task: task)
    order.url = "http://h/a?2"
    let refusal = #expect(throws: TaskRequest.Refusal.self) { try bench.session.answer(order, task) }
    #expect(refusal?.code == "request-at-work")
    gate.open()
    try bench.finish(task)
    #expect(try bench.state(task) == .finished && bench.asked.withLock { $0.count } == 1)
    #expect(try bench.ledger.task(task)?.request.url == "http://h/a")
  }

  /// The answer comes while the file gets its name: that is no end of the task.
  @Test(arguments: [false, true]) func aFileThatIsNamedMeanwhileIsNotTheTasks(isKilled: Bool) throws {
    let (task, gate) = try bench.beginPaused("a")
    bench.answer("b", FakeAnswer(etag: "\"1\"", body: Array("another".utf8)))
    // As `answer` records it, when it is too late to stop the transfer.
    try bench.ledger.update(task) { task in
      var task = task
      (task.request.url, task.wish) = ("http://h/b", .again)
      return (task, [])
    }
    gate.open()
    if isKilled {
      try bench.run(until: "it has its name") { bench.fileExists("out/a") }
      try bench.reopen()
    }
    try bench.run(until: "it is over") { try bench.state(task)?.isEnd == true }
    #expect(try bench.state(task) == .finished && bench.text("out/a") == "another")
    let ends = try bench.ledger.events(after: 0, limit: 99).filter { $0.code == .finished }
    #expect(ends.count == 1 && ends.first?.bytes == 7, "\(ends)")
    #expect(try bench.codes().filter { $0 == .allDelivered }.count == 1)
  }

  @Test func aFileThatIsNamedMeanwhileStaysWhenItsTaskIsSentElsewhere() throws {
    let (task, gate) = try bench.beginPaused("a")
    bench.answer("b", FakeAnswer(etag: "\"1\"", body: Array("another".utf8)))
    try bench.ledger.update(task) { task in
      var task = task
      (task.request.url, task.wish) = ("http://h/b", .move(to: bench.path + "/other/b", nil))
      return (task, [])
    }
    gate.open()
    try bench.run(until: "it is over") { try bench.state(task)?.isEnd == true }
    #expect(try bench.state(task) == .finished && bench.text("other/b") == "another")
    #expect(bench.fileExists("out/a"), "nobody takes it away")
    let ends = try bench.ledger.events(after: 0, limit: 99).filter { $0.code == .finished }
    #expect(ends.map(\.path) == ["out/a", "other/b"].map { "\(bench.path)/\($0)" }, "each file is told of")
    #expect(ends.map(\.bytes) == [2 << 20, 7] && Set(ends.map(\.digest)).count == 2)
    #expect(try bench.codes().filter { $0 == .allDelivered }.count == 1)
    #expect(try bench.ledger.task(task)?.path == bench.path + "/other/b")
  }

  @Test func retryWithAURLTakesBackACancel() throws {
    let (task, _) = try bench.beginPaused("a")
    bench.answer("b", FakeAnswer(etag: "\"1\"", body: Array("another".utf8)))
    #expect(try bench.session.give(.wish(.cancel(keeps: false)), task))
    var order = SessionOrder(.answer, task: task)
    order.url = "http://h/b"
    #expect(try !bench.session.answer(order, task), "it is as good as cancelled")
    #expect(try bench.ledger.task(task)?.request.url == "http://h/a")
    order.verb = .retry
    #expect(try bench.session.answer(order, task))
    try bench.finish(task)
    #expect(try bench.state(task) == .finished && bench.text("out/a") == "another")
  }

  /// A rule's folder is made as that of the task.
  @Test(arguments: [true, false]) func aRulesFolderIsMade(makesDirectories: Bool) throws {
    var rule = ResponseRule(.place)
    rule.to = bench.path + "/new/below/b"
    let task = try bench.add("a") { ($0.rules, $0.makeDirectories) = ([rule], makesDirectories) }
    try bench.finish(task)
    #expect(try bench.state(task) == (makesDirectories ? .finished : .failed))
    #expect(bench.fileExists("new/below/b") == makesDirectories)
  }

  /// An answer of the server tells nothing of the file that the task had fetched before.
  @Test func theFileBeforeIsNotTheOneThatComes() throws {
    let task = try bench.add("a")
    try bench.finish(task)
    bench.answer("a", FakeAnswer(status: 404))
    var order = SessionOrder(.retry, task: task)
    order.to = bench.path + "/other/a"
    #expect(try bench.session.answer(order, task))
    try bench.finish(task)
    let events = try bench.ledger.events(after: 0, limit: 99)
    #expect(events.first { $0.code == .finished }?.bytes == 5)
    let others = events.filter { $0.code != .finished && $0.code != .allDelivered }
    #expect(others.count == 3 && others.allSatisfy { $0.bytes == nil && $0.digest == nil }, "\(others)")
    let failed = try #require(try bench.ledger.task(task))
    #expect(
      failed.state == .failed && TaskDocument(failed).task.bytes == nil
        && TaskDocument(failed).task.digest == nil)
  }

  /// Neither order undoes the other, whichever comes first.
  @Test(arguments: [true, false], [true, false]) func aTaskThatIsSuspendedAndSentElsewhereIsBoth(
    suspendsFirst: Bool, hasURL: Bool
  )
    throws
  {
    let (task, _) = try bench.beginPaused("a")
    bench.answer("b", FakeAnswer(etag: "\"1\"", body: Array("another".utf8)))
    var order = SessionOrder(.answer, task: task)
    (order.to, order.url) = hasURL ? (nil, "http://h/b") : (bench.path + "/other/b", nil)
    if suspendsFirst { #expect(try bench.session.give(.wish(.suspend), task)) }
    #expect(try bench.session.answer(order, task))
    if !suspendsFirst { #expect(try bench.session.give(.wish(.suspend), task)) }
    try bench.run(until: "it stands still") {
      try bench.state(task) == .suspended && !bench.session.isAtWork(task)
    }
    let suspended = try #require(try bench.ledger.task(task))
    #expect(hasURL ? suspended.request.url == "http://h/b" : suspended.request.to == bench.path + "/other/b")
    if !hasURL { bench.answer("a", FakeAnswer(etag: "\"1\"", body: Array(repeating: 7, count: 2 << 20))) }
    #expect(try bench.session.queue([task], from: [.suspended]) == [task])
    try bench.finish(task)
    #expect(try bench.state(task) == .finished)
    #expect(hasURL ? bench.text("out/a") == "another" : bench.fileExists("other/b") && bench.files.isEmpty)
  }

  /// A suspended task whose request has changed does not end with the file of the request before.
  @Test func aFileOfTheRequestBeforeIsNotTheSuspendedTasks() throws {
    let (task, gate) = try bench.beginPaused("a")
    bench.answer("b", FakeAnswer(etag: "\"1\"", body: Array("another".utf8)))
    try bench.ledger.update(task) { task in
      var task = task
      (task.request.url, task.wish) = ("http://h/b", TaskWish.again.after(.suspend))
      return (task, [])
    }
    gate.open()
    try bench.finish(task)
    let ends = try bench.ledger.events(after: 0, limit: 99).filter { $0.code == .finished }
    #expect(ends.map(\.url) == ["http://h/b"] && ends.map(\.bytes) == [7], "\(ends)")
  }

  @Test func aWishAfterAnother() {
    let move = TaskWish.move(to: "/a", .replace)
    let both = TaskWish.suspendMove(to: "/a", .replace)
    let rows: [(TaskWish?, TaskWish, TaskWish)] = [
      (nil, .suspend, .suspend), (.suspend, .again, .suspendAgain), (.again, .suspend, .suspendAgain),
      (.suspend, move, both), (move, .suspend, both), (both, .again, both), (.suspendAgain, move, both),
      (move, .again, move),
      (.again, move, move), (both, .goOn, move), (.suspendAgain, .goOn, .again), (.suspend, .goOn, .goOn),
      (.again, .goOn, .again),
      (both, .cancel(keeps: true), .cancel(keeps: true)), (.cancel(keeps: true), .again, .again),
      (.goOn, .suspend, .suspend),
      (both, .suspendMove(to: "/b", nil), .suspendMove(to: "/b", nil)), (both, both, both),
      (.suspendAgain, .suspend, .suspendAgain),
    ]
    for (earlier, later, expected) in rows {
      #expect(later.after(earlier) == expected, "\(later) after \(String(describing: earlier))")
    }
  }

  /// A request that is no GET is not sent again by itself, although its file got its name before the answer.
  @Test func aPostThatIsSentElsewhereMeanwhileIsNotRepeated() throws {
    let (task, gate) = try bench.beginPaused("a") { $0.method = "POST" }
    try bench.ledger.update(task) { task in
      var task = task
      task.wish = .move(to: bench.path + "/other/b", nil)
      return (task, [])
    }
    gate.open()
    try bench.run(until: "it waits") { try bench.state(task) == .waiting && !bench.session.isAtWork(task) }
    #expect(try bench.ledger.task(task)?.code == "interrupted")
    #expect(bench.asked.withLock { $0.count } == 1 && bench.fileExists("out/a"))
    let codes = try bench.codes().filter { $0 != .response }
    #expect(codes == [.finished, .needsRequest], "\(codes)")
  }

  /// Another digest came while it ran, and only a second request could bring a file that has it.
  @Test(arguments: [true, false]) func aPostWithAnotherDigestIsNotRepeated(isKilled: Bool) throws {
    let (task, gate) = try bench.beginPaused("a") { $0.method = "POST" }
    let digest = OpenSSLHashing().digest(.sha256, of: [1]).labelled
    #expect(try bench.add("a") { ($0.method, $0.digest) = ("POST", digest) } == task)
    gate.open()
    if isKilled {
      try bench.run(until: "it has its name") { bench.fileExists("out/a") }
      try bench.reopen()
    }
    try bench.run(until: "it asks") { try bench.state(task) == .waiting && !bench.session.isAtWork(task) }
    #expect(try bench.ledger.task(task)?.code == "interrupted" && bench.codes().last == .needsRequest)
    #expect(bench.asked.withLock { $0.count } == 1)
    bench.answer("a", FakeAnswer(etag: "\"2\"", body: [1]))
    #expect(try bench.session.answer(SessionOrder(.answer, task: task), task))
    try bench.finish(task)
    #expect(try bench.ledger.task(task)?.digest == digest && bench.asked.withLock { $0.count } == 2)
  }

  /// The file that was replaced goes from where it was, and not from where the task goes.
  @Test func whatWasReplacedGoesThoughTheTaskIsSentElsewhere() throws {
    try "old".write(toFile: bench.path + "/out/a", atomically: true, encoding: .utf8)
    let (task, gate) = try bench.beginPaused("a") { $0.existing = .replace }
    try bench.ledger.update(task) { task in
      var task = task
      task.wish = .move(to: bench.path + "/other/b", nil)
      return (task, [])
    }
    gate.open()
    try bench.finish(task)
    #expect(try bench.state(task) == .finished && bench.fileExists("other/b"))
    #expect(bench.files == ["a"] && bench.text("out/a") != "old")
  }

  /// A rule was stored before there was a mirror.
  @Test func aRulesFolderThatBecameAMirrorTakesNoFile() throws {
    try FileManager.default.createDirectory(
      atPath: bench.path + "/out/m/.tarn", withIntermediateDirectories: true)
    var rule = ResponseRule(.place)
    rule.to = bench.path + "/out/m/"
    let task = try bench.add("a") { $0.rules = [rule] }
    try bench.finish(task)
    #expect(try bench.ledger.task(task)?.code == "destination-in-mirror" && !bench.fileExists("out/m/a"))
  }

  /// The task may have waited for weeks.
  @Test(arguments: [true, false]) func aFolderThatBecameAMirrorTakesNoFile(isMadeFor: Bool) throws {
    let task = try bench.add("a") {
      ($0.to, $0.makeDirectories, $0.suspended) = ("\(bench.path)/out/m/", isMadeFor, true)
    }
    try FileManager.default.createDirectory(
      atPath: bench.path + "/out/m/.tarn", withIntermediateDirectories: true)
    #expect(try bench.session.queue([task], from: [.suspended]) == [task])
    try bench.finish(task)
    #expect(try bench.ledger.task(task)?.code == "destination-in-mirror")
    #expect(!bench.fileExists("out/m/a") && bench.asked.withLock(\.isEmpty))
  }

  /// The file is there already, and is another one by now.
  @Test func anotherDigestIsAnotherFile() throws {
    func digest(_ text: String) -> String { OpenSSLHashing().digest(.sha256, of: Array(text.utf8)).labelled }
    bench.answer("a", FakeAnswer(etag: "\"1\"", body: Array("one".utf8)))
    let task = try bench.add("a") { $0.digest = digest("one") }
    try bench.finish(task)
    bench.answer("a", FakeAnswer(etag: "\"2\"", body: Array("two".utf8)))
    #expect(try bench.add("a") { $0.digest = digest("two") } == task)
    try bench.finish(task)
    #expect(try bench.state(task) == .finished && bench.text("out/a") == "two")
    #expect(try bench.ledger.task(task)?.digest == digest("two"))
  }

  /// Its bytes go where the file goes.
  @Test func whatWasMovedAndIsAddedAgainLeavesNothing() throws {
    let (task, _) = try bench.beginPaused("a")
    var order = SessionOrder(.answer, task: task)
    order.to = bench.path + "/other/b"
    #expect(try bench.session.answer(order, task))
    let gate = AnswerGate()
    var answer = FakeAnswer(etag: "\"1\"", body: large)
    answer.pause = (1000, gate)
    bench.answer("a", answer)
    try bench.run(until: "it goes on there") {
      try bench.state(task) == .running && bench.fileExists("other/.tarn-s-1.part")
    }
    #expect(try bench.session.give(.wish(.cancel(keeps: true)), task))
    try bench.run(until: "it has ended") { try bench.state(task)?.isEnd == true }
    bench.answer("a", FakeAnswer(etag: "\"1\"", body: large))
    #expect(try bench.add("a") == task)
    try bench.finish(task)
    #expect(try bench.state(task) == .finished && bench.files == ["a"])
    #expect(!bench.fileExists("other/.tarn-s-1.part"))
  }

  /// Nobody takes away a file that somebody may use by now.
  @Test func aFinishedFileStaysWhenItsTaskIsSentElsewhere() throws {
    let task = try bench.add("a")
    try bench.finish(task)
    var order = SessionOrder(.retry, task: task)
    order.to = bench.path + "/other/b"
    #expect(try bench.session.answer(order, task))
    try bench.finish(task)
    #expect(try bench.state(task) == .finished && bench.ledger.task(task)?.path == bench.path + "/other/b")
    #expect(bench.text("out/a") == "hello" && bench.text("other/b") == "hello")
  }

  @Test(arguments: [
    ("::1", "http://[::1]:9415/a"), ("[::1]", "http://[0::1]/a"), ("localhost.", "http://LOCALHOST/a"),
    ("h", "http://h.:80/a"), ("127.0.0.1", "http://127.1/a"),
  ]) func aCredentialFitsItsHost(host: String, url: String) throws {
    var settings = SessionSettings()
    settings.hosts = [HostTrust(host)]
    try settings.validate()
    #expect(HostCredential.fits(HostTrust(host), url))
    #expect(!HostCredential.fits(HostTrust(host), "http://other/?\(host)"))
  }

  @Test(arguments: ["h:80", "https://h", "u@h", "", "fe80::1%eth0", "*.h"]) func aHostIsANameAlone(
    host: String
  ) throws {
    var settings = SessionSettings()
    settings.hosts = [HostTrust(host)]
    #expect(throws: TaskRequest.Refusal.self) { try settings.validate() }
    for twice in [["h", "H"], ["h", "h."], ["::1", "[0::1]"]] {
      settings.hosts = twice.map { HostTrust($0) }
      #expect(throws: TaskRequest.Refusal.self) { try settings.validate() }
    }
    settings.hosts = [HostTrust("h"), HostTrust("::1"), HostTrust("10.0.0.1")]
    try settings.validate()
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

  /// A client says it after the rule.
  @Test(arguments: [true, false]) func aDestinationOfAClientGoesBeforeARule(isMoved: Bool) throws {
    var rule = ResponseRule(.place)
    rule.to = bench.path + "/gone/"
    let task = try bench.add("a") { $0.rules = [rule] }
    try bench.finish(task)
    #expect(try bench.state(task) == .failed, "the rule's folder is missing")
    var order = SessionOrder(.retry, task: task)
    if isMoved { order.to = bench.path + "/other/" } else { order.url = "http://h/b" }
    #expect(try bench.session.answer(order, task))
    try bench.reopen()
    try bench.finish(task)
    #expect(
      try bench.state(task) == (isMoved ? .finished : .failed) && bench.fileExists("other/a") == isMoved)
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
    #expect(try bench.state(task) == .finished && bench.asked.withLock { $0.count } == 2)
  }

  /// All bytes are there, so that no server names the file again.
  @Test func aWholeFileThatGoesToAFolderKeepsItsName() throws {
    let digest = OpenSSLHashing().digest(.sha256, of: large).labelled
    let (task, gate) = try bench.beginPaused("a") { $0.digest = digest }
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
    _ = try bench.session.give(.wish(.suspend), task)
    #expect(try bench.session.queue([task], from: [.suspended]) == [task])
    _ = try bench.session.advance()
    #expect(try bench.state(task) == .waiting && bench.asked.withLock { $0.isEmpty })
  }

  /// Nobody waits ten minutes for the next upkeep.
  @Test func aRunningTaskEndsWhenItsTimeIsOver() throws {
    let (task, _) = try bench.beginPaused("a") { request in
      request.limits = TaskLimits()
      request.limits?.whole = 30
    }
    let next = try #require(try bench.session.advance())
    #expect(next - bench.clock.time <= .seconds(30))
    bench.clock.advance(.seconds(31))
    _ = try bench.session.advance()
    try bench.finish(task)
    #expect(try bench.ledger.task(task)?.code == "time-over")
  }

  /// Its attempt has not ended, and may not end for long.
  @Test func aRunningTaskWithoutProgressEnds() throws {
    let (task, _) = try bench.beginPaused("a") { request in
      request.limits = TaskLimits()
      request.limits?.stall = 30
    }
    let next = try #require(try bench.session.advance())
    #expect(next - bench.clock.time <= .seconds(30))
    bench.clock.advance(.seconds(31))
    _ = try bench.session.advance()
    #expect(try bench.state(task) == .running, "bytes have come since it began")
    bench.clock.advance(.seconds(31))
    _ = try bench.session.advance()
    try bench.finish(task)
    #expect(try bench.state(task) == .failed && bench.ledger.task(task)?.code == "no-progress")
  }

  /// Bytes came a moment ago, and its next attempt has its whole time.
  @Test(arguments: ["suspended", "moved", "killed"]) func anOrderIsNoStall(by what: String) throws {
    let (task, _) = try bench.beginPaused("a") { request in
      request.limits = TaskLimits()
      request.limits?.stall = 30
    }
    bench.clock.advance(.seconds(31))
    bench.answer("a", FakeAnswer(etag: "\"1\"", body: Array(repeating: 7, count: 2 << 20)))
    switch what {
    case "suspended":
      #expect(try bench.session.give(.wish(.suspend), task))
      try bench.run(until: "it stands still") { try bench.state(task) == .suspended }
      #expect(try bench.session.queue([task], from: [.suspended]) == [task])
    case "moved": #expect(try bench.session.give(.wish(.move(to: bench.path + "/other/", nil)), task))
    default: try bench.reopen()
    }
    try bench.finish(task)
    let code = try bench.ledger.task(task)?.code
    #expect(try bench.state(task) == .finished, "\(code ?? "")")
  }

  /// A renewed URL, or a destination, is for later; only a bare answer lets it begin now.
  @Test func whatIsToBeginLaterBeginsByABareAnswerOnly() throws {
    let time = bench.clock.time.adding(seconds: 3600)
    let task = try bench.add("a") { $0.notBefore = time }
    var order = SessionOrder(.answer, task: task)
    order.url = "http://h/a?signature=2"
    #expect(try bench.session.answer(order, task))
    #expect(try bench.session.queue([task], from: [.waiting]).isEmpty, "nothing to try again")
    _ = try bench.session.advance()
    #expect(try bench.state(task) == .waiting && bench.ledger.task(task)?.nextAttempt == time)
    #expect(try bench.session.answer(SessionOrder(.answer, task: task), task))
    try bench.finish(task)
    #expect(bench.asked.withLock { $0.map(\.url) } == ["http://h/a?signature=2"])
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
