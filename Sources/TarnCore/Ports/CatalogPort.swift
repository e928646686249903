/// The entries of the manifest that was last accepted, by path: what a folder is brought into line with when nobody asks the
/// feed. One catalog per mirror, in its state directory. Blocking; any thread.
package protocol CatalogPort: Sendable {
  /// A new catalog, empty. The one that holds stays as it is until `commit`.
  func make() throws(LedgerFailure) -> any CatalogMaking
  /// The catalog of that id; nil when there is none, or another one, or it is damaged.
  func open(id: String) throws(LedgerFailure) -> (any CatalogReading)?
}

/// A catalog that is being written. One thread.
package protocol CatalogMaking: AnyObject {
  /// Inserts or replaces.
  func add(_ entry: Entry) throws(LedgerFailure)
  /// Puts it in the place of the one before; durable on return. Nothing is added afterwards.
  ///
  /// - Returns: its id, which no other catalog has.
  func commit(isWindow: Bool) throws(LedgerFailure) -> String
}

/// A catalog to read. One thread.
package protocol CatalogReading: AnyObject {
  /// The manifest was a window: what is not in it stays.
  var isWindow: Bool { get }
  func entry(_ path: RelativePath) throws(LedgerFailure) -> Entry?
  /// The entries of a region by path bytes.
  func entries(in region: Region) throws(LedgerFailure) -> any EntryCursor
}
