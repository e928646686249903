/// A file that Tarn placed at a path, or adopted there. A value type whose contents lie in one object, since rows are passed on
/// from the ledger to the comparison and its findings.
package struct Row: Sendable, Equatable {
  private struct Fields: Equatable {
    var path: RelativePath
    var identity: FileIdentity
    var digest: Digest
    var isVerified: Bool
    var fingerprint: [UInt8]
    var etag: String?
    var lastModified: String?
    var placed: Timestamp
    var isAdopted: Bool
  }

  private final class Contents: Sendable {
    let fields: Fields

    init(_ fields: Fields) {
      self.fields = fields
    }
  }

  private var contents: Contents

  private mutating func change(_ body: (inout Fields) -> Void) {
    var fields = contents.fields
    body(&fields)
    contents = Contents(fields)
  }

  package var path: RelativePath {
    get { contents.fields.path }
    set { change { $0.path = newValue } }
  }

  package var identity: FileIdentity {
    get { contents.fields.identity }
    set { change { $0.identity = newValue } }
  }

  package var digest: Digest {
    get { contents.fields.digest }
    set { change { $0.digest = newValue } }
  }

  /// True when the feed gave a digest and it matched.
  package var isVerified: Bool {
    get { contents.fields.isVerified }
    set { change { $0.isVerified = newValue } }
  }

  /// `Entry.fingerprint` of the version placed.
  package var fingerprint: [UInt8] {
    get { contents.fields.fingerprint }
    set { change { $0.fingerprint = newValue } }
  }

  /// The validator of the response that brought the file, for conditional requests, as is `lastModified`.
  package var etag: String? {
    get { contents.fields.etag }
    set { change { $0.etag = newValue } }
  }

  package var lastModified: String? {
    get { contents.fields.lastModified }
    set { change { $0.lastModified = newValue } }
  }

  /// When the file was placed or adopted.
  package var placed: Timestamp {
    get { contents.fields.placed }
    set { change { $0.placed = newValue } }
  }

  /// True when somebody else placed these bytes. Whatever becomes of them, they never expire.
  package var isAdopted: Bool {
    get { contents.fields.isAdopted }
    set { change { $0.isAdopted = newValue } }
  }

  package init(
    path: RelativePath, identity: FileIdentity, digest: Digest, isVerified: Bool, fingerprint: [UInt8],
    etag: String? = nil, lastModified: String? = nil, placed: Timestamp, isAdopted: Bool = false
  ) {
    contents = Contents(
      Fields(
        path: path, identity: identity, digest: digest, isVerified: isVerified, fingerprint: fingerprint,
        etag: etag, lastModified: lastModified, placed: placed, isAdopted: isAdopted))
  }

  package static func == (left: Row, right: Row) -> Bool {
    left.contents === right.contents || left.contents.fields == right.contents.fields
  }
}

extension Row {
  /// True when `tarn verify --repair` found the file damaged. The identity is then one that no file can have, so that the next pass
  /// hashes what stands there and fetches it again. Stored as inode 0.
  package var isDoubtful: Bool {
    get { identity.inode == 0 }
    set { if newValue { identity.inode = 0 } }
  }

  /// Returns whether a file found at the path is the one that Tarn placed, with Tarn's bytes. Bytes that others wrote are theirs,
  /// even when they are equal. A copy with the same time is Tarn's, as a mirror has that was moved to another disk, or restored.
  ///
  /// - Parameter digest: the digest of what the file holds now.
  package func isTarns(_ found: FileIdentity, _ digest: Digest) -> Bool {
    guard !isAdopted else { return false }
    if found.inode == identity.inode { return digest == self.digest || found.isSameContents(as: identity) }
    return found.size == identity.size && found.modified == identity.modified && digest == self.digest
  }
}

extension Row {
  /// The fingerprint of a page that may not be the file. No entry has such a one.
  package static let unsure = Array("page".utf8)

  /// True for a page that may not be the file.
  package var isUnsure: Bool { fingerprint == Self.unsure }

  /// True when only the server knows whether it is the version that was fetched.
  package var isOfUnknownVersion: Bool { fingerprint.isEmpty || isUnsure }

  /// Returns whether the recorded version is the wanted one, as far as that can be told without asking the server.
  package func isVersion(of entry: Entry) -> Bool {
    entry.digests.isEmpty
      ? entry.hasFingerprint && entry.fingerprint == fingerprint : entry.digests.contains(digest)
  }
}
