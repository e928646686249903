import Foundation
import Testing

/// A tmpfs of 60 MB.
private enum SmallDisk {
  static let obstacle: String? = {
    if let obstacle = Tarn.obstacleWithServer { return obstacle }
    guard let place = try? TemporaryDirectory(), (try? mount(place.path)) == 0 else {
      return "needs root and tmpfs"
    }
    unmount(place.path)
    return nil
  }()

  static func mount(_ path: String) throws -> Int32 {
    try Program("/bin/mount", ["-t", "tmpfs", "-o", "size=60m", "tmpfs", path]).wait().status
  }

  static func unmount(_ path: String) {
    _ = try? Program("/bin/umount", ["-l", path]).wait()
  }
}

/// A folder on a file system that does not hold what the feed names.
@Suite(.serialized, .enabled(if: SmallDisk.obstacle == nil, "\(SmallDisk.obstacle ?? "")"))
struct SmallDiskTests {
  /// A checksum list says no sizes: what is too much is found out while it arrives.
  @Test(arguments: ["1%", "10MiB"])
  func theReserveIsKeptWithoutSizes(reserve: String) throws {
    let server = try Nginx(locations: "")
    let place = try TemporaryDirectory()
    try #require(try SmallDisk.mount(place.path) == 0)
    defer { SmallDisk.unmount(place.path) }
    var lines = ""
    for (number, megabytes) in [40, 40, 1].enumerated() {
      let data = Data(repeating: UInt8(65 + number), count: megabytes << 20)
      let file = try server.files.write(data, to: "f\(number).bin")
      lines += "\(try Feeds.sha256(file))  f\(number).bin\n"
    }
    try server.files.write(lines, to: "SHA256SUMS")
    let folder = place.path + "/mirror"
    for _ in 1...2 {
      let outcome = try Tarn.sync(server.url("SHA256SUMS"), folder, "--reserve", reserve, "--retries", "0")
      #expect(outcome.status == 3, "\(outcome)")
      #expect((outcome.output + outcome.errors).contains("no-space"), "\(outcome)")
      let there = (0..<2).filter { place.exists("mirror/f\($0).bin") }
      #expect(there.count == 1, "one of the two fits: \(there)")
      #expect(place.exists("mirror/f2.bin"))
      let space = try FileManager.default.attributesOfFileSystem(forPath: place.path)
      let free = (space[.systemFreeSize] as? NSNumber)?.int64Value ?? 0
      #expect(free >= (reserve == "1%" ? 600_000 : 10 << 20), "\(free) bytes are left")
    }
    #expect(try Tarn.run(["status", folder]).status == 0)
  }
}
