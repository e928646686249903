/// Bytes in memory that is reused. One thread at a time has it: its owner passes it on under a lock.
package final class ByteBlock: @unchecked Sendable {
  // Safe because only one thread at a time has it, and the lock under which it changes hands orders what they do.
  private var memory: UnsafeMutableRawPointer
  package private(set) var capacity: Int
  package private(set) var count = 0

  /// - Parameter capacity: the initial room in bytes; it grows as needed.
  package init(capacity: Int) {
    self.capacity = max(1, capacity)
    memory = .allocate(byteCount: self.capacity, alignment: 16)
  }

  deinit { memory.deallocate() }

  package var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: memory, count: count) }

  package func append(_ bytes: UnsafeRawBufferPointer) {
    guard let start = bytes.baseAddress else { return }
    if count + bytes.count > capacity { grow(to: count + bytes.count) }
    (memory + count).copyMemory(from: start, byteCount: bytes.count)
    count += bytes.count
  }

  package func removeAll() { count = 0 }

  private func grow(to least: Int) {
    capacity = max(least, capacity * 2)
    let larger = UnsafeMutableRawPointer.allocate(byteCount: capacity, alignment: 16)
    larger.copyMemory(from: memory, byteCount: count)
    memory.deallocate()
    memory = larger
  }
}

/// A pool of empty blocks for reuse. Getting one from the kernel costs as much as filling it: each page causes a fault and is
/// filled with zeros. Any thread.
package final class BlockPool: Sendable {
  private struct State {
    var blocks: [ByteBlock] = []
    var bytes = 0
  }

  private let size: Int
  private let most: Int
  private let state = Locked(State())

  /// - Parameters:
  ///   - size: the bytes of a block; larger ones come back, too.
  ///   - most: the most bytes that are kept.
  package init(size: Int, most: Int) {
    self.size = size
    self.most = most
  }

  /// - Parameter count: the expected number of bytes; more make the block grow.
  /// - Returns: an empty block: the one that came back last, or a new one for so few bytes that it costs nothing.
  package func borrow(_ count: Int) -> ByteBlock {
    guard count > size / 2 else { return ByteBlock(capacity: count) }
    let known = state.withLock { state -> ByteBlock? in
      guard let last = state.blocks.popLast() else { return nil }
      state.bytes -= last.capacity
      return last
    }
    return known ?? ByteBlock(capacity: max(count, size))
  }

  /// Takes back a block that is no longer used.
  package func give(_ block: ByteBlock) {
    guard block.capacity >= size else { return }
    block.removeAll()
    state.withLock { state in
      guard state.bytes + block.capacity <= most else { return }
      state.bytes += block.capacity
      state.blocks.append(block)
    }
  }
}
