import TarnCore
import Testing

@testable import TarnFeeds

@Suite struct JSONFeedTests {
  static let good = #"""
    {"title":"Pod","version":"https:\/\/jsonfeed.org\/version\/1.1","next_url":"p2","items":[
    {"id":1234,"title":" Two\nlines <b> ","date_published":"2023-11-14T22:13:20Z","date_modified":"2024-01-01",
     "attachments":[{"url":"audio/ü 1.m4a","mime_type":"audio/x-m4a","title":"Ep 1","size_in_bytes":89970236},
     {"url":"audio/1.mp3","title":"Ep 1"},{"url":"https://b.example/2","size_in_bytes":"77"}]},
    {"id":" b ","attachments":[{"mime_type":"audio/mpeg"},{"url":"ftp://x.example/y","size_in_bytes":1.5}]},
    {"id":null,"title":null,"date_modified":"2024-01-01T00:00:00+01:00","attachments":[{"url":"/c","size_in_bytes":0}]},
    7, {"id":"d","attachments":null}]}
    """#

  @Test func reads() throws {
    let outcome = parse(Self.good)
    #expect(outcome.failure == nil)
    #expect(outcome.end?.format == "JSON Feed")
    #expect(outcome.end?.isComplete == false)
    #expect(outcome.end?.next == "https://example.org/pub/p2")
    let files = outcome.enclosures
    try #require(files.count == 3)
    #expect(
      files.map(\.sources[0].url) == [
        "https://example.org/pub/audio/%C3%BC%201.m4a", "https://b.example/2", "https://example.org/c",
      ])
    #expect(files.map { $0.guid.map(text) } == ["1234", "1234", nil])
    #expect(files.map(\.length) == [89_970_236, 77, nil])
    #expect(files.map(\.position) == [0, 0, 2])
    #expect(files.map(\.ordinal) == [0, 1, 0])
    #expect(text(files[0].title) == "Two lines")
    #expect(
      files.map { $0.date?.rfc3339 } == [
        "2023-11-14T22:13:20Z", "2023-11-14T22:13:20Z", "2023-12-31T23:00:00Z",
      ])
    #expect(outcome.codes == ["scheme-not-supported", "enclosure-without-url"])
  }

  @Test(arguments: [
    #"{"version":"https://jsonfeed.org/version/1","items":[{"id":"a"}"#,
    #"{"version":"https://jsonfeed.org/version/1","items":[}"#,
    #"{"version":"https://jsonfeed.org/version/1"} x"#,
  ])
  func failsOnDamage(document: String) {
    #expect(parse(document).failure?.code.hasPrefix("feed-") == true)
  }

  @Test func oneAttachmentNeedsNoList() {
    func read(_ attachments: String) -> Outcome {
      parse(
        #"{"version":"https://jsonfeed.org/version/1","items":[{"id":"a","attachments":"# + attachments
          + "}]}")
    }
    #expect(read(#"{"url":"/a.mp3"}"#).enclosures.map(\.sources[0].url) == ["https://example.org/a.mp3"])
    for odd in ["{}", "\"/a.mp3\"", "[\"/a.mp3\"]", "7"] {
      #expect(read(odd).codes == ["enclosure-without-url"], "\(odd)")
    }
    #expect(read("null").codes.isEmpty && read("[null]").codes.isEmpty)
  }

  /// As samples of readers have it.
  @Test func itsVersionMayBeANumber() {
    let item = #""items":[{"id":"a","url":"u","attachments":[{"url":"/a.mp3"}]}]}"#
    for version in ["1", "1.0", "1.1"] {
      for written in ["\"\(version)\"", version] {
        let outcome = parse("{\"version\":\(written),\"title\":\"t\",\(item)")
        #expect(outcome.end?.format == "JSON Feed" && outcome.enclosures.count == 1, "\(written)")
      }
    }
    for other in [
      "{\"version\":\"2\",\(item)", "{\"version\":2,\(item)", #"{"version":"1.0","items":[{"name":"a"}]}"#,
      #"{"version":"1.0","items":[]}"#,
      #"{"version":"1.0","items":{"attachments":1}}"#,
    ] {
      #expect(parse(other).end?.format != "JSON Feed", "\(other)")
    }
  }

  @Test func isAWindowEvenWithoutItems() {
    let outcome = parse(#"{"version":"https://jsonfeed.org/version/1"}"#)
    #expect(outcome.end?.isComplete == false)
    #expect(outcome.items.isEmpty)
  }
}
