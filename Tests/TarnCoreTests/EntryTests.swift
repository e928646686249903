import TarnCore
import Testing

@Suite struct EntryTests {
  @Test func fingerprintTellsVersionsApart() {
    let time = moment(5)
    let variants = [
      entry("a", nil), entry("a", nil, size: 1), entry("a", nil, size: 2), entry("a", nil, size: .max),
      entry("a", nil, modified: time), entry("a", nil, modified: moment(6)),
      entry("a", nil, size: 1, modified: time),
      entry("a", nil, listing: Array("x".utf8)), entry("a", nil, listing: Array("1 5".utf8)),
      entry("a", nil, size: 1, listing: Array("x".utf8)), entry("a", nil, modified: moment(-5)),
      entry("a", nil, modified: Timestamp(nanoseconds: .min)),
    ]
    #expect(Set(variants.map(\.fingerprint)).count == variants.count)
    #expect(entry("a", nil).fingerprint.isEmpty)
    #expect(entry("a", "W").fingerprint.isEmpty, "a digest is no fingerprint")
    #expect(entry("a", nil, size: 1).fingerprint == entry("b", "W", size: 1).fingerprint)
  }

  /// So that the query can be hidden up to its end.
  @Test(arguments: [
    ("ftp://h/a b?t=A B", "ftp://h/a%20b?t=A%20B"), ("a b://c d", "a b://c d"), ("//a b", "//a b"),
    (": //x y", ": //x y"),
  ]) func aRefusedURLIsShownWithoutBlanks(_ name: String, _ shown: String) {
    for refusal in [
      Refusal(name: Array(name.utf8), code: "c", reason: "r"),
      Refusal(text: Array(name.utf8), code: "c", reason: "r"),
    ] where refusal.path == nil { #expect(String(decoding: refusal.name, as: UTF8.self) == shown) }
  }

  @Test func theStrongestDigestDecides() {
    let entry = Entry(
      path: path("a"), digests: [digest("W", .md5), digest("W", .sha512), digest("W", .sha1)])
    #expect(entry.digest?.algorithm == .sha512)
    #expect(entry.digests.map(\.algorithm) == [.sha512, .sha1, .md5])
  }

  private static let one = Source(url: "http://one/a", priority: 2)
  private static let two = Source(url: "http://two/a", priority: 1)

  private static func make(
    _ digests: [Digest], size: UInt64? = nil, _ sources: [Source] = [one]
  ) -> Entry {
    Entry(path: path("a"), size: size, digests: digests, sources: sources)
  }

  @Test(arguments: [
    // The same digest: one file at two places.
    (make([digest("W")]), make([digest("W")], [two]), true),
    // Another digest.
    (make([digest("W")]), make([digest("V")]), false),
    // Two algorithms, the same URL: nothing speaks against it.
    (make([digest("W")]), make([digest("W", .md5)]), true),
    // Two algorithms, two URLs: nothing speaks for it.
    (make([digest("W")]), make([digest("W", .md5)], [two]), false),
    // One digest in common, another that differs.
    (make([digest("W"), digest("W", .md5)]), make([digest("W"), digest("V", .md5)]), false),
    (make([digest("W")], size: 5), make([digest("W")], size: 6), false),
    (make([digest("W")], size: 5), make([digest("W")], size: nil), true),
    (make([]), make([]), true), (make([]), make([], [two]), false), (make([], []), make([], []), false),
    (make([digest("W")]), make([], []), false),
  ]) func twoEntriesOfOnePath(_ first: Entry, _ second: Entry, agree: Bool) {
    #expect((first.merged(with: second) != nil) == agree)
    #expect((second.merged(with: first) != nil) == agree)
  }

  @Test func mergingTakesTheBestOfBoth() throws {
    let pieces = Pieces(length: 10, digests: [digest("p")])
    var first = Self.make([digest("W", .sha1)])
    var second = Self.make([digest("W", .sha512)], size: 9, [Self.two, Self.one])
    second.modified = moment(60)
    second.modifiedIsExact = false
    second.pieces = pieces
    second.listing = Array("9k".utf8)
    let merged = try #require(first.merged(with: second))
    #expect(merged.size == 9)
    #expect(merged.digests.map(\.algorithm) == [.sha512, .sha1])
    #expect(merged.sources == [Self.two, Self.one])
    #expect(merged.pieces == pieces)
    #expect(merged.modified == moment(60))
    #expect(!merged.modifiedIsExact, "a time is as exact as the entry that it came from")
    #expect(merged.listing == second.listing)

    first.modified = moment(61)
    let again = try #require(first.merged(with: second))
    #expect(again.modified == moment(61))
    #expect(again.modifiedIsExact)
  }

  /// One URL at two priorities is one place to ask.
  @Test func aURLIsKeptOnce() throws {
    let better = Source(url: Self.one.url, priority: 1)
    let first = try #require(Self.make([digest("W")]).merged(with: Self.make([digest("W")], [better])))
    #expect(first.sources == [better])
    let second = try #require(Self.make([digest("W")], [better]).merged(with: Self.make([digest("W")])))
    #expect(second.sources == [better])
  }

  /// A feed that names one path for ever must not fill the memory (I9).
  @Test func sourcesAreBounded() throws {
    var merged = Self.make([digest("W")], [])
    for number in 0..<1000 {
      let source = Source(url: "http://h\(number)/a", priority: 1000 - number)
      merged = try #require(merged.merged(with: Self.make([digest("W")], [source])))
    }
    #expect(merged.sources.count == Entry.mostSources)
    #expect(merged.sources.first?.priority == 1, "the best ones stay")
  }
}
