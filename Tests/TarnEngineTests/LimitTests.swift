import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnEngine

/// How far a source is followed: no further than the disk, a few restarts, and an encoding that the bytes tell.
@Suite struct LimitTests {
  private let world = World()

  /// 100 bytes are free beyond the reserve, and the feed tells no size.
  private func fillDisk() {
    world.policy.retries = 0
    world.policy.reserve = .bytes(1000)
    world.folder.setSpace(free: 1100)
  }

  @Test func aSizeThatOnlyTheServerTellsIsLookedAt() throws {
    fillDisk()
    for (name, count) in [("a", 101), ("b", 100)] {
      world.add(world.bareEntry(name, listing: name))
      world.server.put(World.host + name, [UInt8](repeating: 65, count: count))
    }
    let report = try world.run()
    #expect(report.problems.map(\.code) == ["no-space"])
    #expect(report.problems.map(\.name) == ["a".bytes])
    #expect(report.bytes.received == 100)
    #expect(world.files.keys.sorted() == ["b"])
  }

  /// Free space is looked at before the first bytes of an answer that tells no size are written.
  @Test func aSizeThatNobodyTellsIsLookedAt() throws {
    fillDisk()
    let text = String(repeating: "text whose end only the digest tells ", count: 3)
    var entry = world.entry("a", text)
    entry.size = nil
    world.add(entry)
    var answer = FakeAnswer(body: text.bytes)
    answer.isFramed = false
    world.server.answer(World.host + "a", answer)
    #expect(try world.run().problems.map(\.code) == ["no-space"])
    #expect(world.files.isEmpty)
    world.folder.setSpace(free: 16 << 20)
    #expect(try world.run().isInSync)
    #expect(world.text("a") == text)
  }

  /// However little room there is: what fits comes.
  @Test(arguments: [(1, 100), (99, 100), (100, 100), (101, 100), (2500, 2500), (2501, 2500)])
  func aSmallFileOfUnknownSizeFitsIntoLittleRoom(count: Int, room: Int) throws {
    fillDisk()
    world.folder.setSpace(free: UInt64(1000 + room))
    let text = String(repeating: "x", count: count)
    var entry = world.entry("a", text)
    entry.size = nil
    world.add(entry)
    var answer = FakeAnswer(body: text.bytes)
    answer.hasLength = false
    world.server.answer(World.host + "a", answer)
    #expect(try world.run().problems.map(\.code) == (count <= room ? [] : ["no-space"]))
    #expect(world.files.count == (count <= room ? 1 : 0))
  }

  /// A source that is another version each time it is asked, and loses the connection in between.
  @Test func aSourceThatChangesForEverIsGivenUp() throws {
    world.rushes = true
    world.policy.retries = 20
    let text = String(repeating: "0123456789abcdef", count: 40)
    world.want("a", text)
    let script = (0..<20).flatMap { number in
      [Server.broken(text, after: 200, etag: "\"\(number)\""), FakeAnswer(status: 206, body: text.bytes)]
    }
    world.server.script(World.host + "a", script)
    let report = try world.run()
    #expect(report.problems.map(\.code) == ["unstable-source"])
    // Each restart costs two requests, and so does the first attempt.
    #expect(world.server.requests.count == 2 * (Attempts.mostRestarts + 1))
  }

  /// Encoded bytes are another file, unless a digest tells or the name says that the file is compressed itself.
  @Test func anEncodingIsTakenOnlyWhereTheBytesTell() throws {
    world.add(world.bareEntry("plain", listing: "1"))
    world.server.put(World.host + "plain", "plain".bytes)
    world.add(world.bareEntry("packed.tar.gz", listing: "1"))
    world.server.put(World.host + "packed.tar.gz", [0x1F, 0x8B, 8] + "packed".bytes)
    world.want("told", "told")
    #expect(try world.run().isInSync)
    let encodings = world.server.requests.map { "\($0.url.dropFirst(World.host.count)) \($0.encoding)" }
    #expect(encodings.sorted() == ["packed.tar.gz taken", "plain refused", "told taken"])
  }

  /// Hundreds of small files may wait for their lane at a time: each takes no more memory than it has bytes, whoever tells these.
  @Test func aSmallFileIsGatheredInLittleMemory() {
    var head = ResponseHead(status: 200, url: "file:///a")
    head.contentLength = 100
    #expect(FileReceiver.gathering(nil, head) == 100)
    #expect(FileReceiver.gathering(50, head) == 50 && FileReceiver.gathering(50, nil) == 50)
    head.contentLength = nil
    for size in [nil, 1 << 40] as [UInt64?] {
      #expect(FileReceiver.gathering(size, head) == FileReceiver.handful)
    }
  }
}
