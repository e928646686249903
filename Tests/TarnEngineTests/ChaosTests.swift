import TarnCore
import TarnRuntime
import TestSupport
import Testing

@testable import TarnEngine

/// Random worlds, pass after pass: what must hold does (I1, I2, I6, I8).
@Suite struct ChaosTests {
  static let runs: UInt64 = 200
  static let shares: [UInt64] = Array(0..<12)

  /// Failures of the server and of users only: two passes converge, and the third does nothing.
  @Test(arguments: shares)
  func twoPassesConverge(_ share: UInt64) throws {
    for seed in stride(from: share, to: Self.runs / 2, by: Self.shares.count) {
      let chaos = Chaos(seed: seed)
      for _ in 0..<(1 + chaos.roll(4)) {
        chaos.changeWorld()
        chaos.race()
        try guarded(chaos, seed)
      }
      chaos.calm()
      chaos.changeFolder()
      chaos.writeLate()
      for _ in 0..<2 { try guarded(chaos, seed) }
      try expectRest(chaos, seed)
      try expectNothingExpires(chaos, seed)
    }
  }

  /// Everything fails now and then: nothing is lost, and once it stops the mirror comes to rest.
  @Test(arguments: shares)
  func nothingIsLostWhateverFails(_ share: UInt64) throws {
    for seed in stride(from: 10_000 + share, to: 10_000 + Self.runs / 2, by: Self.shares.count) {
      let chaos = Chaos(seed: seed)
      for _ in 0..<(2 + chaos.roll(5)) {
        chaos.changeWorld()
        chaos.breakParts()
        if chaos.roll(2) == 0 { chaos.race() }
        try guarded(chaos, seed)
        if chaos.roll(4) == 0 { _ = try? chaos.world.approval.run(plan: nil) }
        #expect(chaos.complaints() == [], "seed \(seed)")
      }
      try comeToRest(chaos, seed)
    }
  }

  /// Passes, repairs, other manifests, approvals, orders and kills beside each other.
  @Test(arguments: shares)
  func nothingIsLostWhoeverIsBesideWhom(_ share: UInt64) throws {
    for seed in stride(from: 20_000 + share, to: 20_000 + Self.runs / 2, by: Self.shares.count) {
      let chaos = Chaos(seed: seed)
      chaos.watch()
      try guarded(chaos, seed)
      for _ in 0..<(2 + chaos.roll(5)) {
        chaos.changeWorld()
        if chaos.roll(3) == 0 { chaos.breakParts() }
        if chaos.roll(2) == 0 { chaos.race() }
        try chaos.workTogether()
        #expect(chaos.complaints() == [], "seed \(seed)")
      }
      try comeToRest(chaos, seed)
    }
  }

  /// Failures that are still to come spoil some of the passes.
  private func comeToRest(_ chaos: Chaos, _ seed: UInt64) throws {
    chaos.calm()
    var (passes, quiet) = (0, 0)
    while passes < 200, quiet < 6 {
      let report = try guarded(chaos, seed)
      let isQuiet = report?.counts.failed == 0 && chaos.world.server.urls.isEmpty
      quiet = isQuiet ? quiet + 1 : 0
      passes += 1
    }
    try expectRest(chaos, seed)
    try expectNothingExpires(chaos, seed)
  }

  /// One pass, which may fail as a whole; the guard is held either way.
  @discardableResult
  private func guarded(_ chaos: Chaos, _ seed: UInt64) throws -> PassReport? {
    let world = chaos.world
    let rows = world.ledger.contents.rows.count
    var result: PassReport?
    do {
      let report = try world.run()
      result = report
      let lost = report.counts.deleted - report.counts.fetched - report.counts.copied
      #expect(lost <= max(DeletionGuard.least, rows / 10), "I8, seed \(seed)")
      if !world.end.isComplete || !world.policy.deletes {
        #expect(report.counts.deleted == 0, "I8, seed \(seed)")
      }
      let inPlace = report.counts.inPlace + report.counts.kept
      #expect(
        report.wasStopped || report.counts.wanted == inPlace + report.counts.wanting
          || report.counts.failed > 0, "counts, seed \(seed): \(report.counts)")
      #expect(report.counts.wanting == 0 || !report.isInSync)
    } catch let failure as PassFailure {
      #expect([.inputOutput, .permission, .folderUnusable, .stopped].contains(failure.kind), "\(failure)")
    }
    #expect(chaos.complaints() == [], "seed \(seed)")
    return result
  }

  /// The next pass fetches, writes and moves nothing (I6).
  private func expectRest(_ chaos: Chaos, _ seed: UInt64) throws {
    let world = chaos.world
    let before = (world.folder.count(.install), world.folder.count(.remove), world.folder.count(.makePartial))
    let report = try world.run()
    let after = (world.folder.count(.install), world.folder.count(.remove), world.folder.count(.makePartial))
    #expect(world.server.urls == [], "I6, seed \(seed)")
    #expect(before == after, "I6, seed \(seed): \(world.log.done)")
    #expect(report.counts.failed == 0, "I6, seed \(seed): \(report.problems)")
    #expect(world.partialNames.isEmpty, "seed \(seed)")
    #expect(world.ledger.contents.intents.isEmpty, "seed \(seed)")
  }

  /// What users wrote is in the trash for good.
  private func expectNothingExpires(_ chaos: Chaos, _ seed: UInt64) throws {
    for _ in 0..<3 { chaos.writeLate() }
    chaos.world.clock.advance(.seconds(30 * 24 * 3600))
    for _ in 0..<2 { try guarded(chaos, seed) }
    #expect(chaos.complaints() == [], "seed \(seed)")
  }
}
