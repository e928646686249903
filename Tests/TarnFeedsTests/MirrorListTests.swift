import TarnCore
import Testing

@testable import TarnFeeds

/// Metalink 3 and the mirror lists of MirrorManager.
@Suite struct MirrorListTests {
  static let hash = String(repeating: "ab", count: 32)
  static let older = String(repeating: "cd", count: 32)

  static func document(_ files: String, root: String = #"version="3.0" xmlns="http://www.metalinker.org/""#)
    -> String
  {
    #"<?xml version="1.0"?>"# + "\n<!-- a > b -->\n"
      + #"<metalink \#(root) xmlns:mm0="http://fedorahosted.org/mirrormanager"><publisher><name>n</name>"#
      + "<url>http://p.example/</url></publisher><files>\(files)</files></metalink>\n"
  }

  static let good = document(
    """
    <file name="repomd.xml"><mm0:timestamp>1347459931</mm0:timestamp><size>5</size>
    <verification><hash type="sha256">\(hash.uppercased())</hash><hash type="md5"> \(hash.prefix(32)) </hash>
    <hash>untyped</hash><hash type="tiger">00</hash>
    <pieces length="3" type="sha1"><hash piece="1">\(older.prefix(40))</hash>
    <hash piece="0">\(hash.prefix(40))</hash></pieces></verification>
    <mm0:alternates><mm0:alternate><mm0:timestamp>1</mm0:timestamp><size>4</size>
    <verification><hash type="sha256">\(older)</hash></verification></mm0:alternate></mm0:alternates>
    <resources><url type="bittorrent" preference="200">http://t.example/x.torrent</url>
    <url protocol="rsync" type="rsync" preference="100">rsync://r.example/x</url>
    <url>https://none.example/x</url><url type="http" preference="90">http://b.example/x</url>
    <url protocol="https" type="https" location="CZ" preference="100">https://a.example/x</url></resources></file>
    <file name="second"><resources><url preference="-1">http://a.example/second</url></resources></file>
    """)

  @Test func readsTheThirdVersion() {
    let outcome = parse(Self.good)
    #expect(outcome.failure == nil)
    #expect(outcome.isComplete)
    #expect(outcome.end?.format == "Metalink 3")
    #expect(outcome.names == ["repomd.xml", "second"])
    let entry = outcome.entries[0]
    #expect(entry.size == 5)
    #expect(entry.digests.map(\.hex) == [Self.hash, String(Self.hash.prefix(32))])
    #expect(
      entry.pieces?.digests.map(\.hex) == [String(Self.hash.prefix(40)), String(Self.older.prefix(40))])
    #expect(entry.listing == Array("1347459931".utf8))
    #expect(
      entry.sources == [
        Source(url: "https://a.example/x", priority: 1), Source(url: "http://b.example/x", priority: 11),
        Source(url: "https://none.example/x", priority: 999_999),
      ])
    #expect(outcome.entries[1].sources.map(\.priority) == [101])
  }

  @Test func refusesOneFileOnly() {
    let url = "<resources><url>https://c.example/b</url></resources>"
    let outcome = parse(
      Self.document(
        """
        <file name="../up">\(url)</file><file name="/abs">\(url)</file><file>\(url)</file>
        <file name="s"><size>-1</size>\(url)</file>
        <file name="h"><verification><hash type="sha1">xx</hash></verification>\(url)</file>
        <file name="u"><verification><hash type="tiger">00</hash></verification>\(url)</file>
        <file name="two"><verification><hash type="md5">\(Self.hash.prefix(32))</hash>
        <hash type="md5">\(Self.older.prefix(32))</hash></verification>\(url)</file>
        <file name="none"/><file name="torrent"><resources><url type="bittorrent">http://x.example/</url>
        </resources></file><file name="good">\(url)</file>
        """))
    #expect(
      outcome.codes == [
        "path-dot-segment", "path-absolute", "path-empty", "size-malformed", "digest-malformed",
        "digest-unsupported",
        "digest-malformed", "no-usable-source", "no-usable-source",
      ])
    #expect(outcome.names == ["good"])
  }

  /// Where a digest of the whole file decides. Pieces alone have to verify all of it.
  @Test func dropsPiecesThatDoNotFit() {
    for pieces in [
      #"<hash piece="0">\#(hash40)</hash>"#,
      #"<hash piece="1">\#(hash40)</hash><hash piece="1">\#(hash40)</hash>"#,
      #"<hash piece="x">\#(hash40)</hash><hash piece="0">\#(hash40)</hash>"#,
      #"<hash piece="0">\#(hash40)</hash><hash piece="9223372036854775807">\#(hash40)</hash>"#,
    ] {
      func file(_ name: String, _ whole: String = "") -> String {
        """
        <file name="\(name)"><size>5</size><verification>\(whole)<pieces length="3" type="sha1">\(pieces)</pieces>
        </verification><resources><url>https://c.example/b</url></resources></file>
        """
      }
      let outcome = parse(
        Self.document(file("alone") + file("whole", "<hash type=\"sha1\">\(hash40)</hash>")))
      #expect(outcome.codes == ["digest-malformed"])
      #expect(outcome.names == ["whole"])
      #expect(outcome.entries.first.map { $0.pieces == nil } == true)
    }
  }

  private var hash40: String { String(Self.hash.prefix(40)) }

  @Test(arguments: [
    (#"version="3.0" xmlns="https://www.metalinker.org/""#, true), (#"version='3.0'"#, true),
    (#"xmlns="http://www.metalinker.org""#, true), (#"version="3.0" xmlns="urn:other""#, false),
    (#"version="2.0""#, false),
  ])
  func knowsTheThirdVersionByNameOrNumber(root: String, isThird: Bool) {
    let outcome = parse(
      Self.document(
        #"<file name="a"><resources><url>https://c.example/b</url></resources></file>"#, root: root))
    #expect(outcome.names == (isThird ? ["a"] : []))
    #expect(outcome.failure?.code == (isThird ? nil : "feed-not-recognised"))
  }

  @Test func failsWhenTheXMLIsCutOrHasADoctype() {
    #expect(parse(String(Self.good.dropLast(20))).failure?.code == "feed-truncated")
    #expect(cutsThatPassForWhole(Self.good) == [])
    let doctype = "<!DOCTYPE metalink><metalink version=\"3.0\"/>"
    #expect(parse(doctype).failure?.code == "doctype-refused")
    let hidden = Self.good.replacingOccurrences("<!-- a > b -->", with: "<!-- a --><!DOCTYPE metalink>")
    #expect(parse(hidden).failure?.code == "doctype-refused")
  }

  @Test func readsThePlainList() {
    let outcome = parse(
      """
      # repo = fedora country = GB
      \t http://a.example/fedora/linux/
      ftp://ftp.b.example/Fedora/17/

      https://c.example/x%20y/\r
      https://me:pw@d.example/
      """)
    #expect(outcome.names == ["repomd.xml"])
    #expect(
      outcome.entries[0].sources == [
        Source(url: "http://a.example/fedora/linux/repodata/repomd.xml"),
        Source(url: "https://c.example/x%20y/repodata/repomd.xml"),
      ])
    #expect(outcome.end?.format == "mirror list")
    #expect(!outcome.isComplete)
    #expect(parse("ftp://f.example/\nhttp://a:b@c.example/\n").codes == ["no-usable-source"])
  }

  @Test(arguments: [
    "http://a.example/x/\nhttp://b.example/file\n", "http://a.example/x/?list=/\n",
    "http://a.example/x/\thttp://b.example/\n",
  ])
  func isNoMirrorListWithAFile(text: String) {
    #expect(parse(text).end?.format == "URL list")
  }
}

extension String {
  fileprivate func replacingOccurrences(_ text: String, with other: String) -> String {
    guard let range = firstRange(of: text) else { return self }
    return replacingCharacters(in: range, with: other)
  }

  private func replacingCharacters(in range: Range<String.Index>, with other: String) -> String {
    String(self[..<range.lowerBound]) + other + String(self[range.upperBound...])
  }
}
