import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnEngine

/// A disk without space: what the trash can give back, and what is done without the ledger.
@Suite struct FullDiskTests {
  private let world = World()

  /// A mirror whose trash holds so many files.
  private func fillTrash(_ count: Int) throws {
    for number in 0..<count { world.want("f\(number)", "old \(number)") }
    try world.run()
    for number in 0..<count { world.want("f\(number)", "new \(number)") }
    try world.run()
    #expect(world.trash.count == count)
  }

  private var can: TrashCan { TrashCan(ledger: world.ledger, folder: world.folder, clock: world.clock) }

  @Test(arguments: [(3, [1]), (700, [1]), (700, [2]), (700, [1, 2])])
  func theTrashIsEmptiedThoughTheLedgerIsFullAtFirst(_ count: Int, failing: [Int]) throws {
    try fillTrash(count)
    for number in failing { world.ledger.failApply(number) }
    let report = try can.empty(world.ledger.trash(), stop: StopFlag())
    #expect(report.files == count && report.left == 0)
    #expect(world.trash.isEmpty)
    #expect(world.ledger.contents.trash.isEmpty)
  }

  @Test func aLedgerThatStaysFullIsToldAndLosesNothing() throws {
    try fillTrash(3)
    world.ledger.failApply(1)
    world.ledger.failApply(2)
    let rows = try world.ledger.trash()
    let failure = #expect(throws: PassFailure.self) { try can.empty(rows, stop: StopFlag()) }
    #expect(failure?.code == "no-space")
    // Rows without files: the next pass drops them.
    #expect(world.trash.isEmpty && world.ledger.contents.trash.count == 3)
    #expect(try world.run().isInSync)
    #expect(world.ledger.contents.trash.isEmpty)
  }

  @Test func filesAloneAreRemovedButWhatACrashLeftHalfWay() throws {
    try fillTrash(3)
    let row = try #require(world.row("f0"))
    world.folder.leaveTrash("half", "half".bytes)
    world.folder.leaveTrash("found", "found".bytes)
    try world.ledger.apply([
      .intent(
        Intent(
          kind: .install, path: row.path, partialName: "p", trashName: "half", row: row, displacesOwn: true))
    ])
    let one = try #require(world.ledger.trash().first)
    #expect(try can.removeFiles([one.name, "half"]).files == 1)
    let report = try can.removeFiles(Set(world.folder.trashed().map(\.name)))
    #expect(report.files == 3 && report.bytes == 5 + 5 + 5)
    #expect(world.trash == ["half"])
    #expect(world.ledger.contents.trash.count == 3)
  }

  @Test func whatWasVerifiedIsGoodThoughItCannotBeNoted() throws {
    world.want("a", "text")
    try world.run()
    world.log.clear()
    let verification = Verification(
      ledger: world.ledger, clock: world.clock, folder: world.folder, observer: world.log,
      progress: PassProgress(clock: world.clock), stop: StopFlag())
    // The phase, then that it is verified.
    world.ledger.failApply(2)
    #expect(try verification.run().isGood)
    #expect(notices == ["no-space"])
  }

  @Test func aPassThatFoundNoSpaceNamesTheTrash() throws {
    try fillTrash(3)
    #expect(notices.isEmpty)
    world.policy.reserve = .bytes(0)
    world.folder.setSpace(free: 4)
    world.want("g", "too much")
    #expect(try world.run().problems.map(\.code) == ["no-space"])
    #expect(notices.last == "space-short")
    let told = world.log.events.contains { event in
      guard case .notice(_, let message) = event else { return false }
      return message == "the trash holds 15 B; to remove it for good: tarn trash empty /folder"
    }
    #expect(told)
  }

  /// Another pass alone would fail in the same way.
  @Test func whatFoundNoSpaceIsExplainedByWhatGivesSome() throws {
    try fillTrash(3)
    world.policy.reserve = .bytes(0)
    world.folder.setSpace(free: 4)
    world.want("g", "too much")
    #expect(try world.run().problems.map(\.code) == ["no-space"])
    func step() throws -> String? {
      try ExplainQuery(ledger: world.ledger, folder: world.folder).explain("g".path, mirror: "m").hint
    }
    #expect(try step() == "tarn trash empty m (15 B), then: tarn sync m")
    _ = try can.empty(world.ledger.trash(), stop: StopFlag())
    let room = "make room on the file system, or keep less of it free (--reserve), then: tarn sync m"
    #expect(try step() == room)
    for code in ["space-short", "quota-exceeded"] {
      let problem = Problem(
        name: "g".bytes, kind: .failed, code: code, message: "it is full", seen: world.clock.time)
      #expect(ProblemAdvice(problem, mirror: "m").step == room)
      #expect(
        ProblemAdvice(problem, mirror: "m", trashBytes: 15).step.hasPrefix(
          "tarn trash empty m (15 B), then: "))
    }
  }

  @Test func spaceThatWasWrittenIsNotCountedTwice() throws {
    let world = World()
    world.policy.reserve = .bytes(0)
    world.folder.setSpace(free: 25)
    world.want("a", "0123456789")
    world.want("Release", "0123456789")
    let folder = world.folder
    folder.beforeInstall { path in if path == "a".path { folder.setSpace(free: 15) } }
    let report = try world.run()
    #expect(report.isInSync)
  }

  @Test func whatDoesNotFitIsReported() throws {
    let world = World()
    world.policy.reserve = .bytes(10)
    world.folder.setCapacity(25)
    world.want("a", "0123456789")
    world.want("b", "0123456789")
    world.want("c", "01234")
    let report = try world.run()
    #expect(report.problems.map(\.code) == ["no-space"])
    #expect(report.problems.map(\.name) == ["b".bytes])
    #expect(world.files.keys.sorted() == ["a", "c"])
  }

  private var notices: [String] {
    world.log.events.compactMap { if case .notice(let code, _) = $0 { code } else { nil } }
  }

  private final class Responses: ResponseObserver {
    private let grew: @Sendable () -> Void

    init(grew: @escaping @Sendable () -> Void) { self.grew = grew }

    func responded(_ path: RelativePath, _ head: ResponseHead) -> ResponseVerdict { .usual }
    func grew(_ path: RelativePath, to bytes: UInt64) -> FolderFailure? {
      grew()
      return nil
    }
    func refused(_ path: RelativePath, body: [UInt8]) {}
  }

  /// - Parameter grew: called before bytes of the file are written.
  private func download(
    _ path: RelativePath, bytes: Int, grew: @escaping @Sendable () -> Void = {}
  ) throws -> SingleDownload.Outcome? {
    let downloader = try FakeDownloader { _ in
      var answer = FakeAnswer(etag: "\"1\"", body: Array(repeating: 7, count: bytes))
      answer.hasLength = false
      return answer
    }
    let ports = SingleDownload.Ports(
      folder: world.folder, ledger: world.ledger, downloader: downloader, clock: world.clock,
      random: world.random, bootID: "boot-1", progress: PassProgress(clock: world.clock), device: 1,
      promises: SpacePromises())
    let engine = TransferEngine()
    let ended = LockedCondition<SingleDownload.Outcome?>(nil)
    _ = engine.start(SingleDownload(path, url: "http://h/a"), with: ports, observer: Responses(grew: grew)) {
      outcome in ended.change { $0 = outcome }
    }
    defer { engine.close() }
    return ended.wait(atMost: .seconds(300)) { $0 }
  }

  /// A single download keeps its bytes when the disk is full. Where there are none, no empty file stays, and no row.
  @Test func aDownloadWithoutAByteLeavesNothing() throws {
    world.folder.setSpace(free: 0)
    let path = RelativePath(task: 1)
    guard case .failed("no-space", _) = try download(path, bytes: 2 << 20) else {
      Issue.record("it has not failed")
      return
    }
    #expect(try world.folder.partials().isEmpty && world.ledger.partial(path) == nil)
  }

  /// There was room for all of it when it was asked for.
  @Test func aFileOfUnknownSizeLooksForRoomAsItGrows() throws {
    let folder = world.folder
    let outcome = try download(RelativePath(task: 1), bytes: 6 << 20) { folder.setSpace(free: 2000) }
    guard case .failed("no-space", _) = outcome else {
      Issue.record("it has not failed")
      return
    }
  }
}
