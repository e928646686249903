import TarnCore
import Testing

@testable import TarnFeeds

@Suite struct IndexTests {
  static func page(_ lines: String) -> String {
    "<html>\r\n<head><title>Index of /pub/</title></head>\r\n<body>\r\n<h1>Index of /pub/</h1><hr><pre>"
      + "<a href=\"../\">../</a>\r\n" + lines + "</pre><hr></body>\r\n</html>\r\n"
  }

  static let good = page(
    """
    <a href="sub%20dir%25/">sub dir%/</a>            14-Nov-2023 22:13                   -
    <a href="a%26b.txt">a&amp;b.txt</a>              14-Nov-2023 22:13                  12
    <a href="big.iso">big.iso</a>                    14-Nov-2023 22:13                  3G

    """)
  static let url = "https://example.org/pub/"

  @Test func readsNginx() {
    let outcome = parse(Self.good, url: Self.url)
    #expect(outcome.isComplete)
    #expect(outcome.names == ["a&b.txt", "big.iso"])
    #expect(
      outcome.items.first
        == .directory(
          url: "https://example.org/pub/sub%20dir%25/", path: RelativePath(trusted: Array("sub dir%".utf8))))
    let entry = outcome.entries[0]
    #expect(entry.size == 12)
    #expect(entry.modified == Timestamp(year: 2023, month: 11, day: 14, hour: 22, minute: 13))
    #expect(!entry.modifiedIsExact)
    #expect(entry.sources == [Source(url: "https://example.org/pub/a%26b.txt")])
    #expect(outcome.entries[1].size == nil)
    #expect(outcome.entries[1].listing == Array("14-Nov-2023 22:13 3G".utf8))
  }

  /// What lies below a directory is in its own list; a list that names it is not understood whole.
  @Test func whatLiesDeeperIsTold() {
    for deep in ["sub/x.bin", ".tarn/x", "/pub/sub/y/", "sub/x?a=1"] {
      let outcome = parse(
        Self.page(
          "<a href=\"a\">a</a>  14-Nov-2023 22:13  1\r\n<a href=\"\(deep)\">x</a>  14-Nov-2023 22:13  1\r\n"),
        url: Self.url)
      #expect(outcome.names == ["a"] && !outcome.isComplete, "\(deep)")
      #expect(
        outcome.end?.incompleteReason
          == "what lies deeper is left out: 1 link of the list into directories below it"
      )
    }
  }

  @Test func putsNamesInTheirPlace() {
    let outcome = parse(Self.good, url: Self.url, place: "deep/er")
    #expect(outcome.names == ["deep/er/a&b.txt", "deep/er/big.iso"])
  }

  @Test func dropsLinksThatLeadElsewhere() {
    let links = [
      "?C=N;O=D", "#top", "./", "/", "/pub/", "/pub", "/other/x", "https://evil.example/x", "x/y",
      "x/../../y",
      "//evil.example/pub/x", "mailto:a@b", "http://example.org/pub/x", "x&#63;y",
    ]
    let text = Self.page(
      links.map { "<a href=\"\($0)\">x</a>\n" }.joined() + "<a href=\"/pub/kept\">kept</a>\n")
    let outcome = parse(text, url: Self.url)
    #expect(outcome.items.count == 1)
    #expect(outcome.names == ["kept"])
  }

  @Test func refusesHostileNames() {
    let names = [
      "..%2Fup", "%2e%2e", "a%00b", "a%0Ab", "%E2%80%AEx", String(repeating: "n", count: 256),
    ]
    let outcome = parse(Self.page(names.map { "<a href=\"\($0)\">x</a>\n" }.joined()), url: Self.url)
    #expect(
      outcome.codes == [
        "path-encoded-slash", "path-dot-segment", "path-nul", "path-control-character",
        "path-bidi-character", "path-segment-too-long",
      ])
    #expect(outcome.entries.isEmpty)
  }

  /// A mirror that is served itself has its record beside its files, which is a small file where the record is elsewhere.
  @Test func theRecordOfAMirrorIsLeftOut() {
    let rows = [".tarn/", ".tarn", "a.iso"].map { "<a href=\"\($0)\">x</a>\n" }.joined()
    let outcome = parse(Self.page(rows), url: Self.url)
    #expect(outcome.items.count == 1 && outcome.names == ["a.iso"] && outcome.end?.isComplete == true)
  }

  @Test func neverTakesACutPageForWhole() {
    #expect(cutsThatPassForWhole(Self.good, url: Self.url) == [])
    #expect(parse(String(Self.good.dropLast(20)), url: Self.url).failure?.code == "feed-truncated")
  }

  @Test func tellsPagesApart() {
    #expect(parse("<!DOCTYPE html><title>Sign in</title>").failure?.code == "feed-is-a-web-page")
    #expect(parse(" <html><body>x</html>", place: "sub").failure?.code == "feed-is-a-web-page")
    #expect(parse("").failure?.code == "feed-empty")
    #expect(parse("\u{FEFF} \n").failure?.code == "feed-empty")
    #expect(parse("hello\n").failure?.code == "feed-not-recognised")
    #expect(parse("[]").failure?.code == "feed-not-recognised")
    #expect(
      parse("\(String(repeating: "a", count: 64))  x\n", place: "sub").failure?.code == "feed-not-recognised")
  }

  @Test func readsJSON() {
    let text = """
      [\r
      { "name":"sub dir%", "type":"directory", "mtime":"Tue, 14 Nov 2023 22:13:20 GMT" },
      { "name":"a&b #.txt", "type":"file", "mtime":"Tue, 14 Nov 2023 22:13:20 GMT", "size":12 },
      { "name":"dangling", "type":"other", "mtime":"Tue, 14 Nov 2023 22:13:20 GMT" },
      { "name":"../x", "type":"file", "mtime":"Tue, 14 Nov 2023 22:13:20 GMT", "size":12 }
      ]
      """
    let outcome = parse(text, url: Self.url)
    #expect(outcome.isComplete)
    #expect(outcome.names == ["a&b #.txt"])
    #expect(
      outcome.entries[0].modified
        == Timestamp(year: 2023, month: 11, day: 14, hour: 22, minute: 13, second: 20))
    #expect(outcome.entries[0].modifiedIsExact)
    #expect(outcome.entries[0].sources == [Source(url: "https://example.org/pub/a&b%20%23.txt")])
    #expect(outcome.codes == ["type-not-supported", "path-encoded-slash"])
    #expect(
      outcome.items.first
        == .directory(
          url: "https://example.org/pub/sub%20dir%25/", path: RelativePath(trusted: Array("sub dir%".utf8))))
    #expect(cutsThatPassForWhole(text, url: Self.url) == [])
    #expect(parse("[\r\n]", url: Self.url).isComplete)
  }

  @Test func readsURLLists() {
    let text = """
      # comment
      https://a.example/x%20y.iso?token=1\thttps://b.example/x%20y.iso\r
        http://127.0.0.1:80/ünï.txt
      ftp://example.com/a
      https://a.example/dir/
      https://me:pw@a.example/z
      https://a.example/..%2Fz
      -O option
      """
    let outcome = parse(text)
    #expect(outcome.names == ["x y.iso", "ünï.txt"])
    #expect(
      outcome.entries[0].sources.map(\.url) == [
        "https://a.example/x%20y.iso?token=1", "https://b.example/x%20y.iso",
      ])
    #expect(outcome.entries[1].sources.map(\.url) == ["http://127.0.0.1:80/%C3%BCn%C3%AF.txt"])
    #expect(
      outcome.codes == [
        "scheme-not-supported", "path-empty", "no-usable-source", "path-encoded-slash", "line-malformed",
      ])
    #expect(outcome.end?.isComplete == false)
  }

  /// Its validators are those of a page, not of what lies below it.
  @Test func onlyAnIndexIsOne() {
    #expect(parse("[\r\n]", url: Self.url).end?.isIndex == true)
    let list = String(repeating: "0", count: 64) + "  a\n"
    #expect(parse(list).end?.isIndex == false)
  }
}
