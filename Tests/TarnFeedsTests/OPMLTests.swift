import TarnCore
import Testing

@testable import TarnFeeds

/// Lists of feeds, as programs export them.
@Suite struct OPMLTests {
  static let good = """
    <?xml version="1.0" encoding="UTF-8"?>
    <opml version="2.0"><head><title>Mine</title></head><body>
    <outline text="Shows"><outline text="Talk" title="Talk &amp;amp; &lt;b&gt;more&lt;/b&gt;" type="rss"
      xmlUrl="https://a.example/feed.xml?a=1&amp;b=2" htmlUrl="https://a.example/"/>
      <outline text="Deep"><outline text="Bücher" xmlUrl="http://bücher.example/feed"/></outline></outline>
    <outline text="Talk again" xmlUrl="https://a.example/feed.xml?a=1&amp;b=2"/>
    <outline text="No feed" htmlUrl="https://b.example/"/><outline type="link" url="https://c.example/"/>
    <outline text="Relative" xmlUrl=" /r.xml "/><outline XMLURL="feed://d.example/f"/>
    <outline type="rss" text="Old" url="itpc://e.example/f"/><outline text="E" xmlUrl="feed:https://f.example/"/>
    <outline text="FTP" xmlUrl="ftp://g.example/"/><outline xmlUrl="https://me:secret@h.example/feed"/>
    <outline text="None" xmlUrl=""/><outline text="Odd" xmlUrl="http://a%20b/"/>
    </body></opml>
    """

  static func read(
    _ text: String, url: String = "https://list.example/opml", step: Int = 1 << 20
  ) throws -> SubscriptionList {
    try OPML.read(SteppedSource(Array(text.utf8), step: step), url: url, contentType: nil)
  }

  @Test func namesEachFeedOnce() throws {
    let list = try Self.read(Self.good)
    #expect(list.fault == nil)
    #expect(
      list.feeds.map { "\(text($0.title)) \($0.url)" } == [
        "Talk & more https://a.example/feed.xml?a=1&b=2", "Bücher http://xn--bcher-kva.example/feed",
        "Relative https://list.example/r.xml", " http://d.example/f", "Old http://e.example/f",
        "E https://f.example/",
      ])
    #expect(list.refused.map { text($0.name) } == ["FTP", "@h.example", "None", "Odd"])
    #expect(list.refused.allSatisfy { !$0.reason.contains("secret") && $0.code == "feed-not-usable" })
    for step in [1, 7, 4096] { #expect(try Self.read(Self.good, step: step) == list) }
  }

  /// Folders, links and notes are no feeds. Of whatever else the list is about, nothing is left out silently.
  @Test func whatIsNoFeedThoughItSaysSoIsNamed() throws {
    let list = try Self.read(
      """
      <opml version="2.0"><body><outline text="Folder"><outline type="RSS" text="Lost"/></outline>
      <outline type="include" text="More" url="https://i.example/more.opml"/><outline text="Empty" xmlUrl=" "/>
      <outline type="include" url="https://i.example/untitled.opml"/><outline type="include" text="Nothing"/>
      <outline type="link" text="Page" url="https://l.example/"/><outline text="Note" url="https://n.example/"/>
      <outline type="atom" text="Kept" xmlUrl="https://k.example/"/></body></opml>
      """)
    #expect(list.feeds.map(\.url) == ["https://k.example/"])
    #expect(
      list.refused.map { text($0.name) } == ["Lost", "More", "Empty", "https://i.example/untitled.opml"])
    #expect(
      list.refused.map { $0.reason.contains("xmlUrl") } == [true, false, true, false], "\(list.refused)")
    #expect(list.refused[1].reason.contains("'tarn feeds'"), "\(list.refused)")
  }

  /// A file has no host: what is relative in it leads nowhere.
  @Test func aFileIsNoPlaceForRelativeFeeds() throws {
    let list = try Self.read(Self.good, url: "file:///srv/list.opml")
    #expect(list.feeds.count == 5 && list.refused.count == 5)
  }

  @Test func readsWhatIsBroken() throws {
    let list = try Self.read(
      "<OPML><BODY><OUTLINE TEXT='a & b' XMLURL='http://a.example/?x&y'/><outline text=b xmlUrl='http://b.example/'"
    )
    #expect(list.feeds.map(\.url) == ["http://a.example/?x&y"])
    #expect(list.fault != nil)
  }

  @Test(arguments: [
    ("<rss version='2.0'/>", "its root is <rss>; it is a feed"),
    ("<html><body/></html>", "its root is <html>"),
    ("https://a.example/feed", "this is not XML"), ("", "this is not XML"),
  ])
  func refusesWhatIsNoOPML(document: String, message: String) {
    #expect { try Self.read(document) } throws: { error in
      (error as? FeedFailure)?.code == "opml-not-recognised"
        && (error as? FeedFailure)?.message.contains(message) == true
    }
  }

  /// What a cut leaves is the begin of the list.
  @Test func neverTrapsOnACut() throws {
    let whole = try Self.read(Self.good)
    for count in stride(from: 0, to: Self.good.utf8.count, by: 3) {
      guard let cut = try? Self.read(String(decoding: Self.good.utf8.prefix(count), as: UTF8.self)) else {
        continue
      }
      #expect(whole.feeds.starts(with: cut.feeds) && cut.fault != nil, "cut at \(count): \(cut)")
    }
  }

  @Test func anEmptyListIsOne() throws {
    #expect(try Self.read("<opml version='1.0'><body/></opml>") == SubscriptionList())
  }

  /// An OPML document is no feed.
  @Test func isNotAFeed() {
    #expect(parse(Self.good).failure?.code == "feed-not-recognised")
  }

  @Test(.enabled(if: Corpus.directory != nil, "no captured feeds (set TARN_FEEDS)"))
  func readsCapturedLists() throws {
    var counts = (files: 0, feeds: 0, refused: 0)
    for name in Corpus.names(in: "opml") {
      counts.files += 1
      let bytes = Corpus.bytes("opml/\(name)")
      let list = try OPML.read(SteppedSource(bytes), url: "https://example.org/", contentType: nil)
      #expect(
        try OPML.read(SteppedSource(bytes, step: 7), url: "https://example.org/", contentType: nil) == list)
      counts.feeds += list.feeds.count
      counts.refused += list.refused.count
      #expect(Set(list.feeds.map(\.url)).count == list.feeds.count, "\(name)")
      #expect(
        list.feeds.allSatisfy { $0.url.hasPrefix("http") && $0.url.utf8.allSatisfy { $0 < 0x7F } },
        "\(name)")
    }
    print(
      "opml: \(counts.files) files, \(counts.feeds) feeds, \(counts.refused) refused")
    #expect(counts.feeds > 0)
  }
}
