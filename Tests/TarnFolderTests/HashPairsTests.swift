import TarnCore
import TarnRuntime
import Testing

@testable import TarnFolder

@Suite struct HashPairsTests {
  private let pairs = HashPairs()

  /// A file's bytes in blocks of any lengths, and what became of them.
  private final class Feeder: @unchecked Sendable {
    // Safe because its bytes never change.
    let hasher: PairableHasher
    let contents: UnsafeMutableRawBufferPointer
    let lent = Locked(0)
    let returned = Locked(0)

    init(_ bytes: [UInt8]) throws {
      hasher = try #require(PairableHasher())
      contents = .allocate(byteCount: bytes.count, alignment: 1)
      contents.copyBytes(from: bytes)
    }

    deinit { contents.deallocate() }

    /// - Returns: whether the bytes were read before it returned.
    @discardableResult
    func give(_ range: Range<Int>, to pairs: HashPairs) -> Bool {
      let before = returned.withLock { $0 }
      lent.withLock { $0 += 1 }
      pairs.update(hasher, lent: UnsafeRawBufferPointer(rebasing: contents[range])) {
        self.returned.withLock { $0 += 1 }
      }
      return returned.withLock { $0 } > before
    }

    var isDone: Bool { lent.withLock { $0 } == returned.withLock { $0 } }
  }

  /// Blocks that begin and end anywhere within those of 64 bytes that SHA-256 takes.
  @Test(arguments: 1...20 as ClosedRange<UInt64>) func eachHasTheDigestOfItsOwnBytes(seed: UInt64) throws {
    let random = SeededRandom(seed: seed)
    func below(_ bound: Int) -> Int { Int(random.next(below: UInt64(bound))) }
    let contents = (0..<3).map { noise(below(400_000), seed: seed * 3 + UInt64($0)) }
    let feeders = try contents.map(Feeder.init)
    var at = [0, 0, 0]
    while at != contents.map(\.count) {
      let index = below(3)
      guard at[index] < contents[index].count else { continue }
      let most = [64, 9_000, 70_000, 300_000][below(4)]
      let end = min(contents[index].count, at[index] + 1 + below(most))
      feeders[index].give(at[index]..<end, to: pairs)
      at[index] = end
      if below(9) == 0 {
        pairs.settle(feeders[index].hasher)
        #expect(feeders[index].isDone)
      }
    }
    for (feeder, contents) in zip(feeders, contents) {
      pairs.settle(feeder.hasher)
      #expect(feeder.isDone && !pairs.isBehind(feeder.hasher))
      #expect(feeder.hasher.finish() == OpenSSLHashing().digest(.sha256, of: contents))
    }
  }

  @Test func aBlockWaitsForOneOfAnotherFile() throws {
    let (first, second) = (try Feeder(noise(100_000)), try Feeder(noise(100_000, seed: 2)))
    #expect(!first.give(0..<60_000, to: pairs))
    #expect(!first.give(60_000..<60_001, to: pairs), "in its turn, however short")
    #expect(pairs.isBehind(first.hasher))
    // As much of the one as of the other.
    #expect(second.give(0..<50_000, to: pairs) && first.lent.withLock { $0 } == 2)
    #expect(!pairs.isBehind(second.hasher) && pairs.isBehind(first.hasher))
    #expect(!second.give(50_000..<80_000, to: pairs))
    #expect(first.isDone && pairs.isBehind(second.hasher))
    pairs.settle(second.hasher)
    #expect(second.isDone)
  }

  /// Whoever stops without a word keeps nothing alive.
  @Test func whatWaitsGoesWithTheFolder() throws {
    weak var gone: HashPairs?
    let feeder = try Feeder(noise(20_000))
    do {
      let pairs = HashPairs()
      gone = pairs
      feeder.give(0..<20_000, to: pairs)
      #expect(pairs.isBehind(feeder.hasher))
    }
    #expect(gone == nil)
  }

  @Test func nothingIsGivenBackAtOnce() throws {
    let feeder = try Feeder(noise(20_000))
    feeder.give(0..<20_000, to: pairs)
    #expect(feeder.give(20_000..<20_000, to: pairs))
    pairs.settle(feeder.hasher)
    #expect(feeder.isDone && !pairs.isBehind(feeder.hasher))
  }

  @Test func whatIsShortOrTooMuchDoesNotWait() throws {
    let only = try Feeder(noise(HashPairs.most + 300_000))
    #expect(only.give(0..<HashPairs.least - 1, to: pairs))
    var at = HashPairs.least - 1
    while at + 100_000 <= HashPairs.most {
      #expect(!only.give(at..<at + 100_000, to: pairs))
      at += 100_000
    }
    #expect(only.give(at..<HashPairs.most + 200_000, to: pairs))
    #expect(pairs.isBehind(only.hasher))
  }

  @Test func manyThreadsAtOnce() throws {
    let ended = Locked<[Bool]>([])
    let pairs = pairs
    let threads = try (0..<4).map { number in
      try WorkerThread.start(name: "pair-\(number)") {
        for round in 0..<10 {
          let contents = (0..<2).map { noise(200_000, seed: UInt64(number * 100 + round * 2 + $0 + 1)) }
          guard let feeders = try? contents.map(Feeder.init) else { return }
          for start in stride(from: 0, to: 200_000, by: 10_000) {
            for feeder in feeders { feeder.give(start..<start + 10_000, to: pairs) }
          }
          for (feeder, contents) in zip(feeders, contents) {
            pairs.settle(feeder.hasher)
            let isRight = feeder.hasher.finish() == OpenSSLHashing().digest(.sha256, of: contents)
            let isDone = feeder.isDone
            ended.withLock { $0.append(isRight && isDone) }
          }
        }
      }
    }
    for thread in threads { thread.join() }
    #expect(ended.withLock { $0 } == Array(repeating: true, count: 80))
  }
}
