import Foundation
import TarnCore
import TarnRuntime
import TarnSchedule
import Testing

@testable import TarnAgent

/// What the agent counts for the metrics, when it writes them, and when it reads a ledger for them.
@Suite struct MetricsTests {
  @Test func passesAreCountedByResultAndErrorsByKind() {
    var tally = MirrorTally()
    tally.ended(RunOutcome(PassFailure(.feedUnreachable, code: "http-404", "gone")), after: .seconds(2))
    tally.ended(RunOutcome(PassFailure(.feedMalformed, code: "x", "y")), after: .seconds(3))
    tally.ended(RunOutcome(PassFailure(.stopped, code: "stopped", "s")), after: .seconds(50))
    tally.ended(RunOutcome(PassFailure(.locked, code: "busy", "b")), after: .seconds(60))
    tally.count(MetricError(Problem.Kind.conflict))
    tally.count(nil)
    #expect(tally.passes == [.failedPermanent: 2, .cancelled: 1, .busy: 1])
    #expect(tally.errors == [.feedUnreachable: 1, .feedMalformed: 1, .fileConflict: 1])
    #expect(tally.lastPass == .seconds(3))
  }

  @Test func everyCounterBeginsAtZero() {
    var page = MetricsPage()
    page.add(MirrorTally(), "m")
    let text = String(decoding: page.text(.text), as: UTF8.self)
    for result in RunSchedule.Outcome.allCases {
      #expect(text.contains("passes_total{mirror=\"m\",result=\"\(result.rawValue)\"} 0\n"))
    }
    for kind in MetricError.allCases {
      #expect(text.contains("errors_total{mirror=\"m\",kind=\"\(kind.rawValue)\"} 0\n"))
    }
    #expect(!text.contains("last_change") && !text.contains("duration"))
  }

  // MARK: - The pace of the file

  @Test func theFileIsWrittenOnceAMinuteAndSoonAfterAnEnd() {
    var pace = MetricsPace()
    let start = Instant(nanoseconds: 1_000_000_000)
    #expect(pace.wait(now: start) == .zero)
    let first = pace.begin(now: start)
    // It is not written twice at once, however long that takes.
    let beside = pace.begin(now: start + .seconds(600))
    #expect(first && !beside && pace.wait(now: start + .seconds(600)) == .longest)
    pace.end()
    #expect(pace.wait(now: start) == MetricsPace.usual)
    pace.note()
    #expect(pace.wait(now: start) == MetricsPace.least)
    let early = pace.begin(now: start + .seconds(4))
    let due = pace.begin(now: start + .seconds(5))
    #expect(!early && due)
    pace.end()
    #expect(pace.wait(now: start + .seconds(6)) == .seconds(59))
  }

  @Test func whatEndsWhileTheFileIsWrittenIsInTheNextOne() {
    var pace = MetricsPace()
    let start = Instant(nanoseconds: 1_000_000_000)
    let first = pace.begin(now: start)
    pace.note()
    pace.end()
    #expect(first && pace.wait(now: start + .seconds(5)) == .zero)
  }

  @Test func theFileIsWrittenAtOnceAfterAReload() {
    var pace = MetricsPace()
    let start = Instant(nanoseconds: 1_000_000_000)
    let first = pace.begin(now: start)
    pace.renew()
    #expect(first && pace.wait(now: start) == .longest)
    pace.end()
    #expect(pace.wait(now: start) == .zero)
  }

  // MARK: - Stamps of ledgers

  private final class Record {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
      "tarn-stamp-\(UUID().uuidString)")

    init() throws {
      try FileManager.default.createDirectory(
        at: folder.appendingPathComponent(".tarn"), withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    func write(_ text: String, _ name: String, age: TimeInterval = 100) throws {
      let file = folder.appendingPathComponent(".tarn/" + name)
      try Data(text.utf8).write(to: file)
      let time = Date(timeIntervalSince1970: 1_795_867_200 - age)
      try FileManager.default.setAttributes([.modificationDate: time], ofItemAtPath: file.path)
    }

    var stamp: LedgerStamp? { LedgerStamp(folder: folder.path, state: nil) }
  }

  private static let now = Timestamp(nanoseconds: 1_795_867_200_000_000_000)

  @Test func aStampIsAnotherOneWhenSomebodyWrote() throws {
    let record = try Record()
    #expect(record.stamp == nil)
    try record.write("id", "id")
    try record.write("ledger", "ledger.sqlite")
    let first = try #require(record.stamp)
    #expect(record.stamp == first && first.isSettled(now: Self.now))
    // A reader makes these, and an empty log.
    try record.write("", "ledger.sqlite-wal")
    try record.write("x", "ledger.sqlite-shm")
    #expect(record.stamp == first)
    try record.write("change", "ledger.sqlite-wal")
    #expect(record.stamp != first)
    try FileManager.default.removeItem(at: record.folder.appendingPathComponent(".tarn/ledger.sqlite-wal"))
    #expect(record.stamp == first)
    try FileManager.default.removeItem(at: record.folder.appendingPathComponent(".tarn/id"))
    #expect(record.stamp != first)
  }

  @Test func whatWasWrittenAMomentAgoIsNotSettled() throws {
    let record = try Record()
    try record.write("ledger", "ledger.sqlite", age: 1)
    #expect(record.stamp?.isSettled(now: Self.now) == false)
    try record.write("ledger", "ledger.sqlite", age: 3)
    #expect(record.stamp?.isSettled(now: Self.now) == true)
    try record.write("change", "ledger.sqlite-wal", age: 0)
    #expect(record.stamp?.isSettled(now: Self.now) == false)
  }
}
