import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnEngine

/// How far a feed is while it is fetched.
@Suite struct FeedProgressTests {
  @Test func theLedgerAndTheProgressSayHowFarItIs() throws {
    let world = World()
    let url = World.host + "list"
    world.location = .remote(url: url)
    world.want("a", "text")
    let gate = AnswerGate()
    // Nothing comes for a while after the first bytes.
    let body = [UInt8](repeating: 10, count: 3000)
    var answer = FakeAnswer(body: body)
    answer.pause = (1000, gate)
    world.server.answer(url, answer)
    let (ledger, clock) = (world.ledger, world.clock)
    let seen = Locked<StatusDocument.FeedTransfer?>(nil)
    world.server.onRequest { request in
      guard request.url == url else { return }
      _ = try? WorkerThread.start(name: "look") {
        let end = ContinuousClock.now + .seconds(120)
        while ContinuousClock.now < end {
          ledger.awaitWrite(milliseconds: 500) { clock.advance(.seconds(1)) }
          let document = try? StatusQuery(ledger: ledger).document(name: "m", folder: "/f", holder: 7)
          seen.withLock { $0 = document?.feedTransfer }
          if document?.feedTransfer?.received ?? 0 > 0 { break }
        }
        gate.open()
      }
    }
    #expect(try world.run().isInSync)
    let feed = try #require(seen.withLock { $0 })
    #expect(feed.received == 1000 && feed.total == 3000)
    // It is over with the exchange.
    let document = try StatusQuery(ledger: ledger).document(name: "m", folder: "/f", holder: 7)
    #expect(document.feedTransfer == nil)
  }

  /// Others wait for their turn: repairs of the folder.
  @Test func aFeedThatTricklesTakesNoMoreThanItsTurn() throws {
    let fetch = FeedReceiver()
    let (isOver, ahead) = (LockedCondition(false), Locked(0))
    let feeder = try WorkerThread.start(name: "feeder") {
      while isOver.wait(atMost: .milliseconds(100), for: { $0 ? () : nil }) == nil {
        // Where nobody takes them, because the machine is busy, it waits.
        let isFar = ahead.withLock { ahead in
          defer { ahead = min(3, ahead + 1) }
          return ahead == 3
        }
        if !isFar { _ = withUnsafeBytes(of: UInt8(10)) { fetch.receive($0) } }
      }
    }
    let spool = try SpoolFile(directory: "/tmp")
    let outcome = try fetch.drain(
      into: spool, id: DownloadID(value: 1), downloader: FakeDownloader { _ in FakeAnswer(status: 404) },
      stop: StopFlag()
    ) { chunk in ahead.withLock { $0 -= chunk.count } }
    isOver.change { $0 = true }
    feeder.join()
    #expect(outcome == nil && spool.size < 16)
  }

  /// Who moves it is not woken for each of a server's small pieces, but once there is much.
  @Test(arguments: [(pieces: 20, size: 16_384), (1, 131_072), (3, 1)]) func whatCameIsMovedInItsOrder(
    pieces: Int, size: Int
  ) throws {
    let fetch = FeedReceiver()
    let spool = try SpoolFile(directory: "/tmp")
    var seen: [UInt8] = []
    func drain() throws -> DownloadOutcome? {
      try fetch.drain(
        into: spool, id: DownloadID(value: 1), downloader: FakeDownloader { _ in FakeAnswer(status: 404) },
        stop: StopFlag()
      ) { seen += $0 }
    }
    let all = (0..<pieces * size).map { UInt8(truncatingIfNeeded: $0 / 7) }
    for piece in 0..<pieces {
      let verdict = all[piece * size..<(piece + 1) * size].withUnsafeBytes { fetch.receive($0) }
      #expect(verdict == .taken)
    }
    // Whatever there is by the end of the turn.
    #expect(try drain() == nil)
    #expect(seen == all && spool.size == UInt64(all.count))
    fetch.end(.failed(Server.lost))
    #expect(try drain() != nil)
    #expect(seen == all)
  }

  @Test func theLedgersTextIsReadAgain() {
    for total in [nil, 87] as [UInt64?] {
      let feed = StatusDocument.FeedTransfer(received: 12, total: total, rate: 3)
      #expect(StatusDocument.FeedTransfer(encoded: feed.encoded) == feed)
    }
    #expect(StatusDocument.FeedTransfer(encoded: "odd") == nil)
  }
}
