/// Bytes in memory that is used again and again. One thread at a time has it: its owner hands it on under a lock.
package final class ByteBlock: @unchecked Sendable {
  // Safe because only one thread at a time has it, and the lock under which it changes hands orders what they do.
  private var memory: UnsafeMutableRawPointer
  private var capacity: Int
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
