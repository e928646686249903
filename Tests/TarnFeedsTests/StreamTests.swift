import CZlib
import TarnCore
import Testing

@testable import TarnFeeds

@Suite struct StreamTests {
  static let hash = String(repeating: "ab", count: 32)
  static let list = "\(String(repeating: "ab", count: 32))  x\n\(String(repeating: "cd", count: 32)) *y z\r\n"
  static let documents: [String] = [
    list, "https://a.example/x\nhttps://a.example/y\n", IndexTests.good, MetalinkTests.good,
    ManifestTests.closed([ManifestTests.header, #"{"path":"a","size":3}"#], files: 1, bytes: 3),
    #"{"manifest":{"format":"mirror-manifest/1"},"files":[{"path":"aü\u00e9"},{"path":"b","size":12}]}"#,
    MirrorListTests.good, OtherListTests.hashdeep, OtherListTests.sfv, OtherListTests.aria2,
    "http://a.example/fedora/\nftp://b.example/\n",
    ChecksumFormsTests.gpg(ChecksumFormsTests.sha512, name: "a-1.0.tar.gz"),
    "a.txt \(ChecksumFormsTests.sha256)\nb.txt md5:\(ChecksumFormsTests.md5)\n",
    "[\r\n{ \"name\":\"a\", \"type\":\"file\", \"mtime\":\"Tue, 14 Nov 2023 22:13:20 GMT\", \"size\":12 }\r\n]",
  ]

  @Test(arguments: documents.indices)
  func doesNotDependOnTheBlocks(index: Int) {
    let bytes = Array(Self.documents[index].utf8)
    let whole = parse(bytes)
    #expect(whole.failure == nil)
    #expect(!whole.items.isEmpty)
    for step in [1, 2, 3, 7, 4096] {
      #expect(parse(bytes, step: step) == whole, "step \(step)")
      #expect(parse(gzip(bytes), step: step) == whole, "gzip, step \(step)")
    }
  }

  @Test func readsMoreThanOneBuffer() {
    let lines = (0..<20_000).map { "\(String(repeating: "ab", count: 32))  file-\($0)\n" }.joined()
    let outcome = parse(lines, step: 4096)
    #expect(outcome.entries.count == 20_000)
    #expect(outcome == parse(lines))
    let files = (0..<20_000).map { #"{"path":"file-\#($0)"}"# }.joined(separator: ",\n")
    let document = #"{"manifest":{"format":"mirror-manifest/1"},"files":[\#(files)]}"#
    #expect(parse(document, step: 4096).entries.count == 20_000)
  }

  @Test func readsAllMembers() {
    let bytes = Array(Self.list.utf8)
    let outcome = parse(gzip(Array(bytes[..<30])) + gzip(Array(bytes[30...])) + [0, 0, 0])
    #expect(outcome == parse(bytes))
  }

  @Test func failsOnDamagedGzip() {
    let good = gzip(Array(Self.list.utf8))
    for count in 2..<good.count {
      #expect(parse(Array(good[..<count])).failure?.code == "feed-truncated", "cut at \(count)")
    }
    var damaged = good
    damaged[good.count - 5] ^= 0xFF
    #expect(parse(damaged).failure?.code == "feed-malformed")
    #expect(parse(good + Array("more".utf8)).failure?.code == "feed-malformed")
    #expect(parse(gzip(good)).failure?.code == "feed-malformed")
  }

  /// What repeats itself so is no list of files, whatever it is.
  @Test func stopsBombs() throws {
    let most = Int(GzipSource.unjudgedOutput)
    #expect(try inflated(most, most: 1 << 30) == most)
    let failure = #expect(throws: FeedFailure.self) { try inflated(most + 100_000, most: 1 << 30) }
    #expect(failure?.code == "feed-bomb")
  }

  /// Each byte that says something is worth fifteen blanks, in any format.
  @Test(arguments: [("\n", "\(hash)  x\n"), (" ", "{\"header\":{}"), ("\t\n", "<rss><channel>")])
  func stopsAtBlanks(blank: String, begin: String) throws {
    let most = Int(FeedInput.unjudgedBlanks)
    func read(_ document: BlankDocument) throws(FeedFailure) -> Int {
      let input = FeedInput(document)
      var count = 0
      var block: [UInt8] = []
      while try input.read(into: &block) { count += block.count }
      return count
    }
    let blanks = BlankDocument(begin: Array(begin.utf8), blank: Array(blank.utf8), count: most + 200_000)
    let failure = #expect(throws: FeedFailure.self) { try read(blanks) }
    #expect(failure?.code == "feed-blank")
    #expect(failure?.message.contains("blank") == true)
    let padded = BlankDocument(
      begin: [], blank: Array(("x" + String(repeating: blank, count: 7)).utf8), count: 2 * most)
    #expect(try read(padded) == 2 * most)
    let few = BlankDocument(begin: Array(begin.utf8), blank: Array(blank.utf8), count: most - 1000)
    #expect(try read(few) == most - 1000)
  }

  @Test func inflatesNoMoreThanTheMost() throws {
    #expect(try inflated(200_000, most: 200_000) == 200_000)
    let failure = #expect(throws: FeedFailure.self) { try inflated(200_000, most: 199_999) }
    #expect(failure?.code == "feed-too-large")
  }

  private func inflated(_ count: Int, most: UInt64) throws -> Int {
    let bytes = gzip([UInt8](repeating: 7, count: count))
    let source = try GzipSource(FeedInput(SteppedSource(bytes)), most: most)
    var block = [UInt8](repeating: 0, count: 50_000)
    var sum = 0
    while true {
      let more = try block.withUnsafeMutableBytes { try source.read(into: $0) }
      guard more > 0 else { return sum }
      sum += more
    }
  }
}

/// So many bytes: a begin, and then the same again and again.
private struct BlankDocument: ByteSource {
  let begin: [UInt8]
  let count: Int
  private let block: [UInt8]
  private var position = 0

  init(begin: [UInt8], blank: [UInt8], count: Int) {
    self.begin = begin
    self.count = count
    block = Array([[UInt8]](repeating: blank, count: 65_536 / blank.count).joined())
  }

  mutating func read(into buffer: UnsafeMutableRawBufferPointer) throws(FeedFailure) -> Int {
    let next = position < begin.count ? begin[position...] : block[...]
    let taken = min(next.count, buffer.count, count - position)
    buffer.copyBytes(from: next.prefix(taken))
    position += taken
    return taken
  }
}

func gzip(_ bytes: [UInt8]) -> [UInt8] {
  var stream = z_stream()
  var input = bytes
  var output = [UInt8](repeating: 0, count: bytes.count + 1024)
  deflateInit2_(
    &stream, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
  let count = input.withUnsafeMutableBufferPointer { source in
    output.withUnsafeMutableBufferPointer { target in
      stream.next_in = source.baseAddress
      stream.avail_in = UInt32(source.count)
      stream.next_out = target.baseAddress
      stream.avail_out = UInt32(target.count)
      deflate(&stream, Z_FINISH)
      return target.count - Int(stream.avail_out)
    }
  }
  deflateEnd(&stream)
  return Array(output[..<count])
}
