import TarnCore

/// The settings on the disk as they would be with one file of `conf.d` written or taken away.
package struct ProposedSettings: SettingsReading {
  private let base: any SettingsReading
  private let path: String
  /// The bytes of the file; `nil` when it is removed.
  private let bytes: [UInt8]?

  package init(_ base: any SettingsReading = DiskSettings(), _ path: String, _ bytes: [UInt8]?) {
    (self.base, self.path, self.bytes) = (base, path, bytes)
  }

  package func read(_ path: String, limit: Int) throws(SettingsReadFailure) -> [UInt8] {
    guard path.utf8.elementsEqual(self.path.utf8) else { return try base.read(path, limit: limit) }
    guard let bytes else { throw .missing }
    return bytes
  }

  package func names(in directory: String) throws(SettingsReadFailure) -> SettingsDirectory {
    let prefix = directory + "/"
    guard path.hasPrefix(prefix) else { return try base.names(in: directory) }
    let name = String(path.dropFirst(prefix.count))
    var found = SettingsDirectory()
    do throws(SettingsReadFailure) {
      found = try base.names(in: directory)
    } catch {
      guard error == .missing, bytes != nil else { throw error }
    }
    found.names.removeAll { $0.utf8.elementsEqual(name.utf8) }
    if bytes != nil { found.names.append(name) }
    return found
  }

  package func attributes(_ path: String) throws(SettingsReadFailure) -> SettingsFileAttributes {
    try base.attributes(path)
  }

  package func target(ofLink path: String) -> String? { base.target(ofLink: path) }

  package func realPath(_ path: String) -> String? { base.realPath(path) }
}
