import Glibc

/// A short sleep, where many things come and all of them can wait for a moment.
package enum Nap {
  /// - Parameter microseconds: less than a second.
  package static func sleep(microseconds: UInt32) {
    var time = timespec(tv_sec: 0, tv_nsec: Int(microseconds) * 1000)
    // Cut short by a signal it has done its work all the same.
    nanosleep(&time, nil)
  }
}
