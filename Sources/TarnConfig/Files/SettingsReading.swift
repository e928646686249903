/// The files that settings are read from.
package protocol SettingsReading: Sendable {
  /// Reads a regular file, following links.
  func read(_ path: String, limit: Int) throws(SettingsReadFailure) -> [UInt8]
  /// Returns the names in a directory, in any order.
  func names(in directory: String) throws(SettingsReadFailure) -> SettingsDirectory
  /// Returns what stat(2) tells about a file, following links.
  func attributes(_ path: String) throws(SettingsReadFailure) -> SettingsFileAttributes
  /// Returns the target of a symbolic link as it is written; `nil` for anything else.
  func target(ofLink path: String) -> String?
  /// Returns the path without links; `nil` when it does not exist or cannot be examined.
  func realPath(_ path: String) -> String?
}

package enum SettingsReadFailure: Error, Sendable, Equatable {
  case missing
  case denied
  case notRegular
  case tooLong
  /// Any other error, with the text of strerror(3).
  case other(String)

  package var text: String {
    switch self {
    case .missing: "it is not there"
    case .denied: "permission denied"
    case .notRegular: "it is not a regular file"
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
  /// The permissions of stat(2), such as 0o600.
  package var mode: UInt32
  /// True when this process may read the file.
  package var isReadable: Bool
  package var isEmpty: Bool

  package init(
    isRegular: Bool, isDirectory: Bool = false, mode: UInt32, isReadable: Bool, isEmpty: Bool = false
  ) {
    self.isRegular = isRegular
    self.isDirectory = isDirectory
    self.mode = mode
    self.isReadable = isReadable
    self.isEmpty = isEmpty
  }
}
