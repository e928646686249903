import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnEngine

/// Two mirrors of one feed, and the same users in both: one asks whether the feed has changed, the other reads it whole at
/// each pass. They come to the same.
@Suite struct UnchangedFeedPropertyTests {
  private static let seeds: UInt64 = 150
  private static let names = ["a", "a/b", "b", "c", "d/1", "d/2", "z"]

  /// What happens to both, as values.
  private enum Deed {
    case edit(String), delete(String), touch(String), write(String), makeDirectory(String), makeLink(String)
    case publish(String, String), unlist(String)
    case wait(UInt64)
  }

  private struct Pair {
    let asking: World
    let reading: World
    let dice: SeededRandom
    let isWindow: Bool
    var version = 0
    /// Sendings of the feed: each with another tag, or with none.
    var sendings = 0
    var tag: String?

    init(seed: UInt64) {
      dice = SeededRandom(seed: seed &* 7919)
      (asking, reading) = (World(seed: seed), World(seed: seed))
      isWindow = dice.next(below: 3) == 0
      let changes: PassPolicy.LocalChanges = [.restore, .keep, .keep, .report][Int(dice.next(below: 4))]
      let deletes = dice.next(below: 2) == 0
      for world in both {
        world.location = .remote(url: UnchangedFeedTests.list)
        world.policy.retries = 0
        world.policy.localChanges = changes
        world.policy.window.localChanges = changes
        world.policy.deletes = deletes
        if isWindow {
          world.end = FeedEnd(format: "RSS", isComplete: false, incompleteReason: "a window")
          world.policy.window.keep = deletes ? 3 : nil
        }
      }
      asking.settings = "settings"
    }

    var both: [World] { [asking, reading] }

    func roll(_ sides: Int) -> Int { Int(dice.next(below: UInt64(sides))) }

    /// What users do.
    func edit() -> Deed {
      let paths = Array(Set(asking.files.keys).union(isWindow ? [] : UnchangedFeedPropertyTests.names))
        .sorted()
      guard !paths.isEmpty else { return .wait(60) }
      let path = paths[roll(paths.count)]
      switch roll(7) {
      case 0: return .edit(path)
      case 1, 2: return .delete(path)
      case 3: return .touch(path)
      case 4: return .makeDirectory(path)
      case 5: return .makeLink(path)
      default: return .write(path)
      }
    }

    /// What the publisher does.
    mutating func news() -> Deed {
      version += 1
      let name = UnchangedFeedPropertyTests.names[roll(UnchangedFeedPropertyTests.names.count)]
      return roll(3) == 0 ? .unlist(name) : .publish(name, "version \(version) of \(name)")
    }

    mutating func changeFeed() {
      for _ in 0..<(1 + roll(3)) { carryOut(news()) }
      version += 1
      sendFeed()
    }

    /// The same text may come with another tag.
    mutating func sendFeed() {
      sendings += 1
      tag = roll(4) == 0 ? nil : "\"\(sendings)\""
      for world in both {
        world.server.answer(UnchangedFeedTests.list, FakeAnswer(etag: tag, body: "list \(version)".bytes))
      }
    }

    func carryOut(_ deed: Deed) {
      for world in both { carryOut(deed, world) }
    }

    private func carryOut(_ deed: Deed, _ world: World) {
      switch deed {
      case .edit(let path): world.folder.edit(path.path, "mine".bytes)
      case .delete(let path): world.folder.delete(path.path)
      case .touch(let path): world.folder.edit(path.path, world.folder.contents(path.path) ?? [])
      case .write(let path) where isFree(path, world): world.folder.write(path.path, "mine".bytes)
      case .makeDirectory(let path) where isFree(path, world): world.folder.makeDirectory(path.path)
      case .makeLink(let path) where isFree(path, world): world.folder.makeLink(path.path)
      case .write, .makeDirectory, .makeLink: break
      case .publish(let name, let text) where isWindow: publishEpisode(name, text, world)
      case .publish(let name, let text): world.want(name, text)
      case .unlist where isWindow: _ = world.items.popLast()
      case .unlist(let name): world.unlist(name)
      case .wait(let seconds): world.clock.advance(.seconds(seconds))
      }
    }

    private func isFree(_ path: String, _ world: World) -> Bool {
      world.folder.paths().allSatisfy { !$0.isAncestor(of: path.path) && !path.path.isAncestor(of: $0) }
        && world.folder.contents(path.path) == nil
    }

    private func publishEpisode(_ name: String, _ text: String, _ world: World) {
      let url = World.host + "\(version).mp3"
      world.server.put(url, "ID3 \(text)".bytes)
      let episode = Enclosure(
        guid: "\(version)".bytes, title: text.bytes,
        date: Timestamp(year: 2025, month: 1, day: 1 + version % 28),
        sources: [Source(url: url)])
      world.items.insert(.enclosure(episode), at: 0)
      world.items = world.items.enumerated().map { position, item in
        guard case .enclosure(var enclosure) = item else { return item }
        enclosure.position = position
        return .enclosure(enclosure)
      }
    }
  }

  /// What there is to see of a pass.
  private struct View: Equatable {
    var counts: PassCounts
    var bytes: PassBytes
    var isInSync: Bool
    var isComplete: Bool
    var files: [String: String]
    var trash: [String]
    var rows: [RelativePath]
    var problems: [String]
    var facts: [LedgerFact: String]

    init(_ report: PassReport, _ world: World) {
      counts = report.counts
      bytes = report.bytes
      isInSync = report.isInSync
      isComplete = report.manifest.isComplete
      files = world.files
      trash = world.trash
      rows = world.ledger.contents.rows.keys.sorted()
      problems = report.problems.map { "\($0.code) \(String(decoding: $0.name, as: UTF8.self))" }
      facts = world.ledger.contents.facts
      facts[.feedRecord] = nil
    }
  }

  @Test(arguments: Array(0..<UInt64(10))) func askingComesToWhatReadingComesTo(_ share: UInt64) throws {
    var (unchanged, same, mended) = (0, 0, 0)
    for seed in stride(from: share, to: Self.seeds, by: 10) {
      var pair = Pair(seed: seed)
      for _ in 0..<3 { pair.changeFeed() }
      for round in 0..<12 {
        if pair.roll(4) == 0 { pair.changeFeed() } else if pair.roll(4) == 0 { pair.sendFeed() }
        for _ in 0..<pair.roll(2) { pair.carryOut(pair.edit()) }
        pair.carryOut(.wait(UInt64(pair.roll(7200))))
        let report = try pair.asking.run()
        let asked = pair.asking.server.requests.filter { $0.url == UnchangedFeedTests.list }
        let whole = try pair.reading.run()
        #expect(!whole.isFeedUnchanged)
        #expect(View(report, pair.asking) == View(whole, pair.reading), "seed \(seed), round \(round)")
        if report.isFeedUnchanged { unchanged += 1 }
        if report.isFeedUnchanged, pair.tag == nil || asked.first?.ifNoneMatch != pair.tag { same += 1 }
        if asked.count == 2 { mended += 1 }
      }
    }
    // None of the ways is left out.
    #expect(
      unchanged > 20 && same > 5 && mended > 2,
      "\(unchanged) not parsed, \(same) sent, \(mended) read after all")
  }
}
