import Glibc

/// The sanitizer that these tests run with.
package enum Sanitizer {
  /// ThreadSanitizer makes code several times slower: tests of much work on one thread, where it has nothing to find, do a share of it.
  package static let isOfThreads = dlsym(nil, "__tsan_init") != nil
  /// Such tests do a share of their work, also in a quick run: TARN_QUICK.
  package static let takesShare = isOfThreads || getenv("TARN_QUICK") != nil
}
