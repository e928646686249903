import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnAgent

/// One agent per state directory.
@Suite struct AgentLockTests {
  @Test func aSecondAgentIsRefusedUntilTheFirstIsGone() throws {
    let directory = ScratchDirectory()
    let place = directory.path
    var first = try take(place)
    #expect(first != nil)
    let failure = #expect(throws: PassFailure.self) { try take(place) }
    #expect(failure?.kind == .locked && failure?.code == "agent-runs")
    #expect(failure?.message.contains("another agent keeps its record there (process ") == true)
    // Another directory's is another lock.
    let other = ScratchDirectory()
    #expect(try take(other.path) != nil)
    first = nil
    #expect(try take(place) != nil)
  }

  /// But told: a second one would not be noticed.
  @Test func whereNoneCanBeMadeNobodyIsRefused() throws {
    var warnings: [String] = []
    #expect(try AgentLock.acquire("/dev/null/state") { warnings.append($0) } == nil)
    #expect(
      warnings.count == 1 && warnings[0].hasPrefix("/dev/null/state/agent.lock cannot be locked")
        && warnings[0].contains("not a directory; make its directory writable, or give"), "\(warnings)")
  }

  private func take(_ directory: String) throws(PassFailure) -> FileLock? {
    try AgentLock.acquire(directory) { Issue.record("\($0)") }
  }
}
