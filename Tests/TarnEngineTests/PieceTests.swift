import TarnCore
import TestSupport
import Testing

@testable import TarnEngine

/// Wrong pieces among bytes that an earlier attempt left.
@Suite struct PieceTests {
  private static let text = String(repeating: "0123456789abcdef", count: 40)

  /// A world with a partial file, and one source that has the right bytes.
  private func world(left: String) throws -> World {
    let world = World()
    world.rushes = true
    var entry = world.entry("a", Self.text)
    entry.pieces = Pieces(
      length: 100,
      digests: stride(from: 0, to: 640, by: 100).map { start in
        world.digest(String(Self.text.dropFirst(start).prefix(100)))
      })
    world.add(entry)
    world.server.put(World.host + "a", Self.text.bytes, etag: "\"1\"")
    world.folder.leavePartial("left", left.bytes)
    try world.ledger.apply([
      .partial(
        PartialRow(
          path: "a".path, name: "left", url: World.host + "a", etag: "\"1\"", lastModified: nil,
          total: UInt64(Self.text.utf8.count), digest: entry.digest, fingerprint: entry.fingerprint,
          durable: 640,
          bootID: world.bootID))
    ])
    return world
  }

  /// The last piece is a short one, which only the end of the file tells. No source was asked so far, and none is to blame.
  @Test func aWrongPieceOfAWholeFileIsFetchedAlone() throws {
    let world = try world(left: Self.text.dropLast() + "X")
    #expect(try world.run().isInSync)
    #expect(world.text("a") == Self.text)
    #expect(world.server.requests.map(\.offset) == [600])
    #expect(world.log.retries.isEmpty)
  }

  /// Half of the piece is of the earlier attempt: the source that sent the other half is asked for all of it.
  @Test func aPieceThatWasBegunEarlierIsFetchedAgainFromTheSameSource() throws {
    let world = try world(left: Self.text.prefix(240) + "X")
    #expect(try world.run().isInSync)
    #expect(world.text("a") == Self.text)
    #expect(world.server.requests.map(\.offset) == [241, 200])
    #expect(world.log.retries.isEmpty)
  }

  /// It sent all of them itself, without regard to what was kept: it is not asked again, but the next one.
  @Test func aSourceThatSendsAWrongPieceFromTheBeginningIsToBlame() throws {
    let world = try world(left: String(Self.text.prefix(500)))
    var wrong = Self.text.bytes
    wrong[250] ^= 1
    var answer = FakeAnswer(etag: "\"2\"", body: wrong)
    answer.honoursRanges = false
    world.server.answer(World.host + "a", answer)
    world.server.put(World.host + "other", Self.text.bytes, etag: "\"3\"")
    guard case .entry(var entry) = world.items.removeLast() else {
      Issue.record("the last item is no entry")
      return
    }
    entry.sources.append(Source(url: World.host + "other"))
    world.add(entry)
    #expect(try world.run().isInSync)
    #expect(world.text("a") == Self.text)
    #expect(world.server.urls == [World.host + "a", World.host + "other"])
    #expect(world.server.requests.last?.offset == 200)
  }
}
