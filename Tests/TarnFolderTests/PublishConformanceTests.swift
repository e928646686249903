import TarnCore
import TarnFolder
import TestSupport
import Testing

/// Names: how every folder gives them, takes them away, and refuses.
@Suite struct PublishConformanceTests {
  @Test(arguments: Adapter.allCases) func aFileGetsItsNameAndItsDirectories(_ adapter: Adapter) throws {
    let world = try adapter.make()
    let outcome = try world.install(bytes("new"), at("a/b/c"))
    #expect(world.contents(at("a/b/c")) == bytes("new"))
    #expect(try outcome.identity == world.identity(at("a/b/c")))
    #expect(outcome.displaced == nil)
    #expect(try world.port.partials().isEmpty)
    #expect(try world.port.trashed().isEmpty)
  }

  @Test(arguments: Adapter.allCases) func anExpectedFileGoesToTheTrash(_ adapter: Adapter) throws {
    let world = try adapter.make()
    world.write(at("d/f"), bytes("old"))
    let old = try world.identity(at("d/f"))
    let outcome = try world.install(bytes("newer"), at("d/f"), .present(old), trashName: "t1")
    #expect(world.contents(at("d/f")) == bytes("newer"))
    #expect(world.trashContents("t1") == bytes("old"))
    #expect(outcome.displaced?.isSameContents(as: old) == true)
    #expect(try outcome.identity == world.identity(at("d/f")))
    #expect(try world.names(world.port.trashed()) == ["t1"])
  }

  @Test(arguments: Adapter.allCases) func whatThePlanDidNotSeeIsLeftAlone(_ adapter: Adapter) throws {
    let world = try adapter.make()
    world.write(at("f"), bytes("theirs"))
    let there = try world.identity(at("f"))
    #expect(try world.install(bytes("ours"), at("f")).isStale)
    world.edit(at("f"), bytes("edited"))
    #expect(try world.install(bytes("ours"), at("f"), .present(there)).isStale)
    #expect(world.contents(at("f")) == bytes("edited"))
    world.delete(at("f"))
    #expect(try world.install(bytes("ours"), at("f"), .present(there)).isStale)
    #expect(try world.port.look(at("f")) == nil)
    for make in [world.makeDirectory, world.makeLink, world.makeSpecial] {
      make(at("f"))
      let kind = try world.port.look(at("f"))?.kind
      #expect(try world.install(bytes("ours"), at("f")).isStale)
      #expect(try world.install(bytes("ours"), at("f"), .present(there)).isStale)
      #expect(try world.port.look(at("f"))?.kind == kind)
      world.delete(at("f"))
    }
    #expect(try world.port.partials().isEmpty)
    #expect(try world.port.trashed().isEmpty)
  }

  /// What took the place of a file of Tarn's, as the plan saw it: it lies in the trash as it is.
  @Test(arguments: Adapter.allCases) func whatIsNoFileMakesWay(_ adapter: Adapter) throws {
    let world = try adapter.make()
    for (number, make) in [world.makeLink, world.makeSpecial, world.makeDirectory].enumerated() {
      make(at("f"))
      if number == 2 { world.write(at("f/deep/inner"), bytes("theirs")) }
      let there = try world.identity(at("f"))
      let outcome = try world.install(bytes("ours"), at("f"), .present(there), trashName: "t\(number)")
      #expect(outcome.displaced?.inode == there.inode)
      #expect(world.contents(at("f")) == bytes("ours"))
      #expect(try world.port.trashIdentity("t\(number)")?.inode == there.inode)
      world.delete(at("f"))
    }
    for number in 0..<3 { try world.port.removeTrash("t\(number)") }
    #expect(try world.port.trashed().isEmpty)
  }

  @Test(arguments: Adapter.allCases) func aModeIsPutBack(_ adapter: Adapter) throws {
    let world = try adapter.make()
    let placed = try #require(try world.install(bytes("ours"), at("f")).identity)
    #expect(try world.port.restoreMode(of: at("f"), expected: placed)?.identity == placed)
    #expect(try world.port.look(at("f"))?.hasOwnMode == true)
    world.changeMode(at("f"))
    let changed = try world.identity(at("f"))
    #expect(try world.port.look(at("f"))?.hasOwnMode == false)
    #expect(try world.port.restoreMode(of: at("f"), expected: placed) == nil)
    let (restored, before) = try #require(try world.port.restoreMode(of: at("f"), expected: changed))
    #expect(before != 0o644)
    #expect(try restored == world.identity(at("f")) && restored != changed)
    #expect(try world.port.restoreMode(of: at("f"), expected: restored)?.identity == restored)
    world.delete(at("f"))
    #expect(try world.port.restoreMode(of: at("f"), expected: restored) == nil)
  }

  @Test(arguments: Adapter.allCases) func aParentInTheWayIsNamed(_ adapter: Adapter) throws {
    let world = try adapter.make()
    world.write(at("file"), bytes("x"))
    world.makeLink(at("link"))
    world.makeSpecial(at("d/special"))
    #expect(try world.install(bytes("y"), at("file/a")).failure == .notDirectory)
    #expect(try world.install(bytes("y"), at("link/a/b")).failure == .link)
    #expect(try world.install(bytes("y"), at("d/special/a")).failure == .notDirectory)
    #expect(world.contents(at("file")) == bytes("x"))
  }

  @Test(arguments: Adapter.allCases) func onlySealedFilesAreInstalled(_ adapter: Adapter) throws {
    let world = try adapter.make()
    let open = try world.port.makePartial()
    _ = try open.begin(keeping: 0, check: ContentCheck())
    let closed = try world.sealed([1])
    closed.close()
    let outcomes = world.port.install(
      [open, closed].map {
        Installation(path: at("x/" + $0.name), partial: $0, expectation: .absent, trashName: "t")
      })
    #expect(outcomes.map(\.failure) == [.other, .other])
    #expect(try world.port.look(at("x")) == nil)
  }

  @Test(arguments: Adapter.allCases) func outcomesComeInOrder(_ adapter: Adapter) throws {
    let world = try adapter.make()
    world.write(at("d/2"), bytes("theirs"))
    world.write(at("d/4"), bytes("old"))
    let partials = try (0..<6).map { try world.sealed([UInt8($0)]) }
    let items = try partials.enumerated().map { index, partial in
      Installation(
        path: at("d/\(index)"), partial: partial,
        expectation: index == 4 ? .present(try world.identity(at("d/4"))) : .absent, trashName: "t\(index)")
    }
    let outcomes = world.port.install(items)
    #expect(outcomes.map(\.isStale) == [false, false, true, false, false, false])
    #expect(outcomes.map { $0.displaced != nil } == [false, false, false, false, true, false])
    for index in [0, 1, 3, 4, 5] {
      #expect(world.contents(at("d/\(index)")) == [UInt8(index)])
      #expect(try outcomes[index].identity == world.identity(at("d/\(index)")))
    }
    #expect(world.contents(at("d/2")) == bytes("theirs"))
    #expect(world.trashContents("t4") == bytes("old"))
  }

  // MARK: Removing

  @Test(arguments: Adapter.allCases) func aRemovedFileLiesInTheTrashAndEmptyDirectoriesGo(_ adapter: Adapter)
    throws
  {
    let world = try adapter.make()
    world.write(at("a/b/c/f"), bytes("bye"))
    world.write(at("a/keep"), bytes("stay"))
    let identity = try world.identity(at("a/b/c/f"))
    let outcomes = world.port.remove([Removal(path: at("a/b/c/f"), expected: identity, trashName: "t")])
    #expect(outcomes.first?.identity?.isSameContents(as: identity) == true)
    #expect(world.trashContents("t") == bytes("bye"))
    #expect(world.scanned().objects.map(\.path) == ["a", "a/keep"].map(at))
    let last = try world.identity(at("a/keep"))
    _ = world.port.remove([Removal(path: at("a/keep"), expected: last, trashName: "t2")])
    #expect(world.scanned().objects.isEmpty)
    #expect(try world.port.isIntact())
  }

  @Test(arguments: Adapter.allCases) func onlyTheExpectedFileIsRemoved(_ adapter: Adapter) throws {
    let world = try adapter.make()
    world.write(at("f"), bytes("one"))
    let identity = try world.identity(at("f"))
    world.edit(at("f"), bytes("edit"))
    #expect(
      world.port.remove([Removal(path: at("f"), expected: identity, trashName: "t")]).map(\.isStale) == [true]
    )
    world.delete(at("f"))
    #expect(
      world.port.remove([Removal(path: at("f"), expected: identity, trashName: "t")]).map(\.isStale) == [true]
    )
    #expect(
      world.port.remove([Removal(path: at("x/y"), expected: identity, trashName: "t")]).map(\.isStale) == [
        true
      ])
    world.makeLink(at("l"))
    let link = try world.identity(at("l"))
    #expect(
      world.port.remove([Removal(path: at("l"), expected: link, trashName: "t")]).map(\.isStale) == [true])
    #expect(
      world.port.remove([Removal(path: at("l/y"), expected: link, trashName: "t")]).map(\.isStale) == [true])
    #expect(try world.port.trashed().isEmpty)
  }

  // MARK: Trash

  @Test(arguments: Adapter.allCases) func theTrashGivesBackWhatItHolds(_ adapter: Adapter) throws {
    let world = try adapter.make()
    world.write(at("d/f"), bytes("bye"))
    let removal = Removal(path: at("d/f"), expected: try world.identity(at("d/f")), trashName: "t")
    _ = world.port.remove([removal])
    world.write(at("here"), bytes("x"))
    #expect(code { _ = try world.port.restoreTrash("t", to: at("here")) } == .exists)
    #expect(code { _ = try world.port.restoreTrash("none", to: at("z/f")) } == .missing)
    let identity = try world.port.restoreTrash("t", to: at("d/e/f"))
    #expect(try identity == world.identity(at("d/e/f")))
    #expect(world.contents(at("d/e/f")) == bytes("bye"))
    #expect(try world.port.trashed().isEmpty)
    #expect(try world.port.look(at("z")) == nil)
  }

  @Test(arguments: Adapter.allCases) func aStagedFileGoesBack(_ adapter: Adapter) throws {
    let world = try adapter.make()
    for (name, trashName) in [("f", "t"), ("g", "u")] {
      world.write(at(name), bytes("old \(name)"))
      let old = try world.identity(at(name))
      #expect(try world.install(bytes("new"), at(name), .present(old), trashName: trashName).displaced != nil)
      #expect(try world.port.trashIdentity(trashName)?.isSameContents(as: old) == true)
    }
    #expect(try world.port.trashIdentity("none") == nil)
    let identity = try world.port.trashIdentity("t")
    try world.port.unstage("t", as: "p")
    #expect(try identity.flatMap { try world.port.partialIdentity("p")?.isSameContents(as: $0) } == true)
    #expect(code { try world.port.unstage("t", as: "q") } == .missing)
    #expect(code { try world.port.unstage("u", as: "p") } == .exists)
    #expect(world.trashContents("u") == bytes("old g"))
    try world.port.removePartial("p")
    try world.port.removePartial("p")
    #expect(try world.port.partials().isEmpty)
    try world.port.removeTrash("u")
    try world.port.removeTrash("u")
    #expect(try world.port.trashed().isEmpty)
  }

  @Test(arguments: Adapter.allCases) func thereIsRoomAndAFlush(_ adapter: Adapter) throws {
    let world = try adapter.make()
    let space = try world.port.space()
    #expect(space.free > 0)
    #expect(space.free <= space.total)
    try world.port.flush()
  }
}
