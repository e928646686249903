import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnEngine

/// What a crash between the intents and the rows leaves, built by hand.
@Suite struct RecoveryTests {
  /// How far the publishing of one file was.
  enum Step: CaseIterable {
    /// The intent is written.
    case said
    /// The new file waits in the trash, under the name that what it will displace is to have there.
    case staged
    /// It is in place, and what it displaced is in the trash.
    case exchanged
  }

  /// A world where `count` files were on their way over what stands there.
  private struct Crash {
    let world = World()
    let trashNames: [String]

    /// - Parameters:
    ///   - steps: of each file.
    ///   - old: what stands at the paths: the recorded version, or an edit of it; nil for nothing.
    ///   - hasPartialRow: the downloads were long enough to have one.
    init(_ steps: [Step], old: String?, isEdited: Bool, hasPartialRow: Bool) throws {
      trashNames = steps.indices.map { String(repeating: "\($0)", count: 32) }
      if let old {
        for index in steps.indices { world.want("f\(index)", old + "\(index)") }
        try world.run()
        if isEdited {
          for index in steps.indices { world.folder.edit("f\(index)".path, "mine\(index)".bytes) }
        }
      }
      for (index, step) in steps.enumerated() {
        world.want("f\(index)", "new\(index)")
        try leave(index, step, displacesOwn: old != nil && !isEdited, hasPartialRow: hasPartialRow)
      }
    }

    private func leave(_ index: Int, _ step: Step, displacesOwn: Bool, hasPartialRow: Bool) throws {
      let (folder, ledger) = (world.folder, world.ledger)
      let path = "f\(index)".path
      let text = "new\(index)"
      let entry = world.entry("f\(index)", text)
      let partial = try folder.makePartial()
      _ = try partial.begin(keeping: 0, check: ContentCheck(size: entry.size, digest: entry.digest))
      try text.bytes.withUnsafeBytes { try partial.append($0) }
      let sealed = try partial.seal(modified: nil)
      let row = Row(
        path: path, identity: sealed.identity, digest: sealed.digest, isVerified: true,
        fingerprint: entry.fingerprint, placed: world.clock.time)
      if hasPartialRow {
        try ledger.apply([
          .partial(
            PartialRow(
              path: path, name: partial.name, url: World.host + "f\(index)", etag: nil, lastModified: nil,
              total: entry.size, digest: entry.digest, fingerprint: entry.fingerprint, durable: 0,
              bootID: world.bootID))
        ])
      }
      try ledger.apply([
        .intent(
          Intent(
            kind: .install, path: path, partialName: partial.name, trashName: trashNames[index], row: row,
            displacesOwn: displacesOwn))
      ])
      let present = try folder.look(path)
      if step == .said || (step == .staged && present == nil) { return partial.close() }
      if step == .staged { return folder.stage(partial.name, as: trashNames[index]) }
      let expectation = present.map { Installation.Expectation.present($0.identity) } ?? .absent
      _ = folder.install([
        Installation(path: path, partial: partial, expectation: expectation, trashName: trashNames[index])
      ])
    }
  }

  private static let threeSteps: [[Step]] = Step.allCases.flatMap { first in
    Step.allCases.flatMap { second in Step.allCases.map { [first, second, $0] } }
  }

  @Test(arguments: threeSteps, [false, true])
  func overTheRecordedVersion(_ steps: [Step], hasPartialRow: Bool) throws {
    let crash = try Crash(steps, old: "old", isEdited: false, hasPartialRow: hasPartialRow)
    let world = crash.world
    let report = try world.run()
    #expect(report.isInSync)
    #expect(world.files == ["f0": "new0", "f1": "new1", "f2": "new2"])
    #expect(world.trash == ["old0", "old1", "old2"])
    #expect(world.ledger.contents.trash.values.map(\.isOwn) == [true, true, true])
    #expect(world.ledger.contents.trash.values.map(\.reason) == [.replaced, .replaced, .replaced])
    #expect(world.ledger.contents.intents.isEmpty)
    #expect(world.ledger.contents.partials.isEmpty)
    #expect(world.partialNames.isEmpty)
    #expect(report.counts.current == steps.count { $0 == .exchanged })
    let whole = hasPartialRow ? 0 : steps.count { $0 != .exchanged }
    #expect(world.server.requests.count == whole)
    for (index, step) in steps.enumerated() where step == .exchanged {
      let path = "f\(index)".path
      #expect(world.ledger.contents.trash[crash.trashNames[index]]?.path == path)
      #expect(world.row("f\(index)")?.identity == (try world.folder.look(path)?.identity))
    }
    #expect(try world.plan().actions.isEmpty)
  }

  /// Also an edit that is as long as what it replaced: the size alone tells nothing.
  @Test(arguments: threeSteps, ["old", "size"])
  func overAnEdit(_ steps: [Step], old: String) throws {
    let world = try Crash(steps, old: old, isEdited: true, hasPartialRow: false).world
    let report = try world.run()
    #expect(report.isInSync)
    #expect(world.files == ["f0": "new0", "f1": "new1", "f2": "new2"])
    #expect(world.trash == ["mine0", "mine1", "mine2"])
    #expect(world.ledger.contents.trash.values.map(\.isOwn) == [false, false, false])
    #expect(world.ledger.contents.trash.values.map(\.reason) == [.edited, .edited, .edited])
    #expect(try world.plan().actions.isEmpty)
  }

  @Test(arguments: threeSteps, [false, true])
  func whereNothingStood(_ steps: [Step], hasPartialRow: Bool) throws {
    let world = try Crash(steps, old: nil, isEdited: false, hasPartialRow: hasPartialRow).world
    let report = try world.run()
    #expect(report.isInSync)
    #expect(world.files == ["f0": "new0", "f1": "new1", "f2": "new2"])
    #expect(world.trash.isEmpty)
    #expect(world.partialNames.isEmpty)
    #expect(try world.plan().actions.isEmpty)
  }

  /// After the crash somebody changes the new file before Tarn runs again: what was displaced is kept all the same.
  @Test(arguments: Step.allCases, [false, true])
  func anEditBeforeTheRecoveryLosesNothing(_ step: Step, hasPartialRow: Bool) throws {
    for isDeleted in [false, true] {
      let world = try Crash([step], old: "old", isEdited: true, hasPartialRow: hasPartialRow).world
      if isDeleted { world.folder.delete("f0".path) } else { world.folder.edit("f0".path, "later".bytes) }
      try world.run()
      #expect(step != .exchanged || world.trash.contains("mine0"))
      #expect(isDeleted || world.trash.contains("later") || world.text("f0") == "later")
      #expect(try world.run().isInSync)
      #expect(world.text("f0") == "new0")
      #expect(!world.trash.contains("new0"))
      world.clock.advance(.seconds(30 * 24 * 3600))
      try world.run()
      #expect(step != .exchanged || world.trash.contains("mine0"))
    }
  }

  /// The exchange failed, and so did the way back: the next pass knows the new file, and takes it for nobody's.
  @Test func aStepThatFailsHalfWayIsTidiedUp() throws {
    let world = World()
    world.want("f", "old")
    try world.run()
    world.want("f", "new")
    let (folder, ledger) = (world.folder, world.ledger)
    folder.beforeInstall { path in
      guard let intent = ledger.contents.intents[path] else { return }
      folder.stage(intent.partialName, as: intent.trashName)
    }
    #expect(try !world.run().isInSync)
    #expect(world.text("f") == "old")
    folder.beforeInstall { _ in }
    #expect(try world.run().isInSync)
    #expect(world.text("f") == "new")
    #expect(world.trash == ["old"])
    #expect(world.partialNames.isEmpty)
  }

  @Test(arguments: [false, true])
  func aRemovalIsFinished(isRemoved: Bool) throws {
    let world = World()
    for number in 0..<20 { world.want("f\(number + 10)", "text") }
    try world.run()
    world.policy.deletes = true
    world.unlist("f10")
    let row = try #require(world.row("f10"))
    try world.ledger.apply([
      .intent(
        Intent(
          kind: .remove, path: row.path, partialName: "", trashName: "t", row: row, displacesOwn: true))
    ])
    if isRemoved {
      _ = world.folder.remove([Removal(path: row.path, expected: row.identity, trashName: "t")])
    }
    let report = try world.run()
    #expect(report.isInSync)
    #expect(report.counts.deleted == (isRemoved ? 0 : 1))
    #expect(world.row("f10") == nil)
    #expect(world.trash == ["text"])
    #expect(world.ledger.contents.trash.values.map(\.reason) == [.deleted])
    #expect(world.ledger.contents.events.count { $0.code == "deleted" } == 1)
  }

  @Test func orphansInPartialGo() throws {
    let world = World()
    world.want("a", "one")
    world.folder.leavePartial("orphan", "bytes".bytes)
    world.folder.leavePartial("empty", [])
    let row = PartialRow(
      path: "gone".path, name: "gone", url: "http://x.example/", etag: nil, lastModified: nil, total: nil,
      digest: nil, fingerprint: [], durable: 0, bootID: "")
    try world.ledger.apply([.partial(row)])
    try world.run()
    #expect(world.partialNames.isEmpty)
    #expect(world.trash.isEmpty)
    #expect(world.ledger.contents.partials.isEmpty)
  }

  @Test func afterARebuildTheTrashIsKept() throws {
    let world = World()
    world.want("a", "one")
    world.folder.leavePartial("orphan", "bytes".bytes)
    world.folder.leaveTrash("old", "trashed".bytes)
    world.wasRebuilt = true
    try world.run()
    #expect(world.partialNames.isEmpty)
    #expect(world.trash == ["trashed"])
    #expect(world.ledger.contents.trash.values.map(\.isOwn) == [false])
    world.wasRebuilt = false
    world.clock.advance(.seconds(30 * 24 * 3600))
    try world.run()
    #expect(world.trash == ["trashed"])
  }

  @Test func rowsOfTrashThatIsGoneGo() throws {
    let world = World()
    world.want("a", "one")
    try world.ledger.apply([
      .trash(
        TrashRow(
          name: "gone", path: "x".path, reason: .deleted, isOwn: true, size: 1,
          when: world.clock.time))
    ])
    try world.run()
    #expect(world.ledger.contents.trash.isEmpty)
  }

  @Test(arguments: [
    MemoryFolder.Call.partials, .trashed, .look, .trashIdentity, .unstage, .removePartial, .flush,
  ])
  func aRecoveryThatFailsIsDoneAgain(_ call: MemoryFolder.Call) throws {
    for steps in [[Step.said, .staged, .exchanged], [.staged, .staged, .said]] {
      let world = try Crash(steps, old: "old", isEdited: true, hasPartialRow: false).world
      world.folder.fail(call)
      let failure = #expect(throws: PassFailure.self) { try world.run() }
      #expect(failure?.kind == .inputOutput)
      #expect(try world.run().isInSync)
      #expect(world.trash == ["mine0", "mine1", "mine2"])
    }
  }
}
