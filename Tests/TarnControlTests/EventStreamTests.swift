import Testing

@testable import TarnControl

/// Server-sent events, whatever pieces they come in.
@Suite struct EventStreamTests {
  private static let text =
    "id: a\n\n: beat\n\nid: b\nevent: published\ndata: {\"x\":1}\n\ndata: two\r\ndata:lines\r\n\r\nunknown: 1\n\nid: late"

  private static let events = [
    StreamEvent(id: "a"), StreamEvent(id: "b", name: "published", data: Array(#"{"x":1}"#.utf8)),
    StreamEvent(data: Array("two\nlines".utf8)),
  ]

  @Test(arguments: [1, 2, 3, 7, 1_000])
  func piecesMakeNoDifference(length: Int) {
    var reader = EventStreamReader()
    var events: [StreamEvent] = []
    var rest = Array(Self.text.utf8)[...]
    while !rest.isEmpty {
      #expect(reader.read(rest.prefix(length), into: &events))
      rest = rest.dropFirst(length)
    }
    #expect(events == Self.events)
  }

  @Test func aLineWithoutEndIsNotKept() {
    var reader = EventStreamReader()
    var events: [StreamEvent] = []
    #expect(reader.read([UInt8](repeating: 0x61, count: EventStreamReader.longestLine), into: &events))
    #expect(!reader.read([0x61], into: &events))
  }
}
