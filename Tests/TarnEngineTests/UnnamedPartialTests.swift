import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnEngine

/// Small new files have no name before their last one: which ones, and what a crash leaves of them.
@Suite struct UnnamedPartialTests {
  private let world = World()

  /// How many names `partial/` has when a file gets its last one.
  private func namesAtInstall() throws -> [String: Int] {
    let counts = Locked<[String: Int]>([:])
    let folder = world.folder
    folder.beforeInstall { path in
      let names = (try? folder.partials().count) ?? -1
      counts.withLock { $0[path.printable] = names }
    }
    #expect(try world.run().isInSync)
    folder.beforeInstall(nil)
    return counts.withLock { $0 }
  }

  @Test func onlySmallFilesForAFreePathHaveNone() throws {
    let large = String(repeating: "0123456789abcdef", count: 4097)
    world.want("small", "small")
    #expect(try namesAtInstall() == ["small": 0])
    world.want("large", large)
    #expect(try namesAtInstall() == ["large": 1])
    world.want("small", "other")
    #expect(try namesAtInstall() == ["small": 1])
    world.folder.delete("small".path)
    #expect(try namesAtInstall() == ["small": 0])
    world.folder.delete("large".path)
    #expect(try namesAtInstall() == ["large": 1])
    #expect(world.files == ["small": "other", "large": large])
  }

  /// The intent that a pass writes for it.
  private func say(_ identity: FileIdentity) throws {
    let entry = world.want("f", "new")
    let row = Row(
      path: "f".path, identity: identity, digest: world.digest("new"), isVerified: true,
      fingerprint: entry.fingerprint, placed: world.clock.time)
    try world.ledger.apply([
      .intent(
        Intent(kind: .install, path: "f".path, partialName: "", trashName: "", row: row, displacesOwn: false))
    ])
  }

  private func makePartial() throws -> (any PartialFile, Sealed) {
    let partial = try world.folder.makePartial(mayBeUnnamed: true)
    _ = try partial.begin(keeping: 0, check: ContentCheck(size: 3))
    try "new".bytes.withUnsafeBytes { try partial.append($0) }
    return (partial, try partial.seal(modified: nil))
  }

  /// As a kill leaves it after the link: in place, and not in the ledger.
  private func installUnrecorded() throws {
    let (partial, sealed) = try makePartial()
    try say(sealed.identity)
    let item = Installation(path: "f".path, partial: partial, expectation: .absent, trashName: "")
    guard case .installed = world.folder.install([item]).first else {
      Issue.record("it was not installed")
      return
    }
    partial.close()
  }

  @Test func whatHadNoNameYetIsFetchedAgain() throws {
    let (partial, sealed) = try makePartial()
    try say(sealed.identity)
    partial.close()
    let report = try world.run()
    #expect(report.isInSync && world.files == ["f": "new"])
    #expect(world.server.requests.count == 1 && world.ledger.contents.intents.isEmpty)
  }

  @Test func whatHasItsNameIsRecorded() throws {
    try installUnrecorded()
    let report = try world.run()
    #expect(report.isInSync && world.files == ["f": "new"])
    #expect(world.server.requests.isEmpty && world.ledger.contents.intents.isEmpty)
    #expect(world.row("f")?.identity == (try world.folder.look("f".path)?.identity))
    #expect(world.ledger.contents.events.map(\.code) == ["published"])
  }

  /// Its inode went to a file of somebody else's, of the same size and time.
  @Test func whatOnlyHasItsInodeIsNobodys() throws {
    world.folder.write("f".path, "own".bytes)
    try say(try #require(try world.folder.look("f".path)).identity)
    let report = try world.run()
    #expect(!report.isInSync && world.files == ["f": "own"])
    #expect(world.row("f") == nil && world.ledger.contents.intents.isEmpty)
  }

  @Test func whatCannotBeReadIsNobodys() throws {
    try installUnrecorded()
    world.folder.fail(.digest)
    _ = try world.run()
    #expect(world.files == ["f": "new"] && world.ledger.contents.intents.isEmpty)
    // The pass looked at it anew, and found whose it may be.
    #expect(world.row("f")?.isAdopted == true)
    #expect(world.ledger.contents.events.map(\.code) == ["adopted"])
  }
}
