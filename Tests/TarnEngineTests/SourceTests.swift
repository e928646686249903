import TarnCore
import TestSupport
import Testing

@testable import TarnEngine

/// What is told of a source that fails, and which one is asked next.
@Suite struct SourceTests {
  private let first = World.twoSources[0]
  private let second = World.twoSources[1]

  private func twoSources() -> World { World.ofTwoSources() }

  /// A source that failed for good is asked once, and the others go on without it.
  @Test func aSourceThatIsGoneIsNotAskedInEachRound() throws {
    let world = twoSources()
    world.rushes = true
    world.server.answer(first, FakeAnswer(status: 404))
    world.server.put(second, "the text".bytes)
    world.server.script(second, [FakeAnswer(status: 503), FakeAnswer(status: 500)])
    #expect(try world.run().isInSync)
    #expect(world.server.urls == [first, second, second, second])
  }

  /// What each of them told last is told.
  @Test func whereEachFailsForGoodTheEntryDoes() throws {
    let world = twoSources()
    world.rushes = true
    world.server.answer(first, FakeAnswer(status: 404))
    world.server.answer(second, FakeAnswer(status: 410))
    world.server.script(second, [FakeAnswer(status: 503)])
    let report = try world.run()
    #expect(world.server.urls == [first, second, second])
    let told = report.problems.first?.message ?? ""
    #expect(told.contains("404") && told.contains("410") && !told.contains("503"), "\(told)")
  }

  /// The list may be of the decoded bytes.
  @Test(arguments: [4, nil]) func anEncodingThatNobodyAskedForIsNamed(size: UInt64?) throws {
    let world = World()
    var entry = world.serve("a", "text")
    entry.size = size
    world.add(entry)
    var answer = FakeAnswer()
    answer.body = "packed".bytes
    answer.contentEncoding = "gzip"
    world.server.answer(World.host + "a", answer)
    let report = try world.run()
    #expect(report.problems.map(\.code) == [size == nil ? "digest-mismatch" : "size-mismatch"])
    let told = report.problems.first?.message ?? ""
    #expect(
      told.hasSuffix("; the server sent it with the encoding gzip, which was not asked for"), "\(told)")
  }
}
