import TarnControl
import TarnCore
import TarnRuntime
import TarnServer
import TestSupport
import Testing

/// The end: answers at work end, streams end, files go.
@Suite struct StopTests {
  @Test func streamsEndAndAnswersAtWorkAreWhole() throws {
    let gate = Gate()
    gate.open()
    let stage = try Stage { $0.stopping = .seconds(120) }
    stage.agent.publish()
    let (path, seen, server) = (stage.path, Gate(), stage.server)
    let following = try Aside {
      try Stage.client(path).follow(after: "c0") { _ in
        seen.open()
        return true
      }
    }
    try seen.waitOrThrow()
    let kept = stage.raw
    #expect(kept.request("GET", "/v1/status")?.status == 200)
    let stopping = try Aside { server.stop() }
    #expect(try following.value() == "c1")
    #expect(kept.readToEnd() == "")
    try stopping.value()
    #expect(stage.directory.names == [])
    #expect(stage.agent.subscribers == 0)
    #expect(RawClient(path).error != 0)
  }

  @Test func anAnswerAtWorkIsWaitedFor() throws {
    let gate = Gate()
    let stage = try Stage(gate: gate) { $0.stopping = .seconds(120) }
    let (path, server) = (stage.path, stage.server)
    let idle = stage.raw
    let asking = try Aside { try Stage.client(path).reload() }
    try stage.agent.arrived.waitOrThrow()
    let stopping = try Aside { server.stop() }
    // It has begun to stop when it closes this one.
    #expect(idle.readToEnd() == "")
    gate.open()
    #expect(try asking.value().isTaken)
    try stopping.value()
  }

  @Test func anAnswerThatDoesNotComeIsNotWaitedForForEver() throws {
    let gate = Gate()
    let stage = try Stage(gate: gate) { $0.stopping = .milliseconds(50) }
    let client = stage.raw
    client.get("/v1/status")
    try stage.agent.arrived.waitOrThrow()
    stage.server.stop()
    #expect(client.readToEnd() == "")
    gate.open()
  }

  @Test func stoppingTwiceIsStoppingOnce() throws {
    let stage = try Stage()
    stage.server.stop()
    stage.server.stop()
    #expect(throws: ControlUnreachable.self) { try stage.client.status() }
  }
}
