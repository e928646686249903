/// The entries of the last accepted manifest, by path. A folder is repaired from them without asking the feed. One catalog per
/// mirror, in its state directory. Blocking; any thread.
package protocol CatalogPort: Sendable {
  /// Makes a new, empty catalog. The present one stays as it is until `commit`.
  func make() throws(LedgerFailure) -> any CatalogMaking
  /// Opens the catalog with that ID. Returns `nil` when there is none, when it has another ID, or when it is damaged.
  func open(id: String) throws(LedgerFailure) -> (any CatalogReading)?
}

/// A catalog that is being written. Used by one thread.
package protocol CatalogMaking: AnyObject {
  /// Inserts or replaces an entry.
  func add(_ entry: Entry) throws(LedgerFailure)
  /// Replaces the previous catalog; durable on return. Nothing can be added afterwards.
  ///
  /// - Returns: the ID, which no other catalog has.
  func commit(isWindow: Bool) throws(LedgerFailure) -> String
}

/// A catalog to read. Used by one thread.
package protocol CatalogReading: AnyObject {
  /// True when the manifest was a window: files that it does not name stay.
  var isWindow: Bool { get }
  func entry(_ path: RelativePath) throws(LedgerFailure) -> Entry?
  /// Returns the entries of a region in the order of path bytes.
  func entries(in region: Region) throws(LedgerFailure) -> any EntryCursor
}
