import Glibc

/// The limit of open descriptors of this process (getrlimit(2)).
package enum OpenFiles {
  /// The present soft limit; 1024 when it is not known.
  package static var limit: Int {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 1024 }
    return Int(clamping: limit.rlim_cur)
  }
}
