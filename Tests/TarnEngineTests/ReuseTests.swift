import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnEngine

/// The same bytes elsewhere in the folder, or named twice by the feed, are not fetched again.
@Suite struct ReuseTests {
  private static let long = String(repeating: "0123456789abcdef", count: 5000)

  @Test func aFileThatTheUserRenamedIsCopiedBack() throws {
    let world = World()
    world.want("a", Self.long)
    try world.run()
    world.folder.rename("a".path, to: "renamed".path)
    let report = try world.run()
    #expect(report.isInSync)
    #expect(report.counts.copied == 1)
    #expect(world.text("a") == Self.long)
    #expect(world.text("renamed") == Self.long)
    #expect(world.server.requests.isEmpty)
  }

  @Test func aStrangerThatLooksLikeItIsHashed() throws {
    for (text, copied) in [(Self.long, 1), (String(Self.long.dropLast() + "X"), 0)] {
      let world = World()
      world.folder.write("mine".path, text.bytes)
      world.want("a", Self.long)
      let report = try world.run()
      #expect(report.isInSync)
      #expect(report.counts.copied == copied)
      #expect(world.server.requests.count == 1 - copied)
      #expect(world.text("a") == Self.long)
      #expect(world.text("mine") == text)
      #expect(world.partialNames.isEmpty)
    }
  }

  @Test(arguments: [2, 300]) func twoNamesOfOneContentAreFetchedOnce(count: Int) throws {
    let world = World()
    for number in 0..<count { world.want("f\(number)", Self.long) }
    let report = try world.run()
    #expect(report.isInSync)
    #expect(report.counts.copied == count - 1)
    #expect(world.server.requests.count == 1)
    #expect(Set(world.files.values) == [Self.long])
    #expect(try world.plan().actions.isEmpty)
  }

  /// The first one fails: the next one that waited is asked for, not forgotten.
  @Test func whoWaitedForAFailureGoesOnAlone() throws {
    let world = World()
    world.policy.retries = 0
    for number in 0..<4 { world.want("f\(number)", Self.long) }
    world.server.answer(World.host + "f0", FakeAnswer(status: 404))
    let report = try world.run()
    #expect(report.counts.failed == 1)
    #expect(world.files == ["f1": Self.long, "f2": Self.long, "f3": Self.long])
    #expect(world.server.requests.count == 2)
  }

  /// Small files are not waited for; all the same each is there once it is asked for.
  @Test func smallTwinsDoNotWait() throws {
    let world = World()
    for number in 0..<500 { world.want("f\(number)", "") }
    #expect(try world.run().isInSync)
    #expect(world.files.count == 500)
  }
}
