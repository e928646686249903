/// The files that settings are read from.
package protocol SettingsReading: Sendable {
  /// The bytes of a regular file, links followed.
  func read(_ path: String, limit: Int) throws(SettingsReadFailure) -> [UInt8]
  /// The names in a directory, in any order.
  func names(in directory: String) throws(SettingsReadFailure) -> SettingsDirectory
  /// What is known of a file without opening it, links followed.
  func attributes(_ path: String) throws(SettingsReadFailure) -> SettingsFileAttributes
  /// Where a link says that it leads; nil for what is none.
  func target(ofLink path: String) -> String?
  /// The path without links; nil when it does not exist or cannot be looked at.
  func realPath(_ path: String) -> String?
}

package enum SettingsReadFailure: Error, Sendable, Equatable {
  case missing
  case denied
  case notRegular
  case tooLong
  /// The words of strerror(3).
  case other(String)

  package var text: String {
    switch self {
    case .missing: "it is not there"
    case .denied: "permission denied"
    case .notRegular: "it is no regular file"
    case .tooLong: "it is longer than 1 MiB"
    case .other(let text): text
    }
  }
}

package struct SettingsDirectory: Sendable, Equatable {
  package var names: [String] = []
  /// Names that are not UTF-8, escaped.
  package var others: [String] = []

  package init(names: [String] = [], others: [String] = []) {
    self.names = names
    self.others = others
  }
}

package struct SettingsFileAttributes: Sendable, Equatable {
  package var isRegular: Bool
  package var isDirectory = false
  /// The permissions of stat(2): 0o600.
  package var mode: UInt32
  /// By this process.
  package var isReadable: Bool

  package init(isRegular: Bool, isDirectory: Bool = false, mode: UInt32, isReadable: Bool) {
    self.isRegular = isRegular
    self.isDirectory = isDirectory
    self.mode = mode
    self.isReadable = isReadable
  }
}
