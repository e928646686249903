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
}
