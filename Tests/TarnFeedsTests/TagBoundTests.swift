import TarnCore
import Testing

@testable import TarnFeeds

/// A tag costs libxml2 the square of its attributes: what no feed has is refused before it.
@Suite struct TagBoundTests {
  private static func attributes(_ count: Int) -> String {
    (0..<count).map { " a\($0)='\($0)'" }.joined()
  }

  private static func feed(_ attributes: String, _ more: String = "") -> String {
    "<rss version='2.0'><channel>\(more)<item\(attributes)><title>t</title>"
      + "<enclosure url='http://a.example/1'/></item></channel></rss>"
  }

  private static func metalink(_ attributes: String) -> String {
    MetalinkTests.document("<file name=\"b\"\(attributes)><url>https://c.example/b</url></file>")
  }

  @Test(arguments: [300_000, 1001]) func attributesWithoutEndAreRefused(_ count: Int) {
    for text in [Self.feed(Self.attributes(count)), Self.metalink(Self.attributes(count))] {
      let failure = parse(text).failure
      #expect(failure?.code == "feed-malformed")
      #expect(failure?.message == "a tag has more than 1000 attributes")
    }
  }

  @Test func aTagWithoutEndIsRefused() {
    let long = " a='\(String(repeating: "x", count: TagBound.longestTag))'"
    for text in [Self.feed(long), Self.metalink(long)] {
      #expect(parse(text).failure?.message == "a tag is longer than 4 MiB")
    }
  }

  @Test(arguments: [1, 7, 1 << 20]) func whatIsNoTagIsNotCounted(step: Int) {
    let signs = String(repeating: "<a =\"='", count: 1200)
    let text = Self.feed(
      Self.attributes(900), "<!-- \(signs) --><description><![CDATA[\(signs)]]></description><?a \(signs)?>")
    #expect(parse(text, step: step).enclosures.count == 1)
    let long = " a='\(String(repeating: "=", count: 2000))'"
    #expect(parse(Self.feed(long), step: step).enclosures.count == 1)
    #expect(parse(Self.metalink(Self.attributes(900)), step: step).names == ["b"])
  }
}
