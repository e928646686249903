import TestSupport
import Testing

@testable import TarnCore

/// Which validators of a feed may be asked with, and how the folder's fingerprint is made.
@Suite struct FeedValidatorsTests {
  private func validators(
    _ etag: String?, modified: Int64? = nil, sent: Int64? = 1_000_000, text: String = "as sent"
  ) -> FeedValidators? {
    var head = ResponseHead(status: 200, url: "http://a.example/")
    head.etag = etag
    head.modified = modified.flatMap { Timestamp(seconds: $0) }
    head.lastModified = modified == nil ? nil : text
    head.sent = sent.flatMap { Timestamp(seconds: $0) }
    return FeedValidators(head)
  }

  @Test(arguments: ["\"a\"", "W/\"a-gzip\"", "\"66f3-1a\"", "\"é\""])
  func aTagIsSentBackAsItCame(_ tag: String) {
    #expect(validators(tag) == FeedValidators(etag: tag, lastModified: nil))
    #expect(
      validators(tag, modified: 1000) == FeedValidators(etag: tag, lastModified: "as sent"))
  }

  /// `*` would always be answered by 304.
  @Test(arguments: [
    "*", "", "\"\"", "W/\"\"", "\"", "a", "w/\"a\"", "\"a\", \"b\"", "\"a\"b\"", "\"a b\"", "W/*",
    "\"" + String(repeating: "a", count: 1100) + "\"",
  ])
  func whatIsNoTagIsNotSent(_ tag: String) {
    #expect(validators(tag) == nil)
    #expect(validators(tag, modified: 1000) == FeedValidators(etag: nil, lastModified: "as sent"))
  }

  /// A text that was read in the second in which it was written may have been written again in that second.
  @Test func aTimeThatMayStillBeTheSameIsNotTrusted() {
    #expect(validators(nil, modified: 999_941) == nil)
    #expect(validators(nil, modified: 999_940) != nil)
    #expect(validators("\"a\"", modified: 999_999) == nil)
    #expect(validators("\"a\"", modified: 999_998) != nil)
    #expect(validators("\"a\"", modified: 2_000_000) == nil)
    #expect(validators("\"a\"", modified: 1000, sent: nil) == nil)
    #expect(validators(nil, modified: 1000, sent: nil) == nil)
  }

  @Test func aTimeThatIsNoneIsLeftOut() {
    var head = ResponseHead(status: 200, url: "http://a.example/")
    head.lastModified = "soon"
    #expect(FeedValidators(head) == nil)
    head.etag = "\"a\""
    #expect(FeedValidators(head) == FeedValidators(etag: "\"a\"", lastModified: nil))
  }

  @Test func aFeedIsNotCalledChangedInTheFuture() {
    var head = ResponseHead(status: 200, url: "http://a.example/")
    head.modified = Timestamp(seconds: 100)
    head.sent = Timestamp(seconds: 99)
    #expect(head.changed == nil)
    head.sent = Timestamp(seconds: 100)
    #expect(head.changed == head.modified)
  }
}

private final class RecordedRows: RecordedCursor {
  private var rest: ArraySlice<Row>

  init(_ rows: [Row]) { rest = rows.sorted { $0.path < $1.path }[...] }

  func next() throws(LedgerFailure) -> Recorded? {
    rest.popFirst().map { Recorded(path: $0.path, identity: $0.identity) }
  }
}

@Suite struct FolderFingerprintTests {
  /// In names that are prefixes of one another, with links and directories in the place of files, and files above them; whatever
  /// is wanted.
  @Test func aFolderStandsAsAComparisonFindsIt() throws {
    var random = Seeded(77)
    for round in 0..<2_000 {
      var situation = Situation()
      var names: Set<String> = []
      for _ in 0..<random.below(14) {
        let depth = 1 + random.below(3)
        names.insert((0..<depth).map { _ in random.pick(["a", "ab", "a-b", "b"]) }.joined(separator: "/"))
      }
      for name in names {
        let stat = identity(inode: UInt64(random.below(3)), changed: Int64(random.below(2)))
        if random.chance(70) { situation.rows.append(row(name, identity: stat)) }
        if round.isMultiple(of: 2), random.chance(60) { situation.entries.append(entry(name)) }
        guard random.chance(80) else { continue }
        let kind = random.pick([Present.Kind.regular, .regular, .directory, .symbolicLink, .special])
        situation.objects.append(object(name, kind, random.chance(70) ? stat : identity(inode: 9)))
      }
      let blind: Set<RelativePath> =
        random.chance(10) ? Set(situation.objects.prefix(1).map(\.path)) : []
      let findings = try situation.findings(blind: blind)
      var expected: FolderFingerprint? = FolderFingerprint()
      for finding in findings {
        if finding.scanFailure != nil { expected = nil }
        if finding.row != nil { expected?.add(finding.mark) }
      }
      let found = try FolderFingerprint.of(
        RecordedRows(situation.rows), Snapshot(situation.objects, blind: blind), meanwhile: {})
      #expect(found == expected, "round \(round)")
      if found != expected { return }
    }
  }
}

@Suite struct FingerprintMarkTests {
  private static let time = Timestamp(nanoseconds: 5)
  private let identity = FileIdentity(device: 1, inode: 2, size: 3, modified: time, changed: time)

  private func row(_ path: String) -> Row {
    Row(
      path: RelativePath(trusted: Array(path.utf8)), identity: identity,
      digest: Digest(.sha256, padding: []), isVerified: true, fingerprint: [],
      placed: Self.time)
  }

  private func mark(
    _ path: String = "a", _ kind: Present.Kind? = .regular, below: Bool = false,
    _ edit: (inout FileIdentity) -> Void = { _ in }
  ) -> UInt64? {
    var identity = identity
    edit(&identity)
    let row = row(path)
    let present = kind.map { Present(path: row.path, kind: $0, identity: identity) }
    return FolderFingerprint.mark(row, present: present, isBelowFile: below)
  }

  @Test func onlyWhatIsAsRecordedHasNoMark() {
    #expect(mark() == nil)
    // Devices are numbered anew at each boot.
    #expect(mark { $0.device = 9 } == nil)
    let marks = [
      mark("a", nil), mark("a", nil, below: true), mark("a", .directory), mark("a", .symbolicLink),
      mark("a", .special), mark { $0.inode = 9 }, mark { $0.size = 9 },
      mark { $0.modified = Timestamp(nanoseconds: 6) }, mark { $0.changed = Timestamp(nanoseconds: 6) },
      mark("b", nil), mark("b") { $0.inode = 9 },
    ]
    #expect(marks.allSatisfy { $0 != nil })
    #expect(Set(marks).count == marks.count)
    // What lies in a directory is no matter.
    #expect(mark("a", .directory) { $0.changed = Timestamp(nanoseconds: 6) } == mark("a", .directory))
  }

  @Test func theOrderDoesNotMatterAndTheNumberDoes() {
    let marks: [UInt64?] = [mark("a", nil), nil, mark("b", nil)]
    func fingerprint(_ marks: [UInt64?]) -> FolderFingerprint {
      marks.reduce(into: FolderFingerprint()) { $0.add($1) }
    }
    #expect(fingerprint(marks) == fingerprint(marks.reversed()))
    #expect(fingerprint(marks) != fingerprint(marks + [nil]))
    #expect(fingerprint(marks) != fingerprint([marks[0], nil, nil]))
    #expect(fingerprint(marks).rows == 3)
    #expect(fingerprint(marks).odd == 2)
  }
}
