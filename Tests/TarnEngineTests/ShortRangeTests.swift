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

  /// A part without a total may be the last one or not.
  @Test(arguments: [Known.nothing, .listing, .hint])
  func aPartWithoutATotalIsNotTaken(_ known: Known) throws {
    let world = world(known, FakeAnswer())
    let offsets = Locked<[UInt64]>([])
    let downloader = HeadDownloader(
      try FakeDownloader { request in
        let isFirst = offsets.withLock { offsets in
          offsets.append(request.offset)
          return offsets.count == 1
        }
        var answer = FakeAnswer(etag: "\"1\"", body: Self.text.bytes)
        if isFirst { answer = Server.broken(Self.text, after: 2000, etag: "\"1\"") }
        answer.mostOfRange = 1500
        return answer
      }
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
    world.server.script(Self.url, [Server.broken(Self.text, after: 2000, etag: "\"1\"")])
    world.server.answer(Self.url, whole)
    #expect(try world.run().isInSync)
    #expect(world.text("a") == Self.text)
    #expect(world.server.requests.map(\.offset) == [0, 2000, 0])
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

  /// A server that has too much to do refuses any request: it is not asked twice for one attempt.
  @Test(arguments: [429, 503])
  func anOverloadedServerIsNotAskedForTheWhole(_ status: Int) throws {
    let world = world(.nothing, FakeAnswer())
    var answer = Server.broken(Self.text, after: 2000, etag: "\"1\"")
    answer.rangeStatus = status
    world.server.answer(Self.url, answer)
    #expect(try world.run().problems.map(\.code) == ["http-\(status)"])
    #expect(world.server.requests.map(\.offset) == [0, 2000])
  }
}
