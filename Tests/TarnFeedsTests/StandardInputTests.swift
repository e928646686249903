import TarnCore
import Testing

@testable import TarnFeeds

/// A feed on standard input has no base: no name in it makes Tarn read a local file (I5).
@Suite struct StandardInputTests {
  static let hash = String(repeating: "ab", count: 32)
  private static let manifest = #"{"manifest":{"format":"mirror-manifest/1""#

  /// Documents of which only `good` names a whole URL.
  static let documents = [
    "\(hash)  beside\n",
    manifest + #"},"files":[{"path":"a"},{"path":"b","url":"x"},{"path":"c","url":"/etc/shadow"},"#
      + #"{"path":"d","url":"file:///etc/shadow"},{"path":"e","url":"//localhost/etc/shadow"},"#
      + #"{"path":"good","url":"https://a.example/good"}]}"#,
    manifest + #","mirrors":["file:///etc/","sub/"]},"files":[{"path":"shadow"}]}"#,
    manifest + #","mirrors":["https://a.example/","/etc"]},"files":[{"path":"good"}]}"#,
    MetalinkTests.document(
      "<file name=\"a\"><url>file:///etc/shadow</url><url>b</url></file>"
        + "<file name=\"good\"><url>c</url><url>https://a.example/good</url></file>"),
    IndexTests.page("<a href=\"a\">a</a>\n<a href=\"sub/\">sub/</a>\n<a href=\"file:///etc/b\">b</a>\n"),
    "[\r\n{ \"name\":\"a\", \"type\":\"file\", \"size\":1 },\n{ \"name\":\"sub\", \"type\":\"directory\" }\r\n]",
    "https://a.example/good\nfile:///etc/shadow\n",
  ]

  @Test(arguments: documents) func onlyWholeURLsAreSources(text: String) {
    let outcome = parse(text, url: "")
    #expect(outcome.failure == nil)
    #expect(outcome.names == (text.contains("good") ? ["good"] : []))
    for entry in outcome.entries { #expect(entry.sources.map(\.url) == ["https://a.example/good"]) }
    for refusal in outcome.refused {
      #expect(["no-usable-source", "scheme-not-supported"].contains(refusal.code))
    }
    #expect(!outcome.items.contains { if case .directory = $0 { true } else { false } })
    #expect(outcome.items.count == outcome.entries.count + outcome.refused.count)
  }

  @Test func theRefusalSaysWhy() {
    let outcome = parse("\(Self.hash)  beside\n", url: "")
    #expect(outcome.refused.first?.reason.contains("standard input") == true)
    let local = parse("\(Self.hash)  beside\n", url: "file:///srv/SHA256SUMS")
    #expect(local.entries.first?.sources == [Source(url: "file:///srv/beside")])
  }
}
