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

  /// What only begins like a comment or a CDATA section hides no tag.
  @Test(arguments: ["<!---><![CDATA[-->", "<!-->--><!-->]]>-->"])
  func noCommentHidesATag(_ comment: String) {
    let file = "<url>https://c.example/b</url></file>"
    for (count, message) in [(1001, "a tag has more than 1000 attributes"), (900, nil)] as [(Int, String?)] {
      let text = MetalinkTests.document("\(comment)<file name=\"b\"\(Self.attributes(count))>\(file)")
      let outcome = parse(text)
      #expect(outcome.failure?.message == message)
      #expect(outcome.names == (message == nil ? ["b"] : []))
    }
  }

  /// In UTF-7 these are tags.
  @Test func noEncodingThatIsDeclaredHidesATag() {
    let text = MetalinkTests.document(
      "+ADw-file name='b'\(Self.attributes(1001))+AD4-+ADw-url+AD4-https://c.example/b+ADw-/url+AD4-+ADw-/file+AD4-"
    )
    let outcome = parse(text.replacing("UTF-8", with: "UTF-7"))
    #expect(outcome.failure == nil && outcome.names.isEmpty)
  }

  /// The comment is `<metalink` to who reads bytes.
  @Test func noWideLettersHideATag() {
    let start = "<?xml version='1.0'?><!-- \u{6D3C}\u{7465}\u{6C61}\u{6E69}\u{206B} -->"
    for (count, message) in [(1001, "a tag has more than 1000 attributes"), (900, nil)] as [(Int, String?)] {
      let text =
        start + "<metalink xmlns='\(Metalink.namespace)'><file name='b'\(Self.attributes(count))>"
        + "<url>https://c.example/b</url></file></metalink>"
      let bytes = text.utf16.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }
      let outcome = parse(bytes)
      #expect(outcome.failure?.message == message)
      #expect(outcome.names == (message == nil ? ["b"] : []))
      #expect(parse([0xEF, 0xBB, 0xBF] + bytes).failure?.message == "the XML has a zero byte")
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
