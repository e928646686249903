import TarnCore
import Testing

@testable import TarnFeeds

/// Host names in Unicode, as browsers send them.
@Suite struct IDNATests {
  @Test(arguments: [
    ("bücher.example", "xn--bcher-kva.example"), ("b%C3%BCcher.example", "xn--bcher-kva.example"),
    ("BÜCHER.example:8080", "xn--bcher-kva.example:8080"), ("www.faß.de", "www.xn--fa-hia.de"),
    ("例え.テスト", "xn--r8jz45g.xn--zckzah"), ("пример.испытание", "xn--e1afmkfd.xn--80akhbyknj4f"),
    // A letter and its mark, wide letters and dots, marks that nobody sees.
    ("bu\u{308}cher.example", "xn--bcher-kva.example"), ("がぎ.example", "xn--v8je.example"),
    ("か\u{3099}き\u{3099}.example", "xn--v8je.example"), ("ＡＢ。example", "ab.example"),
    ("a\u{AD}ü\u{200B}.example", "xn--a-eha.example"), ("☃.net", "xn--n3h.net"),
    ("한국.kr", "xn--3e0b707e.kr"),
    // RFC 3492 7.1: Arabic, Hindi, and digits among letters.
    ("ليهمابتكلموشعربي؟", "xn--egbpdaj6bu4bxfgehfvwxn"),
    ("यहलोगहिन्दीक्योंनहींबोलसकतेहैं", "xn--i1baa7eci9glrd9b2ae1bj0hfcgg6iyaf8o0a1dig0cd"),
    ("3年B組金八先生", "xn--3b-ww4c5e180e575a65lsy2b"),
  ])
  func becomesASCII(host: String, expected: String) {
    #expect(URLReference("http://\(host)/ä").text == "http://\(expected)/%C3%A4")
  }

  /// Nothing that came in by an encoding ends the host, or is taken for a user.
  @Test(arguments: [
    "a%2Fb", "a%40b", "a%3A80", "a%20b", "a%00b", "%FF", "me@bücher.example", "[fe80::1%25lo]", "ａ／ｂ", "a＠b",
    "\u{202E}a", "a\u{E000}", String(repeating: "ü", count: 64),
    "%C3%BC.\(String(repeating: "a", count: 64))",
    "a%25b",
  ])
  func staysAsItIs(host: String) {
    let url = URLReference("http://\(host)/")
    #expect(url.authority?.contains(UInt8(ascii: "%")) == true)
    let context = FeedContext(document: FeedDocument(url: "http://h/"), hashing: TestHashing())
    #expect(!context.isUsable(url))
  }

  /// As a person types it: nothing else changes.
  @Test(arguments: [
    ("http://bücher.example/ä b?ü", "http://xn--bcher-kva.example/ä b?ü"),
    ("HTTPS://Bücher.example:8080", "HTTPS://xn--bcher-kva.example:8080"),
    ("http://plain.example/ü", "http://plain.example/ü"), ("http://ü@host/", "http://ü@host/"),
    ("http://ü\u{202E}/", "http://ü\u{202E}/"), ("./ü", "./ü"), ("http://a?ü", "http://a?ü"),
  ])
  func aTypedURLIsASCII(url: String, expected: String) {
    #expect(IDNA.ascii(url: url) == expected)
  }

  /// Every format resolves its URLs the same way.
  @Test func worksInEveryFormat() {
    let url = "http://xn--bcher-kva.example/x"
    for document in [
      "http://bücher.example/x\n",
      MetalinkTests.document("<file name='x'><url>http://bücher.example/x</url></file>"),
      #"{"manifest":{"format":"mirror-manifest/1"},"files":[{"path":"x","url":"http://bücher.example/x"}]}"#,
    ] {
      #expect(parse(document).entries.map { $0.sources.map(\.url) } == [[url]], "\(document)")
    }
    let item = WindowTests.item("<enclosure url='http://bücher.example/x'/>")
    #expect(parse(item).enclosures.map(\.sources[0].url) == [url])
    let base = parse(
      "<rss><channel xml:base='http://bücher.example/'><item><enclosure url='x'/></item></channel></rss>")
    #expect(base.enclosures.map(\.sources[0].url) == [url])
  }
}
