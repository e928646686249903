import Glibc

/// The text of an errno.
package enum ErrorText {
  /// Returns the text of strerror(3) in lower case: `permission denied`.
  package static func of(_ number: Int32) -> String {
    strerror(number).map { String(cString: $0).lowercased() } ?? "error \(number)"
  }
}
