import TarnCore

/// Entries on their way to the disk: collected in memory in the order they come, taken out sorted by path.
///
/// Why not a table with the path as its key: inserted out of order, nearly every row of a large one reads a
/// page and writes another; sorted runs are written and read front to back.
struct RunBuffer {
  private struct Item {
    /// Where its bytes begin: the path, then the body.
    var start: UInt32
    var pathCount: UInt32
    var bodyCount: UInt32
  }

  /// Bytes of one run, about; what the whole buffer takes is not much more.
  static let capacity = 2 << 20

  private var items: [Item] = []
  private var bytes: [UInt8] = []
  private let capacity: Int

  init(capacity: Int = RunBuffer.capacity) {
    self.capacity = capacity
  }

  var isEmpty: Bool { items.isEmpty }
  var isFull: Bool { bytes.count + items.count * MemoryLayout<Item>.stride >= capacity }

  mutating func append(path: [UInt8], body: [UInt8]) {
    // At once as large as it gets: an array that doubles holds twice as much. Pages that are never written take no memory.
    if items.isEmpty { bytes.reserveCapacity(capacity) }
    items.append(
      Item(start: UInt32(bytes.count), pathCount: UInt32(path.count), bodyCount: UInt32(body.count)))
    bytes.append(contentsOf: path)
    bytes.append(contentsOf: body)
  }

  /// Hands out every entry by path, then in the order they came, and forgets them. When `body` throws, they
  /// are kept.
  mutating func drain(
    _ body: (_ path: [UInt8], _ body: [UInt8]) throws(LedgerFailure) -> Void
  ) throws(LedgerFailure) {
    sort()
    for item in items {
      let start = Int(item.start), middle = start + Int(item.pathCount), end = middle + Int(item.bodyCount)
      try body(Array(bytes[start..<middle]), Array(bytes[middle..<end]))
    }
    items.removeAll(keepingCapacity: true)
    bytes.removeAll(keepingCapacity: true)
  }

  private mutating func sort() {
    bytes.withUnsafeBufferPointer { bytes in
      func path(_ item: Item) -> UnsafeBufferPointer<UInt8> {
        UnsafeBufferPointer(rebasing: bytes[Int(item.start)..<Int(item.start + item.pathCount)])
      }
      items.sort { left, right in
        let order = Self.compare(path(left), path(right))
        return order < 0 || (order == 0 && left.start < right.start)
      }
    }
  }

  /// As `compareBytes` does.
  private static func compare(_ left: UnsafeBufferPointer<UInt8>, _ right: UnsafeBufferPointer<UInt8>) -> Int
  {
    for index in 0..<min(left.count, right.count) where left[index] != right[index] {
      return Int(left[index]) - Int(right[index])
    }
    return left.count - right.count
  }
}
