import TarnCore

/// Tracks the contents that a folder's jobs bring, so that equal bytes are fetched once and then copied. Its memory is bounded.
///
/// One job asks for the contents and the others wait. Each failure lets some more of them ask. So working sources are asked once,
/// and failing sources do not delay each other for long.
struct Duplicates: Hashable {
  /// The contents that a file is to have.
  struct Contents: Hashable {
    /// The first eight bytes of the digest. A collision costs a look into the ledger.
    let key: UInt64
    /// True when another request would cost more than waiting.
    fileprivate let isWaitedFor: Bool

    private static let leastSize: UInt64 = 64 << 10

    /// - Parameter size: the size in bytes; `nil` when it is not known.
    init(digest: Digest, size: UInt64?) {
      key = digest.bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
      isWaitedFor = size.map { $0 >= Self.leastSize } ?? true
    }

    /// Makes the contents of an entry; `nil` when it has no digest, or its name may be cut.
    init?(_ entry: Entry) {
      guard let digest = entry.digest, !entry.mayBeCut else { return nil }
      self.init(digest: digest, size: entry.size)
    }
  }

  private typealias Key = UInt64

  /// Contents that are on their way. While jobs wait, at least one asks.
  private struct Coming: Hashable {
    var asking: Set<UInt64> = []
    var waiting: [UInt64] = []
    /// The number of further jobs that may ask.
    var allowed = 0
    /// True once an urgent job has waited for them.
    var isHurried = false
  }

  private var placed: Set<Key> = []
  private var coming: [Key: Coming] = [:]
  private(set) var waitingCount = 0

  private static let mostPlaced = 1 << 18
  /// The number of further jobs that may ask after a failure. Of 4,096 jobs all ask after four failures in a row.
  static let widening = 8

  enum Verdict {
    /// No job has brought the contents so far, or those that exist have failed.
    case first
    /// The contents are in place and can be copied.
    case placed
    /// The contents are on their way. `failed` or `over` returns the job later.
    case wait
    /// The contents are on their way, and no more jobs can wait.
    case full
  }

  /// - Parameters:
  ///   - mostWaiting: the most jobs that may wait at a time.
  ///   - mustBegin: true to ask rather than return `full`.
  mutating func admit(_ id: UInt64, _ contents: Contents?, mostWaiting: Int, mustBegin: Bool) -> Verdict {
    guard let contents else { return .first }
    let key = contents.key
    if placed.contains(key) { return .placed }
    guard contents.isWaitedFor else { return .first }
    var state = coming[key] ?? Coming(allowed: 1)
    if state.allowed > 0 || (mustBegin && waitingCount >= mostWaiting) {
      state.allowed = max(0, state.allowed - 1)
      state.asking.insert(id)
      coming[key] = state
      return .first
    }
    guard waitingCount < mostWaiting else { return .full }
    coming[key]?.waiting.append(id)
    waitingCount += 1
    return .wait
  }

  func isPlaced(_ contents: Contents) -> Bool { placed.contains(contents.key) }

  /// Notes that an urgent job waits.
  ///
  /// - Returns: the jobs that ask for the contents. Later ones learn it from `isHurried`.
  mutating func hurry(_ contents: Contents?) -> Set<UInt64> {
    guard let key = contents?.key else { return [] }
    coming[key]?.isHurried = true
    return coming[key]?.asking ?? []
  }

  func isHurried(_ contents: Contents?) -> Bool { contents.flatMap { coming[$0.key]?.isHurried } ?? false }

  /// Notes that the job no longer found the contents in the folder and asks for them.
  mutating func lost(_ id: UInt64, _ contents: Contents?) {
    guard let contents, placed.remove(contents.key) != nil, contents.isWaitedFor else { return }
    coming[contents.key] = Coming(asking: [id])
  }

  /// Notes that the job has to try again later.
  ///
  /// - Returns: the jobs that need not wait any more.
  mutating func failed(_ id: UInt64, _ contents: Contents?) -> [UInt64] {
    guard let key = contents?.key, coming[key]?.asking.contains(id) == true else { return [] }
    return widen(key)
  }

  /// Notes that the job has ended.
  ///
  /// - Parameter isPlaced: true when its bytes are in the folder.
  /// - Returns: the jobs that need not wait any more, and those that ask for what is now in place.
  mutating func over(
    _ id: UInt64, _ contents: Contents?, isPlaced: Bool
  ) -> (ready: [UInt64], asking: Set<UInt64>) {
    guard let key = contents?.key else { return ([], []) }
    if isPlaced {
      if placed.count < Self.mostPlaced { placed.insert(key) }
      guard var state = coming.removeValue(forKey: key) else { return ([], []) }
      waitingCount -= state.waiting.count
      state.asking.remove(id)
      return (state.waiting, state.asking)
    }
    guard coming[key]?.asking.remove(id) != nil else { return ([], []) }
    let ready = widen(key)
    if coming[key]?.asking.isEmpty == true { coming[key] = nil }
    return (ready, [])
  }

  /// Removes a waiting job that is no longer wanted.
  mutating func forget(_ id: UInt64, _ contents: Contents?) {
    guard let key = contents?.key, let index = coming[key]?.waiting.firstIndex(of: id) else { return }
    coming[key]?.waiting.remove(at: index)
    waitingCount -= 1
  }

  private mutating func widen(_ key: Key) -> [UInt64] {
    guard var state = coming[key] else { return [] }
    state.allowed += Self.widening
    let ready = Array(state.waiting.prefix(state.allowed))
    state.waiting.removeFirst(ready.count)
    state.asking.formUnion(ready)
    state.allowed -= ready.count
    waitingCount -= ready.count
    coming[key] = state
    return ready
  }
}

/// Regular files of the folder that are not recorded and not wanted, or that replaced another recorded file. A user may have
/// renamed a wanted file.
struct UnrecordedFiles: Sendable {
  struct File: Sendable {
    var path: RelativePath
    var identity: FileIdentity
  }

  /// The files of one size, in the order of their paths, and the positions of each inode among them.
  private struct OfSize {
    var all: [File] = []
    var places: [UInt64: [Int]] = [:]
  }

  private var bySize: [UInt64: OfSize] = [:]
  /// The files that replaced another one, by inode. They make way, so no other contents are searched in them.
  private var inPlaceOfOthers: [UInt64: [File]] = [:]
  private var count = 0
  private static let most = 100_000
  /// The most files that are read for one entry.
  private static let mostTried = 4

  /// - Parameter isInPlaceOfAnother: true when its path is recorded and it does not match that row.
  mutating func add(_ present: Present, isInPlaceOfAnother: Bool = false) {
    guard count < Self.most, present.kind == .regular, present.identity.size > 0 else { return }
    count += 1
    let file = File(path: present.path, identity: present.identity)
    guard !isInPlaceOfAnother else {
      return inPlaceOfOthers[present.identity.inode, default: []].append(file)
    }
    var group = bySize.removeValue(forKey: present.identity.size) ?? OfSize()
    group.places[present.identity.inode, default: []].append(group.all.count)
    group.all.append(file)
    bySize[present.identity.size] = group
  }

  /// Returns the files that may have an entry's bytes, beginning with the file that Tarn placed for it.
  func candidates(_ entry: Entry, row: Row?) -> [File] {
    let wasPlaced = row.map { entry.digests.contains($0.digest) } ?? false
    guard let size = entry.size ?? (wasPlaced ? row?.identity.size : nil) else { return [] }
    let elsewhere = (row.flatMap { inPlaceOfOthers[$0.identity.inode] } ?? []).filter {
      $0.identity.size == size && $0.path != entry.path
    }
    guard let group = bySize[size] else { return elsewhere }
    let renamed = row.flatMap { group.places[$0.identity.inode] } ?? []
    let others = group.all.lazy.filter { $0.identity.inode != row?.identity.inode }.prefix(Self.mostTried)
    return elsewhere + renamed.map { group.all[$0] } + Array(others)
  }
}
