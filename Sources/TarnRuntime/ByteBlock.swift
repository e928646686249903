/// Bytes in memory that is used again and again. One thread at a time has it: its owner hands it on under a lock.
package final class ByteBlock: @unchecked Sendable {
  // Safe because only one thread at a time has it, and the lock under which it changes hands orders what they do.
  private var memory: UnsafeMutableRawPointer
  package private(set) var capacity: Int
  package private(set) var count = 0

  /// - Parameter capacity: bytes; more are taken where they are needed.
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

/// Empty blocks that are used again. To get one from the kernel costs as much as to fill them: each page comes with a fault,
/// and is filled with zeros. Any thread.
package final class BlockPool: Sendable {
  private struct State {
    var blocks: [ByteBlock] = []
    var bytes = 0
  }

  private let size: Int
  private let most: Int
  private let state = Locked(State())

  /// - Parameters:
  ///   - size: bytes of a block; larger ones come back, too.
  ///   - most: bytes that are kept at most.
  package init(size: Int, most: Int) {
    self.size = size
    self.most = most
  }

  /// - Parameter count: bytes that are to go into it; more make it grow.
  /// - Returns: an empty block: the one that came back last, but for so few bytes that another one costs nothing.
  package func borrow(_ count: Int) -> ByteBlock {
    guard count > size / 2 else { return ByteBlock(capacity: count) }
    let known = state.withLock { state -> ByteBlock? in
      guard let last = state.blocks.popLast() else { return nil }
      state.bytes -= last.capacity
      return last
    }
    return known ?? ByteBlock(capacity: max(count, size))
  }

  /// Takes a block back that nobody uses any more.
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
