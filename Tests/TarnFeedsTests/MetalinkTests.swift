import TarnCore
import Testing

@testable import TarnFeeds

@Suite struct MetalinkTests {
  static let hash = String(repeating: "ab", count: 32)

  static func document(_ files: String) -> String {
    #"<?xml version="1.0" encoding="UTF-8"?>"# + "\n<!-- by hand -->\n"
      + #"<metalink xmlns="urn:ietf:params:xml:ns:metalink"><updated>2026-01-01T00:00:00Z</updated>\#(files)</metalink>"#
  }

  static let good = document(
    """
    <file name="sub/a&amp;ü.iso"><size> 5 </size><hash type="sha-256"> \(hash.uppercased()) </hash>
    <hash type="blake3">00</hash><hash type="md5">\(hash.prefix(32))</hash>
    <pieces length="3" type="sha-256"><hash>\(hash)</hash><hash>\(hash)</hash></pieces>
    <url>https://last.example/a</url><url priority="2" location="de">https://b.example/a</url>
    <url priority="1">rel/a b</url><metaurl mediatype="torrent">x</metaurl><url>ftp://f.example/a</url></file>
    <file name="b"><url>https://c.example/b</url></file>
    """)

  @Test func reads() {
    let outcome = parse(Self.good)
    #expect(outcome.failure == nil)
    #expect(outcome.isComplete)
    #expect(outcome.names == ["sub/a&ü.iso", "b"])
    let entry = outcome.entries[0]
    #expect(entry.size == 5)
    #expect(entry.digests.map(\.algorithm) == [.sha256, .md5])
    #expect(entry.pieces?.digests.count == 2)
    #expect(
      entry.sources == [
        Source(url: "https://example.org/pub/rel/a%20b", priority: 1),
        Source(url: "https://b.example/a", priority: 2),
        Source(url: "https://last.example/a", priority: 999_999),
      ])
  }

  @Test func refusesWhatCannotBeVerified() {
    let url = "<url>https://c.example/b</url>"
    let unknown = "<hash type=\"blake3\">00</hash>"
    let pieces = "<pieces length=\"3\" type=\"blake3\"><hash>00</hash></pieces>"
    let outcome = parse(
      Self.document(
        """
        <file name="a">\(unknown)\(url)</file><file name="b">\(url)</file>
        <file name="c">\(unknown)<hash type="md5">\(Self.hash.prefix(32))</hash>\(url)</file>
        <file name="d"><size>3</size>\(pieces)\(url)</file>
        <file name="e"><size>3</size>\(unknown)<pieces length="3" type="sha-1"><hash>\(Self.hash.prefix(40))</hash></pieces>
        \(url)</file>
        """))
    #expect(outcome.codes == ["digest-unsupported", "digest-unsupported"])
    #expect(outcome.refused.map { $0.path?.printable } == ["a", "d"])
    #expect(outcome.names == ["b", "c", "e"])
  }

  /// Pieces alone have to verify all of the file.
  @Test func refusesPiecesThatDoNotFit() {
    let (hash, url) = ("<hash>\(Self.hash)</hash>", "<url>https://c.example/b</url>")
    func file(_ name: String, _ pieces: String, length: Int = 3, _ more: String = "") -> String {
      "<file name=\"\(name)\"><size>6</size>\(more)<pieces length=\"\(length)\" type=\"sha-256\">\(pieces)</pieces>\(url)</file>"
    }
    let outcome = parse(
      Self.document(
        [
          file("all", hash + hash), file("few", hash), file("many", hash + hash + hash),
          file("bad", hash + "<hash>zz</hash>"), file("nil", hash + hash, length: 0),
          file("whole", hash, "<hash type=\"sha-256\">\(Self.hash)</hash>"),
        ].joined()))
    #expect(
      outcome.refused.map { "\(String(decoding: $0.name, as: UTF8.self)): \($0.code)" }
        == ["few", "many", "bad", "nil"].map { "\($0): digest-malformed" })
    #expect(outcome.names == ["all", "whole"])
  }

  @Test func refusesOneFileOnly() {
    let url = "<url>https://c.example/b</url>"
    let outcome = parse(
      Self.document(
        """
        <file name="../up">\(url)</file><file name="/abs">\(url)</file><file>\(url)</file>
        <file name="s"><size>big</size>\(url)</file><file name="h"><hash type="sha-256">00</hash>\(url)</file>
        <file name="n"/><file name="p"><url>https://me:pw@c.example/b</url></file><file name="good">\(url)</file>
        """))
    #expect(
      outcome.codes == [
        "path-dot-segment", "path-absolute", "path-empty", "size-malformed", "digest-malformed",
        "no-usable-source",
        "no-usable-source",
      ])
    #expect(outcome.names == ["good"])
  }

  @Test func refusesDoctypes() {
    let bomb = """
      <?xml version="1.0"?><!DOCTYPE metalink [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">
      <!ENTITY x SYSTEM "file:///etc/passwd">]><metalink xmlns="urn:ietf:params:xml:ns:metalink">
      <file name="&b;&x;"><url>https://c.example/b</url></file></metalink>
      """
    #expect(parse(bomb).failure?.code == "doctype-refused")
    let hidden =
      "<!-- <metalink -->" + String(repeating: " ", count: 140_000) + "<!DOCTYPE m [<!ENTITY b \"x\">]><m/>"
    #expect(parse(hidden).failure?.code == "doctype-refused")
  }

  @Test func failsWithAPlace() {
    #expect(parse(Self.document("<file name=\"a\">\n</fil>")).failure?.code == "feed-malformed")
    #expect(parse(Self.document("<file name=\"a\">&nbsp;</file>")).failure?.code == "feed-malformed")
    #expect(parse(Self.document("\n\n<file name=\"a\"></x>")).failure?.line == 5)
    #expect(
      parse(Self.document(String(repeating: "<a>", count: 40) + String(repeating: "</a>", count: 40))).failure
        != nil)
    #expect(parse(String(Self.good.dropLast(30))).failure?.code == "feed-truncated")
    let third = #"<metalink version="3.0" xmlns="http://www.metalinker.org/"><files/></metalink>"#
    #expect(parse(third).end == FeedEnd(format: "Metalink 3", isComplete: true))
    #expect(parse(#"<metalink xmlns="urn:other"/>"#).failure?.code == "feed-not-recognised")
  }

  @Test func readsTheEncodingThatItDeclares() {
    let text = Self.document("<file name=\"\u{FC}\"><url>https://c.example/b</url></file>")
    let bytes = text.replacing("UTF-8", with: "ISO-8859-1").unicodeScalars.map { UInt8($0.value) }
    #expect(parse(bytes).names == ["ü"] && parse(bytes).isComplete)
    // The same bytes are no UTF-8.
    #expect(parse(text.unicodeScalars.map { UInt8($0.value) }).failure?.code == "feed-malformed")
  }

  /// As long as all is ASCII, it may be UTF-8 as well.
  @Test(arguments: ["ISO-8859-1", "windows-1252", "us-ascii", "latin1"])
  func readsALetterThatComesAfterTheHead(declared: String) {
    let comment = "<!-- \(String(repeating: "x", count: 70_000)) -->"
    let file = "<file name=\"\u{E9}\"><url>https://c.example/b</url></file>"
    let text = Self.document(comment + file)
    let bytes = text.replacing("UTF-8", with: declared).unicodeScalars.map { UInt8($0.value) }
    let outcome = parse(bytes)
    #expect(outcome.names == ["é"] && outcome.isComplete)
    for step in [7, 4096] { #expect(parse(bytes, step: step) == outcome, "step \(step)") }
    #expect(parse(text.unicodeScalars.map { UInt8($0.value) }).failure?.code == "feed-malformed")
  }

  /// A letter in its place would give a file another name.
  @Test(
    arguments: [
      ("Shift_JIS", [0xFF]), ("EUC-JP", [0xFF]), ("GBK", [0xFF]), ("Big5", [0xFF]), ("windows-1251", [0x98]),
      ("ISO-8859-7", [0xFF]),
    ] as [(String, [UInt8])])
  func refusesAByteWithoutAMeaning(declared: String, wrong: [UInt8]) {
    func document(_ name: [UInt8]) -> [UInt8] {
      let text = Self.document("<file name=\"a@.iso\"><url>https://c.example/b</url></file>")
      let parts = text.replacing("UTF-8", with: declared).utf8.split(separator: UInt8(ascii: "@"))
      return Array(parts[0]) + name + Array(parts[1])
    }
    #expect(parse(document([])).names == ["a.iso"])
    for step in [1, 7, 1 << 20] {
      let outcome = parse(document(wrong), step: step)
      #expect(outcome.failure?.code == "feed-malformed" && outcome.items.isEmpty, "step \(step)")
    }
  }

  @Test func limitsText() {
    let text = Self.document(
      "<file name=\"a\"><hash type=\"x\">\(String(repeating: "a", count: 70_000))</hash></file>")
    #expect(parse(text).failure?.code == "feed-malformed")
  }

  @Test func neverTakesACutDocumentForWhole() {
    #expect(cutsThatPassForWhole(Self.good) == [])
  }
}
