import Glibc
import TarnCore

/// The bytes of a document behind a buffer: it looks ahead, and is read by line or by block, front to back.
///
/// Works with sources that return one byte at a time. Used by one thread.
final class FeedInput: ByteSource {
  /// The number of bytes that a format may look ahead to recognise a document.
  static let headSize = 65_536
  /// The longest line of the line formats in bytes.
  static let maximumLine = 65_536
  private static let capacity = 2 * headSize
  /// The number of blank bytes that are accepted whatever stands between them.
  static let unjudgedBlanks: UInt64 = 16 << 20
  /// Beyond that, one of so many bytes must not be blank; indented and padded text needs only two or three.
  private static let bytesForOne: UInt64 = 16

  private var source: any ByteSource
  private let buffer: UnsafeMutableRawBufferPointer
  private var start = 0
  private var end = 0
  private var isAtEnd = false
  private var taken: UInt64 = 0
  private var blanks: UInt64 = 0
  /// The number of the line that `readLine` returned last, from 1.
  private(set) var line = 0
  /// True when the document began with a UTF-8 byte order mark.
  private(set) var hadByteOrderMark = false

  init(_ source: any ByteSource) {
    self.source = source
    buffer = .allocate(byteCount: Self.capacity, alignment: 16)
  }

  deinit {
    buffer.deallocate()
  }

  /// Returns the next bytes, at most `headSize`, without taking them; fewer only when the document ends there.
  func peek() throws(FeedFailure) -> [UInt8] {
    while end - start < Self.headSize, try fill() {}
    return Array(buffer[start..<min(end, start + Self.headSize)])
  }

  /// True when `peek` has seen every remaining byte.
  var isHeadWhole: Bool { isAtEnd && end - start <= Self.headSize }

  /// Takes at most `target.count` bytes; 0 only at the end.
  func read(into target: UnsafeMutableRawBufferPointer) throws(FeedFailure) -> Int {
    if start == end { guard try fill() else { return 0 } }
    let count = min(target.count, end - start)
    target.copyMemory(from: UnsafeRawBufferPointer(rebasing: buffer[start..<(start + count)]))
    start += count
    return count
  }

  /// Replaces the contents of `bytes` with the next bytes; false at the end.
  func read(into bytes: inout [UInt8]) throws(FeedFailure) -> Bool {
    bytes.removeAll(keepingCapacity: true)
    if start == end { guard try fill() else { return false } }
    bytes.append(contentsOf: buffer[start..<end])
    start = end
    return true
  }

  /// Takes the next line without its line feed.
  ///
  /// - Returns: the line and whether a line feed ended it; nil at the end of the document.
  /// - Throws: `line-too-long` beyond `limit` bytes.
  func readLine(limit: Int = FeedInput.maximumLine) throws(FeedFailure) -> (bytes: [UInt8], isEnded: Bool)? {
    var bytes: [UInt8] = []
    line += 1
    while true {
      if start == end, try !fill() {
        guard !bytes.isEmpty else {
          line -= 1
          return nil
        }
        return (bytes, false)
      }
      let newline = indexOfNewline()
      let stop = newline ?? end
      guard bytes.count + stop - start <= limit else {
        throw FeedFailure(
          code: "line-too-long", message: "a line of the feed is longer than \(limit) bytes", line: line)
      }
      bytes.append(contentsOf: buffer[start..<stop])
      start = stop
      if newline != nil {
        start += 1
        return (bytes, true)
      }
    }
  }

  private func indexOfNewline() -> Int? {
    guard let base = buffer.baseAddress, let found = memchr(base + start, 0x0A, end - start) else {
      return nil
    }
    return base.distance(to: found)
  }

  /// Drops bytes that `peek` has returned.
  func drop(_ count: Int) throws(FeedFailure) {
    guard count > 0, try peek().count >= count else { return }
    start += count
  }

  /// Drops a UTF-8 byte order mark at the beginning.
  func skipByteOrderMark() throws(FeedFailure) {
    guard try peek().starts(with: [0xEF, 0xBB, 0xBF]) else { return }
    start += 3
    hadByteOrderMark = true
  }

  /// Reads more bytes into the buffer; false at the end of the document.
  private func fill() throws(FeedFailure) -> Bool {
    guard !isAtEnd else { return false }
    if start > 0, start == end || end == buffer.count {
      buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: buffer[start..<end]))
      end -= start
      start = 0
    }
    let count = try source.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[end...]))
    isAtEnd = count <= 0
    try judge(UnsafeRawBufferPointer(rebasing: buffer[end..<(end + max(count, 0))]))
    end += max(count, 0)
    return !isAtEnd
  }

  /// Refuses a document that is nearly all blank: gigabytes of blanks cost the sender almost nothing, and minutes to read.
  private func judge(_ block: UnsafeRawBufferPointer) throws(FeedFailure) {
    taken += UInt64(block.count)
    blanks += UInt64(Self.blanks(in: block))
    guard blanks > Self.unjudgedBlanks, taken / Self.bytesForOne > taken - blanks else { return }
    throw FeedFailure(
      code: "feed-blank",
      message:
        "\(Units.show(blanks)) of the first \(Units.show(taken)) of the feed are blank; no feed of files is so"
    )
  }

  /// Returns the number of bytes up to the space, including control characters. Counts eight at a time, since every feed is
  /// counted.
  private static func blanks(in block: UnsafeRawBufferPointer) -> Int {
    let ones: UInt64 = 0x0101_0101_0101_0101
    var (count, index) = (0, 0)
    while index + 8 <= block.count {
      let word = block.loadUnaligned(fromByteOffset: index, as: UInt64.self)
      // The high bit of each byte counts: 0xA0 minus the lower seven bits keeps it up to 0x20.
      let marks = (ones &* 0xA0 &- (word & (ones &* 0x7F))) & ~word & (ones &* 0x80)
      count += marks.nonzeroBitCount
      index += 8
    }
    while index < block.count {
      count += block[index] <= 0x20 ? 1 : 0
      index += 1
    }
    return count
  }
}
