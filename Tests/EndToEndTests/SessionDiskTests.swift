import Foundation
import Testing

/// Sessions whose disks are full, or go away.
@Suite(.serialized, .enabled(if: SmallDisk.obstacle == nil, "\(SmallDisk.obstacle ?? "")"))
struct SessionDiskTests {
  private let house: SessionTests.House
  private let disk: String

  init() throws {
    house = try SessionTests.House()
    disk = house.place.path + "/disk"
    try FileManager.default.createDirectory(atPath: disk, withIntermediateDirectories: true)
  }

  private func data(_ size: Int) -> Data { Data((0..<size).map { UInt8(truncatingIfNeeded: $0 >> 11) }) }

  private func hand(_ name: String, to place: String) throws {
    let outcome = try house.tarn(
      "get", "--background", "--session", "s", "--to", place, house.server.url(name))
    #expect(outcome.status == 0, "\(outcome)")
  }

  private func code() throws -> String? { try house.show().tasks.first?["code"] as? String }

  /// A full destination is waited for.
  @Test func aFullDestinationIsWaitedFor() throws {
    try #require(try SmallDisk.mount(disk, megabytes: 16) == 0)
    defer { SmallDisk.unmount(disk) }
    let data = data(8 << 20)
    try house.server.files.write(data, to: "large.bin")
    try SmallDisk.fill(disk)
    try house.start()
    try hand("large.bin", to: disk + "/")
    try waitUntil("it waits for space") { try code() == "no-space" }
    #expect(try house.states() == ["waiting"])
    try FileManager.default.removeItem(atPath: disk + "/ballast")
    #expect(try house.tarn("session", "wait", "s").status == 0)
    #expect(FileManager.default.contents(atPath: disk + "/large.bin") == data)
  }

  /// What was fetched before stays, and the rest alone is asked for once there is room.
  @Test func aDiskThatFillsUpKeepsTheBytes() throws {
    try #require(try SmallDisk.mount(disk, megabytes: 16) == 0)
    defer { SmallDisk.unmount(disk) }
    let data = data(8 << 20)
    try house.server.files.write(data, to: "held/large.bin")
    let agent = try house.start()
    try hand("held/large.bin", to: disk + "/")
    try waitUntil("some of it is written") { agent.written > 3 << 20 }
    #expect(try house.tarn("pause", "session:s/1").status == 0)
    try waitUntil("it has stopped") { try house.states() == ["suspended"] }
    house.held.open()
    try SmallDisk.fill(disk)
    #expect(try house.tarn("resume", "session:s/1").status == 0)
    try waitUntil("it waits for space") { try code() == "no-space" }
    let kept = try house.show().session["partialBytes"] as? Int ?? 0
    #expect(kept > 2 << 20, "\(kept)")
    let requests = try house.server.requests {
      try FileManager.default.removeItem(atPath: disk + "/ballast")
      #expect(try house.tarn("session", "wait", "s").status == 0)
    }
    #expect(FileManager.default.contents(atPath: disk + "/large.bin") == data)
    #expect(requests.map(\.status).last == "206", "\(requests)")
  }

  /// A destination that is gone ends the task; its bytes go where somebody says.
  @Test func aDestinationThatIsGoneIsTold() throws {
    try house.start()
    try hand("a.txt", to: disk + "/none/a.txt")
    try house.wait(for: "failed")
    #expect(try code() == "not-there")
    let answer = try house.tarn("session", "answer", "s", "1", "--to", house.out)
    #expect(answer.status == 0, "\(answer)")
    #expect(try house.tarn("session", "wait", "s").status == 0)
    #expect(house.names == ["a.txt"])
  }

  /// The bytes go along to another file system.
  @Test func whatWasFetchedGoesToAnotherDisk() throws {
    try #require(try SmallDisk.mount(disk, megabytes: 32) == 0)
    defer { SmallDisk.unmount(disk) }
    try house.server.files.write(data(8 << 20), to: "held/large.bin")
    let agent = try house.start()
    try hand("held/large.bin", to: house.out)
    try waitUntil("some of it is written") { agent.written > 3 << 20 }
    let requests = try house.server.requests {
      let answer = try house.tarn("session", "answer", "s", "1", "--to", disk + "/")
      #expect(answer.status == 0, "\(answer)")
      house.held.open()
      #expect(try house.tarn("session", "wait", "s").status == 0)
    }
    #expect(FileManager.default.contents(atPath: disk + "/large.bin") == data(8 << 20))
    #expect(house.names.isEmpty && requests.last?.status == "206", "\(requests)")
  }

  /// What was fetched lies on a disk that is not mounted for a while: nothing is written in its place.
  @Test func aDiskThatIsNotMountedIsWaitedFor() throws {
    let image = house.place.path + "/image"
    let made = try Program("/bin/sh", ["-c", "truncate -s 32M '\(image)' && /sbin/mkfs.ext4 -q '\(image)'"])
      .wait()
    try #require(made.status == 0)
    func mount() throws {
      let mounted = try Program("/bin/mount", ["-o", "loop", image, disk]).wait()
      try #require(mounted.status == 0)
    }
    try mount()
    defer { SmallDisk.unmount(disk) }
    try house.server.files.write(data(8 << 20), to: "held/large.bin")
    let agent = try house.start()
    try hand("held/large.bin", to: disk + "/")
    try waitUntil("some of it is written") { agent.written > 3 << 20 }
    #expect(try house.tarn("pause", "session:s/1").status == 0)
    try waitUntil("it is suspended") { try house.states() == ["suspended"] }
    house.held.open()
    let unmounted = try Program("/bin/umount", [disk]).wait()
    try #require(unmounted.status == 0)
    #expect(try house.tarn("resume", "session:s/1").status == 0)
    try waitUntil("it waits for the disk") { try code() == "other-file-system" }
    let below = try FileManager.default.contentsOfDirectory(atPath: disk)
    #expect(below.isEmpty)
    try mount()
    let requests = try house.server.requests { () throws in
      let waited = try house.tarn("session", "wait", "s")
      #expect(waited.status == 0)
    }
    #expect(requests.map(\.status) == ["206"], "\(requests)")
    #expect(FileManager.default.contents(atPath: disk + "/large.bin") == data(8 << 20))
  }

  /// The record of the session cannot be written for a while.
  @Test func aFullDiskOfTheAgentsOwnIsOutlived() throws {
    let state = house.place.path + "/state"
    try FileManager.default.createDirectory(atPath: state, withIntermediateDirectories: true)
    try #require(try SmallDisk.mount(state, megabytes: 8) == 0)
    defer {
      house.agent?.signal(SIGKILL)
      SmallDisk.unmount(state)
    }
    try house.server.files.write(data(8 << 20), to: "held/large.bin")
    try house.start()
    try house.hand(house.server.url("held/large.bin"))
    try waitUntil("it runs") { try house.states() == ["running"] }
    try SmallDisk.fill(state)
    let refused = try house.tarn("get", "--background", "--session", "s", house.server.url("a.txt"))
    #expect(refused.status != 0 && refused.errors.contains("full"), "\(refused)")
    house.held.open()
    try waitUntil("the file has come") {
      house.names.contains { $0.hasPrefix("large") || $0.hasSuffix(".part") }
    }
    try FileManager.default.removeItem(atPath: state + "/ballast")
    try waitUntil("it is done") { try house.states() == ["finished"] }
    #expect(FileManager.default.contents(atPath: house.out + "large.bin") == data(8 << 20))
    #expect(try house.codes().filter { $0 == "finished" }.count == 1)
  }
}
