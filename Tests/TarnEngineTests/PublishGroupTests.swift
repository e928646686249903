import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnEngine

/// What became of a group is recorded together with the intents of the next one.
@Suite struct PublishGroupTests {
  private let folder = MemoryFolder()
  private let ledger = MemoryLedger()
  private let posted = Locked<[JobMessage]>([])
  private let group: PublishGroup

  init() throws {
    let posted = posted
    group = PublishGroup(client: try .of(folder, ledger)) { message in
      posted.withLock { $0.append(message) }
    }
  }

  private func durable(_ jobs: Range<UInt64>) throws -> [Publication] {
    let batch = try jobs.map { try publication($0, for: group.client) }
    let ready = group.makeDurable(batch)
    #expect(ready.count == batch.count)
    return ready
  }

  private func publication(_ job: UInt64, for client: TransferClient) throws -> Publication {
    let partial = try folder.makePartial()
    _ = try partial.begin(keeping: 0, check: ContentCheck())
    try "\(job)".bytes.withUnsafeBytes { try partial.append($0) }
    let sealed = try partial.seal(modified: nil)
    let row = Row(
      path: "f\(job)".path, identity: sealed.identity, digest: sealed.digest, isVerified: true,
      fingerprint: [],
      placed: Timestamp(nanoseconds: 0))
    return Publication(
      job: job, client: client, kind: .fetch, partial: partial, expectation: .absent, trashName: "", row: row,
      displacesOwn: false, isCopy: false)
  }

  /// Jobs that were told to be in place, jobs that failed, and whether the ledger has failed.
  private var told: (installed: [UInt64], failed: [UInt64], ledgerFailed: Bool) {
    posted.withLock { posted in
      var told: (installed: [UInt64], failed: [UInt64], ledgerFailed: Bool) = ([], [], false)
      for message in posted {
        switch message {
        case .published(let job, .installed): told.installed.append(job)
        case .published(let job, _): told.failed.append(job)
        case .ledgerFailed: told.ledgerFailed = true
        default: break
        }
      }
      return told
    }
  }

  private var rows: [String] { ledger.contents.rows.keys.map(\.printable).sorted() }
  private var intents: [String] { ledger.contents.intents.keys.map(\.printable).sorted() }

  /// Clients of one engine have ledgers of their own.
  @Test func eachLedgerHasItsOwn() throws {
    let (other, installed) = (MemoryLedger(), Locked<Set<UInt64>>([]))
    let publisher = PublishThread { message in
      if case .published(let job, .installed) = message { installed.withLock { _ = $0.insert(job) } }
    }
    try publisher.start()
    for (job, ledger) in [ledger, other, ledger, other].enumerated() {
      let client = try TransferClient.of(folder, ledger)
      publisher.submit(try publication(UInt64(job), for: client))
    }
    publisher.close()
    #expect(installed.withLock { $0 } == [0, 1, 2, 3])
    #expect(rows == ["f0", "f2"] && other.contents.rows.keys.map(\.printable).sorted() == ["f1", "f3"])
  }

  @Test func oneTransactionEndsAGroupAndBeginsTheNext() throws {
    let (first, second) = (try durable(0..<3), try durable(3..<5))
    let named = try #require(group.name(first, after: nil))
    // In place, and not told before it is recorded.
    #expect(rows.isEmpty && intents == ["f0", "f1", "f2"] && told.installed.isEmpty)
    let next = try #require(group.name(second, after: named))
    #expect(rows == ["f0", "f1", "f2"] && intents == ["f3", "f4"] && told.installed == [0, 1, 2])
    group.record(next)
    #expect(rows.count == 5 && intents.isEmpty && told.installed == [0, 1, 2, 3, 4])
    #expect(ledger.contents.history.count == 3)
    #expect(told.failed.isEmpty && !told.ledgerFailed)
  }

  @Test func whatHasItsNameIsRecordedAlsoWhereTheNextGetsNone() throws {
    let (first, second) = (try durable(0..<3), try durable(3..<5))
    let named = try #require(group.name(first, after: nil))
    folder.setIntact(false)
    #expect(group.name(second, after: named) == nil)
    #expect(rows == ["f0", "f1", "f2"] && intents.isEmpty)
    #expect(told.installed == [0, 1, 2] && told.failed == [3, 4] && !told.ledgerFailed)
  }

  /// The record alone may fit where both do not.
  @Test(arguments: [false, true]) func onAFullDiskTheRecordIsTriedAlone(isFullForIntents: Bool) throws {
    let (first, second) = (try durable(0..<3), try durable(3..<5))
    let named = try #require(group.name(first, after: nil))
    ledger.failApply(1)
    if isFullForIntents { ledger.failApply(3) }
    let next = group.name(second, after: named)
    #expect(rows == ["f0", "f1", "f2"] && told.installed == [0, 1, 2])
    #expect((next == nil) == isFullForIntents && told.ledgerFailed == isFullForIntents)
    #expect(intents == (isFullForIntents ? [] : ["f3", "f4"]))
  }

  /// What the disk refused is not tried again: a sync that fails proves nothing when it is repeated.
  @Test func aLedgerThatFailsEndsBoth() throws {
    let (first, second) = (try durable(0..<3), try durable(3..<5))
    let named = try #require(group.name(first, after: nil))
    ledger.failApply(1, with: LedgerFailure(.inputOutput, "as told"))
    #expect(group.name(second, after: named) == nil)
    #expect(told.ledgerFailed && told.installed.isEmpty && rows.isEmpty)
    // The next pass finds out what became of them.
    #expect(intents == ["f0", "f1", "f2"])
  }
}
