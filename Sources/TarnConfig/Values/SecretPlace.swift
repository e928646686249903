/// The place of a secret. The secret itself is never among the settings; it is read when it is used.
package enum SecretPlace: Sendable, Equatable {
  /// A file of its own, by its absolute path.
  case file(String)
  /// A credential of the service (systemd.exec(5), LoadCredential=).
  case credential(String)

  /// - Parameter credentials: `$CREDENTIALS_DIRECTORY`.
  /// - Returns: the file to read; `nil` for a credential when there is no such directory.
  package func path(credentials: String?) -> String? {
    switch self {
    case .file(let path): path
    case .credential(let name): credentials.map { "\($0)/\(name)" }
    }
  }

  /// True for a name that systemd accepts: one segment of a path.
  static func isCredentialName(_ name: String) -> Bool {
    !["", ".", ".."].contains(name) && name.utf8.count <= 255
      && name.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: ":") }
  }

  /// True when the group or others may read or write a file of secrets, which is refused.
  ///
  /// - Parameter mode: the permissions of stat(2).
  package static func isExposed(mode: UInt32) -> Bool { mode & 0o066 != 0 }
}
