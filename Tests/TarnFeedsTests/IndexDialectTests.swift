import TarnCore
import Testing

@testable import TarnFeeds

@Suite struct IndexDialectTests {
  static let url = IndexTests.url
  static let moment = IndexServersTests.moment

  /// `name size time [listing]` of each file, and `name/` of each directory.
  private func lines(_ outcome: Outcome) -> [String] {
    outcome.items.map { item in
      switch item {
      case .entry(let entry):
        [
          entry.path.printable, entry.size.map(String.init) ?? "-", entry.modified.map { $0.rfc3339 } ?? "-",
          "[\(String(decoding: entry.listing, as: UTF8.self))]",
        ].joined(separator: " ")
      case .directory(let url, let path):
        "\(path.printable)/ \(url.dropFirst("https://example.org/pub/".count))"
      case .refused(let refusal): "refused \(refusal.code)"
      case .deleted, .enclosure: "?"
      }
    }
  }

  @Test(arguments: [
    (
      IndexPages.caddy27,
      [
        "sub dir%/ sub%20dir%25/", "a&b.iso 5 2023-11-14T22:13:20Z []", "link 2 - [2023-11-14T22:13:20Z]",
      ]
    ),
    (
      IndexPages.fancyUnescaped,
      ["sub dir%/ sub%20dir%25/", "a.mkv - - [865.5 MiB 2016-Aug-21 18:57]"]
    ),
    (IndexPages.fancyOld, ["a.iso - - [863M 2019-Apr-07 12:31]", "b.txt 512 - [512 2019-Apr-07 12:31]"]),
    (IndexPages.apacheIndexList, ["3D Pool.zip - - [1.5M]", "sub/ sub/"]),
    (IndexPages.apache13, ["sub/ sub/", "a.txt - - [16-Apr-2020 17:20 1.9M]"]),
    (
      IndexPages.maven,
      ["0.3-3/ 0.3-3/", "a.jar 733741 2005-09-21T03:35:00Z [2005-09-21 03:35 733741]", "old/ old/"]
    ),
    (
      IndexPages.artifactory(breaking: "   "),
      [
        "include/ include/", "a.info 78 - [17-Jan-2019 19:40 78 bytes]",
        "a.zip - - [17-Jan-2019 19:40 1.26 MB]", "far.xml - - [- -]",
      ]
    ),
    (
      IndexPages.artifactory(breaking: "\n            "),
      [
        "include/ include/", "a.info 78 - [17-Jan-2019 19:40 78 bytes]",
        "a.zip - - [17-Jan-2019 19:40 1.26 MB]", "far.xml - - [- -]",
      ]
    ),
    (
      IndexPages.tomcat,
      ["sub dir/ sub%20dir/", "a.jpg - 2023-11-14T22:13:20Z [38.0 kb Tue, 14 Nov 2023 22:13:20 GMT]"]
    ),
    (
      IndexPages.tomcat10,
      ["sub/ sub/", "colon: colon.txt - 2023-11-14T22:13:20Z [4.0 KiB Tue, 14 Nov 2023 22:13:20 GMT]"]
    ),
    (IndexPages.liteSpeed, ["sub/ sub/", "360.mp4 - - [19-Jul-2018 03:39 21836k]"]),
    (IndexPages.liteSpeedTable, ["sub/ sub/", "a.txt - - [2024-10-28 15:20 4k]"]),
    (IndexPages.liteSpeedPlain, ["sub/ sub/", "a.txt - - []"]),
    (IndexPages.mozilla, ["sub/ sub/", "a.zip - - [3M 27-Oct-2015 17:38]"]),
    (IndexPages.darkhttpd, ["sub/ sub/", "a.mp4 1202701165 - [1202701165]"]),
    (IndexPages.darkhttpdNew, ["sub/ sub/", "a.mp4 1202701165 - [2024-03-01 10:20 1202701165]"]),
    (IndexPages.miniserveOld, ["sub/ sub/", "a.url 226 - [226 B]"]),
    (
      IndexPages.miniserve,
      ["sub/ sub/", "a.iso - 2023-11-14T22:13:20Z [1.5 GiB]", "link 12 - [12 B]"]
    ),
    (
      IndexPages.webfs,
      [
        "dir&amp/ dir&amp/", "&amp;literal.txt 2 - [Nov 14 2023 2 B]", "a&b.iso - - [Nov 21 03:52 14 MB]",
        "take:2 0 - [Nov 21 03:52 0 B]",
      ]
    ),
    (
      IndexPages.nginxXML,
      [
        "sub dir%/ sub%20dir%25/", "a&b #.txt 12 2023-11-14T22:13:20Z []", "refused type-not-supported",
        "refused path-encoded-slash",
      ]
    ),
  ])
  func readsRows(text: String, wanted: [String]) {
    let outcome = parse(text, url: Self.url)
    #expect(outcome.isComplete, "\(outcome)")
    #expect(lines(outcome) == wanted, "\(outcome.end?.format ?? "")")
  }

  @Test(arguments: IndexPages.more.indices)
  func doesNotDependOnTheBlocks(index: Int) {
    let (name, text) = IndexPages.more[index]
    let bytes = Array(text.utf8)
    let whole = parse(bytes, url: Self.url)
    #expect(whole.end?.format == name, "\(whole)")
    for step in [1, 2, 3, 7, 4096] { #expect(parse(bytes, url: Self.url, step: step) == whole, "\(step)") }
    #expect(parse(text, url: Self.url, place: "deep/er").items.count == whole.items.count)
  }

  @Test(arguments: IndexPages.more.indices)
  func neverTakesACutPageForWhole(index: Int) {
    #expect(cutsThatPassForWhole(IndexPages.more[index].text, url: Self.url) == [])
  }

  /// The view of Caddy without a table says so.
  @Test func tellsTheGridOfCaddy() {
    let grid = """
      <!DOCTYPE html><html><body><div class='listing grid'><div class="entry"><a href="./a.iso" title='x'>
      <div class="name">a.iso</div><div class="size">5 B</div></a></div></div></body></html>
      """
    let failure = parse(grid, url: Self.url + "?layout=grid").failure
    #expect(failure?.code == "index-layout")
    #expect(failure?.message.contains("layout=grid") == true)
  }

  /// A page of somebody's own with lighttpd's attribute, and two links a row [63a].
  @Test func takesNoOtherTableForLighttpd() {
    let page = """
      <html><title>Index of /p</title><h1>Index of /p</h1><table summary="Directory Listing">
      <tr><td><a href="./d/">d/</a><td><a href="./d.zip">2 GB</a></tr></table></html>
      """
    #expect(parse(page, url: Self.url).failure?.code == "feed-is-a-web-page")
    let rows = IndexPages.lighttpd.replacing(
      "<td class=\"s\">0.1K</td>", with: "<td class=\"s\"><a href=\"./d.zip\">0.1K</a></td>")
    #expect(rows != IndexPages.lighttpd)
    #expect(parse(rows, url: Self.url).names == ["a&b.txt"])
  }

  /// Such a `%` can only mean itself; a server that knows its own names decodes it once.
  @Test func encodesAPercentSignThatBeginsNoCode() {
    let page = IndexTests.page(
      "<a href=\"100%%20done%.txt\">x</a>\n<a href=\"a%2\">x</a>\n<a href=\"%zz%41\">x</a>\n")
    let outcome = parse(page, url: Self.url)
    #expect(outcome.names == ["100% done%.txt", "a%2", "%zzA"])
    #expect(
      outcome.entries.flatMap { $0.sources.map(\.url) } == [
        "https://example.org/pub/100%25%20done%25.txt", "https://example.org/pub/a%252",
        "https://example.org/pub/%25zz%41",
      ])
  }

  /// RFC 3986 takes `Sub:Dir/` for a URL of the scheme `sub`: as browsers do, Tarn does not follow it, but says so.
  @Test func namesWhatReadsAsAnotherScheme() {
    let page = IndexTests.page(
      "<a href=\"Sub:Dir/\">x</a>\n<a href=\"a%20b:c.txt\">x</a>\n<a href=\"Take:2.flac\">x</a>\n"
        + "<a href=\"./kept:x\">x</a>\n<a href=\"12:30.txt\">x</a>\n"
        + "<a href=\"mailto:a@b\">x</a>\n<a href=\"magnet:?xt=urn:x\">x</a>\n<a href=\"ftp://example.org/x\">x</a>\n"
    )
    let outcome = parse(page, url: Self.url)
    #expect(outcome.names == ["a b:c.txt", "kept:x", "12:30.txt"])
    #expect(outcome.codes == ["url-not-relative", "url-not-relative"])
    #expect(outcome.refused.map { String(decoding: $0.name, as: UTF8.self) } == ["Sub:Dir", "Take:2.flac"])
  }

  /// miniserve and fancyindex hand the order of a list on to the directories below; of a file nobody knows what a
  /// query stands for.
  @Test func neverTrustsAListWithQueries() {
    let sorted = IndexPages.miniserve.replacing("/pub/sub/\"", with: "/pub/sub/?sort=size\"")
    #expect(sorted != IndexPages.miniserve)
    #expect(
      parse(sorted, url: Self.url + "?sort=size").items == parse(IndexPages.miniserve, url: Self.url).items)
    #expect(parse(sorted, url: Self.url).isComplete)
    let asking = IndexPages.miniserve.replacing("/pub/link\"", with: "/pub/link?raw=true\"")
    let outcome = parse(asking, url: Self.url)
    #expect(outcome.names == ["a.iso"])
    #expect(outcome.end?.isComplete == false)
  }

  @Test func readsNothingButTheListOfNginx() {
    #expect(parse("<?xml version=\"1.0\"?>\r\n<list>\r\n</list>\r\n", url: Self.url).isComplete)
    let others = [
      "<?xml version=\"1.0\"?><list><item>x</item></list>",
      "<list><file mtime=\"x\" size=\"1\">a</file></list>",
      "<?xml version=\"1.0\"?><list><file name=\"x\"/></list>",
    ]
    for text in others {
      #expect(parse(text, url: Self.url).failure?.code == "feed-not-recognised", "\(text)")
    }
    let mixed = IndexPages.nginxXML.replacing("</list>", with: "<item mtime=\"x\">y</item>\r\n</list>")
    #expect(parse(mixed, url: Self.url).failure?.code == "feed-malformed")
    let nested = IndexPages.nginxXML.replacing(
      "</list>", with: "<file mtime=\"x\" size=\"1\"><file mtime=\"x\" size=\"1\">a</file></file>\r\n</list>")
    #expect(parse(nested, url: Self.url).failure?.code == "feed-malformed")
    let size = IndexPages.nginxXML.replacing("size=\"12\"", with: "size=\"1K\"")
    #expect(parse(size, url: Self.url).codes.first == "size-malformed")
    let bytes = IndexPages.nginxXML.utf8.map { $0 == UInt8(ascii: "#") ? 0xE9 : $0 }
    let outcome = parse(bytes, url: Self.url)
    #expect(outcome.isComplete)
    #expect(outcome.entries[0].path.bytes == Array("a&b ".utf8) + [0xE9] + Array(".txt".utf8))
    let broken = IndexPages.nginxXML.replacing(">dangling<", with: ">dang\nling<")
    #expect(parse(broken, url: Self.url).isComplete)
    #expect(parse(IndexPages.nginxXML + "<p>", url: Self.url).failure?.code == "feed-malformed")
    let type = IndexPages.nginxXML.replacing("<list>", with: "<!DOCTYPE list><list>")
    #expect(parse(type, url: Self.url).failure != nil)
  }

  /// What Tarn asks a directory's URL for may be JSON, of an empty directory, too.
  @Test func knowsAnEmptyDirectoryOfCaddy() {
    func outcome(_ text: String, _ url: String, _ type: String?) -> Outcome {
      parse(Array(text.utf8), url: url, contentType: type)
    }
    for text in ["[]\n", "null\n"] {
      let empty = outcome(text, Self.url, "application/json; charset=utf-8")
      #expect(empty.isComplete && empty.items.isEmpty, "\(empty)")
      #expect(empty.end?.format == "Caddy JSON index")
      #expect(outcome(text, Self.url, "text/plain").failure?.code == "feed-not-recognised")
      #expect(
        outcome(text, "https://example.org/api", "application/json").failure?.code == "feed-not-recognised")
    }
  }
}
