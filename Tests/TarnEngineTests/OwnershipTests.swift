import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnEngine

/// Whose bytes lie in the trash: what Tarn did not place never expires (I2).
@Suite struct OwnershipTests {
  private static let month: UInt64 = 30 * 24 * 3600

  /// A mirror of 20 files and of one that the user had put there before.
  private func withAdopted() throws -> World {
    let world = World()
    world.folder.write("mine".path, "my bytes".bytes)
    try world.fill("mine", "my bytes")
    return world
  }

  /// The only row of the trash.
  private func trashed(_ world: World) throws -> TrashRow {
    #expect(world.ledger.contents.trash.count == 1)
    return try #require(world.ledger.contents.trash.values.first)
  }

  private func passAMonth(_ world: World) throws {
    for _ in 0..<2 {
      world.clock.advance(.seconds(Self.month))
      try world.run()
    }
  }

  // MARK: Adopted files

  @Test func anAdoptedFileThatTheFeedDropsStaysInTheTrash() throws {
    let world = try withAdopted()
    #expect(world.row("mine")?.isAdopted == true)
    #expect(world.row("other-1")?.isAdopted == false)
    world.unlist("mine")
    try world.run()
    let row = try trashed(world)
    #expect(!row.isOwn && row.reason == .deleted)
    try passAMonth(world)
    #expect(world.trash == ["my bytes"])
  }

  @Test func anAdoptedFileThatIsReplacedStaysInTheTrash() throws {
    let world = try withAdopted()
    world.want("mine", "version 2")
    try world.run()
    let row = try trashed(world)
    #expect(!row.isOwn && row.reason == .replaced)
    // What Tarn fetched over it is Tarn's.
    #expect(world.row("mine")?.isAdopted == false)
    world.want("mine", "version 3")
    try world.run()
    #expect(world.trash == ["my bytes", "version 2"])
    try passAMonth(world)
    #expect(world.trash == ["my bytes"])
  }

  /// No digest: the server is asked, and the answer has other bytes.
  @Test func anAdoptedFileThatIsRevalidatedStaysInTheTrash() throws {
    let world = try withAdopted()
    _ = world.serve("mine", "version 2", etag: "\"2\"")
    world.add(world.bareEntry("mine"))
    try world.run()
    #expect(world.text("mine") == "version 2")
    #expect(try trashed(world).isOwn == false)
  }

  @Test func anAdoptedFileThatMakesWayStaysInTheTrash() throws {
    let world = try withAdopted()
    world.unlist("mine")
    world.want("mine/below", "new")
    try world.run()
    #expect(world.text("mine/below") == "new")
    #expect(try trashed(world).isOwn == false)
  }

  @Test func anApprovedDeletionOfAnAdoptedFileStaysInTheTrash() throws {
    let world = try withAdopted()
    world.unlist("mine")
    for number in 0..<10 { world.unlist("other-\(number)") }
    try world.run()
    _ = try world.approval.run(plan: nil)
    #expect(world.ledger.contents.trash.values.filter { !$0.isOwn }.map(\.path) == ["mine".path])
  }

  @Test func whatTarnFetchesAgainIsTarns() throws {
    let world = try withAdopted()
    world.folder.delete("mine".path)
    try world.run()
    #expect(world.row("mine")?.isAdopted == false)
  }

  @Test func aCopyOfAnAdoptedFileIsTarns() throws {
    let world = try withAdopted()
    world.want("twin", "my bytes")
    #expect(try world.run().counts.copied == 1)
    #expect(world.row("twin")?.isAdopted == false)
    #expect(world.row("mine")?.isAdopted == true)
  }

  @Test func aRebuiltLedgerVouchesForNothing() throws {
    let world = try withAdopted()
    world.ledger = MemoryLedger()
    world.wasRebuilt = true
    try world.run()
    #expect(world.ledger.contents.rows.values.allSatisfy { $0.isAdopted })
  }

  // MARK: Bytes like Tarn's

  @Test func aTouchedFileStaysTarns() throws {
    let world = World()
    try world.fill("a", "one")
    let placed = world.row("a")?.placed
    world.clock.advance(.seconds(60))
    world.folder.edit("a".path, "one".bytes)
    #expect(try world.run().counts.revalidated == 1)
    #expect(world.row("a")?.isAdopted == false)
    #expect(world.row("a")?.placed == placed)
  }

  @Test func aUsersCopyOfTheSameBytesIsTheUsers() throws {
    let world = World()
    try world.fill("a", "one")
    world.clock.advance(.seconds(60))
    world.folder.write("a".path, "one".bytes)
    try world.run()
    #expect(world.row("a")?.isAdopted == true)
    #expect(world.row("a")?.placed.nanoseconds == world.clock.time.nanoseconds)
    // And stays so when it is touched.
    world.folder.edit("a".path, "one".bytes)
    try world.run()
    #expect(world.row("a")?.isAdopted == true)
    world.want("a", "two")
    try world.run()
    #expect(try trashed(world).isOwn == false)
  }

  @Test func aUsersCopyThatNoPassSawIsTheUsersWhenItIsReplaced() throws {
    let world = World()
    try world.fill("a", "one")
    world.folder.write("a".path, "one".bytes)
    world.want("a", "two")
    try world.run()
    #expect(world.text("a") == "two")
    #expect(try trashed(world).isOwn == false)
  }

  @Test func anEditThatTheFeedCatchesUpWithIsTheUsers() throws {
    let world = World()
    try world.fill("a", "one")
    world.folder.edit("a".path, "two".bytes)
    world.want("a", "two")
    #expect(try world.run().counts.adopted == 1)
    #expect(world.row("a")?.isAdopted == true)
  }

  /// The bytes are those that Tarn placed.
  @Test func aModeOrALinkMakesItNobodyElses() throws {
    let world = World()
    try world.fill("a", "one")
    world.folder.changeMode(try #require(world.folder.open("a".path)))
    world.unlist("a")
    #expect(try world.run().counts.deleted == 1)
    #expect(try trashed(world).isOwn)
  }

  // MARK: Bytes written after the move

  /// A file that somebody holds open goes to the trash.
  private func movedWhileOpen(isDeleted: Bool) throws -> (World, MemoryFolder.OpenFile) {
    let world = World()
    try world.fill("a", "one")
    let open = try #require(world.folder.open("a".path))
    if isDeleted { world.unlist("a") } else { world.want("a", "two") }
    try world.run()
    #expect(try trashed(world).isOwn)
    #expect(world.trash == ["one"])
    return (world, open)
  }

  @Test(arguments: [false, true])
  func bytesWrittenAfterTheMoveStay(isDeleted: Bool) throws {
    // Of another size, and of the same.
    for late in ["one, and more", "1ne"] {
      let (world, open) = try movedWhileOpen(isDeleted: isDeleted)
      #expect(world.folder.write(open, late.bytes) != nil)
      try passAMonth(world)
      #expect(world.trash == [late])
      let row = try trashed(world)
      #expect(!row.isOwn && row.reason == .edited && row.size == UInt64(late.utf8.count))
    }
  }

  @Test(arguments: [false, true])
  func otherModesAndLinksKeepNothing(isDeleted: Bool) throws {
    let (world, open) = try movedWhileOpen(isDeleted: isDeleted)
    world.folder.changeMode(open)
    try passAMonth(world)
    #expect(world.trash == [])
    #expect(world.ledger.contents.trash.isEmpty)
  }

  @Test func whatNobodyLookedAtAfterTheMoveStays() throws {
    let (world, _) = try movedWhileOpen(isDeleted: true)
    var row = try trashed(world)
    row.identity = nil
    try world.ledger.apply([.trash(row)])
    try passAMonth(world)
    #expect(world.trash == ["one"])
  }

  // MARK: After a crash

  /// The deletion was said and done, and the row did not come.
  ///
  /// - Parameter displacesOwn: as the intent has it; an older version took adopted files for Tarn's.
  private func cutRemoval(_ world: World, _ path: String, displacesOwn: Bool) throws {
    let row = try #require(world.row(path))
    world.unlist(path)
    try world.ledger.apply([
      .intent(
        Intent(
          kind: .remove, path: row.path, partialName: "", trashName: "t", row: row,
          displacesOwn: displacesOwn))
    ])
    _ = world.folder.remove([Removal(path: row.path, expected: row.identity, trashName: "t")])
  }

  @Test(arguments: [false, true])
  func aRecoveredRemovalOfAnAdoptedFileStays(displacesOwn: Bool) throws {
    let world = try withAdopted()
    try cutRemoval(world, "mine", displacesOwn: displacesOwn)
    try world.run()
    let row = try trashed(world)
    #expect(!row.isOwn && row.reason == .deleted)
    try passAMonth(world)
    #expect(world.trash == ["my bytes"])
  }

  @Test func aRecoveredRemovalKeepsWhatIsWrittenLater() throws {
    for writesBefore in [false, true] {
      let world = World()
      try world.fill("a", "one")
      let open = try #require(world.folder.open("a".path))
      try cutRemoval(world, "a", displacesOwn: true)
      if writesBefore { _ = world.folder.write(open, "1ne".bytes) }
      try world.run()
      #expect(try trashed(world).isOwn == !writesBefore)
      if !writesBefore { _ = world.folder.write(open, "1ne".bytes) }
      try passAMonth(world)
      #expect(world.trash == ["1ne"])
    }
  }

  /// The exchange was said and done, and the row did not come.
  @Test(arguments: [false, true])
  func aRecoveredReplacementOfAnAdoptedFileStays(displacesOwn: Bool) throws {
    let world = try withAdopted()
    world.want("mine", "version 2")
    let present = try #require(try world.folder.look("mine".path))
    let partial = try world.folder.makePartial()
    _ = try partial.begin(keeping: 0, check: ContentCheck())
    try "version 2".bytes.withUnsafeBytes { try partial.append($0) }
    let sealed = try partial.seal(modified: nil)
    var row = try #require(world.row("mine"))
    row.identity = sealed.identity
    row.digest = world.digest("version 2")
    row.isAdopted = false
    try world.ledger.apply([
      .intent(
        Intent(
          kind: .install, path: row.path, partialName: partial.name, trashName: "t", row: row,
          displacesOwn: displacesOwn))
    ])
    _ = world.folder.install([
      Installation(
        path: row.path, partial: partial, expectation: .present(present.identity), trashName: "t")
    ])
    try world.run()
    #expect(world.text("mine") == "version 2")
    #expect(world.row("mine")?.isAdopted == false)
    let lying = try trashed(world)
    #expect(!lying.isOwn && lying.reason == .replaced)
    try passAMonth(world)
    #expect(world.trash == ["my bytes"])
  }

  // MARK: What is said

  @Test func anAdoptedFileIsExplainedAsSuch() throws {
    let world = try withAdopted()
    func explain(_ path: String) throws -> Explanation {
      try ExplainQuery(ledger: world.ledger, folder: world.folder).explain(path.path, mirror: "m")
    }
    let answer = try explain("mine")
    #expect(answer.state == "current" && answer.record?.adopted == true)
    #expect(answer.summary.hasPrefix("it was there already, and was adopted on 20"), "\(answer.summary)")
    #expect(try explain("other-1").summary.hasPrefix("Tarn placed it on 20"))
    #expect(try explain("other-1").record?.adopted == false)
    world.folder.edit("mine".path, "changed".bytes)
    #expect(try explain("mine").summary == "it was there already, and was adopted, and it was changed since")
    world.folder.delete("mine".path)
    #expect(try explain("mine").summary.hasPrefix("it was there already, and was adopted, and it is not"))
  }
}
