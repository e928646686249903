import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnEngine

/// A disk that fills up: what does not fit beside other transfers is tried again when they are over, and reported only
/// when it does not fit with nothing else at work.
@Suite struct SpaceQueueTests {
  /// Who tells how long a file is.
  enum Teller: CaseIterable {
    case feed, answer, mixed
  }

  private func disk(_ bytes: UInt64, seed: UInt64 = 1) -> World {
    let world = World(seed: seed, hashing: QuickHashing())
    world.policy.retries = 0
    world.policy.reserve = .bytes(0)
    world.folder.setCapacity(bytes)
    return world
  }

  private func text(_ name: String, _ count: Int) -> String {
    name + String(repeating: "x", count: count - name.utf8.count)
  }

  private func want(_ name: String, _ count: Int, isTold: Bool, _ world: World) {
    var entry = world.serve(name, text(name, count))
    if !isTold { entry.size = nil }
    world.add(entry)
  }

  private func sizes(_ world: World) -> [String: UInt64] {
    var sizes: [String: UInt64] = [:]
    for case .entry(let entry) in world.items {
      let name = String(decoding: entry.path.bytes, as: UTF8.self)
      sizes[name] = world.server.text(World.host + name).map { UInt64($0.utf8.count) }
    }
    return sizes
  }

  /// What is reported would not even fit now, and everything else is in place; nobody is asked more than three times.
  private func expectFull(_ world: World, _ report: PassReport) throws {
    let sizes = sizes(world)
    let free = try world.folder.space().free
    let failed = report.problems.map { String(decoding: $0.name, as: UTF8.self) }
    #expect(report.problems.allSatisfy { $0.code == "no-space" }, "\(report.problems)")
    #expect(failed.allSatisfy { sizes[$0] ?? 0 > free }, "\(free) free, failed: \(failed)")
    #expect(Set(failed).count == failed.count && Set(failed).isDisjoint(with: world.files.keys))
    #expect(world.files.count + failed.count == sizes.count)
    #expect(world.partialNames.isEmpty)
    for (url, asked) in Dictionary(world.server.urls.map { ($0, 1) }, uniquingKeysWith: +) {
      #expect(asked <= 3, "\(url)")
    }
  }

  @Test(arguments: Teller.allCases) func whatIsSmallIsNotReportedBesideWhatIsLarge(_ teller: Teller) throws {
    let world = disk(20_000)
    for number in 0..<12 {
      want("m\(number)", 1000 + 200 * number, isTold: teller == .feed, world)
    }
    want("huge", 30_000, isTold: teller != .answer, world)
    for number in 0..<50 { want("s\(number)", 8, isTold: teller != .answer, world) }
    let report = try world.run()
    #expect(world.text("huge") == nil)
    try expectFull(world, report)
  }

  /// A file system without inodes: what cannot be placed is not fetched, whatever its size.
  @Test(arguments: [true, false]) func nothingIsFetchedWhereNoFileCanBeMade(isTold: Bool) throws {
    let world = World()
    world.rushes = true
    for number in 0..<2_500 {
      want("f\(number)", 8 + number % 7, isTold: isTold, world)
    }
    world.folder.setFiles(0)
    let report = try world.run()
    #expect(report.counts.failed == 2_500)
    #expect(world.server.requests.isEmpty)
    let last = try #require(report.problems.last)
    #expect(last.code == "no-space" && last.message.contains("can hold no more files"))
  }

  /// No more is asked for than can be placed.
  @Test func asManyAreFetchedAsCanBeMade() throws {
    let world = World()
    for number in 0..<600 { want("f\(number)", 8 + number % 7, isTold: number % 2 == 0, world) }
    world.folder.setFiles(48)
    let report = try world.run()
    #expect(world.files.count == 48)
    #expect(report.counts.failed == 552)
    #expect(world.server.requests.count == 48)
    #expect(report.problems.last?.message.contains("can hold no more files") == true)
  }

  /// Of a long list without sizes not each file is asked for once the disk is full.
  @Test func aFullDiskIsNotAskedForEachFileOfAList() throws {
    let world = disk(20_000)
    world.rushes = true
    for number in 0..<3_000 { want("f\(number)", 100, isTold: false, world) }
    let report = try world.run()
    #expect(world.files.count == 200 && report.counts.failed == 2_800)
    #expect(report.problems.allSatisfy { $0.code == "no-space" })
    #expect(world.server.requests.count < 1_500, "\(world.server.requests.count)")
  }

  /// Others may take those that are left.
  @Test func whatHasBytesAndNoFileIsToldSo() throws {
    let world = World()
    world.folder.setFiles(5)
    let space = try SpaceBudget(world.folder, reserve: .bytes(0))
    #expect(!space.reserve(8, besides: 5) && space.reserve(8, besides: 4))
    #expect(space.refusal(8).contains("can hold hardly any more files"))
    #expect(space.refusal(.max).contains("it needs"))
  }

  /// Somebody else takes the last ones: what cannot be made is told, and little more is asked for.
  @Test func whatWasCountedMayBeGone() throws {
    let world = World()
    for number in 0..<600 { want("f\(number)", 8, isTold: true, world) }
    world.folder.setFiles(48)
    let folder = world.folder
    world.server.onRequest { _ in folder.setFiles(0) }
    let report = try world.run()
    #expect(world.files.isEmpty)
    #expect(report.counts.failed == 600)
    #expect(world.server.requests.count <= 100, "\(world.server.requests.count)")
  }

  /// The large one holds all the space until its source fails. What came of it stays.
  @Test(arguments: [true, false]) func whatFailsGivesItsSpaceBack(isTold: Bool) throws {
    let world = disk(10_000)
    want("a", 9_000, isTold: isTold, world)
    for number in 0..<5 { want("b\(number)", 1_900, isTold: isTold, world) }
    let failure = DownloadFailure(.reset, "the connection was lost", isTransient: false)
    world.server.answer(World.host + "a", FakeAnswer(body: text("a", 9_000).bytes, failure: (400, failure)))
    let report = try world.run()
    #expect(report.problems.map(\.name) == ["a".bytes])
    #expect(report.problems.map(\.code) == ["connection-lost"])
    #expect((0..<5).allSatisfy { world.text("b\($0)") != nil })
  }

  /// Whatever the sizes, who tells them and how many may wait: the pass ends, and only what does not fit is reported.
  @Test(arguments: 1...60) func onlyWhatDoesNotFitIsReported(seed: UInt64) throws {
    let dice = SeededRandom(seed: seed)
    func roll(_ sides: UInt64) -> Int { Int(dice.next(below: sides)) }
    let world = disk(UInt64(2000 + roll(20_000)), seed: seed)
    world.mostHeldBack = [0, 1, 5, 4096][roll(4)]
    if roll(2) == 0 { world.policy.publishLast = PathPatterns(["/f1*"]) }
    let told = roll(3)
    for number in 0..<(1 + roll(60)) {
      let count = [10, 300, 3000, 30_000][roll(4)]
      want("f\(number)", 4 + roll(UInt64(count)), isTold: told == 0 || (told == 1 && roll(2) == 0), world)
    }
    try expectFull(world, try world.run())
  }

  @Test func whereNothingIsShortEachIsAskedOnce() throws {
    let world = disk(100_000)
    for number in 0..<20 { want("f\(number)", 1000, isTold: number % 2 == 0, world) }
    #expect(try world.run().isInSync)
    #expect(world.server.requests.count == 20)
  }

  /// Longer than the disk: refused by its head, before a byte.
  @Test func anAnswerThatIsTooLongWritesNothing() throws {
    let world = disk(20_000)
    want("a", 20_001, isTold: false, world)
    let report = try world.run()
    #expect(report.problems.map(\.code) == ["no-space"])
    #expect(report.bytes.received == 0)
    #expect(world.folder.count(.makePartial) == 0)
    #expect(world.server.requests.count == 1)
  }

  @Test func aStopReportsNothingThatWaits() throws {
    let world = disk(10_000)
    want("a", 9_000, isTold: true, world)
    for number in 0..<5 { want("b\(number)", 2_000, isTold: true, world) }
    world.server.answer(World.host + "a", FakeAnswer(body: text("a", 9_000).bytes, hangs: true))
    let box = StopBox(world)
    world.server.onRequest { _ in box.set() }
    let report = try world.run()
    #expect(report.wasStopped && report.problems.isEmpty)
  }

  /// Only what is missing of it has to fit.
  @Test func whatIsKeptNeedsNoSpaceAgain() throws {
    let world = disk(10_000)
    let body = text("a", 8_000)
    var entry = world.serve("a", body, etag: "\"1\"")
    entry.size = nil
    world.add(entry)
    world.server.script(World.host + "a", [Server.broken(body, after: 6_000, etag: "\"1\"")])
    world.rushes = true
    world.policy.retries = 1
    let report = try world.run()
    #expect(report.isInSync)
    #expect(world.server.requests.map(\.offset) == [0, 6_000])
  }

  /// What an earlier pass left on the disk of a file is room for it.
  @Test func whatAnEarlierPassKeptNeedsNoSpaceAgain() throws {
    let (size, kept) = (8 << 20, 5 << 20)
    let world = disk(10 << 20)
    let body = text("a", size)
    world.add(world.serve("a", body, etag: "\"1\""))
    world.server.script(World.host + "a", [Server.broken(body, after: kept, etag: "\"1\"")])
    world.policy.retries = 0
    #expect(try !world.run().isInSync && !world.partialNames.isEmpty)
    let report = try world.run()
    let told = report.problems.map(\.message)
    #expect(told == [])
    #expect(report.isInSync)
    #expect(world.server.requests.map(\.offset) == [UInt64(kept)])
  }
}
