import TarnCore
import Testing

@testable import TarnFeeds

/// A local feed may be anybody's, too: it names files of its own directory and below, and no other local file (I5).
@Suite struct LocalFeedTests {
  private static let feed = "file:///srv/my%20feeds/list"

  private func manifest(_ url: String, mirrors: String = "") -> String {
    #"{"manifest":{"format":"mirror-manifest/1"\#(mirrors)},"files":[{"path":"x","url":"\#(url)"},"#
      + #"{"path":"good","url":"sub/good"}]}"#
  }

  @Test(arguments: [
    "file:///etc/shadow", "file://localhost/etc/shadow", "file:/etc/shadow", "/etc/shadow",
    "//localhost/etc/shadow",
    "../../etc/shadow", "../x", "%2e%2e/x", "..%2Fx", "sub/%2E./..%2f../x", "file:///srv/my%20feeds/%2e%2e/x",
    "file:///srv/my%20feedsX/x", "file:///srv/my%2520feeds/x", "file:///srv/my%20feeds/x%00", "file:///srv",
    "file:///srv/MY%20FEEDS/x",
  ])
  func aFileElsewhereIsRefused(url: String) {
    let outcome = parse(manifest(url), url: Self.feed)
    #expect(outcome.failure == nil)
    #expect(outcome.codes == ["no-usable-source"])
    #expect(outcome.refused.first?.reason.contains("own directory") == true)
    #expect(outcome.entries.flatMap(\.sources).map(\.url) == ["file:///srv/my%20feeds/sub/good"])
  }

  @Test(arguments: [
    "x", "sub/x", "./x", "sub/../x", "%78", "sub/%2e%2e/x", "file:///srv/my%20feeds/x", "/srv/my%20feeds/x",
    "file:///srv/%6Dy%20feeds/x", "file://localhost/srv/my%20feeds/x", "https://a.example/x",
  ])
  func aFileBesideOrBelowIsTaken(url: String) {
    #expect(parse(manifest(url), url: Self.feed).names == ["x", "good"])
  }

  @Test(arguments: [
    ("file:///etc/", false), ("../", false), ("%2e%2e/", false), (".", true), ("sub", true),
    ("file:///srv/my%20feeds/", true),
  ])
  func soAreItsMirrors(mirror: String, isTaken: Bool) {
    let text =
      #"{"manifest":{"format":"mirror-manifest/1","mirrors":["\#(mirror)"]},"files":[{"path":"x"}]}"#
    #expect(parse(text, url: Self.feed).codes == (isTaken ? [] : ["no-usable-source"]))
  }

  @Test func aBaseLeadsNoFurther() {
    let metalink = MetalinkTests.document(
      "<file name=\"a\"><url>file:///etc/shadow</url><url>b</url></file>"
        + "<file name=\"c\"><url>../../etc/shadow</url></file>")
    let outcome = parse(metalink, url: Self.feed)
    #expect(outcome.entries.flatMap(\.sources).map(\.url) == ["file:///srv/my%20feeds/b"])
    #expect(outcome.codes == ["no-usable-source"])
    for base in ["file:///etc/", "/etc/", "../../etc/"] {
      let window = parse(
        "<feed xmlns=\"http://www.w3.org/2005/Atom\" xml:base=\"\(base)\"><entry><title>t</title>"
          + "<link rel=\"enclosure\" href=\"shadow\"/></entry></feed>", url: Self.feed)
      #expect(window.enclosures.isEmpty && window.codes == ["no-usable-source"], "\(base): \(window.items)")
    }
  }

  @Test func aFeedInTheRootHoldsEverything() {
    #expect(parse(manifest("/etc/x"), url: "file:///list").names == ["x", "good"])
  }

  /// From a server no local file at all, wherever it lies.
  @Test(arguments: ["file:///srv/x", "file://localhost/etc/shadow", "file:/etc/shadow", "FILE:///etc/shadow"])
  func aRemoteFeedNamesNoLocalFile(url: String) {
    #expect(parse(manifest(url), url: "https://a.example/srv/list").codes == ["no-usable-source"])
    let window = parse(
      "<rss version=\"2.0\"><channel><item><title>t</title><enclosure url=\"\(url)\"/></item></channel></rss>",
      url: "https://a.example/srv/list")
    #expect(window.enclosures.isEmpty && window.codes == ["scheme-not-supported"])
  }
}
