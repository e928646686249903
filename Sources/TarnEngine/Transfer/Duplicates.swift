import TarnCore

/// Which contents the jobs of a folder bring, so that the same bytes are fetched once and copied from then on. Its memory is
/// bounded.
///
/// One job asks for the contents, the others wait. Each failure lets some more of them ask, so that sources that work
/// are asked once, and sources that fail do not wait for one another for long.
struct Duplicates: Hashable {
  /// What a file is to hold.
  struct Contents: Hashable {
    /// The first eight bytes of its digest; two that share them cost a look into the ledger.
    let key: UInt64
    /// Another request for it would cost more than to wait.
    fileprivate let isWaitedFor: Bool

    private static let leastSize: UInt64 = 64 << 10

    /// - Parameter size: in bytes; nil where it is not known.
    init(digest: Digest, size: UInt64?) {
      key = digest.bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
      isWaitedFor = size.map { $0 >= Self.leastSize } ?? true
    }

    /// nil where no digest tells them.
    init?(_ entry: Entry) {
      guard let digest = entry.digest else { return nil }
      self.init(digest: digest, size: entry.size)
    }
  }

  private typealias Key = UInt64

  /// Contents that are on their way. While jobs wait, at least one asks.
  private struct Coming: Hashable {
    var asking: Set<UInt64> = []
    var waiting: [UInt64] = []
    /// How many more may ask.
    var allowed = 0
    /// Somebody in a hurry waits for them, or did.
    var isHurried = false
  }

  private var placed: Set<Key> = []
  private var coming: [Key: Coming] = [:]
  private(set) var waitingCount = 0

  private static let mostPlaced = 1 << 18
  /// How many more ask after a failure: 4,096 all ask after four that follow one another.
  static let widening = 8

  enum Verdict {
    /// Nobody brought it so far, or what there is failed.
    case first
    /// In place by now, so it can be copied.
    case placed
    /// On its way; `failed` or `over` gives the job back.
    case wait
    /// On its way, and no more can wait.
    case full
  }

  /// - Parameters:
  ///   - mostWaiting: jobs that may wait at a time.
  ///   - mustBegin: asks itself rather than be told `full`.
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

  /// Somebody waits who is in a hurry.
  ///
  /// - Returns: those that ask for it; `isHurried` tells it who asks later.
  mutating func hurry(_ contents: Contents?) -> Set<UInt64> {
    guard let key = contents?.key else { return [] }
    coming[key]?.isHurried = true
    return coming[key]?.asking ?? []
  }

  func isHurried(_ contents: Contents?) -> Bool { contents.flatMap { coming[$0.key]?.isHurried } ?? false }

  /// The job did not find them in the folder any more, and asks for them.
  mutating func lost(_ id: UInt64, _ contents: Contents?) {
    guard let contents, placed.remove(contents.key) != nil, contents.isWaitedFor else { return }
    coming[contents.key] = Coming(asking: [id])
  }

  /// The job has to try again later.
  ///
  /// - Returns: those that need not wait any more.
  mutating func failed(_ id: UInt64, _ contents: Contents?) -> [UInt64] {
    guard let key = contents?.key, coming[key]?.asking.contains(id) == true else { return [] }
    return widen(key)
  }

  /// The job has ended, one way or the other.
  ///
  /// - Parameter isPlaced: its bytes stand in the folder.
  /// - Returns: the jobs that need not wait any more, and those that ask for what is in place.
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

  /// A job that waits is not wanted any more.
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

/// Regular files of the folder that nobody recorded and nobody wants, or that stand where another one was recorded: a user
/// may have renamed what is wanted.
struct UnrecordedFiles: Sendable {
  struct File: Sendable {
    var path: RelativePath
    var identity: FileIdentity
  }

  /// Of one size, in the order of their paths; and where each inode is among them.
  private struct OfSize {
    var all: [File] = []
    var places: [UInt64: [Int]] = [:]
  }

  private var bySize: [UInt64: OfSize] = [:]
  /// By inode: those in the place of another file. They make way, so nothing else is looked for in them.
  private var inPlaceOfOthers: [UInt64: [File]] = [:]
  private var count = 0
  private static let most = 100_000
  /// Files read for one entry.
  private static let mostTried = 4

  /// - Parameter isInPlaceOfAnother: its path is recorded, and it is not as that row says.
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

  /// Those that may hold an entry's bytes, the file that Tarn placed for it before the others.
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
