import TarnCore
import Testing

@testable import TarnFeeds

/// A list over a connection that merely closes may be cut at any line: then nothing is deleted on it.
@Suite struct UnmarkedEndTests {
  private struct Bytes: ByteSource {
    var left: ArraySlice<UInt8>

    mutating func read(into buffer: UnsafeMutableRawBufferPointer) throws(FeedFailure) -> Int {
      let count = min(buffer.count, left.count)
      buffer.copyBytes(from: left.prefix(count))
      left = left.dropFirst(count)
      return count
    }
  }

  @Test(arguments: [
    "d41d8cd98f00b204e9800998ecf8427e  a.txt\n", "http://example.org/a.txt\n",
  ])
  func isNeverComplete(_ text: String) throws {
    for isWhole in [true, false] {
      var document = FeedDocument(url: "http://example.org/list")
      document.isWhole = isWhole
      var entries = 0
      let end = try FeedParser(hashing: TestHashing()).parse(
        Bytes(left: Array(text.utf8)[...]), as: document
      ) { _ in entries += 1 }
      #expect(entries == 1)
      #expect(end.isComplete == isWhole)
    }
  }
}
