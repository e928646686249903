import Foundation
import Testing

/// Without a network, or with a server whose port refuses: nothing fails, and all goes on by itself.
@Suite(.serialized, .enabled(if: Tarn.obstacleWithServer == nil, "\(Tarn.obstacleWithServer ?? "")"))
struct SessionOfflineTests {
  private func waitForStates(_ house: SessionTests.House, _ states: [String]) throws {
    try waitUntil("the tasks are \(states)") { try house.states() == states }
  }

  /// Handed over, tried again, and outlived by the agent's end: all without a network.
  @Test(arguments: Outage.possible) func whatIsHandedOverWaitsForTheNetwork(outage: Outage) throws {
    let house = try SessionTests.House.make(for: outage)
    let first = try house.start()
    try house.takeAway(outage)
    try house.hand(house.server.url("a.txt"), house.server.url("named"))
    try waitForStates(house, ["waiting", "waiting"])
    let tasks = try house.show().tasks
    #expect(tasks.allSatisfy { $0["code"] as? String == "connection-refused" }, "\(tasks)")
    #expect(tasks.allSatisfy { $0["nextAttempt"] is String && ($0["message"] as? String)?.isEmpty == false })
    try waitUntil("each is tried again") {
      try house.show().tasks.allSatisfy { $0["attempts"] as? Int ?? 0 > 1 }
    }
    // Once for each reason.
    let events = try house.events()
    #expect(events.map { $0["code"] as? String } == ["waiting", "waiting"], "\(events)")
    #expect(events.allSatisfy { $0["reason"] as? String == "connection-refused" })
    first.signal(SIGKILL)
    _ = try first.wait()
    try house.start()
    #expect(try house.states().allSatisfy { ["waiting", "queued", "running"].contains($0) })
    try house.bringBack(outage)
    #expect(try house.tarn("session", "wait", "s").status == 0)
    #expect(house.names == ["a.txt", "said.txt"])
    let all = try house.events()
    #expect(!all.contains { ["failed", "cancelled", "needs-request"].contains($0["code"] as? String) })
    let last = try #require(all.last)
    #expect(last["code"] as? String == "all-delivered" && last["finished"] as? Int == 2, "\(last)")
  }

  /// A host that failed again and again is left alone. Who asks may know that it is back.
  @Test(arguments: ["retry", "retry-one", "answer"]) func whoAsksEndsThePauseOfAHost(_ way: String) throws {
    let house = try SessionTests.House.make(for: .server)
    try house.start()
    try house.takeAway(.server)
    let urls = (0..<8).map { house.server.url("a.txt?\($0)") }
    for url in urls { try house.hand("--existing", "keep-both", url) }
    try waitUntil("the host is left alone") {
      let tasks = try house.show().tasks
      return tasks.count == 8 && tasks.allSatisfy { $0["state"] as? String == "waiting" }
        && tasks.contains { $0["code"] as? String == "host-resting" }
    }
    try house.bringBack(.server)
    let before = try house.events().count
    switch way {
    case "retry": #expect(try house.tarn("retry", "session:s").status == 0)
    case "answer":
      let answer = try house.tarn("session", "answer", "s", "3")
      #expect(answer.status == 0, "\(answer)")
    default: #expect(try house.tarn("retry", "session:s/3").status == 0)
    }
    // Others may just have found that the host rests.
    func after() throws -> [String] {
      try house.events().dropFirst(before).filter { $0["task"] as? Int == 3 }
        .compactMap { $0["code"] as? String }
    }
    try waitUntil("it is over") { try after().contains("finished") }
    #expect(try after() == ["response", "finished"])
    if way == "retry" { #expect(try house.tarn("session", "wait", "s").status == 0) }
  }

  /// Cut off in the middle, it goes on from where it was.
  @Test(arguments: Outage.possible) func aDownloadThatIsCutOffGoesOn(outage: Outage) throws {
    let house = try SessionTests.House.make(for: outage)
    let contents = Data((0..<(8 << 20)).map { UInt8(truncatingIfNeeded: $0 >> 12) })
    try house.server.files.write(contents, to: "slow/large.bin")
    let agent = try house.start()
    try house.openImpatient()
    try house.hand(house.server.url("slow/large.bin"))
    try waitUntil("some of it is written") { agent.written > 3 << 20 }
    try house.takeAway(outage)
    try waitForStates(house, ["waiting"])
    let code = try #require(house.show().tasks.first?["code"] as? String)
    let expected =
      outage == .network
      ? ["too-slow", "timed-out", "connection-refused"]
      : ["connection-lost", "body-truncated", "connection-refused"]
    #expect(expected.contains(code))
    #expect(house.partials == 1 && house.names.count == 1, "\(house.names)")
    try house.bringBack(outage)
    #expect(try house.tarn("session", "wait", "s").status == 0)
    #expect(house.names == ["large.bin"])
    #expect(FileManager.default.contents(atPath: house.out + "large.bin") == contents)
    let parts = try house.inside { try house.server.requests().filter { $0.status == "206" } }
    #expect(parts.reduce(0) { $0 + $1.bytes } < UInt64(contents.count - 1 << 20), "\(parts)")
    let codes = try house.codes()
    #expect(Set(codes) == ["response", "waiting", "finished", "all-delivered"], "\(codes)")
    #expect(codes.filter { $0 == "finished" }.count == 1 && !parts.isEmpty)
  }

  /// Nobody can say where a host is.
  @Test(.enabled(if: OwnNetwork.obstacle == nil, "\(OwnNetwork.obstacle ?? "")"))
  func aHostThatNobodyCanNameIsWaitedFor() throws {
    let house = try SessionTests.House.make(for: .network)
    try house.start()
    try house.takeAway(.network)
    try house.hand("http://host.example:\(house.server.port)/a.txt")
    try waitForStates(house, ["waiting"])
    let task = try #require(house.show().tasks.first)
    #expect(task["code"] as? String == "host-not-found" && task["nextAttempt"] is String, "\(task)")
    #expect(try house.codes() == ["waiting"])
  }
}
