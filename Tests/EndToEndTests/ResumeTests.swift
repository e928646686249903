import Foundation
import Testing

/// kill -9 in the middle of a transfer of 1 GiB; the next pass goes on where it ended.
@Suite(.serialized, .enabled(if: Tarn.obstacleWithServer == nil, "\(Tarn.obstacleWithServer ?? "")"))
struct ResumeTests {
  private static let size: UInt64 = 1 << 30
  static let obstacle: String? = {
    let space = try? FileManager.default.attributesOfFileSystem(forPath: NSTemporaryDirectory())[
      .systemFreeSize]
    return ((space as? NSNumber)?.uint64Value ?? 0) < 4 << 30
      ? "less than 4 GiB free for a file of 1 GiB" : nil
  }()

  /// 1 GiB with a number of its own in every 64 KiB, so that bytes in a wrong place are seen.
  private func makeLarge(_ url: URL) throws {
    try Data().write(to: url)
    let file = try FileHandle(forWritingTo: url)
    var block = [UInt8](repeating: 0, count: 1 << 16)
    for number in 0..<(Self.size >> 16) {
      for byte in 0..<8 { block[byte] = UInt8(truncatingIfNeeded: number >> (8 * UInt64(byte))) }
      block[8] = 0xA5
      try file.write(contentsOf: block)
    }
    try file.close()
  }

  @Test(.enabled(if: obstacle == nil, "\(obstacle ?? "")"))
  func aKilledTransferGoesOn() throws {
    // The rest of the first answer lasts for minutes; what the second pass asks for is quick.
    let server = try Nginx(locations: "location = /large.bin { limit_rate_after 600m; limit_rate 3m; }")
    let place = try TemporaryDirectory()
    let large = server.files.url.appendingPathComponent("large.bin")
    try makeLarge(large)
    let sum = try Feeds.sha256(large)
    try server.files.write("\(sum)  large.bin\n", to: "SHA256SUMS")
    let folder = place.path + "/mirror"

    let pass = try Tarn.start(["sync", server.url("SHA256SUMS"), folder, "--no-input"])
    try waitUntil("half of it is written") { !pass.isRunning || pass.written > Self.size / 2 }
    let before = pass.written
    pass.signal(SIGKILL)
    let killed = try pass.wait()
    try #require(killed.wasKilled, "the pass was over before it could be killed: \(killed)")
    #expect(!place.exists("mirror/large.bin"), "no partial file under its final name")

    var second = Outcome(status: -1, output: "", errors: "")
    let requests = try server.requests {
      second = try Tarn.sync(server.url("SHA256SUMS"), folder)
    }
    #expect(second.status == 0, "\(second)")
    #expect(try Feeds.sha256(place.url.appendingPathComponent("mirror/large.bin")) == sum)
    let bodies = requests.filter { $0.isBody && $0.uri == "/large.bin" }
    #expect(bodies.map(\.status) == ["206"], "\(bodies)")
    #expect(bodies.first?.range.hasPrefix("bytes=") == true)
    // I3: at most 1 MiB again; the count of the kernel holds a little of the ledger, too.
    let again = bodies.reduce(0) { $0 + $1.bytes }
    #expect(
      again <= Self.size - before + (1 << 20) + (4 << 20), "\(again) bytes again, \(before) were written")
  }
}
