import TarnCore

/// Buffers entries on their way to the disk. They are collected in the order in which they come, and taken out sorted by path.
///
/// A table with the path as its key would be slower: out of order, nearly every row of a large table reads a page and writes
/// another. Sorted runs are written and read front to back.
struct RunBuffer {
  private struct Item {
    /// The offset of its bytes: the path, then the body.
    var start: UInt32
    var pathCount: UInt32
    var bodyCount: UInt32
  }

  /// The approximate bytes of one run. The whole buffer takes little more.
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
    // The capacity is reserved at once, because a growing array holds twice as much. Pages that are never written take no memory.
    if items.isEmpty { bytes.reserveCapacity(capacity) }
    items.append(
      Item(start: UInt32(bytes.count), pathCount: UInt32(path.count), bodyCount: UInt32(body.count)))
    bytes.append(contentsOf: path)
    bytes.append(contentsOf: body)
  }

  /// Passes all entries to `body`, by path and then in the order in which they came, and forgets them. They are kept when `body`
  /// throws.
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

  /// Compares as `compareBytes` does.
  private static func compare(_ left: UnsafeBufferPointer<UInt8>, _ right: UnsafeBufferPointer<UInt8>) -> Int
  {
    for index in 0..<min(left.count, right.count) where left[index] != right[index] {
      return Int(left[index]) - Int(right[index])
    }
    return left.count - right.count
  }
}
