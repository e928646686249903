import TarnCore

/// The files in one listing of a directory index whose names say that they hold digests of the files beside them.
struct ListedChecksums {
  private var lists: [ChecksumFile] = []
  /// The checksum files for one file each, by that file. The one with the strongest digest is kept.
  private var single: [RelativePath: ChecksumFile] = [:]
  /// Hashes of the files' paths and fingerprints, as far as they are kept. Their seed is random.
  private var fingerprints: [Int: Int] = [:]
  private let filter: PathFilter

  /// The most of each kind in one listing.
  static let most = 10_000

  init(filter: PathFilter) {
    self.filter = filter
  }

  mutating func note(_ item: FeedItem) {
    guard case .entry(let entry) = item, entry.digest == nil else { return }
    if fingerprints.count < Self.most, entry.hasFingerprint {
      fingerprints[entry.path.hashValue] = entry.fingerprint.hashValue
    }
    // An excluded list is not read. A list that `include` does not name is still read, because it may have digests of wanted files.
    guard let list = ChecksumFile(entry), filter.exclude.matches(entry.path) != true,
      entry.size ?? 0 <= FeedReader.mostListingBytes
    else { return }
    guard let file = list.file else {
      if lists.count < Self.most { lists.append(list) }
      return
    }
    guard !filter.excludes(file), single.count < Self.most else { return }
    if let known = single[file], known.strength >= list.strength { return }
    single[file] = list
  }

  /// Returns the checksum files in the order in which they are fetched: lists of a directory before those for one file.
  func wanted() -> [ChecksumFile] {
    lists + single.values.sorted { $0.entry.path < $1.entry.path }
  }

  /// Returns the digest that a file was verified against. `nil` when the file or its checksum file has changed since, so that the
  /// digest must be fetched.
  func known(_ list: ChecksumFile, _ ledger: any LedgerPort) throws -> Digest? {
    guard let file = list.file, let fingerprint = fingerprints[file.hashValue],
      list.entry.hasFingerprint, let row = try ledger.row(file), row.isVerified,
      row.fingerprint.hashValue == fingerprint, let own = try ledger.row(list.entry.path),
      own.fingerprint == list.entry.fingerprint
    else { return nil }
    return row.digest
  }
}

extension ChecksumFile {
  /// The strength of the digest. A checksum file that does not name its algorithm is mostly of a strong one.
  fileprivate var strength: DigestAlgorithm { algorithm ?? .sha256 }
}

extension ChecksumFile {
  /// Returns the file that the only line of the list is about. It may have the path that the file had where the list was made.
  func file(named path: RelativePath) -> RelativePath {
    guard let file, let name = file.bytes.split(separator: UInt8(ascii: "/")).last,
      path.bytes.split(separator: UInt8(ascii: "/")).last?.elementsEqual(name) == true
    else { return path }
    return file
  }
}

/// The names in one list of digests, to find those with two digests of the same kind.
struct NamesOfChecksums {
  /// Hashes of the digests, by those of their names and kinds.
  private var digests: [Int: Int] = [:]
  private var twice: Set<RelativePath> = []
  private var count = 0
  /// The first name with two digests.
  private(set) var contradicted: String?

  /// The most names that are compared, and those that are found.
  private static let most = 100_000

  /// True for a list of one file.
  var isOne: Bool { count == 1 }

  mutating func note(_ item: FeedItem) {
    guard case .entry(let entry) = item else { return }
    count += 1
    for digest in entry.digests {
      var hasher = Swift.Hasher()
      hasher.combine(entry.path)
      hasher.combine(digest.algorithm)
      let key = hasher.finalize()
      if let known = digests[key] {
        guard known != digest.hashValue, twice.count < Self.most else { continue }
        twice.insert(entry.path)
        contradicted = contradicted ?? entry.path.printable
      } else if digests.count < Self.most {
        digests[key] = digest.hashValue
      }
    }
  }

  func isContradicted(_ path: RelativePath) -> Bool { twice.contains(path) }
}

/// The checksum files that could not be read in a pass. They are reported once, at the end.
struct UnreadChecksums {
  private var first: (name: String, reason: String)?
  private var count = 0

  mutating func add(_ list: ChecksumFile, _ reason: String) {
    first = first ?? (list.entry.path.printable, reason)
    count += 1
  }

  /// The message for the user; `nil` when all were read.
  var message: String? {
    guard let first else { return nil }
    let others = count > 1 ? "; the same holds for \(Units.count(count - 1, "other list"))" : ""
    return
      "the checksums of \(first.name) cannot be used: \(first.reason); the files in question come without them\(others)"
  }
}
