import TarnCore

/// The files of one listing of a directory index that by their names hold digests of the files beside them.
struct ListedChecksums {
  private var lists: [ChecksumFile] = []
  /// Those of one file, by that file: the one with the strongest digest.
  private var single: [RelativePath: ChecksumFile] = [:]
  /// What tells the versions of the files, as far as it is kept: hashes of both, whose seed nobody knows.
  private var fingerprints: [Int: Int] = [:]
  private let filter: PathFilter

  /// Of one listing, each.
  static let most = 10_000

  init(filter: PathFilter) {
    self.filter = filter
  }

  mutating func note(_ item: FeedItem) {
    guard case .entry(let entry) = item, entry.digest == nil else { return }
    if fingerprints.count < Self.most, entry.hasFingerprint {
      fingerprints[entry.path.hashValue] = entry.fingerprint.hashValue
    }
    // Who leaves a list out goes without it. What `include` does not name may still say what is right.
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

  /// In the order in which they are asked: the lists of a directory before what speaks of one file.
  func wanted() -> [ChecksumFile] {
    lists + single.values.sorted { $0.entry.path < $1.entry.path }
  }

  /// The digest that a file was verified against, where neither it nor what held its digest has changed since: it need not be asked
  /// for again.
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
  /// One that does not say its kind is mostly of a strong one.
  fileprivate var strength: DigestAlgorithm { algorithm ?? .sha256 }
}

/// What of these could not be read in a pass: told once, at the end.
struct UnreadChecksums {
  private var first: (name: String, reason: String)?
  private var count = 0

  mutating func add(_ list: ChecksumFile, _ reason: String) {
    first = first ?? (list.entry.path.printable, reason)
    count += 1
  }

  /// nil when all were read.
  var message: String? {
    guard let first else { return nil }
    let others = count > 1 ? "; so it is with \(Units.count(count - 1, "other list"))" : ""
    return
      "the checksums of \(first.name) could not be read: \(first.reason); its files come without them\(others)"
  }
}
