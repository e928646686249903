import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnEngine

/// How long a manifest may be followed (I7).
@Suite struct FreshnessTests {
  /// Who sets the clock back makes no expired manifest good again.
  @Test func whatHasExpiredStaysSoWhenTheClockGoesBack() throws {
    let world = World()
    world.policy.deletes = true
    for number in 0..<20 { world.want("f\(number)", "text") }
    world.end.version = 5
    try world.run()
    let expires = world.clock.time.adding(seconds: -10 * 86_400)
    world.unlist("f0")
    (world.end.version, world.end.expires) = (6, expires)
    #expect(throws: PassFailure.self) { try world.run() }
    world.clock.setWall(world.clock.time.nanoseconds - 60 * 86_400 * 1_000_000_000)
    let failure = #expect(throws: PassFailure.self) { try world.run() }
    #expect(failure?.code == "feed-expired" && failure?.kind == .feedMalformed)
    #expect(failure?.message.contains("the clock says an earlier time now") == true)
    #expect(failure?.hint?.contains("set this machine's clock") == true)
    #expect(world.files.count == 20 && world.trash.isEmpty)
    // One that is good by the later time is taken.
    world.end.expires = expires.adding(seconds: 11 * 86_400)
    #expect(try world.run().counts.deleted == 1)
  }
}
