import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnLedger

/// The ledger of a session.
@Suite struct SessionLedgerTests {
  private let scratch = Scratch()
  private let now = Timestamp(nanoseconds: 1_700_000_000_000_000_000)
  private var terms: TaskTerms { TaskTerms(now: now, age: 0) }

  private func open() throws -> SessionLedger { try SessionLedger(directory: scratch.path) }

  private func request(_ name: String, _ change: (inout TaskRequest) -> Void = { _ in }) -> TaskRequest {
    var request = TaskRequest(url: "https://h/\(name)", to: "/tmp/\(name)")
    change(&request)
    return request
  }

  /// As the engine records that a file has its name.
  private func finish(_ ledger: SessionLedger, _ task: Int64, digest: UInt8 = 1) throws {
    let path = RelativePath(task: task)
    let identity = FileIdentity(device: 1, inode: UInt64(task) + 100, size: 7, modified: now, changed: now)
    let row = Row(
      path: path, identity: identity, digest: Digest(.sha256, padding: [digest]), isVerified: false,
      fingerprint: [], placed: now)
    try ledger.apply([.dropPartial(path), .dropIntent(path), .row(row)])
  }

  @Test func tasksAreNumberedAndKept() throws {
    let ledger = try open()
    let added = try ledger.add([request("a"), request("b") { $0.label = "B" }], terms)
    #expect(added.map(\.task.number) == [1, 2] && added.allSatisfy { !$0.wasThere })
    ledger.close()
    let again = try open()
    let tasks = try again.tasks(limit: 10)
    #expect(tasks.map(\.request) == [request("a"), request("b") { $0.label = "B" }])
    #expect(tasks.map(\.state) == [.queued, .queued] && tasks.map(\.path) == ["/tmp/a", "/tmp/b"])
  }

  /// By its URL with the query and its destination; a key counts, too.
  @Test func aTaskThatIsThereIsNotAddedAgain() throws {
    let ledger = try open()
    let first = try ledger.add([request("a?x=1")], terms)[0].task
    #expect(try ledger.add([request("a?x=1")], terms)[0] == .init(task: first, wasThere: true))
    #expect(try ledger.add([request("a?x=2")], terms)[0].task.number == 2)
    let keyed = try ledger.add([request("b") { $0.key = "k" }], terms)[0].task
    #expect(
      try ledger.add([request("c") { $0.key = "k" }], terms)[0]
        == .init(task: keyed, wasThere: true, isRepeated: true))
  }

  @Test func whatFailedOrWasCancelledIsQueuedAgain() throws {
    let ledger = try open()
    _ = try ledger.add([request("a")], terms)
    try ledger.update(1) { task in
      var task = task
      (task.state, task.code, task.message, task.attempts) = (.failed, "http-404", "gone", 3)
      return (task, [])
    }
    let again = try ledger.add([request("a")], terms)[0]
    #expect(again.wasThere && again.task.state == .queued && again.task.code == nil)
    #expect(try ledger.task(1)?.attempts == 0)
  }

  @Test func aClosedLedgerAddsNothing() throws {
    let ledger = try open()
    ledger.close()
    #expect(throws: LedgerFailure.self) { try ledger.add([request("a")], terms) }
    #expect(try open().tasks(limit: 10).isEmpty)
  }

  @Test func theOrderIsThatOfPrioritiesThenOfAdding() throws {
    let ledger = try open()
    _ = try ledger.add(
      [
        request("low") { $0.priority = .low }, request("a"), request("high") { $0.priority = .high },
        request("b"),
      ],
      terms)
    #expect(
      try ledger.next(limit: 9).map(\.request.url) == ["high", "a", "b", "low"].map { "https://h/\($0)" })
    _ = try ledger.add([request("off") { $0.suspended = true }], terms)
    #expect(try ledger.next(limit: 9).count == 4)
  }

  @Test func onePlaceHasOneSpelling() throws {
    let ledger = try open()
    let added = try ["/tmp/a", "//tmp///a"].flatMap { place in
      try ledger.add([request("a") { $0.to = place }], terms)
    }
    #expect(added.map(\.task.number) == [1, 1] && added.map(\.wasThere) == [false, true])
    #expect(try ledger.add([request("a") { $0.to = "/tmp//" }], terms)[0].task.request.to == "/tmp/")
    #expect(try ledger.add([request("a") { $0.to = "//" }], terms)[0].task.request.to == "/")
  }

  /// Of two batches that have ended by the time when somebody looks both are told.
  @Test func allBatchesAreTold() throws {
    let ledger = try open()
    for number: Int64 in 1...2 {
      _ = try ledger.add([request("\(number)")], terms)
      try finish(ledger, number)
    }
    // Also what is acknowledged by then.
    _ = try ledger.acknowledge(try ledger.lastEvent())
    let told = try ledger.takeDelivered()
    #expect(told.map(\.code) == [.allDelivered, .allDelivered] && told.map(\.finished) == [1, 1])
    #expect(told[0].number < told[1].number)
    #expect(try ledger.takeDelivered().isEmpty)
  }

  /// A client that begins again hands all over once more.
  @Test func aBatchThatAddsNothingIsNeverTooMany() throws {
    let ledger = try open()
    let batch = [request("a"), request("b")]
    _ = try ledger.add(batch, terms, most: 2)
    #expect(try ledger.add(batch, terms, most: 2).map(\.wasThere) == [true, true])
    #expect(throws: LedgerFailure.self) { try ledger.add([request("a"), request("c")], terms, most: 2) }
    #expect(try ledger.tasks(limit: 9).map(\.number) == [1, 2])
    #expect(try ledger.add(batch, terms, most: 1).map(\.wasThere) == [true, true])
  }

  @Test func theKeyOfAKnownTaskIsKept() throws {
    let ledger = try open()
    _ = try ledger.add([request("a")], terms)
    #expect(try ledger.add([request("a") { $0.key = "k" }], terms)[0].wasThere)
    let other = try ledger.add([request("b") { $0.key = "k" }], terms)[0]
    #expect(other.wasThere && other.task.number == 1)
    #expect(try ledger.knows(key: "k"))
  }

  /// The others may have ended before.
  @Test func theEndOfAGroupIsToldWhenTheRestIsSuspended() throws {
    let ledger = try open()
    _ = try ledger.add([request("a") { $0.group = "g" }, request("b") { $0.group = "g" }], terms)
    try finish(ledger, 1)
    try ledger.update(2) { $0.suspended(terms) }
    #expect(try ledger.events(after: 0, limit: 9).map(\.code) == [.finished, .groupDelivered, .allDelivered])
  }

  /// Somebody may cancel it meanwhile.
  @Test func onlyAQueuedTaskIsFinishedWithoutATransfer() throws {
    let ledger = try open()
    _ = try ledger.add([request("a")], terms)
    try ledger.update(1) { $0.cancelled(terms) }
    let row = Row(
      path: RelativePath(task: 1),
      identity: FileIdentity(device: 1, inode: 2, size: 7, modified: now, changed: now),
      digest: Digest(.sha256, padding: [1]), isVerified: false, fingerprint: [], placed: now)
    #expect(try !ledger.finishQueued(row))
    #expect(try ledger.task(1)?.state == .cancelled)
    try ledger.update(1) { task in
      var task = task
      task.begin(.queued, terms)
      return (task, [])
    }
    #expect(try ledger.finishQueued(row) && ledger.task(1)?.state == .finished)
  }

  // MARK: Events

  @Test func theEndOfATaskIsAnEventWithWhatTheServerSaid() throws {
    let ledger = try open()
    _ = try ledger.add([request("a") { $0.userInfo = "{}" }, request("b")], terms)
    var head = ResponseHead(status: 200, url: "https://cdn/a")
    head.etag = "\"1\""
    let response = TaskResponse(head)
    ledger.attach(.init(path: { _ in nil }, response: { $0 == 1 ? .init(response) : nil }))
    // Nobody had the time to write the answer down: it goes before the end all the same.
    try finish(ledger, 1)
    let events = try ledger.events(after: 0, limit: 10)
    #expect(events.map(\.number) == [1, 2] && events.map(\.code) == [.response, .finished])
    #expect(events[1].response == TaskResponse(head) && events[1].userInfo == "{}")
    #expect(
      events[1].bytes == 7 && events[1].path == "/tmp/a" && events[1].digest?.hasPrefix("sha256:01") == true)
    #expect(try ledger.task(1)?.state == .finished)
  }

  /// After the last event, and again after each later batch.
  @Test func allDeliveredComesLast() throws {
    let ledger = try open()
    _ = try ledger.add([request("a"), request("b")], terms)
    try finish(ledger, 1)
    #expect(try ledger.events(after: 0, limit: 10).map(\.code) == [.finished])
    try ledger.update(2) { task in
      var task = task
      task.state = .failed
      return (task, [SessionEvent(.failed, time: now, of: task)])
    }
    let events = try ledger.events(after: 1, limit: 10)
    #expect(events.map(\.code) == [.failed, .allDelivered])
    #expect(events.last?.finished == 1 && events.last?.failed == 1)
    _ = try ledger.add([request("c")], terms)
    try finish(ledger, 3)
    let later = try ledger.events(after: 3, limit: 10)
    #expect(
      later.map(\.code) == [.finished, .allDelivered] && later.last?.finished == 1 && later.last?.failed == 0)
  }

  /// Each task counts once, as it ended last.
  @Test func whatIsTriedAgainCountsOnce() throws {
    let ledger = try open()
    func fail(_ number: Int64) throws {
      try ledger.update(number) { task in
        var task = task
        task.enter(.failed, terms)
        return (task, [SessionEvent(.failed, time: now, of: task)])
      }
    }
    func retry(_ number: Int64) throws {
      try ledger.update(number) { task in
        var task = task
        task.begin(.queued, terms)
        return (task, [])
      }
    }
    _ = try ledger.add([request("a"), request("b") { $0.group = "g" }], terms)
    for _ in 0..<3 {
      try fail(1)
      try retry(1)
    }
    try fail(1)
    try finish(ledger, 2)
    let codes: [SessionEvent.Code] = [
      .failed, .failed, .failed, .failed, .finished, .groupDelivered, .allDelivered,
    ]
    var events = try ledger.events(after: 0, limit: 20)
    #expect(events.map(\.code) == codes)
    #expect(events.suffix(2).map(\.finished) == [1, 1] && events.suffix(2).map(\.failed) == [0, 1])
    // It belongs to the next batch then.
    try retry(1)
    _ = try ledger.add([request("c") { $0.group = "g" }], terms)
    try fail(3)
    try finish(ledger, 1)
    events = try ledger.events(after: 7, limit: 20)
    #expect(events.map(\.code) == [.failed, .groupDelivered, .finished, .allDelivered])
    #expect(events[1].failed == 1 && events[1].finished == 0)
    #expect(events[3].failed == 1 && events[3].finished == 1)
  }

  /// Whoever writes it down, and whoever comes second.
  @Test func anAnswerIsToldOnce() throws {
    let ledger = try open()
    let noted = Locked<Set<Int64>>([])
    let answer = SessionLedger.Response(TaskResponse(ResponseHead(status: 200, url: "https://h/")))
    ledger.attach(
      .init(
        path: { _ in nil }, response: { task in noted.withLock { $0.contains(task) } ? nil : answer },
        noted: { task, _ in noted.withLock { _ = $0.insert(task) } }))
    let tasks = try ledger.add((0..<300).map { request("\($0)") }, terms).map(\.task.number)
    let other = try WorkerThread.start(name: "test") {
      for task in tasks { try? ledger.noteResponse(of: task) }
    }
    for task in tasks { try finish(ledger, task) }
    other.join()
    let codes = try ledger.events(after: 0, limit: 9999).map(\.code)
    #expect(codes.filter { $0 == .response }.count == 300 && codes.count == 601)
  }

  @Test func eventsAreToldUntilTheyAreAcknowledged() throws {
    let ledger = try open()
    _ = try ledger.add([request("a"), request("b")], terms)
    try finish(ledger, 1)
    try finish(ledger, 2)
    #expect(try ledger.events(after: 0, limit: 10).count == 3)
    #expect(try ledger.acknowledge(2) == 2)
    #expect(try ledger.events(after: 0, limit: 10).map(\.number) == [3])
    // Nothing behind the last one is acknowledged before it happened.
    #expect(try ledger.acknowledge(99) == 3)
    #expect(try ledger.acknowledge(1) == 3)
    ledger.close()
    #expect(try open().lastEvent() == 3)
    #expect(try open().acknowledged() == 3)
  }

  /// A group has its own end, before that of the session.
  @Test func aGroupEndsByItself() throws {
    let ledger = try open()
    _ = try ledger.add(
      [request("a") { $0.group = "g" }, request("b"), request("c") { $0.group = "g" }], terms)
    try finish(ledger, 1)
    try ledger.update(3) { $0.cancelled(terms) }
    let events = try ledger.events(after: 0, limit: 10)
    #expect(events.map(\.code) == [.finished, .cancelled, .groupDelivered])
    #expect(events.last?.group == "g" && events.last?.finished == 1 && events.last?.failed == 0)
    try finish(ledger, 2)
    #expect(try ledger.events(after: 3, limit: 10).map(\.code) == [.finished, .allDelivered])
  }

  /// What nobody acknowledges does not grow without end, and what is gone is said to be gone.
  @Test func theOldestEventsAreLostVisibly() throws {
    let ledger = try SessionLedger(directory: scratch.path, mostEvents: 100)
    _ = try ledger.add([request("a") { $0.suspended = true }], terms)
    for _ in 0..<250 {
      try ledger.update(1) { ($0, [SessionEvent(.waiting, time: now, of: $0)]) }
    }
    let events = try ledger.events(after: 0, limit: 1000)
    let first = try #require(events.first)
    #expect(first.code == .eventsLost && first.lostUpTo == first.number)
    #expect(events.dropFirst().map(\.number) == Array(first.number + 1...250))
    #expect((90...110).contains(events.count))
    // Who has read further than that has lost nothing.
    #expect(try ledger.events(after: first.number, limit: 1000).contains { $0.code == .eventsLost } == false)
  }

  @Test func theNewestBodiesAreKept() throws {
    let ledger = try open()
    _ = try ledger.add([request("a") { $0.suspended = true }], terms)
    for number in 1...150 {
      try ledger.update(1) { task in
        var event = SessionEvent(.failed, time: now, of: task)
        event.body = "body \(number)"
        return (task, [event])
      }
    }
    let bodies = try ledger.events(after: 0, limit: 1000).map(\.body)
    #expect(bodies == Array(repeating: nil, count: 50) + (51...150).map { "body \($0)" })
  }

  /// Orders for all are one transaction, and the end of all is told once.
  @Test func manyTasksChangeTogether() throws {
    let ledger = try open()
    _ = try ledger.add((0..<500).map { request("\($0)") }, terms)
    let changed = try ledger.update(try ledger.numbers(in: [.queued])) { $0.cancelled(terms) }
    #expect(changed.count == 500)
    let events = try ledger.events(after: 0, limit: 1000)
    #expect(events.count == 501 && events.last?.code == .allDelivered)
  }

  @Test func oneIsPutFirst() throws {
    let ledger = try open()
    _ = try ledger.add([request("a"), request("b"), request("c") { $0.priority = .high }], terms)
    #expect(try ledger.putFirst(2))
    #expect(try ledger.next(limit: 9).map(\.number) == [3, 2, 1])
    #expect(try !ledger.putFirst(9))
  }

  /// It is asked at each look, and any number of tasks may wait for other reasons.
  @Test func whoIsAskedAboutIsFoundByTheirIndex() throws {
    try open().close()
    let file = try DatabaseFile(directory: scratch.path, name: DatabaseFile.ledger)
    let connection = try LedgerOpener(file: file, schema: .session).openWriter()
    let plan = try connection.all(
      "EXPLAIN QUERY PLAN " + SessionLedger.askedBefore, [.integer(1), .integer(1)]
    ) { row throws(LedgerFailure) in try row.text(3) }
    #expect(plan.contains { $0.contains("USING INDEX tasks_asked") }, "\(plan)")
    #expect(!plan.contains { $0.contains("tasks_by_state") }, "\(plan)")
  }

  /// A ledger of the first version is read.
  @Test func anOlderLedgerIsRead() throws {
    let file = try DatabaseFile(directory: scratch.path, name: DatabaseFile.ledger)
    let old = Schema(steps: Array(Schema.session.steps.prefix(1)))
    do {
      let connection = try LedgerOpener(file: file, schema: old).openWriter()
      try connection.run(
        """
        INSERT INTO tasks (state, rank, position, url, destination, request, attempts, added)
        VALUES ('waiting', 1, 1, 'https://h/a', '/tmp/a', '{"url":"https://h/a","to":"/tmp/a","group":"g"}', 0, 5)
        """)
    }
    let task = try #require(try open().task(1))
    #expect(task.state == .waiting && task.fresh == Timestamp(nanoseconds: 5) && task.life == nil)
  }

  /// In a ledger of version 5 the last answer need not be the one that brought the file: it may have confirmed it, been refused, or
  /// been cut off before the file turned out to have the digest that was asked for.
  @Test(arguments: [
    (200, 7, false, true), (206, 7, false, true), (304, 7, false, false), (404, 7, false, false),
    (200, 8, false, false),
    (200, 7, true, false),
  ])
  func theFileOfAnOlderLedgerHasTheValidatorsOfItsAnswer(
    status: Int, length: Int, hasDigest: Bool, isKnown: Bool
  ) throws {
    let file = try DatabaseFile(directory: scratch.path, name: DatabaseFile.ledger)
    let old = Schema(steps: Array(Schema.session.steps.prefix(5)))
    let digest = Digest(.sha256, padding: [1])
    let asked = hasDigest ? ",\"digest\":\"\(digest.labelled)\"" : ""
    let answer =
      #""contentLength":\#(length),"etag":"\"1\"","lastModified":"then","redirects":["https://h/a"]"#
    do {
      let connection = try LedgerOpener(file: file, schema: old).openWriter()
      try connection.run(
        """
        INSERT INTO tasks (state, rank, position, url, destination, request, attempts, added, bytes, digest, response, file)
        VALUES ('finished', 1, 1, 'https://h/a', '/tmp/a', '{"url":"https://h/a","to":"/tmp/a"\(asked)}', 0, 5, 7,
          '\(digest.labelled)', '{"status":\(status),"url":"https://cdn/a",\(answer)}', '1 2 3 4 5')
        """)
    }
    let ledger = try open()
    let origin = FileOrigin(url: "https://h/a", etag: "\"1\"", lastModified: "then")
    #expect(try ledger.task(1)?.origin == (isKnown ? origin : nil))
    let row = try #require(try ledger.finished(1))
    #expect(row.digest == digest && row.identity.inode == 2 && row.lastModified == (isKnown ? "then" : nil))
    #expect(try ledger.response(1)?.lastModified == "then")
  }

  /// Values of one type in each other's columns would be read back all the same.
  @Test func aTaskIsStoredUnderTheNamesOfItsColumns() throws {
    let ledger = try open()
    _ = try ledger.add([request("a") { ($0.priority, $0.group, $0.key) = (.high, "g", "k") }], terms)
    func time(_ number: Int64) -> Timestamp { Timestamp(nanoseconds: number) }
    var task = try #require(try ledger.task(1))
    (task.state, task.path, task.bytes, task.digest) = (.waiting, "/tmp/p", 11, "sha256:d")
    (task.code, task.message, task.attempts) = ("code", "message", 12)
    (task.nextAttempt, task.ended, task.fresh) = (time(13), time(14), time(15))
    task.life = TaskLife(whole: 16, stall: -17)
    task.file = FileIdentity(device: 1, inode: 2, size: 3, modified: time(4), changed: time(5))
    task.origin = FileOrigin(url: "https://o/a", answered: "https://cdn/a", etag: "tag", lastModified: "then")
    (task.directory, task.movedFrom, task.disk, task.wish) = (UInt64.max, "/tmp/from", "disk", .suspend)
    let written = task
    try ledger.update(1) { _ in (written, []) }
    ledger.close()
    let again = try open()
    #expect(try again.task(1) == written)
    again.close()
    let file = try DatabaseFile(directory: scratch.path, name: DatabaseFile.ledger)
    let connection = try LedgerOpener(file: file, schema: .session).openWriter()
    let stored = try connection.first(
      """
      SELECT json_array(url, destination, added, state, path, bytes, digest, code, message, attempts, due, ended, fresh,
        whole, stall, file, json_extract(origin, '$.url'), directory, moved_from, disk, rank, task_group, client_key) FROM tasks
      """
    ) { row throws(LedgerFailure) in try row.text(0) }
    let expected = [
      #"["https://h/a","/tmp/a",1700000000000000000,"waiting","/tmp/p",11,"sha256:d","code","message",12,13,14,15"#,
      #"16,-17,"1 2 3 4 5","https://o/a",-1,"/tmp/from","disk",0,"g","k"]"#,
    ]
    #expect(stored == expected.joined(separator: ","))
  }

  /// Where one is to begin, the others are no concern.
  @Test func oneTaskIsComparedAlone() throws {
    let ledger = try open()
    let other = Digest(.sha256, padding: [9]).labelled
    _ = try ledger.add(["a", "b"].map { request($0) { $0.digest = other } }, terms)
    for task in 1...2 as ClosedRange<Int64> { try finish(ledger, task) }
    #expect(try ledger.uncompared() == [1, 2])
    #expect(try ledger.uncompared(2) == [2])
  }

  @Test func tasksAreFoundByTheirCode() throws {
    let ledger = try open()
    _ = try ledger.add(["a", "b", "c"].map { request($0) }, terms)
    _ = try ledger.update([1, 3]) { task in
      var task = task
      task.code = "x"
      return (task, [])
    }
    #expect(try ledger.tasks(1...3, code: "x").map(\.number) == [1, 3])
    #expect(try ledger.tasks(2...3, code: "x").map(\.number) == [3])
    #expect(try ledger.tasks(1...3, code: "y").isEmpty)
  }

  // MARK: What the engine records

  @Test func aPartialFileIsKeptWithWhatProvesIt() throws {
    let ledger = try open()
    _ = try ledger.add([request("a")], terms)
    let path = RelativePath(task: 1)
    let row = PartialRow(
      path: path, name: ".tarn-s-1.part", url: "https://h/a", etag: "\"1\"", lastModified: nil, total: 9,
      digest: Digest(.sha256, padding: [1]), fingerprint: [], durable: 3, bootID: "boot",
      answered: "https://cdn/a")
    try ledger.applyVolatile([.partial(row)])
    #expect(try ledger.partial(path) == row && ledger.partials(in: Region(path, .itself)) == [row])
    #expect(try ledger.hasPartials())
    try ledger.apply([.durable(path: path, bytes: 5)])
    #expect(try ledger.partial(path)?.durable == 5)
    try finish(ledger, 1)
    #expect(try ledger.partial(path) == nil)
  }

  /// What a new file took the place of has to go before its intent does.
  @Test func theIntentOfAReplacementStays() throws {
    let ledger = try open()
    _ = try ledger.add([request("a") { $0.existing = .replace }, request("b")], terms)
    for task in [Int64(1), 2] {
      let identity = FileIdentity(device: 1, inode: 5, size: 7, modified: now, changed: now)
      let row = Row(
        path: RelativePath(task: task), identity: identity, digest: Digest(.sha256, padding: [1]),
        isVerified: false, fingerprint: [], placed: now)
      try ledger.apply([
        .intent(
          Intent(
            kind: .install, path: row.path, partialName: "p", trashName: "", row: row, displacesOwn: false))
      ])
      #expect(try ledger.unfinished().count == 1)
      try finish(ledger, task)
      #expect(try ledger.unfinished().count == (task == 1 ? 1 : 0))
      try ledger.forgetIntent(of: task)
    }
  }

  @Test func anIntentIsSettledByWhatStandsThere() throws {
    let ledger = try open()
    _ = try ledger.add([request("a"), request("b")], terms)
    for task in [Int64(1), 2] {
      let identity = FileIdentity(device: 1, inode: 5, size: 7, modified: now, changed: now)
      let row = Row(
        path: RelativePath(task: task), identity: identity, digest: Digest(.sha256, padding: [1]),
        isVerified: false, fingerprint: [], placed: now)
      try ledger.apply([
        .intent(
          Intent(
            kind: .install, path: row.path, partialName: "p", trashName: "", row: row, displacesOwn: false))
      ])
    }
    for intent in try ledger.unfinished() {
      let file = FileIdentity(device: 1, inode: intent.inode, size: intent.size, modified: now, changed: now)
      try ledger.settle(intent, intent.task.number == 1 ? ("/tmp/a (1)", file) : nil)
    }
    #expect(try ledger.task(1)?.state == .finished && ledger.task(1)?.path == "/tmp/a (1)")
    #expect(try ledger.task(2)?.state == .queued && ledger.unfinished().isEmpty)
  }

  @Test func anotherProgramsFileIsLeftAlone() throws {
    let mirror = try SQLiteLedger(directory: scratch.path)
    mirror.close()
    let failure = #expect(throws: LedgerFailure.self) { try open() }
    #expect(failure?.code == .newer || failure?.code == .corrupt)
  }
}
