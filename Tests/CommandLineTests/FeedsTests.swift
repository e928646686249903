import Foundation
import TarnConfig
import TarnCore
import Testing

@testable import tarn

/// `tarn feeds`.
@Suite struct FeedsTests {
  private func mirrors(_ titles: [String], below folder: String = "/srv") -> [FeedMirror] {
    FeedMirror.all(
      titles.enumerated().map { Subscription(title: Array($1.utf8), url: "https://h\($0).example/f") },
      below: folder, every: "1h")
  }

  @Test func namesAreMadeOfTitles() {
    let titles = [
      "The Daily Show!", "the daily show", "C++ / D: a talk", "", "日本語 ポッドキャスト", "...", "It's", "-x-",
      String(repeating: "long ", count: 40),
    ]
    let mirrors = mirrors(titles)
    #expect(
      mirrors.map(\.name).dropLast() == [
        "the-daily-show", "the-daily-show-2", "c-d-a-talk", "h3-example", "日本語-ポッドキャスト", "h5-example", "its",
        "x",
      ])
    #expect(mirrors.allSatisfy { MirrorSettings.isName($0.name) && $0.folder == "/srv/\($0.name)" })
    #expect(Set(mirrors.map(\.name)).count == titles.count)
    #expect(self.mirrors(["a"], below: "/").map(\.folder) == ["/a"])
  }

  @Test func valuesAreQuoted() throws {
    let odd = FeedMirror(
      name: "日本", title: "a \"b\"", feed: "https://h/?a=\"\\", folder: "/srv/a\"b\n", every: "1h")
    #expect(
      odd.lines == [
        "", "# a \"b\"", "[mirror.\"日本\"]", #"feed = "https://h/?a=\"\\""#, #"folder = "/srv/a\"b\u000A""#,
        "every = \"1h\"",
      ])
  }

  private func run(_ opml: String, _ arguments: [String] = []) throws -> TarnBinary.Result {
    let file = FileManager.default.temporaryDirectory.appendingPathComponent("tarn-\(UUID().uuidString).opml")
    try opml.write(to: file, atomically: true, encoding: .utf8)
    defer { try? FileManager.default.removeItem(at: file) }
    return try TarnBinary.run(["feeds", file.path] + arguments)
  }

  private static let list = """
    <opml version="2.0"><body><outline text="News &amp; more"><outline text="Talk &quot;live&quot;"
      xmlUrl="https://a.example/feed.xml?a=1&amp;b=2"/></outline>
    <outline text="Talk live" xmlUrl="https://b.example/"/></body></opml>
    """

  @Test func aListThatIsNotThereIsNoFeed() throws {
    let result = try TarnBinary.run(["feeds", "nofile"])
    #expect(result.status == 66, "\(result)")
    #expect(
      result.messages == """
        tarn: cannot read nofile: No such file or directory
          hint: check its path, and whether this user may read it

        """)
    // A feed that is gone is named once.
    let feed = try TarnBinary.run(["plan", "file:///none/SHA256SUMS", "x"])
    let said = "cannot read the feed /none/SHA256SUMS: no such file or directory\n  hint: check its path"
    #expect(feed.messages.contains(said), "\(feed)")
  }

  @Test func printsSettings() throws {
    let result = try run(Self.list, ["--folder", "/srv/podcasts"])
    #expect(result.status == 0 && result.messages == "")
    #expect(
      result.output == """
        # Talk "live"
        [mirror.talk-live]
        feed = "https://a.example/feed.xml?a=1&b=2"
        folder = "/srv/podcasts/talk-live"
        every = "1h"

        # Talk live
        [mirror.talk-live-2]
        feed = "https://b.example/"
        folder = "/srv/podcasts/talk-live-2"
        every = "1h"

        """)
  }

  /// What it prints are settings that hold.
  @Test func theSettingsAreGood() throws {
    let result = try run(
      Self.list.replacing("Talk live", with: "日本語 \\ 'x'"), ["--folder", "/srv/a \"b\"", "--every", "1d"])
    let file = FileManager.default.temporaryDirectory.appendingPathComponent("tarn-\(UUID().uuidString).toml")
    try result.output.write(to: file, atomically: true, encoding: .utf8)
    defer { try? FileManager.default.removeItem(at: file) }
    let check = try TarnBinary.run(["config", "check", "--config", file.path])
    #expect(check.status == 0 && check.output.contains("2 mirrors"), "\(check)")
  }

  @Test func printsJSON() throws {
    let result = try run(Self.list, ["--json", "--folder", "/srv"])
    let document = try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [String: Any]
    #expect(document?["schema"] as? String == "tarn-feeds/1")
    let feeds = document?["feeds"] as? [[String: String]]
    #expect(feeds?.map { $0["name"] } == ["talk-live", "talk-live-2"])
    #expect(feeds?.first?["folder"] == "/srv/talk-live")
    #expect(feeds?.first?["title"] == "Talk \"live\"")
  }

  @Test func tellsWhatItLeavesOut() throws {
    let result = try run(Self.list.replacing("https://b.example/", with: "ftp://b.example/"))
    #expect(result.status == 3)
    #expect(
      result.messages.contains(
        "Talk live: its URL begins with 'ftp:', and Tarn fetches over http and https only [feed-not-usable]"))
    #expect(result.output.contains("[mirror.talk-live]"))
  }

  @Test func saysWhatIsNoList() throws {
    for (document, status, message) in [
      ("<opml><body/></opml>", 65 as Int32, "names no feed"), ("<rss/>", 65, "'tarn sync' takes it"),
      ("{}", 65, "not XML"),
    ] {
      let result = try run(document)
      #expect(
        result.status == status && result.output == "" && result.messages.contains(message), "\(result)")
    }
    let missing = try TarnBinary.run(["feeds", "./nothing.opml"])
    #expect(missing.status == 66 && missing.output == "")
    let every = try TarnBinary.run(["feeds", "x.opml", "--every", "often"])
    #expect(every.status == 64 && every.messages.contains("'often' is not a span"))
  }
}
