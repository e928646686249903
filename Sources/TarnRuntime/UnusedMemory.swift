import Glibc

/// Returns unused memory of malloc to the system.
package enum UnusedMemory {
  /// Calls malloc_trim(3), which Swift's Glibc module lacks. Takes some milliseconds. Any thread.
  ///
  /// - Returns: false where the C library has no such function.
  @discardableResult
  package static func giveBack() -> Bool {
    guard let symbol = dlsym(nil, "malloc_trim") else { return false }
    _ = unsafeBitCast(symbol, to: (@convention(c) (Int) -> Int32).self)(0)
    return true
  }

  /// Limits malloc to `count` arenas, where glibc has eight for each core, so that memory freed by one thread is there for the
  /// next. Calls mallopt(3) with M_ARENA_MAX, which Swift's Glibc module lacks. Must be called before other threads are made.
  ///
  /// - Returns: false where the C library has no such function, or refuses.
  @discardableResult
  package static func shareArenas(_ count: Int32) -> Bool {
    guard let symbol = dlsym(nil, "mallopt") else { return false }
    let most: Int32 = -8
    return unsafeBitCast(symbol, to: (@convention(c) (Int32, Int32) -> Int32).self)(most, count) == 1
  }
}
