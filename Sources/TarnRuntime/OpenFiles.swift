import Glibc

/// How many descriptors this process may have (getrlimit(2)).
package enum OpenFiles {
  /// The soft limit now; 1024 when it cannot be told.
  package static var limit: Int {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 1024 }
    return Int(clamping: limit.rlim_cur)
  }
}
