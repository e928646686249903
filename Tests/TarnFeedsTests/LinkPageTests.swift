import TarnCore
import Testing

@testable import TarnFeeds

/// `--format links`, and `--format` at all.
@Suite struct LinkPageTests {
  static let url = "https://example.org/pub/"

  static func read(
    _ text: String, as format: FormatChoice = .links, url: String = url, place: String? = nil,
    contentType: String? = nil, step: Int = 1 << 20
  ) -> Outcome {
    let place = place.map { RelativePath(trusted: Array($0.utf8)) }
    let document = FeedDocument(url: url, contentType: contentType, place: place, format: format)
    return Outcome.of(Array(text.utf8), document, hashing: TestHashing(), step: step)
  }

  static let page = """
    <!DOCTYPE html>
    <html><head><title>Downloads</title><script>document.write("<a href='script.txt'>x</a>")</script></head><body>
    <!-- <a href="comment.txt">x</a> -->
    <ul><li><a href="../">up</a><li><a href="/">home</a><li><a href="?C=N;O=D">sort</a><li><a href="#top">top</a>
    <li><a href="./">here</a><li><a href="/pub/">here</a><li><a href=" a%20b.iso ">a</a><li><a href='a%20b.iso#part'>again</a>
    <li><A HREF=/pub/c.iso>c</A><li><a href="https://example.org/pub/d.iso">d</a>
    <li><a href="http://example.org/pub/http.iso">x</a><li><a href="//other.example/pub/other.iso">x</a>
    <li><a href="/public/e.iso">x</a><li><a href="sub/">s</a><li><a href="/pub/sub/">again</a>
    <li><a href="deep/er/f.iso">f</a><li><a href="sub/?C=M">sorted</a><li><a href="get.php?id=1">x</a>
    <li><a href="mailto:a@b">m</a><li><a href="javascript:void(0)">j</a><li><a name="anchor">n</a></ul>
    <map><area href="map.png"></map><link href="style.css"><img src="image.png"></body></html>
    """

  @Test func takesTheLinksThatLeadBelow() {
    let outcome = Self.read(Self.page)
    #expect(
      outcome.names == ["a b.iso", "c.iso", "d.iso", "deep/er/f.iso", "map.png"], "\(outcome)")
    #expect(
      outcome.entries.flatMap { $0.sources.map(\.url) } == [
        "https://example.org/pub/a%20b.iso", "https://example.org/pub/c.iso", "https://example.org/pub/d.iso",
        "https://example.org/pub/deep/er/f.iso", "https://example.org/pub/map.png",
      ])
    #expect(
      outcome.items.contains(
        .directory(url: "https://example.org/pub/sub/", path: RelativePath(trusted: Array("sub".utf8)))))
    #expect(outcome.items.count == 6)
    #expect(outcome.entries.allSatisfy { $0.mayBeDirectory && !$0.hasFingerprint })
  }

  /// Nothing is deleted for not being linked.
  @Test func isNeverComplete() {
    let outcome = Self.read(Self.page)
    #expect(outcome.end?.isComplete == false)
    #expect(outcome.end?.isIndex == true)
    #expect(outcome.end?.notice?.message.hasPrefix("2 links with a query, such as that to ") == true)
    #expect(Self.read("<html><a href=\"a\">a</a></html>").end?.isComplete == false)
    #expect(Self.read(IndexTests.good).end?.isComplete == false)
  }

  @Test func doesNotDependOnTheBlocks() {
    let whole = Self.read(Self.page)
    for step in [1, 2, 3, 7, 4096] { #expect(Self.read(Self.page, step: step) == whole, "\(step)") }
  }

  @Test func putsLinksInTheirPlace() {
    let outcome = Self.read(Self.page, place: "deep/er")
    #expect(outcome.names.first == "deep/er/a b.iso")
    #expect(outcome.names.contains("deep/er/deep/er/f.iso"))
    #expect(Self.read("<html></html>", place: "sub").items.isEmpty)
    #expect(Self.read("<html></html>", place: "sub").failure == nil)
  }

  /// A link that lacks its slash leads to a directory that another one names, whichever comes first.
  @Test func aDirectoryIsNamedWithAndWithoutItsSlash() {
    for links in [["dir", "dir/"], ["dir/", "dir"]] {
      let page = "<html>" + (links + ["z.iso"]).map { "<a href=\"\($0)\">x</a>" }.joined()
      let outcome = Self.read(page)
      #expect(outcome.names == ["z.iso"] && outcome.items.count == 2 && outcome.refused.isEmpty, "\(outcome)")
    }
  }

  /// The first of them counts; `below` is still what is below the page.
  @Test func followsTheBaseOfThePage() {
    let page =
      "<html><base href=\"/pub/files/\"><base href=\"/else/\"><a href=\"a.iso\">a</a><a href=\"../b.iso\">b</a></html>"
    #expect(Self.read(page).names == ["files/a.iso", "b.iso"])
  }

  @Test func refusesHostileNames() {
    let names = [
      "..%2Fup", "a/%2e%2e/b", "a%00b", ".tarn/x", "x/%2Fy/z", "%E2%80%AEx",
      String(repeating: "n", count: 256),
    ]
    let outcome = Self.read("<html>" + names.map { "<a href=\"\($0)\">x</a>" }.joined() + "</html>")
    #expect(
      outcome.codes == [
        "path-encoded-slash", "path-dot-segment", "path-nul", "path-reserved", "path-encoded-slash",
        "path-bidi-character", "path-segment-too-long",
      ])
    #expect(outcome.entries.isEmpty)
  }

  /// A login page in its place, or the page of another place.
  @Test func aPageWithoutSuchLinksIsNoFeed() {
    let login = "<html><form action=\"/login\"><a href=\"/forgot?next=/pub/\">Forgot?</a></form></html>"
    #expect(Self.read(login).failure?.code == "feed-without-links")
    for text in ["{\"files\":[]}", "hello", "<?xml version=\"1.0\"?><rss></rss>", "a.iso\n"] {
      #expect(Self.read(text).failure?.code == "feed-not-recognised", "\(text)")
    }
    #expect(Self.read("").failure?.code == "feed-empty")
  }

  /// It has a link or two of its own, and stands where the root or a directory was.
  @Test(arguments: [nil, "s"]) func aLoginPageIsNoListing(place: String?) {
    let field = "<form method=post><input name=u><INPUT TYPE=Password></form>"
    let login = "<html><title>Login</title>\(field)<a href=\"help\">Help</a></html>"
    #expect(Self.read(login, place: place).failure?.code == "feed-is-a-web-page")
    #expect(Self.read("<html>\(field)</html>", place: place).failure?.code == "feed-is-a-web-page")
    // An icon and a name for each file, and the links of the site.
    let files = ["a", "b"].map { "<a href=\"\($0)\"><img></a><a href=\"\($0)\">\($0)</a>" }.joined()
    let listing = "<html>\(field)<a href=\"/\">home</a><a href=\"/help\">help</a>\(files)</html>"
    #expect(Self.read(listing, place: place).names.count == 2)
  }

  /// A page of a server that Tarn does not know (HFS, h5ai, snif, Directory Lister and others).
  @Test(.enabled(if: Corpus.directory != nil, "no captured feeds: set TARN_FEEDS"))
  func readsPagesThatNoDialectReads() {
    var counts = (pages: 0, files: 0, directories: 0)
    for (name, code) in IndexCorpusTests.refused where code == "feed-is-a-web-page" {
      guard let wanted = IndexCorpusTests.expected[name] else { continue }
      let text = String(decoding: Corpus.bytes("autoindex-samples/" + name), as: UTF8.self)
      let outcome = Self.read(text, url: wanted.url)
      #expect(outcome.faultsOfLinks == [], "\(name)")
      counts.pages += 1
      counts.files += outcome.entries.count
      counts.directories += outcome.items.count - outcome.entries.count - outcome.refused.count
    }
    print("links of \(counts.pages) pages: \(counts.files) files, \(counts.directories) directories")
    #expect(counts.pages > 10 && counts.files > 100)
  }

  // MARK: Other choices

  @Test func readsAsWhatIsAskedFor() {
    let sums = String(repeating: "0", count: 64) + "  a.iso\n"
    #expect(Self.read(sums, as: .checksums).names == ["a.iso"])
    #expect(Self.read(sums, as: .auto).names == ["a.iso"])
    for choice in [FormatChoice.rss, .index, .links, .manifest, .metalink] {
      let failure = Self.read(sums, as: choice).failure
      #expect(failure?.code == "feed-not-recognised", "\(choice)")
      #expect(failure?.message.contains("--format \(choice.rawValue)") == true, "\(choice)")
    }
    #expect(Self.read(IndexTests.good, as: .index).isComplete)
    #expect(
      Self.read(IndexTests.good, as: .checksums).failure != nil
        || !Self.read(IndexTests.good, as: .checksums).isComplete)
    #expect(Self.read("https://a.example/x.iso\n", as: .urls).names == ["x.iso"])
  }

  /// Every format has one choice beside `auto`, so that each can be asked for.
  @Test func everyFormatHasItsChoice() {
    let choices = FormatChoice.allCases.filter { $0 != .auto && $0 != .links }
    let asked = choices.flatMap { FeedParser.formats(of: $0).map(\.name) }.sorted()
    #expect(asked == FeedParser.formats.map(\.name).sorted())
  }
}

extension Outcome {
  /// As `faults`, of a feed that did not come over https.
  fileprivate var faultsOfLinks: [String] {
    var faults: [String] = []
    if (end == nil) == (failure == nil) { faults.append("neither an end nor a failure, or both") }
    if entries.contains(where: { $0.sources.count != 1 }) { faults.append("an entry without its URL") }
    return faults
  }
}
