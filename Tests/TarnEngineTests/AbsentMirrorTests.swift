import TarnCore
import TarnFolder
import TarnLedger
import TarnRuntime
import TestSupport
import Testing

@testable import TarnEngine

/// A mirror that is not there so far.
@Suite struct AbsentMirrorTests {
  @Test func anAbsentMirrorPlansEverything() throws {
    let world = World()
    world.want("a", "one")
    world.want("b", "two")
    let downloader = try world.server.downloader()
    defer { downloader.shutDown() }
    var ports = world.ports(downloader)
    ports.ledger = AbsentLedger()
    let pass = Pass(
      ports: ports,
      request: PassRequest(
        feed: world.location, folderName: "/folder", policy: world.policy),
      observer: world.log, progress: PassProgress(clock: world.clock), stop: StopFlag())
    var kinds: [Action.Kind] = []
    let report = try pass.plan(folder: AbsentFolder()) { action, _ in kinds.append(action.kind) }
    #expect(kinds == [.fetch, .fetch])
    #expect(report.counts.planned.all == 2)
  }
}
