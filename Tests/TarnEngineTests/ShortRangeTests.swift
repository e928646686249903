import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnEngine

/// Answers to a request for the rest of a file: such as end too early, and such as refuse it.
@Suite struct ShortRangeTests {
  private static let text = String(repeating: "0123456789abcdef", count: 600)
  private static let url = World.host + "a"

  /// What a feed may know of a file.
  enum Known: CaseIterable, Sendable {
    case nothing, listing, hint, size, digest, both

    func entry(_ world: World) -> Entry {
      var entry = world.entry("a", ShortRangeTests.text)
      if self != .size && self != .both { entry.size = nil }
      if self != .digest && self != .both { entry.digests = [] }
      if self == .listing { entry.listing = "2026-01-01 9.6K".bytes }
      if self == .hint { entry.hint = ContentHint(mediaType: "audio/mpeg".bytes, length: 9000) }
      return entry
    }
  }

  private func world(_ known: Known, _ answer: FakeAnswer) -> World {
    let world = World()
    world.rushes = true
    world.policy.retries = 1
    world.add(known.entry(world))
    world.server.answer(Self.url, answer)
    return world
  }

  /// The first answer breaks off; those to ranges are honest and short.
  private func capped(_ most: Int) -> FakeAnswer {
    var answer = Server.broken(Self.text, after: 2000, etag: "\"1\"")
    answer.mostOfRange = most
    return answer
  }

  @Test(arguments: Known.allCases)
  func aShortPartIsNotTheWhole(_ known: Known) throws {
    let world = world(known, capped(1500))
    let wrong = Locked<[Int]>([])
    world.folder.beforeInstall { [folder = world.folder] path in
      guard let partial = try? folder.partials().first, let bytes = folder.partialContents(partial.name)
      else { return }
      if bytes != Self.text.bytes { wrong.withLock { $0.append(bytes.count) } }
    }
    #expect(try world.run().isInSync)
    #expect(world.text("a") == Self.text)
    #expect(wrong.withLock { $0 }.isEmpty)
    // It went on where each part ended.
    #expect(world.server.requests.map(\.offset) == [0, 2000, 3500, 5000, 6500, 8000, 9500])
  }

  @Test(arguments: Known.allCases)
  func aServerThatGivesAByteAtATimeEnds(_ known: Known) throws {
    let world = world(known, capped(1))
    world.policy.retries = 3
    let report = try world.run()
    #expect(report.problems.map(\.code) == ["range-too-short"])
    #expect(world.files.isEmpty)
    #expect(world.server.requests.count <= 8)
    world.server.put(Self.url, Self.text.bytes, etag: "\"1\"")
    #expect(try world.run().isInSync)
    #expect(world.text("a") == Self.text)
  }

  /// Without a Date its Last-Modified is not strong, and a server may give two versions one ETag. The other date tells them apart, also
  /// in a later pass.
  @Test(arguments: [true, false])
  func theRestOfAVersionWithAnotherDateIsNotTheRest(_ isNextPass: Bool) throws {
    func version(_ text: String, _ seconds: Int64, after: Int?) -> FakeAnswer {
      var answer =
        after.map { Server.broken(text, after: $0, etag: "\"1\"") }
        ?? FakeAnswer(etag: "\"1\"", body: text.bytes)
      answer.lastModified = Timestamp(seconds: seconds)
      return answer
    }
    let later = String(repeating: "fedcba9876543210", count: 600)
    let world = world(.nothing, version(later, 2_000, after: nil))
    if isNextPass { world.policy.retries = 0 }
    world.server.script(Self.url, [version(Self.text, 1_000, after: 2000)])
    #expect(try world.run().isInSync != isNextPass)
    if isNextPass { #expect(try world.run().isInSync) }
    #expect(world.text("a") == later)
    #expect(world.server.requests.map(\.offset) == (isNextPass ? [2000, 0] : [0, 2000, 0]))
  }

  /// The whole is asked for because the rest fails. Where it is of the same version, the bytes at hand stay, and only others are new.
  @Test(arguments: [403, nil] as [Int?]) func aWholeThatFailsAsWellCostsNoBytes(_ status: Int?) throws {
    var answer = Server.broken(Self.text, after: 2000, etag: "\"1\"")
    let world = world(.nothing, answer)
    world.policy.retries = 0
    #expect(try !world.run().isInSync)
    (answer.rangeStatus, answer.rangeFails) = (status, status == nil)
    answer.failure = (1000, Server.lost)
    world.server.answer(Self.url, answer)
    #expect(try !world.run().isInSync)
    #expect(world.server.requests.map(\.offset) == [2000, 0])
    answer.failure = nil
    world.server.answer(Self.url, answer)
    let report = try world.run()
    #expect(report.isInSync && report.bytes.received == 7600)
    #expect(world.server.requests.map(\.offset) == [2000, 0])
    #expect(world.text("a") == Self.text)
  }

  /// Nothing told how long it is, and a proxy ends it early: no part of either is the file.
  @Test func aWholeThatEndsBeforeTheBytesAtHandIsNone() throws {
    var answer = Server.broken(Self.text, after: 2000, etag: "\"1\"")
    answer.hasLength = false
    let world = world(.nothing, answer)
    world.policy.retries = 0
    #expect(try !world.run().isInSync)
    (answer.rangeStatus, answer.failure) = (403, nil)
    answer.body = Array(Self.text.bytes.prefix(1500))
    world.server.answer(Self.url, answer)
    #expect(try world.run().problems.map(\.code) == ["unstable-source"])
    #expect(world.files.isEmpty)
    answer.body = Self.text.bytes
    world.server.answer(Self.url, answer)
    #expect(try world.run().isInSync && world.text("a") == Self.text)
  }

  /// A server that fails does so with any request.
  @Test(arguments: [507, 599]) func aServerThatFailsIsAskedForTheRestAgain(_ status: Int) throws {
    let world = world(.nothing, Server.broken(Self.text, after: 2000, etag: "\"1\""))
    world.policy.retries = 0
    #expect(try !world.run().isInSync)
    world.policy.retries = 1
    var failing = FakeAnswer(etag: "\"1\"", body: Self.text.bytes)
    failing.rangeStatus = status
    world.server.script(Self.url, [failing])
    world.server.put(Self.url, Self.text.bytes, etag: "\"1\"")
    #expect(try world.run().isInSync)
    #expect(world.server.requests.map(\.offset) == [2000, 2000])
  }

  /// Without a validator, or with another, its beginning may be another one.
  @Test(arguments: ["\"2\"", nil] as [String?]) func aWholeOfAnotherVersionBeginsAtZero(_ etag: String?)
    throws
  {
    let world = world(.nothing, Server.broken(Self.text, after: 2000, etag: "\"1\""))
    world.policy.retries = 0
    #expect(try !world.run().isInSync)
    let other = String(Self.text.reversed())
    var answer = FakeAnswer(etag: etag, body: other.bytes)
    answer.rangeStatus = 403
    world.server.answer(Self.url, answer)
    #expect(try world.run().bytes.received == 9600)
    #expect(world.text("a") == other)
  }

  /// A server without ranges sends all of it, and breaks off before it has sent anything new.
  @Test func bytesThatComeAgainArePassedOver() throws {
    let text = String(repeating: "0123456789abcdef", count: 1 << 17)
    let world = World()
    world.policy.retries = 0
    world.add(world.entry("a", text))
    world.server.answer(Self.url, FakeAnswer(status: 500))
    world.server.script(Self.url, [Server.broken(text, after: 1 << 20, etag: "\"1\"")])
    #expect(try world.run().bytes.received == 1 << 20)
    var whole = Server.broken(text, after: 1 << 19, etag: "\"1\"")
    whole.honoursRanges = false
    world.server.script(Self.url, [whole, whole, whole])
    let second = try world.run()
    #expect(second.bytes.received == 0, "\(second.bytes)")
    #expect(world.server.requests.first?.offset == 1 << 20)
    whole.failure = nil
    world.server.script(Self.url, [whole, whole, whole])
    #expect(try world.run().bytes.received == 1 << 20)
    #expect(world.text("a") == text)
  }

  /// Else a server whose parts are too short would block the file for ever, though it gives the whole.
  @Test(arguments: Known.allCases)
  func whereTheRestNeverComesTheWholeIsAskedFor(_ known: Known) throws {
    var answer = capped(1)
    answer.failure = nil
    let world = world(known, answer)
    world.server.script(Self.url, [capped(1)])
    #expect(try world.run().isInSync)
    #expect(world.text("a") == Self.text)
    #expect(world.server.requests.last?.offset == 0 && world.server.requests.count <= 6)
  }

  /// Not only a status can refuse the rest.
  @Test(arguments: [502, 504, nil])
  func whereRequestsForTheRestFailTheWholeIsAskedFor(status: Int?) throws {
    var answer = FakeAnswer(etag: "\"1\"", body: Self.text.bytes)
    answer.rangeStatus = status
    answer.rangeFails = status == nil
    let world = world(.nothing, answer)
    world.server.script(Self.url, [Server.broken(Self.text, after: 2000, etag: "\"1\"")])
    #expect(try world.run().isInSync)
    #expect(world.text("a") == Self.text)
    #expect(world.server.requests.map(\.offset).last == 0)
  }

  /// What a login page answers to a request for the rest costs nothing of what came before.
  @Test func aLoginPageTakesNothingAway() throws {
    // Large enough to be remembered by the next pass.
    let text = "ID3" + String(repeating: "0123456789abcdef", count: 1 << 17)
    let world = World()
    world.policy.retries = 0
    var entry = world.entry("a", text)
    (entry.size, entry.digests) = (nil, [])
    entry.hint = ContentHint(mediaType: "audio/mpeg".bytes)
    world.add(entry)
    world.server.answer(Self.url, FakeAnswer(status: 500))
    world.server.script(Self.url, [Server.broken(text, after: 1 << 20, etag: "\"1\"")])
    #expect(try world.run().counts.failed == 1)
    var login = FakeAnswer(body: "<html>login</html>".bytes)
    login.contentType = "text/html"
    login.honoursRanges = false
    world.server.answer(Self.url, login)
    #expect(try world.run().problems.map(\.code) == ["content-mismatch"])
    // A page in the place of a part tells nothing of the whole, which is asked for once.
    #expect(world.server.requests.map(\.offset) == [1 << 20, 0])
    world.server.put(Self.url, text.bytes, etag: "\"1\"")
    #expect(try world.run().isInSync)
    #expect(world.server.requests.map(\.offset) == [1 << 20])
    #expect(world.text("a") == text)
  }

  /// The server does not tell a length, breaks off, and then says that there is no more.
  @Test func whatEndsFarBelowItsLengthIsNotTheWhole() throws {
    let audio = "ID3\u{4}\u{0}" + String(repeating: "0123456789abcdef", count: 600)
    var cut = Server.broken(audio, after: 2000, etag: "\"1\"")
    cut.hasLength = false
    let noMore = FakeAnswer(etag: "\"1\"", body: Array(audio.bytes.prefix(2000)))
    let whole = FakeAnswer(etag: "\"1\"", body: audio.bytes)
    for (script, expected) in [
      ([cut, noMore, whole], nil), ([cut, noMore, cut, noMore], "content-mismatch"),
    ] as [([FakeAnswer], String?)] {
      let world = world(.hint, FakeAnswer(status: 500))
      world.policy.retries = 3
      world.server.script(Self.url, script)
      let report = try world.run()
      #expect(report.problems.map(\.code) == (expected.map { [$0] } ?? []))
      #expect(world.text("a") == (expected == nil ? audio : nil))
      #expect(world.server.requests.map(\.offset).prefix(3) == [0, 2000, 0])
    }
  }

  /// The first answer breaks off.
  ///
  /// - Parameter offsets: gets where each request begins.
  private func breakingOff(_ offsets: Locked<[UInt64]>, mostOfRange: Int? = nil) throws -> FakeDownloader {
    try FakeDownloader { request in
      let isFirst = offsets.withLock { offsets in
        offsets.append(request.offset)
        return offsets.count == 1
      }
      var answer = FakeAnswer(etag: "\"1\"", body: Self.text.bytes)
      if isFirst { answer = Server.broken(Self.text, after: 2000, etag: "\"1\"") }
      answer.mostOfRange = mostOfRange
      return answer
    }
  }

  /// HTTP/1.0 closes the connection behind a part; where it ends the part says itself.
  @Test func aPartWithoutALengthEndsWhereItSays() throws {
    let world = world(.nothing, FakeAnswer())
    let offsets = Locked<[UInt64]>([])
    let downloader = HeadDownloader(
      try breakingOff(offsets)
    ) { request, head in
      guard request.offset > 0 else { return }
      head.contentLength = nil
      head.isFramed = false
    }
    defer { downloader.shutDown() }
    #expect(try world.pass(downloader).run(folder: world.folder).isInSync)
    #expect(world.text("a") == Self.text)
    #expect(offsets.withLock { $0 } == [0, 2000])
  }

  /// A part without a total may be the last one or not.
  @Test(arguments: [Known.nothing, .listing, .hint])
  func aPartWithoutATotalIsNotTaken(_ known: Known) throws {
    let world = world(known, FakeAnswer())
    let offsets = Locked<[UInt64]>([])
    let downloader = HeadDownloader(
      try breakingOff(offsets, mostOfRange: 1500)
    ) { _, head in
      head.contentRange?.total = nil
      head.contentLength = nil
    }
    defer { downloader.shutDown() }
    #expect(try world.pass(downloader).run(folder: world.folder).isInSync)
    #expect(world.text("a") == Self.text)
    #expect(offsets.withLock { $0 } == [0, 2000, 0])
  }

  @Test(arguments: [400, 403, 404, 405, 412, 204, 304, 500, 501], [Known.nothing, .digest])
  func aRefusedRangeIsAskedForWithoutOne(_ status: Int, _ known: Known) throws {
    let world = world(known, FakeAnswer())
    var whole = FakeAnswer(etag: "\"1\"", body: Self.text.bytes)
    whole.rangeStatus = status
    // At once, and not after some rounds in vain.
    world.policy.retries = 3
    world.server.script(Self.url, [Server.broken(Self.text, after: 2000, etag: "\"1\"")])
    world.server.answer(Self.url, whole)
    #expect(try world.run().isInSync)
    #expect(world.text("a") == Self.text)
    #expect(world.server.requests.map(\.offset) == [0, 2000, 0])
  }

  /// Something between here and the server does not know such requests, and answers with a page of its own, or with nothing.
  @Test(arguments: [
    ("<html>Request Rejected</html>", "text/html"), ("{\"error\": \"range\"}", "application/json"),
    ("", "text/html"),
    ("", nil),
  ])
  func aPageInPlaceOfARangeIsAskedForWithoutOne(_ body: String, _ type: String?) throws {
    let audio = "ID3\u{4}\u{0}" + String(repeating: "0123456789abcdef", count: 600)
    for name in ["a.mp3", "a.iso", "a.bin"] {
      let world = World()
      world.rushes = true
      world.add(Entry(path: name.path, sources: [Source(url: World.host + name)], listing: "1".bytes))
      var page = FakeAnswer(body: body.bytes)
      page.contentType = type
      var whole = FakeAnswer(etag: "\"1\"", body: audio.bytes)
      whole.contentType = "application/octet-stream"
      world.server.answer(World.host + name, whole)
      world.server.script(World.host + name, [Server.broken(audio, after: 2000, etag: "\"1\""), page])
      let report = try world.run()
      #expect(report.isInSync && world.text(name) == audio, "\(name): \(report.problems)")
      #expect(world.server.requests.map(\.offset) == [0, 2000, 0], "\(name)")
    }
  }

  /// Left by a process that was killed.
  @Test func aRefusedRangeOfAnotherPassIsAskedForWithoutOne() throws {
    let world = world(.nothing, FakeAnswer())
    world.policy.retries = 0
    let long = String(repeating: Self.text, count: 300)
    world.server.answer(Self.url, Server.broken(long, after: 2_000_000, etag: "\"1\""))
    #expect(try world.run().counts.failed == 1)
    var whole = FakeAnswer(etag: "\"1\"", body: long.bytes)
    whole.rangeStatus = 403
    world.server.answer(Self.url, whole)
    #expect(try world.run().isInSync)
    #expect(world.server.requests.map { $0.offset > 0 } == [true, false])
    #expect(world.text("a") == long)
  }

  /// The server keeps the ETag of a file that grows.
  @Test(arguments: [true, false]) func aFileThatHasGrownIsTakenAtOnce(hasLength: Bool) throws {
    let longer = Self.text + "more"
    var answer = FakeAnswer(etag: "\"1\"", body: longer.bytes)
    answer.hasLength = hasLength
    let world = world(.nothing, answer)
    world.server.script(Self.url, [Server.broken(Self.text, after: 2000, etag: "\"1\"")])
    #expect(try world.run().isInSync)
    #expect(world.text("a") == longer)
    #expect(world.server.requests.map(\.offset) == [0, 2000, 0])
  }

  private func led(to url: String, _ answer: FakeAnswer) -> FakeAnswer {
    var answer = answer
    answer.finalURL = url
    return answer
  }

  /// The redirect leads to another file of the same size and ETag.
  @Test(arguments: [true, false]) func theRestOfAnotherFileIsNotAppended(inOnePass: Bool) throws {
    let world = world(.nothing, FakeAnswer())
    world.policy.retries = inOnePass ? 1 : 0
    let long = String(repeating: Self.text, count: 300)
    let other = String(long.reversed())
    world.server.answer(
      Self.url, led(to: "http://cdn/v2", FakeAnswer(etag: "\"1\"", body: other.bytes)))
    world.server.script(
      Self.url, [led(to: "http://cdn/v1", Server.broken(long, after: 2_000_000, etag: "\"1\""))])
    if !inOnePass { #expect(try world.run().counts.failed == 1) }
    #expect(try world.run().isInSync)
    #expect(world.text("a") == other)
    #expect(
      world.server.requests.map { $0.offset > 0 } == (inOnePass ? [false, true, false] : [true, false]))
  }

  /// A digest proves the whole, whichever mirrors the redirects lead to. A signed URL has another signature, and another mirror the same
  /// name.
  @Test(arguments: [
    (Known.digest, "http://two/b"), (.nothing, "http://one/a?signature=2"), (.nothing, "http://two/pub/a"),
  ])
  func theRestMayComeFromWhereTheFileIsTheSame(_ known: Known, _ second: String) throws {
    let etag = "\"a8f2-5e1b\""
    let world = world(known, led(to: second, FakeAnswer(etag: etag, body: Self.text.bytes)))
    world.server.script(
      Self.url, [led(to: "http://one/a?signature=1", Server.broken(Self.text, after: 2000, etag: etag))])
    #expect(try world.run().isInSync)
    #expect(world.text("a") == Self.text)
    #expect(world.server.requests.map(\.offset) == [0, 2000])
  }

  @Test func whatIsRefusedWholeKeepsWhatCame() throws {
    let world = world(.nothing, FakeAnswer())
    world.policy.retries = 0
    let long = String(repeating: Self.text, count: 300)
    world.server.answer(Self.url, Server.broken(long, after: 2_000_000, etag: "\"1\""))
    _ = try world.run()
    world.server.answer(Self.url, FakeAnswer(status: 403))
    let report = try world.run()
    #expect(report.problems.map(\.code) == ["http-403"])
    #expect(world.server.requests.map { $0.offset > 0 } == [true, false])
    #expect(world.partialNames.count == 1)
  }

  /// It may be that only such requests are refused, however often.
  @Test(arguments: [408, 425, 429, 503])
  func aServerThatIsBusyForRangesIsAskedForTheWholeAtLast(_ status: Int) throws {
    let world = world(.nothing, FakeAnswer())
    var whole = FakeAnswer(etag: "\"1\"", body: Self.text.bytes)
    whole.rangeStatus = status
    world.server.script(Self.url, [Server.broken(Self.text, after: 2000, etag: "\"1\"")])
    world.server.answer(Self.url, whole)
    #expect(try world.run().isInSync)
    #expect(world.server.requests.map(\.offset) == [0, 2000, 0])
  }

  /// A server that asks for a pause is not asked for more.
  @Test func aServerThatAsksForAPauseIsNotAskedForTheWhole() throws {
    let world = world(.nothing, FakeAnswer())
    var answer = Server.broken(Self.text, after: 2000, etag: "\"1\"")
    answer.rangeStatus = 503
    world.server.answer(Self.url, answer)
    world.server.setRetryAfter(Self.url, 3600)
    #expect(try world.run().problems.map(\.code) == ["http-503"])
    #expect(world.server.requests.map(\.offset) == [0, 2000])
  }

  /// The answers to ranges fail in other ways than by a status, and bring nothing.
  @Test(arguments: [
    (DownloadFailure.Code.truncated, true), (.contentEncoding, false), (.tooSlow, true), (.timeout, true),
    (.headersTooLarge, false), (.protocolError, false), (.tooManyRedirects, false), (.flooded, false),
  ])
  func whateverFailsAtRangesTheWholeIsAskedFor(_ code: DownloadFailure.Code, _ isTransient: Bool) throws {
    var answer = FakeAnswer(etag: "\"1\"", body: Self.text.bytes)
    answer.rangeFailure = DownloadFailure(code, "it failed", isTransient: isTransient)
    let world = world(.nothing, answer)
    world.server.script(Self.url, [Server.broken(Self.text, after: 2000, etag: "\"1\"")])
    #expect(try world.run().isInSync)
    #expect(world.text("a") == Self.text)
    #expect(world.server.requests.map(\.offset).last == 0)
  }

  /// Whatever the others fail at.
  @Test(arguments: [true, false])
  func ofSeveralSourcesTheOneThatFailsAtRangesIsAskedForTheWhole(_ isFirst: Bool) throws {
    let other = "http://two.example/a"
    let world = World()
    world.rushes = true
    world.policy.retries = 1
    var entry = world.entry("a", Self.text, sources: isFirst ? [Self.url, other] : [other, Self.url])
    (entry.size, entry.digests) = (nil, [])
    world.add(entry)
    var answer = FakeAnswer(etag: "\"1\"", body: Self.text.bytes)
    answer.rangeFailure = DownloadFailure(.truncated, "nothing came", isTransient: true)
    world.server.script(Self.url, [Server.broken(Self.text, after: 2000, etag: "\"1\"")])
    world.server.answer(Self.url, answer)
    #expect(try world.run().isInSync)
    #expect(world.text("a") == Self.text)
    #expect(world.server.requests.count <= 6)
  }

  /// Some caches answer a range with status 200 and the part, and some send a part to who asked for all.
  @Test(arguments: Known.allCases, [true, false])
  func aPartThatSaysOKIsNotTheWhole(_ known: Known, hasRange: Bool) throws {
    var answer = FakeAnswer(body: Self.text.bytes)
    answer.lastModified = Timestamp(rfc3339: "2026-01-01T00:00:00Z")
    let world = world(known, answer)
    var first = Server.broken(Self.text, after: 2000, etag: nil)
    first.lastModified = answer.lastModified
    first.sent = Timestamp(rfc3339: "2026-02-01T00:00:00Z")
    world.server.script(Self.url, [first])
    let downloader = try world.server.editingHeads { _, head in
      guard head.status == 206 else { return }
      head.status = 200
      if !hasRange { head.contentRange = nil }
    }
    defer { downloader.shutDown() }
    #expect(try world.pass(downloader).run(folder: world.folder).isInSync)
    #expect(world.text("a") == Self.text)
  }

  /// It tells neither its length nor its version, and comes to its end.
  @Test(arguments: Known.allCases) func aShortAnswerThatTellsNothingIsNotTheWhole(_ known: Known) throws {
    let world = world(known, FakeAnswer(etag: "\"1\"", body: Self.text.bytes))
    var short = FakeAnswer(body: Array(Self.text.bytes.prefix(1000)))
    short.honoursRanges = false
    world.server.script(Self.url, [Server.broken(Self.text, after: 2000, etag: "\"1\""), short])
    let downloader = try world.server.editingHeads { request, head in
      if request.offset > 0 { head.contentLength = nil }
    }
    defer { downloader.shutDown() }
    #expect(try world.pass(downloader).run(folder: world.folder).isInSync)
    #expect(world.text("a") == Self.text)
  }

  @Test(arguments: Known.allCases)
  func aPartForTheWholeIsRefused(_ known: Known) throws {
    let world = world(known, FakeAnswer(etag: "\"1\"", body: Array(Self.text.bytes.prefix(5000))))
    let downloader = try world.server.editingHeads { _, head in
      head.contentRange = ContentRange(first: 0, last: 4999, total: 9600)
    }
    defer { downloader.shutDown() }
    let report = try world.pass(downloader).run(folder: world.folder)
    #expect(report.problems.map(\.code) == ["unstable-source"])
    #expect(world.files.isEmpty)
  }

  /// Some caches answer a plain request so, and a proxy that changes what it passes on has a status of its own
  /// (RFC 9110 15.3.4); the digest decides where there is one.
  @Test(arguments: Known.allCases, [203, 206])
  func theWholeIsTakenWhateverItIsCalled(_ known: Known, _ status: Int) throws {
    let world = world(known, FakeAnswer(etag: "\"1\"", body: Self.text.bytes))
    let downloader = try world.server.editingHeads { _, head in
      head.status = status
      let size = UInt64(Self.text.utf8.count)
      if status == 206 { head.contentRange = ContentRange(first: 0, last: size - 1, total: size) }
    }
    defer { downloader.shutDown() }
    #expect(try world.pass(downloader).run(folder: world.folder).isInSync)
    #expect(world.text("a") == Self.text)
  }

  /// What it says of itself is more than what comes, whatever status it has, and whether it says its length or not.
  @Test(arguments: Known.allCases, [200, 206])
  func lessThanItSaysIsNotTheWhole(_ known: Known, _ status: Int) throws {
    for (hasLength, range) in [
      (true, ContentRange(first: 0, last: 9599, total: 9600)),
      (false, ContentRange(first: 0, last: 9599, total: 9600)),
      (false, ContentRange(first: nil, last: nil, total: 9600)),
      (false, ContentRange(first: 0, last: 9599, total: nil)),
    ] where status == 200 || range.total != nil && range.first != nil {
      var answer = FakeAnswer(etag: "\"1\"", body: Array(Self.text.bytes.prefix(5000)))
      answer.honoursRanges = false
      let world = world(known, answer)
      world.policy.retries = 0
      let downloader = try world.server.editingHeads { _, head in
        head.status = status
        head.contentRange = range
        if !hasLength { head.contentLength = nil }
      }
      defer { downloader.shutDown() }
      let report = try world.pass(downloader).run(folder: world.folder)
      #expect(report.outcome == "partial" && world.files.isEmpty, "\(hasLength) \(range) \(report.problems)")
    }
  }

  /// It goes on from where that ended.
  @Test func theRestOfWhatItSaidComes() throws {
    var first = FakeAnswer(etag: "\"1\"", body: Array(Self.text.bytes.prefix(5000)))
    first.honoursRanges = false
    let world = world(.nothing, FakeAnswer(etag: "\"1\"", body: Self.text.bytes))
    world.server.script(Self.url, [first])
    let size = UInt64(Self.text.utf8.count)
    let downloader = try world.server.editingHeads { request, head in
      guard request.offset == 0 else { return }
      (head.status, head.contentLength) = (206, nil)
      head.contentRange = ContentRange(first: 0, last: size - 1, total: size)
    }
    defer { downloader.shutDown() }
    #expect(try world.pass(downloader).run(folder: world.folder).isInSync)
    #expect(world.server.requests.map(\.offset) == [0, 5000])
    #expect(world.text("a") == Self.text)
  }

  /// The whole is asked for where the rest is refused: the same version has as many bytes as before.
  @Test(arguments: Known.allCases, [(416, true), (416, false), (500, true), (403, true), (403, false)])
  func theSameVersionIsNotShorter(_ known: Known, _ rest: (status: Int, hasLength: Bool)) throws {
    let (status, hasLength) = rest
    let world = world(known, FakeAnswer(etag: "\"1\"", body: Array(Self.text.bytes.prefix(5000))))
    world.policy.retries = 0
    world.server.script(Self.url, [Server.broken(Self.text, after: 2000, etag: "\"1\"")])
    let downloader = try world.server.editingHeads { request, head in
      if request.offset > 0 { (head.status, head.contentRange) = (status, nil) }
      if request.offset == 0, !hasLength, head.contentLength == 5000 { head.contentLength = nil }
    }
    defer { downloader.shutDown() }
    let report = try world.pass(downloader).run(folder: world.folder)
    #expect(report.outcome == "partial" && world.files.isEmpty, "\(report.problems)")
  }

  /// As long as the rest, and without a word of what it is.
  @Test(arguments: [true, false]) func theRestAloneIsNotTheWhole(_ hasLength: Bool) throws {
    let world = world(.nothing, FakeAnswer(etag: "\"1\"", body: Self.text.bytes))
    world.server.script(Self.url, [Server.broken(Self.text, after: 2000, etag: "\"1\"")])
    let downloader = try world.server.editingHeads { request, head in
      guard request.offset > 0 else { return }
      (head.status, head.etag, head.lastModified, head.contentRange) = (200, nil, nil, nil)
      if !hasLength { head.contentLength = nil }
    }
    defer { downloader.shutDown() }
    #expect(try world.pass(downloader).run(folder: world.folder).isInSync)
    #expect(world.server.requests.map(\.offset) == [0, 2000, 0])
    #expect(world.text("a") == Self.text)
  }

  /// The row of an earlier version does not call bytes good that are written over, however short the new one is: a kill may come at
  /// any time.
  @Test func aNewVersionHasNoRowOfTheOldOne() throws {
    let old = String(repeating: "old version.....", count: 200_000)
    let new = String(repeating: "new version.....", count: 50_000)
    let world = World()
    world.rushes = true
    world.policy.retries = 0
    world.add(Entry(path: "a".path, sources: [Source(url: Self.url)], listing: "1".bytes))
    world.server.script(Self.url, [Server.broken(old, after: 1_500_000, etag: "\"1\"")])
    world.server.answer(Self.url, Server.broken(new, after: 600_000, etag: "\"2\""))
    _ = try world.run()
    #expect(try world.ledger.partials().map(\.etag) == ["\"1\""])
    let seen = Locked<[String?]>([])
    world.server.onRequest { [ledger = world.ledger] request in
      if request.offset > 0 { seen.withLock { $0 += ((try? ledger.partials()) ?? []).map(\.etag) } }
    }
    world.policy.retries = 1
    _ = try world.run()
    // The first request of the pass is for the rest of the old one, the second for that of the new one.
    #expect(seen.withLock { $0 } == ["\"1\"", "\"2\""])
  }

  /// An answer without a validator says of nobody's file how long it is.
  @Test func anUnprovedEndIsNotTheEnd() throws {
    var first = Server.broken(Self.text, after: 2000, etag: "\"1\"")
    first.isFramed = false
    let world = world(.nothing, FakeAnswer(etag: "\"1\"", body: Self.text.bytes))
    world.server.script(Self.url, [first])
    let downloader = try world.server.editingHeads { request, head in
      guard request.offset > 0 else { return }
      head.status = 416
      head.etag = nil
      head.contentRange = ContentRange(first: nil, last: nil, total: 2000)
    }
    defer { downloader.shutDown() }
    #expect(try world.pass(downloader).run(folder: world.folder).isInSync)
    #expect(world.server.requests.map(\.offset) == [0, 2000, 0])
    #expect(world.text("a") == Self.text)
  }

  /// Nothing told the number of bytes when the first of them came; the feed tells more than three times as many.
  @Test func aPartDoesNotEndFarBelowTheLengthOfTheFeed() throws {
    var first = Server.broken(Self.text, after: 2000, etag: "\"1\"")
    first.isFramed = false
    var rest = FakeAnswer(etag: "\"1\"", body: Self.text.bytes)
    rest.mostOfRange = 1000
    let world = world(.hint, rest)
    world.server.script(Self.url, [first])
    let downloader = try world.server.editingHeads { request, head in
      guard request.offset > 0 else { return }
      head.contentRange = ContentRange(first: 2000, last: 2999, total: 3000)
    }
    defer { downloader.shutDown() }
    let report = try world.pass(downloader).run(folder: world.folder)
    #expect(report.isInSync, "\(report.problems)")
    #expect(world.server.requests.map(\.offset) == [0, 2000, 0])
    #expect(world.text("a") == Self.text)
  }
}
