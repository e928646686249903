import TarnCore

/// Which contents this pass brings, so that the same bytes are fetched once and copied from then on. On the pass's
/// thread. Its memory is bounded; what goes beyond is fetched like any other file.
struct Twins {
  /// The first eight bytes of a digest; two that share them cost a look into the ledger.
  private typealias Key = UInt64

  private var placed: Set<Key> = []
  private var running: [Key: UInt64] = [:]
  private var waiting: [Key: [UInt64]] = [:]

  private static let mostPlaced = 1 << 18
  /// Smaller files are not waited for: another request costs less than the wait.
  private static let leastSize: UInt64 = 64 << 10

  enum Verdict {
    /// Nothing of it in this pass so far.
    case first
    /// In place by now, so it can be copied.
    case placed
    /// On its way; `over` gives the job back.
    case wait
  }

  mutating func admit(_ job: Job) -> Verdict {
    guard let key = Self.key(job) else { return .first }
    if placed.contains(key) { return .placed }
    guard job.entry.size.map({ $0 >= Self.leastSize }) ?? true else { return .first }
    guard let first = running[key], first != job.id else {
      running[key] = job.id
      return .first
    }
    waiting[key, default: []].append(job.id)
    return .wait
  }

  /// The job has ended, one way or the other.
  ///
  /// - Parameter isPlaced: its bytes stand in the folder.
  /// - Returns: the jobs that waited for it.
  mutating func over(_ job: Job, isPlaced: Bool) -> [UInt64] {
    guard let key = Self.key(job) else { return [] }
    if isPlaced, placed.count < Self.mostPlaced { placed.insert(key) }
    guard running[key] == job.id else { return [] }
    running[key] = nil
    return waiting.removeValue(forKey: key) ?? []
  }

  private static func key(_ job: Job) -> Key? {
    job.entry.digest.map { $0.bytes.prefix(8).reduce(0) { $0 << 8 | Key($1) } }
  }
}

/// Regular files of the folder that nobody recorded and nobody wants: a user may have renamed what is wanted.
struct Strangers: Sendable {
  struct Stranger: Sendable {
    var path: RelativePath
    var identity: FileIdentity
  }

  private var bySize: [UInt64: [Stranger]] = [:]
  private var count = 0
  private static let most = 100_000
  /// Files read for one entry.
  private static let mostTried = 4

  mutating func add(_ present: Present) {
    guard count < Self.most, present.kind == .regular, present.identity.size > 0 else { return }
    count += 1
    bySize[present.identity.size, default: []].append(
      Stranger(path: present.path, identity: present.identity))
  }

  /// Those that may hold an entry's bytes, the file that Tarn placed for it before the others.
  func candidates(_ entry: Entry, row: Row?) -> [Stranger] {
    let wasPlaced = row.map { entry.digests.contains($0.digest) } ?? false
    guard let size = entry.size ?? (wasPlaced ? row?.identity.size : nil), let all = bySize[size] else {
      return []
    }
    let renamed = all.filter { $0.identity.inode == row?.identity.inode }
    return renamed + all.filter { $0.identity.inode != row?.identity.inode }.prefix(Self.mostTried)
  }
}
