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
    try Tarn.run(arguments, environment: ["HOME": place.path + "/home"], in: place.url, limit: 30)
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

  /// No folder and no ledger are left to say so: `status` says why all the same, and offers nothing that fails the same way.
  @Test func whyAFirstPassFailedIsTold() throws {
    // What is remembered has its place in a home.
    try place.write("", to: "home/.profile")
    let config = ["--config", place.path + "/t.toml"]
    func tarn(_ words: String...) throws -> Outcome {
      try Tarn.run(words + config, environment: ["HOME": place.path + "/home"], in: place.url, limit: 30)
    }
    try place.write(
      "[mirror.d]\nfeed = \"\(place.path)/bad\"\nfolder = \"\(place.path)/d\"\n",
      to: "t.toml")
    let sync = try tarn("sync", "d")
    #expect(sync.status == 65, "\(sync)")
    let reason = try #require(sync.errors.split(separator: "\n").first { $0.hasPrefix("tarn: ") }).dropFirst(
      6)
    let status = try tarn("status", "d").output
    #expect(status.contains("d: failing") && !status.contains("never synced"), "\(status)")
    #expect(status.contains(reason), "\(status)")
    #expect(status.contains("  hint ") && !status.contains("next: tarn sync"), "\(status)")
    #expect(try tarn("status", "--check", "d").output.contains(reason))
    // Another feed has not failed so far.
    let settings = "[mirror.d]\nfeed = \"\(place.path)/SHA256SUMS\"\nfolder = \"\(place.path)/d\"\n"
    try place.write(settings, to: "t.toml")
    #expect(try tarn("status", "d").output.contains("never synced"))
    #expect(try tarn("sync", "d").status == 0)
    #expect(try tarn("status", "d").output.contains("in sync"))
  }

  /// The ledger cannot be made: no file may become longer than a KiB.
  @Test func aMirrorThatCannotBeOpenedIsTakenBack() throws {
    let script = "trap '' XFSZ; ulimit -f 2; exec \"$0\" sync ./SHA256SUMS m"
    let shell = try Program(
      "/bin/sh", ["-c", script, Tarn.path], environment: Tarn.environment(["HOME": place.path + "/home"]),
      in: place.url)
    let outcome = try shell.wait(limit: 30)
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
