import Foundation
import Testing

/// A first pass that does not succeed leaves nothing behind, and takes nothing away that is somebody's.
@Suite(.serialized, .enabled(if: Tarn.obstacle == nil, "\(Tarn.obstacle ?? "")"))
struct FirstPassTests {
  private let place: TemporaryDirectory

  init() throws {
    place = try TemporaryDirectory()
    try Feeds.publish(["a.txt": "a\n"], in: place)
    try place.write("a.txt\u{0}no list\n", to: "bad")
  }

  private func tarn(_ arguments: String...) throws -> Outcome {
    try Tarn.run(arguments, environment: ["HOME": place.path + "/home"], in: place.url)
  }

  /// What another first pass leaves that was refused the lock, or was killed.
  private func makeSkeleton() throws {
    for name in ["m/.tarn/partial", "m/.tarn/trash"] {
      try FileManager.default.createDirectory(
        at: place.url.appendingPathComponent(name), withIntermediateDirectories: true,
        attributes: [.posixPermissions: 0o700])
    }
    try place.write(String(repeating: "0123456789abcdef", count: 2) + "\n", to: "m/.tarn/id")
  }

  @Test func aFeedThatCannotBeReadLeavesNothing() throws {
    #expect(try tarn("sync", "./bad", "m/deep").status == 65)
    #expect(!place.exists("m"))
    try makeSkeleton()
    #expect(try tarn("sync", "./bad", "m").status == 65)
    #expect(place.exists("m") && !place.exists("m/.tarn"))
  }

  /// The ledger cannot be made: no file may become longer than a KiB.
  @Test func aMirrorThatCannotBeOpenedIsTakenBack() throws {
    let script = "trap '' XFSZ; ulimit -f 2; exec \"$0\" sync ./SHA256SUMS m"
    let shell = try Program(
      "/bin/sh", ["-c", script, Tarn.path], environment: Tarn.environment(["HOME": place.path + "/home"]),
      in: place.url)
    let outcome = try shell.wait()
    #expect(outcome.status == 74, "\(outcome)")
    #expect(!place.exists("m"), "\(place.contents(below: "m"))")
  }

  /// Its ledger is lost, and its files are there: the marker is all that says whose they are.
  @Test(arguments: [false, true]) func aMirrorWithFilesIsKept(isSetAside: Bool) throws {
    #expect(try tarn("sync", "-q", "./SHA256SUMS", "m").status == 0)
    for end in ["", "-wal", "-shm"] { try? place.remove("m/.tarn/ledger.sqlite" + end) }
    if isSetAside {
      try place.remove("m/a.txt")
      try place.write("damaged", to: "m/.tarn/ledger.sqlite.corrupt-20260101T000000Z")
    }
    #expect(try tarn("sync", "./bad", "m").status == 65)
    #expect(place.exists("m/.tarn/id"))
    #expect(place.exists("m/a.txt") != isSetAside)
  }
}
