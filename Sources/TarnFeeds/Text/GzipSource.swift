import CZlib
import TarnCore

/// Inflates a gzip document (RFC 1952) with all its members.
final class GzipSource: ByteSource {
  static let maximumOutput: UInt64 = 4 << 30
  /// The highest ratio of inflated bytes. Lists of files, which are repetitive, reach 30.
  static let maximumRatio: UInt64 = 100
  /// The number of inflated bytes before the ratio is checked; they take no time.
  static let unjudgedOutput: UInt64 = 16 << 20
  private static let blockSize = 65_536

  private let input: FeedInput
  private let most: UInt64
  /// The state of zlib, on the heap because zlib keeps the address.
  private let stream: UnsafeMutablePointer<z_stream>
  private let block: UnsafeMutableRawBufferPointer
  private var consumed: UInt64 = 0
  private var produced: UInt64 = 0
  private var isAtEnd = false

  static func recognises(_ head: [UInt8]) -> Bool { head.starts(with: [0x1F, 0x8B]) }

  /// - Parameter most: the most inflated bytes; more are refused.
  init(_ input: FeedInput, most: UInt64 = maximumOutput) throws(FeedFailure) {
    self.input = input
    self.most = most
    stream = .allocate(capacity: 1)
    stream.initialize(to: z_stream())
    block = .allocate(byteCount: Self.blockSize, alignment: 16)
    let windowBitsForGzip: Int32 = 15 + 16
    guard inflateInit2_(stream, windowBitsForGzip, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK
    else {
      throw FeedFailure(code: "feed-malformed", message: "zlib cannot start (out of memory?)")
    }
  }

  deinit {
    inflateEnd(stream)
    stream.deallocate()
    block.deallocate()
  }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws(FeedFailure) -> Int {
    guard let target = buffer.baseAddress, !buffer.isEmpty else { return 0 }
    let room = UInt32(min(buffer.count, Int(UInt32.max)))
    stream.pointee.next_out = target.assumingMemoryBound(to: UInt8.self)
    stream.pointee.avail_out = room
    while stream.pointee.avail_out == room, !isAtEnd { try step() }
    let count = Int(room - stream.pointee.avail_out)
    produced += UInt64(count)
    try judge()
    return count
  }

  private func step() throws(FeedFailure) {
    if stream.pointee.avail_in == 0, try !refill() {
      throw FeedFailure.truncated("the gzip document ends too early")
    }
    switch inflate(stream, Z_NO_FLUSH) {
    case Z_OK, Z_BUF_ERROR: break
    case Z_STREAM_END: try endMember()
    default: throw FeedFailure.malformed("the gzip document is damaged")
    }
  }

  private func refill() throws(FeedFailure) -> Bool {
    let count = try input.read(into: block)
    guard count > 0 else { return false }
    consumed += UInt64(count)
    stream.pointee.next_in = block.baseAddress?.assumingMemoryBound(to: UInt8.self)
    stream.pointee.avail_in = UInt32(count)
    return true
  }

  /// Continues with the next member; zeros after the last one are padding.
  private func endMember() throws(FeedFailure) {
    while true {
      if stream.pointee.avail_in == 0, try !refill() {
        isAtEnd = true
        return
      }
      guard stream.pointee.next_in?.pointee == 0 else { break }
      stream.pointee.next_in = stream.pointee.next_in?.advanced(by: 1)
      stream.pointee.avail_in -= 1
    }
    guard stream.pointee.next_in?.pointee == 0x1F, inflateReset(stream) == Z_OK else {
      throw FeedFailure.malformed("something that is not gzip follows the gzip document")
    }
  }

  private func judge() throws(FeedFailure) {
    if produced > most {
      throw FeedFailure(
        code: "feed-too-large", message: "the feed is larger than \(Units.show(most)) when inflated")
    }
    if produced > Self.unjudgedOutput,
      produced / Self.maximumRatio > consumed - UInt64(stream.pointee.avail_in)
    {
      throw FeedFailure(
        code: "feed-bomb",
        message: "the feed inflates more than \(Self.maximumRatio):1; no feed of files does")
    }
  }
}
