import TarnCore
import Testing

@testable import TarnFeeds

/// A small page of each server, written by hand after what the server prints.
enum IndexPages {
  static let apacheHead = """
    <!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 4.01//EN" "http://www.w3.org/TR/html4/strict.dtd">
    <html>
     <head>
      <title>Index of /pub</title>
     </head>
     <body>
    <h1>Index of /pub</h1>

    """
  static let apacheFoot = "<address>Apache/2.4 Server at example.org Port 80</address>\n</body></html>\n"

  static let apachePlain =
    apacheHead + """
      <ul><li><a href="/"> Parent Directory</a></li>
      <li><a href="sub%20dir%25/"> sub dir%/</a></li>
      <li><a href="./colon:first.txt"> colon:first.txt</a></li>
      <li><a href="a&amp;b.txt"> a&amp;b.txt</a></li>
      <li><a href="Parent%20Directory"> Parent Directory</a></li>
      </ul>

      """ + apacheFoot

  static let apachePre =
    apacheHead + """
      <pre><img src="/icons/blank.gif" alt="Icon "> <a href="?C=N;O=D">Name</a>  <a href="?C=M;O=A">Last modified</a>      \
      <a href="?C=S;O=A">Size</a>  <a href="?C=D;O=A">Description</a><hr>\
      <a href="/"><img src="/icons/back.gif" alt="[PARENTDIR]"></a> <a href="/">Parent Directory</a>                -   
      <a href="sub%20dir%25/"><img src="/icons/folder.gif" alt="[DIR]"></a> <a href="sub%20dir%25/">sub dir%/</a>   2023-11-14 22:13    -   
      <a href="./colon:first.txt"><img src="x.gif" alt="[TXT]"></a> <a href="./colon:first.txt">colon:fi..&gt;</a> 2023-11-14 22:13  1.0K  see <a href="sub%20dir%25/">there</a>
      <a href="a&amp;b.txt"><img src="x.gif" alt="[TXT]"></a> <a href="a&amp;b.txt">a&amp;b.txt</a>  14-Nov-2023 22:13    2   
      <a href="Parent%20Directory"><img src="x.gif" alt="[   ]"></a> <a href="Parent%20Directory">Parent Directory</a>
      <hr></pre>

      """ + apacheFoot

  static let apacheTable =
    apacheHead + """
        <table>
         <tr><th valign="top">&nbsp;</th><th>Name</th><th>Last modified</th><th>Size</th><th>Description</th></tr>
         <tr><th colspan="5"><hr /></th></tr>
      <tr><td valign="top">&nbsp;</td><td><a href="/">Parent Directory</a></td><td>&nbsp;</td><td align="right">  - </td><td>&nbsp;</td></tr>
      <tr><td><a href="sub%20dir%25/">sub dir%/</a></td><td align="right">2023-11-14 22:13  </td><td align="right">  - </td><td>&nbsp;</td></tr>
      <tr><td><a href="./colon:first.txt">colon:first.txt</a></td><td align="right">2023-11-14 22:13  </td><td align="right">1.0K</td><td>text <table><tr><td>in</td></tr></table></td></tr>
      <tr><td><a href="a&amp;b.txt">a&amp;b.txt</a></td><td align="right">2023-11-14 22:13  </td><td align="right">  2 </td><td>&nbsp;</td></tr>
      <tr><td><a href="Parent%20Directory">Parent Directory</a></td><td>&nbsp;</td><td>&nbsp;</td></tr>
      </table>

      """ + apacheFoot

  static let lighttpd = """
    <!DOCTYPE html>
    <html><head><title>Index of /pub/</title><style type="text/css">a > b { content: "<ul>"; }</style></head>
    <body><h2>Index of /pub/</h2><div class="list">
    <table summary="Directory Listing" cellpadding="0" cellspacing="0">
    <thead><tr><th class="n">Name</th><th class="m">Last Modified</th><th class="s">Size</th></tr></thead><tbody>
    <tr class="d"><td class="n"><a href="../">..</a>/</td><td class="m">&nbsp;</td><td class="s">- &nbsp;</td></tr>
    <tr class="d"><td class="n"><a href="sub%20dir%25/">sub dir%</a>/</td><td class="m">2023-Nov-14 22:13:20</td><td class="s">- &nbsp;</td><td class="t">Directory</td></tr>
    <tr><td class="n"><a href="a&#x26;b.txt">a&#x26;b.txt</a></td><td class="m">2023-Nov-14 22:13:20</td><td class="s">0.1K</td><td class="t">text/plain</td></tr>
    </tbody></table></div>
    <script>if (a < b) { document.write("</table><a href='wrong'>'"); }</script>
    </body>
    </html>

    """

  static let caddy = """
    <!DOCTYPE html>
    <html><body><header><h1><a href="../">/</a><a href="">pub</a>/</h1></header>
    <div class="listing">
      <table aria-describedby="summary">
        <thead><tr><th><a
          href="?sort=name&order=asc">Name</a></th></tr></thead>
        <tr><td><a href=".."><span class="goup">Go up</span></a></td><td>&mdash;</td></tr>
        <tr class="file"><td></td>
          <td><a href="./sub%20dir%25/"><svg><use xlink:href="#folder"></use></svg><span class="name">sub dir%/</span></a></td>
          <td data-order="-1">&mdash;</td><td><time datetime=" 2023-11-14T22:13:20Z">11/14/2023</time></td></tr>
        <tr class="file"><td></td>
          <td><a href="./colon:first.txt"><use xlink:href="#file"></use></a></td>
          <td data-order="5000000">4.8 MiB</td><td><time datetime=" 2023-11-14T22:13:20Z">11/14/2023</time></td></tr>
        <tr class="file"><td></td>
          <td><a href="./link"><use xlink:href="#file-shortcut"></use></a></td>
          <td data-order="2">2 B</td><td><time datetime=" 2023-11-14T22:13:20Z">11/14/2023</time></td></tr>
        <tr class="file"><td><span class="name"><a href="rclone.txt">rclone.txt</a></span></td>
          <td data-order="7"><size>7</size></td>
          <td><time datetime="2023-11-14 23:13:20.5 &#43;0100 CET">2023-11-14 23:13:20.5 &#43;0100 CET</time></td></tr>
      </table>
    </div></body>
    </html>
    """

  static let caddyJSON = #"""
    [{"name":"sub dir%/","size":4096,"url":"./sub%20dir%25/","mod_time":"2023-11-14T22:13:20Z","mode":2147484141,"is_dir":true,"is_symlink":false},
    {"name":"bad�.txt","size":12,"url":"./bad%E9.txt","mod_time":"2023-11-14T22:13:20.25Z","mode":420,"is_dir":false,"is_symlink":false},
    {"name":"link","size":2,"url":"./link","mod_time":"2023-11-14T22:13:20Z","mode":134218239,"is_dir":false,"is_symlink":true},
    {"name":"pipe","size":0,"url":"./pipe","mod_time":"2023-11-14T22:13:20Z","mode":33554852,"is_dir":false,"is_symlink":false}]

    """#

  static let python = """
    <!DOCTYPE HTML>
    <html lang="en">
    <head>
    <meta charset="utf-8">
    <title>Directory listing for /pub/</title>
    </head>
    <body>
    <h1>Directory listing for /pub/</h1>
    <hr>
    <ul>
    <li><a href="sub%20dir%25/">sub dir%/</a></li>
    <li><a href="latin1-%ED%B3%A9.txt">latin1.txt</a></li>
    <li><a href="%ED%95%9C.txt">korean</a></li>
    <li><a href="link">link@</a></li>
    </ul>
    <hr>
    </body>
    </html>

    """

  static let iis =
    "<html><head><title>example.org - /pub/</title></head><body><H1>example.org - /pub/</H1><hr>\r\n\r\n"
    + #"<pre><A HREF="/">[To Parent Directory]</A><br><br> "#
    + #"1/16/2014  5:06 PM        &lt;dir&gt; <A HREF="/pub/sub%20dir%25/">sub dir%</A><br> "#
    + #"1/16/2014  5:06 PM       558193 <A HREF="/pub/35-36.pdf">35-36.pdf</A><br>"#
    + #"16. Januar 2014 <A HREF="/pub/nosize.pdf">nosize.pdf</A><br></pre><hr></body></html>"#

  static let h2o =
    "<!DOCTYPE html>\n<TITLE>Index of /pub/</TITLE>\n<H2>Index of /pub/</H2>\n<UL>\n"
    + #"<LI><A HREF="..">Parent Directory</A><LI><A HREF="subdir">subdir</A><LI><A HREF="a&amp;b.txt">a&amp;b.txt</A></UL>"#

  static let fancy = """
    <!DOCTYPE html><html><head><title>Index of /pub/</title></head><body><h1>Index of /pub/</h1>
    <table id="list"><thead><tr><th><a href="?C=N&amp;O=A">File Name</a></th></tr></thead>
    <tbody><tr><td class="link"><a href="../">Parent directory/</a></td><td class="size">-</td></tr>
    <tr><td class="link"><a href="sub%20dir%25/" title="sub dir%">sub dir%/</a></td><td class="size">-</td></tr>
    <tr><td class="link"><a href="inner.txt" title="inner.txt">inner.txt</a></td><td class="size">2 B</td><td class="date">2023-Nov-14 22:13</td></tr>
    </tbody></table></body></html>
    """

  static let all: [(name: String, text: String)] = [
    ("nginx index", IndexTests.good), ("Apache index", apachePlain), ("Apache index", apachePre),
    ("Apache index", apacheTable), ("lighttpd index", lighttpd), ("Caddy index", caddy),
    ("Caddy JSON index", caddyJSON), ("Python http.server index", python), ("IIS index", iis),
    ("h2o index", h2o), ("nginx fancyindex", fancy),
  ]
}

@Suite struct IndexServersTests {
  static let url = IndexTests.url
  static let moment = Timestamp(year: 2023, month: 11, day: 14, hour: 22, minute: 13, second: 20)

  private func directories(_ outcome: Outcome) -> [String] {
    outcome.items.compactMap { if case .directory(let url, _) = $0 { url } else { nil } }
  }

  private func listings(_ outcome: Outcome) -> [String] {
    outcome.entries.map { String(decoding: $0.listing, as: UTF8.self) }
  }

  @Test(arguments: IndexPages.all.indices)
  func doesNotDependOnTheBlocks(index: Int) {
    let (name, text) = IndexPages.all[index]
    let bytes = Array(text.utf8)
    let whole = parse(bytes, url: Self.url)
    #expect(whole.end?.format == name, "\(whole)")
    #expect(whole.items.count >= 2)
    for step in [1, 2, 3, 7, 4096] { #expect(parse(bytes, url: Self.url, step: step) == whole, "\(step)") }
    #expect(parse(text, url: Self.url, place: "deep/er").items.count == whole.items.count)
  }

  @Test(arguments: IndexPages.all.indices)
  func neverTakesACutPageForWhole(index: Int) {
    #expect(cutsThatPassForWhole(IndexPages.all[index].text, url: Self.url) == [])
  }

  @Test(arguments: [IndexPages.apachePlain, IndexPages.apachePre, IndexPages.apacheTable])
  func readsApache(text: String) {
    let outcome = parse(text, url: Self.url)
    #expect(outcome.isComplete)
    #expect(outcome.names == ["colon:first.txt", "a&b.txt", "Parent Directory"])
    #expect(directories(outcome) == ["https://example.org/pub/sub%20dir%25/"])
    #expect(outcome.entries[0].sources == [Source(url: "https://example.org/pub/colon:first.txt")])
    #expect(outcome.entries.allSatisfy { $0.size == nil && $0.modified == nil })
  }

  @Test func takesWhatApacheRoundsAsTextOnly() {
    #expect(
      listings(parse(IndexPages.apachePre, url: Self.url)) == [
        "2023-11-14 22:13 1.0K", "14-Nov-2023 22:13 2", "",
      ])
    #expect(
      listings(parse(IndexPages.apacheTable, url: Self.url)) == [
        "2023-11-14 22:13 1.0K", "2023-11-14 22:13 2", "",
      ])
    #expect(listings(parse(IndexPages.apachePlain, url: Self.url)) == ["", "", ""])
  }

  @Test func readsApacheWithoutSizesAndTimes() {
    let text =
      IndexPages.apacheHead
      + "<pre>      Name                    <hr>      <a href=\"a.txt\">a.txt</a>                   \n"
      + "      <a href=\"d/\">d/</a>\n<hr></pre>\n" + IndexPages.apacheFoot
    let outcome = parse(text, url: Self.url)
    #expect(outcome.isComplete)
    #expect(outcome.names == ["a.txt"])
    #expect(directories(outcome).count == 1)
  }

  /// A header of the owner's with lists and tables of its own, and a footer without an end.
  @Test func findsApachesListAmongTheOwnersText() {
    let text = """
      <html><head><title>Releases</title></head><body><table><tr><td>
      <ul><li><a href="advertised/">Advertised</a></ul><pre>Name <a href="code.txt">code</a></pre>
      <table><tr><th><a href="?C=N;O=D">Name</a></th><th><a href="?C=M;O=A">Last modified</a></th></tr>
      <tr><td><a href="real/">real/</a></td><td>2023-11-14 22:13</td></tr></table>
      </td></tr></table><ul><li><a href="footer.txt">read me</a></ul>
      """
    let outcome = parse(text, url: Self.url)
    #expect(outcome.isComplete)
    #expect(outcome.names == [])
    #expect(directories(outcome) == ["https://example.org/pub/real/"])
  }

  @Test func readsEmptyDirectories() {
    let empty = [
      IndexPages.apacheHead + "<ul></ul>\n" + IndexPages.apacheFoot,
      IndexPages.apacheHead + "<ul><li><a href=\"/\"> Parent Directory</a></li>\n</ul>\n"
        + IndexPages.apacheFoot,
      "<html><head><title>Directory listing for /e/</title></head><body>\n<h1>Directory listing for /e/</h1>\n"
        + "<hr>\n<ul>\n</ul>\n<hr>\n</body>\n</html>\n",
      "<!DOCTYPE html>\n<TITLE>Index of /e/</TITLE>\n<H2>Index of /e/</H2>\n<UL>\n<LI><A HREF=\"..\">Parent Directory</A></UL>",
      "<html><head><title>h - /</title></head><body><H1>h - /</H1><hr>\r\n\r\n<pre></pre><hr></body></html>",
    ]
    for text in empty {
      let outcome = parse(text, url: Self.url)
      #expect(outcome.isComplete && outcome.items.isEmpty, "\(outcome)")
    }
    #expect(parse("[]\n", url: Self.url, place: "e").end?.format == "Caddy JSON index")
    #expect(parse("[]\n", url: Self.url).failure?.code == "feed-not-recognised")
    #expect(parse("[]", url: Self.url, place: "e").failure?.code == "feed-not-recognised")
  }

  @Test func readsCaddy() {
    let outcome = parse(IndexPages.caddy, url: Self.url)
    #expect(outcome.isComplete)
    #expect(outcome.names == ["colon:first.txt", "link", "rclone.txt"])
    #expect(outcome.entries.map(\.size) == [5_000_000, 2, 7])
    #expect(outcome.entries.map(\.modified?.seconds) == [Self.moment?.seconds, nil, Self.moment?.seconds])
    #expect(outcome.entries.map(\.modifiedIsExact) == [true, false, true])
    #expect(listings(outcome) == ["", "2023-11-14T22:13:20Z", ""])
  }

  @Test func readsTheJSONOfCaddy() {
    let outcome = parse(IndexPages.caddyJSON, url: Self.url)
    #expect(outcome.isComplete)
    #expect(
      outcome.entries.map(\.path.bytes) == [
        Array("bad".utf8) + [0xE9] + Array(".txt".utf8), Array("link".utf8),
      ])
    #expect(outcome.entries.map(\.size) == [12, 2])
    #expect(outcome.entries.map(\.modifiedIsExact) == [true, false])
    #expect(outcome.codes == ["type-not-supported"])
    #expect(directories(outcome) == ["https://example.org/pub/sub%20dir%25/"])
    let outside = IndexPages.caddyJSON.replacing("./link", with: "../link")
    #expect(parse(outside, url: Self.url).isComplete == false)
    #expect(parse(outside, url: Self.url).codes == ["url-outside", "type-not-supported"])
  }

  @Test func readsTheNamesOfOtherServers() {
    let python = parse(IndexPages.python, url: Self.url)
    #expect(python.isComplete)
    #expect(
      python.entries.map(\.path.bytes) == [
        Array("latin1-".utf8) + [0xE9] + Array(".txt".utf8), Array("한.txt".utf8), Array("link".utf8),
      ])
    #expect(python.entries[0].sources == [Source(url: "https://example.org/pub/latin1-%ED%B3%A9.txt")])
    let lighttpd = parse(IndexPages.lighttpd, url: Self.url)
    #expect(lighttpd.isComplete)
    #expect(lighttpd.names == ["a&b.txt"])
    #expect(listings(lighttpd) == ["2023-Nov-14 22:13:20 0.1K"])
    let iis = parse(IndexPages.iis, url: Self.url)
    #expect(iis.isComplete)
    #expect(iis.names == ["35-36.pdf", "nosize.pdf"])
    #expect(iis.entries.map(\.size) == [558193, nil])
    #expect(directories(iis) == ["https://example.org/pub/sub%20dir%25/"])
    let fancy = parse(IndexPages.fancy, url: Self.url)
    #expect(fancy.isComplete)
    #expect(listings(fancy) == ["2 B 2023-Nov-14 22:13"])
  }

  /// A name may be a directory there: nothing may be deleted for not being listed below it.
  @Test func neverTrustsAListWithoutDirectories() {
    let outcome = parse(IndexPages.h2o, url: Self.url)
    #expect(outcome.names == ["subdir", "a&b.txt"])
    #expect(outcome.end?.isComplete == false)
    #expect(outcome.entries.allSatisfy { $0.mayBeDirectory })
    for (name, text) in IndexPages.all where name != "h2o index" {
      #expect(!parse(text, url: Self.url).entries.contains { $0.mayBeDirectory }, "\(name)")
    }
  }

  @Test func tellsPartsFromWholeLists() {
    #expect(parse(IndexPages.apachePre, url: Self.url + "?C=M;O=D").isComplete)
    for query in ["?P=*.iso", "?C=M;O=D;P=*.iso", "?F=1&P=a"] {
      #expect(parse(IndexPages.apachePre, url: Self.url + query).end?.isComplete == false, "\(query)")
    }
    #expect(parse(IndexPages.caddy, url: Self.url + "?limit=10").end?.isComplete == false)
    #expect(parse(IndexPages.caddyJSON, url: Self.url + "?sort=size&offset=3").end?.isComplete == false)
  }

  /// Caddy leaves out what is beyond 10,000 names, and says nothing.
  @Test func neverTrustsAListOfTenThousandNames() {
    func rows(_ count: Int) -> String {
      let rows = (0..<count).map { "<tr class=\"file\"><td><a href=\"./f\($0)\">f</a></td></tr>\n" }.joined()
      return IndexPages.caddy.replacing("</table>", with: rows + "</table>")
    }
    #expect(parse(rows(9_000), url: Self.url).isComplete)
    let full = parse(rows(10_000), url: Self.url)
    #expect(full.end?.isComplete == false)
    #expect(full.entries.count == 10_003)
  }

  /// Absolute links behind a proxy that moved the tree: an empty list would delete everything.
  @Test func aListThatLeadsElsewhereIsNotEmpty() {
    for url in ["https://example.org/", "https://example.org/proxied/pub/", "https://example.org/other/"] {
      let outcome = parse(IndexPages.iis, url: url)
      #expect(outcome.items.isEmpty)
      #expect(outcome.end?.isComplete == false, "\(url)")
    }
  }

  @Test func followsTheBaseOfThePage() {
    let based = IndexPages.apachePlain.replacing("<title>", with: "<base href=\"/pub/\"><title>")
    #expect(parse(based, url: "https://example.org/pub/").names.count == 3)
    let moved = IndexPages.apachePlain.replacing("<title>", with: "<base href=\"/else/\"><title>")
    #expect(moved != based)
    #expect(parse(moved, url: Self.url).entries.isEmpty)
    #expect(parse(moved, url: Self.url).end?.isComplete == false)
  }

  @Test func refusesPagesThatAreNoListing() {
    let pages = [
      "<html>not a listing</html>",
      "<!DOCTYPE html><html><head><title>Sign in</title></head><body><h1>Sign in</h1><form><table><tr><th>Name</th><td><input></td></tr></table></form></body></html>",
      "<html><head><title>Index of posts</title></head><body><h1>Index of posts</h1><hr><pre><a href=\"post.html\">code</a></pre></body></html>",
      "<html><head><title>Index of /</title></head><body><h1>Index of /</h1><ul><li><a href=\"post.html\">Post</a></li></ul></body></html>",
      "<html><head><title>Index of /blog</title></head><body><h1>Index of /blog</h1><pre>x <a href=\"post.html\">Post</a></pre></body></html>",
      "<html><head><title>Directory listing for members</title></head><body><h1>Members</h1>\n<hr>\n<ul><li><a href=\"ann\">Ann</a></li></ul></body></html>",
      "<html><head><title>Site - /</title></head><body><h1>Welcome</h1><hr><pre><a href=\"a\">a</a></pre></body></html>",
      "<html><head><title>301 Moved Permanently</title></head><body><center><h1>301</h1></center><hr>nginx</body></html>",
      "<html><body><table id=\"list\"><tr><td><a href=\"a\">a</a></td></tr></table></body></html>",
      "<html><body><table aria-describedby=\"summary\"><tr><td><a href=\"a\">a</a></td></tr></table></body></html>",
    ]
    for page in pages {
      for place in [nil, "sub"] {
        let outcome = parse(page, url: Self.url, place: place)
        #expect(outcome.failure?.code == "feed-is-a-web-page", "\(outcome) \(page)")
      }
    }
  }

  /// Damaged pages end in some way, the same one in any blocks.
  @Test(arguments: IndexPages.all.indices)
  func endsOnDamagedPages(index: Int) {
    let page = Array(IndexPages.all[index].text.utf8)
    var state = UInt64(index) &* 7919 &+ 1
    func next(_ limit: Int) -> Int {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Int((state >> 33) % UInt64(limit))
    }
    let marks = Array("<>\"'&;#%/?= \n\0\u{FF}[]{}".utf8)
    for _ in 0..<20 {
      var bytes = page
      for _ in 0...next(6) {
        switch next(3) {
        case 0: bytes[next(bytes.count)] = marks[next(marks.count)]
        case 1: bytes.removeSubrange(next(bytes.count / 2)..<(bytes.count / 2 + next(bytes.count / 2)))
        default: bytes.insert(contentsOf: bytes[..<next(bytes.count)], at: next(bytes.count))
        }
        if bytes.count > 4096 { bytes.removeLast(bytes.count - 4096) }
      }
      let outcome = parse(bytes, url: Self.url)
      #expect((outcome.end == nil) != (outcome.failure == nil))
      #expect(parse(bytes, url: Self.url, step: 7) == outcome)
    }
  }

  @Test func deepElementsAreRefused() {
    let text = IndexPages.apachePre.replacing(
      "<pre>", with: String(repeating: "<table>", count: 100_000) + "<pre>")
    #expect(parse(text, url: Self.url).failure != nil)
  }
}
