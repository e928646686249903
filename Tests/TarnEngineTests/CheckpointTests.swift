import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnEngine

/// How much of a running download is called durable (I3).
@Suite struct CheckpointTests {
  private let folder = MemoryFolder()
  private let ledger = MemoryLedger()

  /// What the ledger calls durable after so many bytes of a download that has ten.
  private func durable(upTo length: UInt64) throws -> UInt64? {
    let partial = try folder.makePartial()
    _ = try partial.begin(keeping: 0, check: ContentCheck())
    try "ten bytes!".bytes.withUnsafeBytes { try partial.append($0) }
    try ledger.apply([
      .partial(
        PartialRow(
          path: "a".path, name: partial.name, url: "http://a.example/a", etag: nil, lastModified: nil,
          total: nil,
          digest: nil, fingerprint: [], durable: 0, bootID: "boot-1"))
    ])
    let checkpoints = try Checkpoints(ledger: ledger)
    defer { checkpoints.close() }
    let mark = checkpoints.mark(partial, path: "a".path)
    // So far ahead that the writer waits for the sync.
    checkpoints.wrote(mark, upTo: length)
    checkpoints.forget(mark)
    return ledger.contents.partials["a".path]?.durable
  }

  @Test func whatWasSyncedIsDurable() throws {
    #expect(try durable(upTo: Checkpoints.mostLag + Checkpoints.step) == 10)
    #expect(folder.count(.sync) == 1)
  }

  @Test func aFewBytesAreNotSynced() throws {
    #expect(try durable(upTo: Checkpoints.step - 1) == 0)
    #expect(folder.count(.sync) == 0)
  }

  @Test func whatCouldNotBeSyncedIsNotDurable() throws {
    folder.fail(.sync)
    #expect(try durable(upTo: Checkpoints.mostLag + Checkpoints.step) == 0)
    #expect(folder.count(.sync) == 1)
  }
}
