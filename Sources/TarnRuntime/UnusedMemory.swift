import Glibc

/// Memory that malloc keeps although nobody uses it.
package enum UnusedMemory {
  /// Gives it back to the system: malloc_trim(3), which is not in Swift's Glibc module. Takes some milliseconds. Any thread.
  ///
  /// - Returns: false where the C library has no such function.
  @discardableResult
  package static func giveBack() -> Bool {
    guard let symbol = dlsym(nil, "malloc_trim") else { return false }
    _ = unsafeBitCast(symbol, to: (@convention(c) (Int) -> Int32).self)(0)
    return true
  }

  /// Threads share `count` arenas of malloc, where glibc has eight for each core: what one thread gave back is there for the
  /// next one. mallopt(3), M_ARENA_MAX, which Swift's Glibc module has not. Before other threads are made.
  ///
  /// - Returns: false where the C library has no such function, or refuses.
  @discardableResult
  package static func shareArenas(_ count: Int32) -> Bool {
    guard let symbol = dlsym(nil, "mallopt") else { return false }
    let most: Int32 = -8
    return unsafeBitCast(symbol, to: (@convention(c) (Int32, Int32) -> Int32).self)(most, count) == 1
  }
}
