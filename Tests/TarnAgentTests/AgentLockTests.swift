import TarnEngine
import TestSupport
import Testing

@testable import TarnAgent

/// One agent per state directory.
@Suite struct AgentLockTests {
  @Test func aSecondAgentIsRefusedUntilTheFirstIsGone() throws {
    let directory = ScratchDirectory()
    let place = directory.path
    var first = try AgentLock.take(place)
    #expect(first != nil)
    let failure = #expect(throws: PassFailure.self) { try AgentLock.take(place) }
    #expect(failure?.kind == .locked && failure?.code == "agent-runs")
    #expect(failure?.message.contains("another agent keeps its record there (process ") == true)
    // Another directory's is another lock.
    let other = ScratchDirectory()
    #expect(try AgentLock.take(other.path) != nil)
    first = nil
    #expect(try AgentLock.take(place) != nil)
  }

  /// Nothing can be recorded there either, and saving tells that.
  @Test func whereNoneCanBeMadeNobodyIsRefused() throws {
    #expect(try AgentLock.take("/dev/null/state") == nil)
  }
}
