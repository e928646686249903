import TarnCore
import Testing

@testable import TarnFeeds

/// Feeds as they should not be written.
@Suite struct WindowRepairTests {
  private static let enclosure = #"<enclosure url="http://a.example/1"/>"#

  private func titles(_ outcome: Outcome) -> [String] { outcome.enclosures.map { text($0.title) } }

  private func document(title: [UInt8], prolog: String) -> [UInt8] {
    Array("\(prolog)<rss version=\"2.0\"><channel><item>\(Self.enclosure)<title>".utf8) + title
      + Array("</title></item></channel></rss>".utf8)
  }

  @Test(arguments: [
    // Declared, and by Content-Type, which wins.
    ("iso-8859-1", nil, [0xE9, 0x80], "é€"), ("utf-8", nil, [0xC3, 0xA9], "é"),
    ("koi8-r", nil, [0xC1, 0xC2], "аб"), ("shift_jis", nil, [0x83, 0x5C], "ソ"),
    ("gb2312", nil, [0xD6, 0xD0], "中"), ("windows-1251", nil, [0xE0], "а"),
    ("utf-8", "text/xml; charset=\"windows-1251\"", [0xE0], "а"),
    // Said to be what it is not, or what nobody knows.
    ("utf-8", nil, [0x93, 0x61, 0x94, 0xE9, 0xC3, 0xA9], "“a”éé"), ("invalid", nil, [0xC3, 0xA9], "é"),
    ("utf-16", nil, [0xC3, 0xA9], "é"), ("utf-7", nil, [0x2B, 0x41], "+A"),
  ])
  func readsCharacters(declared: String, contentType: String?, title: [UInt8], expected: String) {
    let bytes = document(title: title, prolog: "<?xml version=\"1.0\" encoding=\"\(declared)\"?>")
    let outcome = parse(bytes, contentType: contentType)
    #expect(titles(outcome) == [expected])
    for step in [1, 2, 3, 7, 4096] {
      #expect(parse(bytes, step: step, contentType: contentType) == outcome, "step \(step)")
    }
  }

  /// A text of one byte a letter that is UTF-8 throughout is UTF-8, whatever it says.
  @Test(
    arguments: [
      ("iso-8859-1", [0x54, 0x72, 0xC3, 0xA6, 0x6E], "Træn"), ("windows-1252", [0xC3, 0xA9], "é"),
      ("ISO-8859-15", [0xC3, 0xA9], "é"), ("windows-1251", [0xD0, 0xB0], "а"),
      // One byte that is none tells otherwise, and short words of other sets may pass for UTF-8.
      ("iso-8859-1", [0xC3, 0xA9, 0xE9], "Ã©é"), ("iso-8859-15", [0xC3, 0xA9, 0xE9], "Ã©é"),
      ("gb2312", [0xC2, 0xB7], "路"),
    ] as [(String, [UInt8], String)])
  func doubtsDeclarations(declared: String, title: [UInt8], expected: String) {
    let bytes = document(title: title, prolog: "<?xml version=\"1.0\" encoding=\"\(declared)\"?>")
    #expect(titles(parse(bytes)) == [expected])
    for step in [1, 7] { #expect(parse(bytes, step: step) == parse(bytes), "step \(step)") }
  }

  /// In a long document the letters may come late.
  @Test func doubtsDeclarationsOfLongDocuments() {
    let items = "<description>\(String(repeating: "x", count: 70_000))</description>"
    let bytes = Array(
      "<?xml version=\"1.0\" encoding=\"iso-8859-1\"?><rss><channel>\(items)<item>\(Self.enclosure)<title>é</title></item></channel></rss>"
        .utf8)
    #expect(titles(parse(bytes)) == ["é"])
    #expect(titles(parse(bytes, contentType: "text/xml; charset=iso-8859-1")) == ["é"])
  }

  @Test(arguments: [true, false], [true, false])
  func readsUTF16(isBig: Bool, hasMark: Bool) {
    let plain = text(document(title: Array("é𝄞".utf8), prolog: "<?xml version=\"1.0\" encoding=\"utf-16\"?>"))
    let units = (hasMark ? [0xFEFF] : []) + Array(plain.utf16)
    let bytes = units.flatMap {
      isBig ? [UInt8($0 >> 8), UInt8($0 & 255)] : [UInt8($0 & 255), UInt8($0 >> 8)]
    }
    #expect(titles(parse(bytes)) == ["é𝄞"])
    for step in [1, 2, 3, 7, 4096] { #expect(parse(bytes, step: step) == parse(bytes), "step \(step)") }
  }

  @Test func aByteOrderMarkWins() {
    let bytes = document(title: [0xC3, 0xA9], prolog: "<?xml version=\"1.0\" encoding=\"iso-8859-1\"?>")
    #expect(titles(parse([0xEF, 0xBB, 0xBF] + bytes)) == ["é"])
  }

  @Test(arguments: [
    ("a&nbsp;b &mdash; &eacute;", "a b — é"),
    ("Q & A &c &amp; &unknown; 1 < 2 <3", "Q & A &c & &unknown; 1 < 2 <3"),
    ("x&#x1;\u{1}y\u{B}&#150;&#0;", "xy–"), ("&lt;b&gt;bold&lt;/b&gt; &amp;amp;", "bold &"),
    ("<![CDATA[<i>AT&amp;T</i> & ]]]]><![CDATA[>]]>", "AT&T & ]]>"),
    // Other words in angle brackets are none of HTML.
    ("&lt;Wars&gt; a&lt;b and c&gt;d &lt;EM class='x'&gt;e&lt;/EM&gt;&lt;br/&gt;f", "<Wars> a<b and c>d e f"),
    ("I &lt;3 U &lt;b &amp;quot;x&amp;quot; &amp;lt;b&amp;gt;", "I <3 U <b \"x\" <b>"),
    ("a<!-- & <b> --><b>c</b>", "ac"),
    ("\u{FFFE}a\u{FFFF}", "a"), ("a<?php echo 1 ?>b", "ab"),
  ])
  func mendsTitles(inside: String, expected: String) {
    let bytes = document(title: Array(inside.utf8), prolog: "")
    let outcome = parse(bytes)
    #expect(titles(outcome) == [expected])
    #expect(outcome.end?.incompleteReason == Window.reason)
    for step in [1, 2, 3, 7, 4096] { #expect(parse(bytes, step: step) == outcome, "step \(step)") }
  }

  @Test func keepsRawAmpersandsOfURLs() {
    let outcome = parse(
      #"<rss><channel><item><enclosure url="http://a.example/1?a=1&copy=2&b;=3&amp;c&#38;d#f"/></item></channel></rss>"#
    )
    #expect(outcome.enclosures.map(\.sources[0].url) == ["http://a.example/1?a=1&copy=2&b;=3&c&d"])
  }

  @Test(arguments: [
    // Before the declaration, undeclared prefixes, behind the root.
    ("\n \n<!-- x --><?xml version=\"1.0\"?><rss><channel><item>\(enclosure)</item></channel></rss>", 1),
    ("<rss><channel><item><media:content url=\"http://a.example/1\"/></item></channel></rss>", 1),
    ("<rss><channel><item>\(enclosure)</item></channel></rss><p>more", 1),
    // End tags that are wrong or lost.
    ("<rss><channel><item><title>a</titel>\(enclosure)</item><item>\(enclosure)</item></channel></rss>", 2),
    ("<rss><channel><item>\(enclosure)<item>\(enclosure)</item></channel></rss>", 2),
    ("<rss><channel><item><title>a\(enclosure)</item><item>\(enclosure)</item></channel></rss>", 2),
    // Cut: the item that is not whole is left out, as its title may come later.
    ("<rss><channel><item>\(enclosure)</item><item>\(enclosure)<title>a", 1),
    ("<rss><channel><item>\(enclosure)</item><item>\(enclosure)</ite", 1),
    ("<rss><channel><item>\(enclosure)</item><item>\(enclosure)</channel></rss>", 1),
  ])
  func recovers(document: String, count: Int) {
    let outcome = parse(document)
    #expect(outcome.enclosures.count == count)
    #expect(outcome.failure == nil)
    #expect(!outcome.isComplete)
    for step in [1, 2, 3, 7, 4096] { #expect(parse(document, step: step) == outcome, "step \(step)") }
  }

  @Test func neverTrapsOnACut() {
    for document in [WindowTests.good, WindowTests.rdf, WindowTests.atom, JSONFeedTests.good] {
      let bytes = Array(document.utf8)
      let whole = parse(bytes)
      for count in stride(from: 0, to: bytes.count, by: 3) {
        let cut = parse(Array(bytes[..<count]))
        #expect(!cut.isComplete)
        #expect(whole.items.starts(with: cut.items), "cut at \(count)")
      }
    }
  }

  /// What a program on the server says before the document.
  @Test(arguments: [
    "<br />\n<b>Warning</b>:  fopen() in <b>/srv/feed.php</b> on line <b>3</b><br />\n",
    "Notice: Undefined variable: x in feed.php on line 1\n", "</p>\n<pre class='xdebug-var-dump'>\n",
  ])
  func readsBehindWarnings(warning: String) {
    for begin in ["<?xml version=\"1.0\"?>", ""] {
      let document = "\(begin)\n<rss version=\"2.0\"><channel><item>\(Self.enclosure)</item></channel></rss>"
      let outcome = parse(warning + document)
      #expect(outcome.items == parse(document).items && outcome.enclosures.count == 1)
      for step in [1, 7] { #expect(parse(warning + document, step: step) == outcome) }
      // Faults are where they are in the whole document.
      let broken = parse(warning + document.replacing("</rss>", with: "</rs>")).end?.incompleteReason ?? ""
      #expect(broken.contains("(line \(warning.split(separator: "\n").count + 2))"), "\(broken)")
    }
  }

  @Test(arguments: [
    "{\"text\": \"", "[", "<note>", "<html><body>", "<!-- ", "<script>",
    String(repeating: "text\n", count: 4000),
  ])
  func isNoFeedInsideAnotherDocument(front: String) {
    let document = "\(front)<rss version='2.0'><channel><item>\(Self.enclosure)</item></channel></rss>"
    #expect(parse(document).enclosures.isEmpty)
  }

  @Test(arguments: [
    "<RSS VERSION=\"2.0\"><CHANNEL><TITLE>S</TITLE><ITEM><TITLE>t</TITLE><PUBDATE>2023-11-14</PUBDATE><ENCLOSURE URL=\"http://a.example/1\" LENGTH=\"5\"/></ITEM></CHANNEL></RSS>",
    "<Rss><Channel><title>S</title><Item><Title>t</Title><pubdate>2023-11-14</pubdate><Enclosure Url='http://a.example/1' Length='5'/></Item></Channel></Rss>",
    "<FEED XMLNS=\"http://www.w3.org/2005/Atom\"><TITLE>S</TITLE><ENTRY><TITLE>t</TITLE><UPDATED>2023-11-14</UPDATED><LINK REL=\"enclosure\" HREF=\"http://a.example/1\" LENGTH=\"5\"/></ENTRY></FEED>",
    "<FEED><Title>S</Title><ENTRY><TITLE>t</TITLE><UPDATED>2023-11-14</UPDATED><LINK REL=\"enclosure\" HREF=\"http://a.example/1\" LENGTH=\"5\"/></ENTRY></FEED>",
    // No namespace.
    "<feed><title>S</title><entry><title>t</title><updated>2023-11-14</updated><link rel=\"enclosure\" href=\"http://a.example/1\" length=\"5\"/></entry></feed>",
  ])
  func readsNamesAsTheyAreWritten(document: String) throws {
    let outcome = parse(document)
    #expect(outcome.end?.title == Array("S".utf8) && titles(outcome) == ["t"])
    let file = try #require(outcome.enclosures.first)
    #expect(file.date?.rfc3339 == "2023-11-14T00:00:00Z" && file.length == 5)
    #expect(outcome.end?.incompleteReason == Window.reason)
    for step in [1, 7] { #expect(parse(document, step: step) == outcome) }
  }

  // MARK: DOCTYPE

  private func rss(doctype: String, title: String) -> String {
    "<?xml version=\"1.0\"?>\n\(doctype)<rss><channel><item>\(Self.enclosure)<title>\(title)</title></item></channel></rss>"
  }

  /// Reading more for the DOCTYPE moves what was read before.
  @Test(arguments: [0, 1, 63, 64, 65, 200, 5000])
  func readsADoctypeFarIntoAShortDocument(distance: Int) {
    let comment = "<!--" + String(repeating: "x", count: distance) + "-->"
    #expect(titles(parse(rss(doctype: comment + "<!DOCTYPE rss>", title: "t"))) == ["t"])
  }

  @Test func takesADoctypeOfItsOwn() {
    for doctype in [
      "<!DOCTYPE rss>", "<!DOCTYPE rss [<!-- > ]> % --><!ELEMENT rss ANY><?x ]>?>]>",
      "<!doctype rss [ <!ATTLIST rss a CDATA \"]>\"> ] >",
    ] {
      #expect(titles(parse(rss(doctype: doctype, title: "&x; &eacute;"))) == ["&x; é"])
    }
  }

  /// RSS 0.91 names its DTD, RSS 1.0 one with the entities of HTML: neither is fetched.
  @Test(arguments: [
    "<!DOCTYPE rss PUBLIC \"-//N//DTD RSS 0.91//EN\" \"http://a.example/rss.dtd\">",
    "<!DOCTYPE rss SYSTEM 'rss.dtd'>", "<!DOCTYPE rss SYSTEM \"file:///etc/passwd\">",
    "<!DOCTYPE rss SYSTEM \"a>b[%c;'.dtd\" [<!ELEMENT y ANY> ] >",
    "<!DOCTYPE rss [<!ENTITY % HTMLlat1 PUBLIC \"-//W3C//ENTITIES Latin 1//EN\" \"http://a.example/lat1.ent\"> %HTMLlat1; ]>",
  ])
  func passesOverWhatLiesElsewhere(doctype: String) {
    let outcome = parse(rss(doctype: doctype, title: "&x; &y; &eacute;"))
    #expect(titles(outcome) == ["&x; &y; é"])
    for step in [1, 7] {
      #expect(parse(rss(doctype: doctype, title: "&x; &y; &eacute;"), step: step) == outcome)
    }
  }

  @Test(arguments: [
    "<!DOCTYPE rss [<!ENTITY x SYSTEM \"file:///etc/passwd\">]>",
    "<!DOCTYPE rss [<!ENTITY x PUBLIC \"a\" \"http://a.example/\">]>",
    "<!DOCTYPE rss [<!ENTITY % p \"a\">]>", "<!DOCTYPE rss [<!ENTITY x 'a&amp;b &#99;'>]>",
    "<!DOCTYPE rss [<!ENTITY x \"a\"> %p; ]>", "<!DOCTYPE rss [%p;<!ENTITY x \"a\">]>",
    "<!DOCTYPE rss [<!ENTITY a \"lol\"><!ENTITY x \"&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;\">]>",
  ])
  func refusesDoctypes(doctype: String) {
    #expect(parse(rss(doctype: doctype, title: "&x;")).failure?.code == "doctype-refused")
  }

  /// What stands before the fault is read, and the fault is told.
  @Test func whatBreaksOffIsTold() {
    let whole = rss(doctype: "", title: "t")
    #expect(parse(whole).end?.notice == nil)
    let cut = parse(String(whole.dropLast(12)))
    #expect(titles(cut) == ["t"] && cut.end?.notice?.code == .readInPart)
    #expect(cut.end?.notice?.message.hasPrefix("the feed is broken: ") == true)
  }

  @Test func stopsEndlessDoctypes() {
    let endless = "<!DOCTYPE rss [" + String(repeating: "<!ELEMENT x ANY>", count: 2_000) + "]>"
    #expect(parse(rss(doctype: endless, title: "")).failure?.code == "doctype-refused")
    #expect(parse("<!DOCTYPE rss [<!ENTITY x \"a\"><rss>").failure != nil)
  }

  @Test func endsWhereItIsTooDeep() {
    let deep = "<rss><channel><item>\(Self.enclosure)</item>" + String(repeating: "<a>", count: 100_000)
    let outcome = parse(deep)
    #expect(outcome.enclosures.count == 1)
    #expect(outcome.end?.incompleteReason.contains("not well-formed") == true)
  }

  // MARK: Times

  @Test(arguments: [
    ("Tue, 14 Nov 2023 22:13:20 GMT", "2023-11-14T22:13:20Z"),
    ("14 Nov 23 22:13 EST", "2023-11-15T03:13:00Z"),
    ("Tue,14 nov 2023 22:13:20 +0530", "2023-11-14T16:43:20Z"),
    ("Die, 14 November 2023 22:13:20 +01:00", "2023-11-14T21:13:20Z"),
    ("Tuesday, November 14, 2023 10:13 PM", "2023-11-14T22:13:00Z"),
    ("Tue, 14 Nov 2023 10:13:20PM", "2023-11-14T22:13:20Z"),
    ("Tue, 14 Nov 2023 12:13:20am EST", "2023-11-14T05:13:20Z"),
    ("Tue, 14 Nov 2023 10:13PM+0100", "2023-11-14T21:13:00Z"),
    ("2023-11-14 10:13 p.m.", "2023-11-14T22:13:00Z"),
    ("Tue Nov 14 22:13:20 2023", "2023-11-14T22:13:20Z"),
    ("Tue, 14 Nov 2023 22:13:20 (Central) -0600 (CST)", "2023-11-15T04:13:20Z"),
    ("14-Nov-2023", "2023-11-14T00:00:00Z"),
    ("Tue, 14 Nov 2023 22:13:20 GMT+2", "2023-11-14T20:13:20Z"),
    ("14 Nov 99 22:13:20 Z", "1999-11-14T22:13:20Z"),
    ("Tue, 14 Nov 2023 9:3:20.75 UT", "2023-11-14T09:03:20Z"),
    ("2023-11-14T22:13:20.123456789012Z", "2023-11-14T22:13:20Z"),
    ("2023-11-14 22:13:20 +0100", "2023-11-14T21:13:20Z"), ("2023-11-14T22:13", "2023-11-14T22:13:00Z"),
    ("2023-11-14", "2023-11-14T00:00:00Z"), ("2023-11", "2023-11-01T00:00:00Z"),
    ("2023", "2023-01-01T00:00:00Z"),
    ("20231114T221320Z", "2023-11-14T22:13:20Z"), ("2023/11/14 22:13:20", "2023-11-14T22:13:20Z"),
    ("2023-1-4T22:13:20-08:00", "2023-01-05T06:13:20Z"), ("28.11.2026", "2026-11-28T00:00:00Z"),
    ("Sa, 8.1.2026 14:05", "2026-01-08T14:05:00Z"), ("Tue, 14 Nov 2023 24:00:00 GMT", "2023-11-15T00:00:00Z"),
    ("2023-12-31T24:00:00Z", "2024-01-01T00:00:00Z"),
  ])
  func readsTimes(written: String, expected: String) {
    #expect(FeedDate.parse(Array(written.utf8))?.rfc3339 == expected)
  }

  @Test(arguments: [
    "", "today", "14 Nov", "Tue, 32 Nov 2023 22:13:20 GMT", "2023-13-01", "99999999999999999999",
    "14 Nov 2023 25:00:00",
    "2023-11-14T22:13:20+99:00", "Tue, 14 Nov 99999 00:00", "::::", "1 1 1 1", "0000-00-00T00:00:00Z",
    "2023-", "14 Nov 2023 1:2:3:4 1:2", "28.13.2026", "1.2.3", "14 Nov 2023 24:00:01",
  ])
  func leavesOtherTimes(written: String) {
    #expect(FeedDate.parse(Array(written.utf8)) == nil)
  }
}
