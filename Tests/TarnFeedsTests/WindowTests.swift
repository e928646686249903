import TarnCore
import Testing

@testable import TarnFeeds

@Suite struct WindowTests {
  static let media = #"xmlns:media="http://search.yahoo.com/mrss/""#
  static let podcast = #"xmlns:podcast="https://podcastindex.org/namespace/1.0""#
  static let sha = "sha384-" + String(repeating: "AAAA", count: 16)

  static func rss(_ items: String, _ names: String = "") -> String {
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<rss version=\"2.0\" \(names)><channel><title>Show</title>\(items)</channel></rss>"
  }

  static func item(_ inside: String, _ names: String = "") -> String { rss("<item>\(inside)</item>", names) }

  static let good = rss(
    """
    <ttl>60</ttl><item><guid isPermaLink="false"> id-1 </guid><title>A &amp; B:
      the <![CDATA[caf&eacute; &amp;amp;]]>&#8217;s</title><pubDate>Tue, 14 Nov 2023 22:13:20 +0100</pubDate>
    <enclosure url="https://a.example/1.mp3?x=1&amp;y=2" length="100" type="Audio/MPEG; a=b"/></item>
    <item><title>No file</title></item>
    <item><title/><itunes:title>From iTunes</itunes:title><guid/>
    <enclosure url=" dir/zwei ü.mp3 " length="0" type=""/><enclosure url="../3.mp3" length="12.0"/></item>
    """, #"xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd""#)

  /// RFC 5005 3 and 4, in Atom and in RSS; what is no link of the feed itself names no page.
  @Test(arguments: [
    (#"<atom:link rel="next" href="?page=2"/>"#, "https://example.org/pub/feed?page=2"),
    (#"<atom:link rel=" NEXT " href="https://b.example/2"/>"#, "https://b.example/2"),
    (#"<atom:link rel="next" href="mailto:a@b"/>"#, nil), (#"<atom:link rel="next-archive" href="2"/>"#, nil),
    (#"<atom:link rel="next"/>"#, nil), (#"<item><atom:link rel="next" href="2"/></item>"#, nil),
    (#"<link rel="next" href="2"/>"#, nil),
    (#"<atom:link rel="prev-archive" href="a1"/>"#, "https://example.org/pub/a1"),
    (
      #"<atom:link rel="prev-archive" href="a1"/><atom:link rel="next" href="2"/>"#,
      "https://example.org/pub/2"
    ),
  ])
  func aFeedNamesItsNextPage(_ link: String, _ page: String?) {
    let document = Self.rss(link, #"xmlns:atom="http://www.w3.org/2005/Atom""#)
    #expect(parse(document, url: "https://example.org/pub/feed").end?.next == page)
    let atom = link.replacing("atom:", with: "").replacing("item>", with: "entry>")
    guard link.contains("atom:") else { return }
    #expect(
      parse("<feed xmlns=\"http://www.w3.org/2005/Atom\">\(atom)</feed>", url: "https://example.org/pub/feed")
        .end?.next == page)
  }

  @Test func readsRSS() throws {
    let outcome = parse(Self.good)
    #expect(outcome.failure == nil)
    #expect(outcome.end?.format == "RSS")
    #expect(outcome.end?.isComplete == false)
    #expect(outcome.end?.incompleteReason.contains("window") == true)
    #expect(outcome.end?.refreshSeconds == 3600)
    let files = outcome.enclosures
    #expect(outcome.items.count == files.count)
    try #require(files.count == 3)
    #expect(files[0].guid == Array("id-1".utf8))
    #expect(text(files[0].title) == "A & B: the café &’s")
    #expect(files[0].date?.rfc3339 == "2023-11-14T21:13:20Z")
    #expect(files[0].sources == [Source(url: "https://a.example/1.mp3?x=1&y=2")])
    #expect(files[0].length == 100)
    #expect(files[0].mediaType == Array("audio/mpeg".utf8))
    #expect(files.map(\.position) == [0, 2, 2])
    #expect(files.map(\.ordinal) == [0, 0, 1])
    #expect(files[1].sources[0].url == "https://example.org/pub/dir/zwei%20%C3%BC.mp3")
    #expect(files[1].guid == nil)
    #expect(text(files[1].title) == "From iTunes")
    #expect(files[1].mediaType == nil)
    #expect(files[2].sources[0].url == "https://example.org/3.mp3")
    #expect(files[1...].allSatisfy { $0.length == nil && $0.date == nil })
  }

  /// Feeds that are written by hand, and by programs that fold their lines. XML itself makes blanks of line breaks inside an attribute.
  @Test func lineBreaksInAURLAreNoneOfIt() {
    let url = "https://a.example/shows/one.mp3"
    let folded = "<guid>1</guid><enclosure url=\"\n  \(url)\n\" length=\"7\"/>"
    #expect(parse(Self.item(folded)).enclosures.map(\.sources) == [[Source(url: url)]])
    let json = parse(
      #"{"version":"https://jsonfeed.org/version/1","items":[{"id":"a","attachments":"#
        + #"[{"url":"https://a.example/\n\tshows/one.mp3\r\n"}]}]}"#)
    #expect(json.enclosures.map(\.sources) == [[Source(url: url)]])
  }

  static let rdf = """
    <rdf:RDF xmlns="http://purl.org/rss/1.0/" xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
      xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:enc="http://purl.oclc.org/net/rss_2.0/enc#"
      xmlns:sy="http://purl.org/rss/1.0/modules/syndication/"><channel rdf:about="x"><title>C</title>
      <sy:updatePeriod>daily</sy:updatePeriod><sy:updateFrequency>4</sy:updateFrequency></channel>
      <item rdf:about="urn:one"><title>One</title><dc:date>2023-11-14T22:13+01:00</dc:date>
      <enc:enclosure rdf:resource="http://a.example/1" enc:length="7" enc:type="audio/ogg"/></item></rdf:RDF>
    """

  @Test func readsRSS1() throws {
    let outcome = parse(Self.rdf)
    #expect(outcome.end?.format == "RSS 1.0")
    #expect(outcome.end?.refreshSeconds == 21_600)
    let file = try #require(outcome.enclosures.first)
    #expect(file.guid == Array("urn:one".utf8))
    #expect(file.date?.rfc3339 == "2023-11-14T21:13:00Z")
    #expect(file.length == 7)
    #expect(file.mediaType == Array("audio/ogg".utf8))
  }

  static let atom = """
    <feed xmlns="http://www.w3.org/2005/Atom" xml:base="https://b.example/x/"><entry xml:base="y/">
    <id> tag:1 </id><title type="html">&lt;b&gt;Bold&lt;/b&gt; &amp;amp; &amp;hellip;</title>
    <updated>2024-01-01T00:00:00Z</updated><published>2023-11-14T22:13:20.5Z</published>
    <link rel="enclosure" href="a.ogg" length="9" type="audio/ogg"/><link href="page"/>
    <content type="video/mp4" src="v.mp4"/></entry>
    <entry><title type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">X <i>y</i></div></title>
    <updated>2024-01-01T00:00:00Z</updated><link rel="ENCLOSURE" href="b"/></entry>
    <entry><title>a &lt;b&gt;c</title><link rel="enclosure" href="/c"/></entry></feed>
    """

  @Test func readsAtom() {
    for document in [
      Self.atom,
      Self.atom.replacing("http://www.w3.org/2005/Atom", with: "http://purl.org/atom/ns#").replacing(
        "published", with: "issued"),
    ] {
      let outcome = parse(document)
      #expect(outcome.end?.format == "Atom")
      let files = outcome.enclosures
      #expect(files.map { text($0.title) } == ["Bold & …", "Bold & …", "X y", "a c"])
      #expect(
        files.map(\.sources[0].url) == [
          "https://b.example/x/y/a.ogg", "https://b.example/x/y/v.mp4", "https://b.example/x/b",
          "https://b.example/c",
        ])
      #expect(files.map { $0.guid.map(text) } == ["tag:1", "tag:1", nil, nil])
      #expect(files[0].date?.nanoseconds == 1_700_000_000_500_000_000)
      #expect(files[2].date?.rfc3339 == "2024-01-01T00:00:00Z")
    }
  }

  @Test(arguments: [
    // Media RSS alone, and beside an enclosure of the same URL.
    (#"<media:content url="http://a.example/m" fileSize="5" type="video/mp4"/>"#, ["http://a.example/m"]),
    (
      #"<media:content url="http://a.example/m" fileSize="5"/><enclosure url="http://a.example/m"/>"#,
      ["http://a.example/m"]
    ),
    (
      #"<enclosure url="http://a.example/e"/><media:content url="http://a.example/m"/>"#,
      ["http://a.example/e", "http://a.example/m"]
    ),
    (
      #"<media:group><media:content url="http://a.example/1"/><media:content url="http://a.example/2" isDefault="true"/></media:group>"#,
      ["http://a.example/2"]
    ),
    (
      #"<media:group><media:content url="http://a.example/1"/><media:content url="http://a.example/2"/></media:group>"#,
      ["http://a.example/1"]
    ),
    (
      #"<media:group><media:content url="http://a.example/1"/><media:content url="http://a.example/2"/></media:group><enclosure url="http://a.example/2"/>"#,
      ["http://a.example/2"]
    ),
    (#"<media:content><media:player url="http://a.example/p"/></media:content>"#, []),
    (#"<enclosure url="http://a.example/e"/><enclosure url="http://a.example/e"/>"#, ["http://a.example/e"]),
  ])
  func takesEachFileOnce(inside: String, urls: [String]) {
    let outcome = parse(Self.item(inside, Self.media))
    #expect(outcome.enclosures.map(\.sources[0].url) == urls)
    #expect(outcome.refused.isEmpty)
  }

  @Test func takesDigests() {
    let hash = String(repeating: "ab", count: 16)
    for inside in [
      #"<media:content url="http://a.example/m"/><media:hash algo="md5">\#(hash)</media:hash>"#,
      #"<media:content url="http://a.example/m"><media:hash> \#(hash.uppercased()) </media:hash></media:content>"#,
      #"<enclosure url="http://a.example/m"/><media:group><media:content url="http://a.example/m" fileSize="3"/><media:hash>\#(hash)</media:hash></media:group>"#,
    ] {
      let files = parse(Self.item(inside, Self.media)).enclosures
      #expect(files.map { $0.digest?.hex } == [hash])
    }
    let two =
      #"<media:hash>\#(hash)</media:hash><media:content url="http://a.example/1"/><media:content url="http://a.example/2"/>"#
    #expect(parse(Self.item(two, Self.media)).enclosures.map(\.digest) == [nil, nil])
    let bad = #"<media:content url="http://a.example/m"/><media:hash algo="sha-1">00</media:hash>"#
    #expect(parse(Self.item(bad, Self.media)).enclosures.map(\.digest) == [nil])
  }

  @Test func takesAlternatesOfTheSameFile() {
    func alternate(_ attributes: String, _ sources: String...) -> String {
      "<podcast:alternateEnclosure \(attributes)>"
        + sources.map { #"<podcast:source uri="\#($0)"/>"# }.joined()
        + #"<podcast:integrity type="sri" value="sha256-x \#(Self.sha)?a"/></podcast:alternateEnclosure>"#
    }
    func read(_ inside: String) -> [Enclosure] { parse(Self.item(inside, Self.podcast)).enclosures }
    let enclosure = #"<enclosure url="http://a.example/e" length="5" type="audio/mpeg"/>"#
    let mirrored = read(alternate("", "http://m.example/e", "http://a.example/e", "ipfs://x") + enclosure)
    #expect(mirrored.map { $0.sources.map(\.url) } == [["http://a.example/e", "http://m.example/e"]])
    #expect(mirrored.first?.digest?.algorithm == .sha384)
    let same = read(
      enclosure + alternate(#"default="true" length="5" type="audio/mpeg""#, "http://m.example/e"))
    #expect(same.first?.sources.count == 2)
    #expect(same.first?.digest != nil)
    for other in [#"default="true" length="6""#, #"default="true" type="audio/opus""#, #"length="5""#] {
      let files = read(enclosure + alternate(other, "http://m.example/e"))
      #expect(files.map { $0.sources.map(\.url) } == [["http://a.example/e"]], "\(other)")
      #expect(files.first?.digest == nil)
    }
    let alone = read(
      alternate("", "http://a.example/1") + alternate(#"default="true""#, "ipfs://x", "http://a.example/2"))
    #expect(alone.map { $0.sources.map(\.url) } == [["http://a.example/2"]])
  }

  @Test func refusesOneFileOnly() {
    let outcome = parse(
      Self.rss(
        """
        <item><title>T</title><enclosure url="ftp://a.example/1"/><enclosure length="1"/>
        <enclosure url="http://me:pw@a.example/2"/><enclosure url="http://"/>
        <enclosure url="http://a.example/good"/><enclosure url="mailto:x"/></item>
        """))
    #expect(
      outcome.codes == [
        "scheme-not-supported", "no-usable-source", "no-usable-source", "scheme-not-supported",
        "enclosure-without-url",
      ])
    #expect(outcome.enclosures.map(\.ordinal) == [3])
    #expect(outcome.refused.last?.name == Array("T".utf8))
    #expect(outcome.refused[0].reason.contains("not by 'ftp:'"))
  }

  /// Why nothing is fetched: no two of these have the same sentence.
  @Test func saysWhyAFileHasNoSource() throws {
    let reasons = try ["http://me@a.example/1", "http://", "http://a%20b.example/1", "file:///etc/passwd"].map
    { url in
      let items = parse(MetalinkTests.document("<file name='x'><url>\(url)</url></file>"))
      let refusal = try #require(items.refused.first)
      #expect(refusal.code == "no-usable-source", "\(items)")
      return refusal.reason
    }
    for (reason, part) in zip(
      reasons, ["a user name", "names no host", "'a%20b.example' is no name", "local files"])
    {
      #expect(
        reason.hasPrefix("the feed names no URL that Tarn may fetch this file from: ")
          && reason.contains(part))
    }
    let ftp = parse(MetalinkTests.document("<file name='x'><url>rsync://a.example/1</url></file>"))
    #expect(ftp.refused.first?.reason.contains("begins with 'rsync:'") == true)
    let none = parse(MetalinkTests.document("<file name='x'></file>"))
    #expect(none.refused.first?.reason == "the feed names no URL for this file")
  }

  @Test func readsSeasonAndEpisode() throws {
    let names =
      #"xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd" xmlns:podcast="https://podcastindex.org/namespace/1.0""#
    func read(_ inside: String) throws -> [String?] {
      let file = try #require(
        parse(Self.item(#"<enclosure url="http://a.example/e"/>"# + inside, names)).enclosures.first)
      return [file.season.map(text), file.episode.map(text)]
    }
    #expect(try read("<itunes:season> 2\n</itunes:season><itunes:episode>7</itunes:episode>") == ["2", "7"])
    #expect(
      try read("<podcast:season name='x'>3</podcast:season><podcast:episode>204.5</podcast:episode>")
        == ["3", "204.5"])
    #expect(try read("<podcast:season>3</podcast:season><itunes:season>2</itunes:season>") == ["2", nil])
    #expect(try read("<itunes:season>none</itunes:season><itunes:episode/>") == [nil, nil])
    #expect(try read("<season>3</season>") == [nil, nil])
  }

  @Test(
    arguments: [
      ("", "the feed has no items"), ("<item><title>x</title></item>", "the feed has 1 item, without a file"),
      ("<item/><item/>", "the feed has 2 items, none with a file"),
      ("<item/><item><enclosure url='http://a.example/1'/></item>", nil),
      // What is refused is told already.
      ("<item><enclosure url='ftp://a.example/1'/></item>", nil),
    ] as [(String, String?)])
  func saysThatAFeedHasNoFiles(items: String, notice: String?) {
    let outcome = parse(Self.rss(items))
    #expect(outcome.end?.notice?.message == notice)
    #expect(text(outcome.end?.title ?? []) == "Show")
  }

  @Test func boundsTheFilesOfAnItem() {
    let many = (0..<1100).map { #"<enclosure url="http://a.example/\#($0)"/>"# }.joined()
    let outcome = parse(Self.item(many))
    #expect(outcome.enclosures.count == WindowItem.maximumFiles)
    #expect(outcome.codes == ["item-too-many-files"])
  }

  @Test(arguments: [
    "<ttl>0</ttl>", "<ttl>x</ttl>", "<ttl>99999999999999999999</ttl>", "<image><ttl>5</ttl></image>", "",
    "<item><ttl>5</ttl></item>",
  ])
  func knowsNoRefreshTime(inside: String) {
    #expect(parse(Self.rss(inside)).end?.refreshSeconds == nil)
  }

  @Test(arguments: [
    "<html><body>rss</body></html>", "<note><rss/></note>",
    "<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\"/>",
    "<feed><entry/></feed>", "<feed><link/></feed>", #"<feed xmlns="urn:other"/>"#,
    #"{"version":"1","items":[]}"#, "<!-- <rss> -->",
  ])
  func leavesOtherDocuments(document: String) {
    let code = parse(document).failure?.code
    #expect(code == "feed-not-recognised" || code == "feed-is-a-web-page")
  }

  @Test func isNotMistakenForAnotherFormat() {
    let outcome = parse(Self.item("<title><![CDATA[<metalink <title>Index of / </title>]]></title>"))
    #expect(outcome.end?.format == "RSS")
  }
}

func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
