import Glibc
import TarnCore
import TarnRuntime
import TarnSchedule
import TarnTransfer
import TestSupport
import Testing

@testable import TarnAgent

/// What outlives the agent.
@Suite struct AgentRecordTests {
  private static func full() throws -> AgentRecord {
    var mirror = AgentRecord.Mirror(folder: "/srv/a\tb\n=\\c\u{E9}e\u{301}")
    mirror.feed = "https://example.org/SHA256SUMS"
    mirror.isPaused = true
    mirror.owesPass = true
    mirror.priority = .low
    mirror.history.failures = 7
    mirror.history.lastOutcome = .failedTransient
    mirror.history.since = Timestamp(nanoseconds: -5)
    mirror.history.lastAttempt = Timestamp(nanoseconds: 1_700_000_000_123_456_789)
    mirror.history.lastSuccess = Timestamp(nanoseconds: 1_700_000_000_000_000_001)
    mirror.history.heldUntil = Timestamp(nanoseconds: 1_700_000_180_000_000_000)
    mirror.history.isHeldByFeed = true
    mirror.history.wasCutShort = true
    mirror.failure = PassFault(message: "line one\nline\ttwo = \\", isOfFolder: true)
    mirror.condition = .failing
    mirror.approved = "1a2b3c4d"
    mirror.pausedPaths = [try RelativePath([0xFF, 0x3D]), try RelativePath(Array("a b".utf8))]
    mirror.wishes = [
      TransferBudget.Wish(host: "http://[::1]:80", until: Timestamp(nanoseconds: 1_700_000_180_000_000_000)),
      TransferBudget.Wish(host: "https://a:443", until: Timestamp(nanoseconds: 7)),
    ]
    var record = AgentRecord()
    record.mirrors = ["f\u{FC}r": mirror, "plain": AgentRecord.Mirror(folder: "/srv/plain")]
    return record
  }

  @Test func itIsReadBackAsItWas() throws {
    let record = try Self.full()
    #expect(AgentRecord(record.text) == record)
    #expect(record.text.split(separator: "\n").count == 3)
    let directory = ScratchDirectory()
    #expect(record.save(directory.path) == nil)
    #expect(AgentRecord.read(directory.path) == record)
    #expect(directory.names == ["agent"])
    #expect(AgentRecord.setAside(directory.path) == nil)
    // Byte for byte: `String` would hold NFC and NFD for equal.
    let folder = AgentRecord.read(directory.path).mirrors["f\u{FC}r"]?.folder ?? ""
    #expect(Array(folder.utf8) == Array("/srv/a\tb\n=\\c\u{E9}e\u{301}".utf8))
  }

  /// One bad field is one field less, one bad line one mirror less.
  @Test func whatIsDamagedInItLosesNothingElse() throws {
    let text = """
      tarn-agent/1
      good\tfolder=/g\tpaused=yes\tnews=from later\tno equals
      \tfolder=
      nofolder\tpaused=yes
      bad\tfolder=/b\tpriority=highest\tfailures=-3\toutcome=odd\tsince=x\tpath=***\tpath=YQ==\thost=\thost=x y\thost=5\tattempt=9\tpaused=maybe
      cut\tfolder=/c\tpaus
      """
    let record = AgentRecord(text)
    #expect(Set(record.mirrors.keys) == ["good", "", "bad", "cut"])
    #expect(record.mirrors["good"]?.isPaused == true)
    // As an agent wrote it that kept less.
    #expect(record.mirrors["good"]?.history.heldUntil == nil)
    var bad = AgentRecord.Mirror(folder: "/b")
    bad.history.lastAttempt = Timestamp(nanoseconds: 9)
    bad.pausedPaths = [try RelativePath(Array("a".utf8))]
    #expect(record.mirrors["bad"] == bad)
  }

  @Test(arguments: ["", "tarn-agent/2\nm\tfolder=/m\n", "\0\0\0\0", "tarn-agent/1 \n", "m\tfolder=/m\n"])
  func whatIsNoRecordIsSetAside(text: String) throws {
    let directory = ScratchDirectory()
    #expect(TextFile.replace(directory.file("agent"), with: text) == nil)
    #expect(AgentRecord.setAside(directory.path) == directory.file("agent.damaged"))
    #expect(AgentRecord.read(directory.path) == AgentRecord())
    #expect(try Self.full().save(directory.path) == nil)
    #expect(TextFile.read(directory.file("agent.damaged"), limit: 100) == text)
    #expect(directory.names == ["agent", "agent.damaged"])
  }

  @Test func whereNothingIsNothingIsSetAside() {
    let directory = ScratchDirectory()
    #expect(AgentRecord.setAside(directory.path) == nil)
    #expect(AgentRecord.read(directory.path) == AgentRecord())
  }

  @Test func aSaveThatFailsLeavesTheOldOne() throws {
    let directory = ScratchDirectory()
    #expect(AgentRecord().save(directory.path) == nil)
    // Where the new one is written a directory stands.
    mkdir(directory.file("agent.new"), 0o700)
    defer { rmdir(directory.file("agent.new")) }
    #expect(try Self.full().save(directory.path) != nil)
    #expect(AgentRecord.read(directory.path) == AgentRecord())
  }

  @Test func whatAnotherFeedsServerAskedForIsForgotten() throws {
    let mirror = try #require(try Self.full().mirrors["f\u{FC}r"])
    let (folder, feed) = (mirror.folder, try #require(mirror.feed))
    #expect(mirror.holding(folder: folder, feed: feed) == mirror)
    #expect(mirror.holding(folder: "/other", feed: feed) == nil)
    let moved = try #require(mirror.holding(folder: folder, feed: feed + "2"))
    #expect(moved.history.heldUntil == nil && moved.history.failures == 0 && moved.failure == nil)
    #expect(moved.isPaused && moved.pausedPaths == mirror.pausedPaths && moved.approved == mirror.approved)
    // Of an older agent's record nobody knows.
    var old = mirror
    old.feed = nil
    #expect(old.holding(folder: folder, feed: feed) == old)
  }
}
