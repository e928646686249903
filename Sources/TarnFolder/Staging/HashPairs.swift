import CryptoShim
import TarnCore
import TarnRuntime

/// A running SHA-256 whose bytes may be hashed beside those of another one; see `HashPairs`.
final class PairableHasher: Hasher, @unchecked Sendable {
  // Safe because its state is for whoever has marked it as busy, or for its owner while no block waits, and all else is touched with
  // the lock of its `HashPairs` held.

  private let stream: OpaquePointer
  /// Lent bytes that are not hashed so far, in their order; of the first block those that are left.
  fileprivate var blocks: [HashPairs.Block] = []
  fileprivate var isBusy = false

  /// nil without memory.
  init?() {
    guard let stream = tarn_sha256_new() else { return nil }
    self.stream = stream
  }

  deinit { tarn_sha256_free(stream) }

  var algorithm: DigestAlgorithm { .sha256 }

  func update(_ bytes: UnsafeRawBufferPointer) { tarn_sha256_update(stream, bytes.baseAddress, bytes.count) }

  func finish() -> Digest {
    var bytes = [UInt8](repeating: 0, count: algorithm.length)
    tarn_sha256_finish(stream, &bytes)
    return Digest(algorithm, padding: bytes)
  }

  /// As many bytes of the one as of the other.
  fileprivate func update(
    _ bytes: UnsafeRawBufferPointer, beside other: PairableHasher, _ others: UnsafeRawBufferPointer
  ) {
    tarn_sha256_update_pair(stream, bytes.baseAddress, other.stream, others.baseAddress, bytes.count)
  }

  fileprivate var waiting: Int { blocks.reduce(0) { $0 + $1.bytes.count } }
}

/// Hashes the bytes of several files two files at a time: a core's SHA instructions wait for each other half of the time when it has
/// one file only.
///
/// What comes of a file waits until there is something of another one, or it is too much, or the file ends. Any thread may call; of
/// one file one at a time.
final class HashPairs: Sendable {
  fileprivate struct Block {
    /// They stay as they are until `whenRead` is called.
    var bytes: UnsafeRawBufferPointer
    let whenRead: @Sendable () -> Void
  }

  private struct State {
    /// Have blocks and are not busy; who waits longest first.
    var idle: [PairableHasher] = []
  }

  /// What to hash next: read with the lock held, for the owner of a busy hasher may add a block.
  private enum Step {
    case over
    case alone(UnsafeRawBufferPointer)
    case beside(UnsafeRawBufferPointer, PairableHasher, UnsafeRawBufferPointer)
  }

  /// Whether this machine hashes two at a time faster than one after the other.
  static let isAvailable = tarn_sha256_pairs()
  /// Bytes of a file that may wait: a server often sends so many of one before it goes on with the next.
  static let most = 1 << 20
  /// Less is hashed at once.
  static let least = 8 << 10

  private let state = LockedCondition(State())

  /// - Parameters:
  ///   - bytes: stay as they are until `whenRead` is called.
  ///   - whenRead: called once, on any thread, perhaps before this returns; by `settle` at the latest.
  func update(
    _ hasher: PairableHasher, lent bytes: UnsafeRawBufferPointer, whenRead: @escaping @Sendable () -> Void
  ) {
    guard !bytes.isEmpty else { return whenRead() }
    let waits = state.withLock { state in
      guard bytes.count >= Self.least || hasher.isBusy || !hasher.blocks.isEmpty else { return false }
      hasher.blocks.append(Block(bytes: bytes, whenRead: whenRead))
      if !hasher.isBusy, hasher.blocks.count == 1 { state.idle.append(hasher) }
      return true
    }
    guard waits else {
      hasher.update(bytes)
      return whenRead()
    }
    work(on: hasher, leaving: Self.most)
  }

  /// Some of its bytes are not hashed yet.
  func isBehind(_ hasher: PairableHasher) -> Bool { state.withLock { _ in !hasher.blocks.isEmpty } }

  /// Returns when all that came is hashed.
  func settle(_ hasher: PairableHasher) { work(on: hasher, leaving: 0) }

  /// Until it has no more blocks, or nobody to be hashed beside and no more bytes than it may leave.
  private func work(on hasher: PairableHasher, leaving kept: Int) {
    while true {
      let step = state.wait { state -> Step? in
        guard !hasher.isBusy else { return hasher.waiting > kept ? nil : .over }
        guard let first = hasher.blocks.first else { return .over }
        let other = state.idle.first { $0 !== hasher }
        guard other != nil || hasher.waiting > kept else { return .over }
        hasher.isBusy = true
        other?.isBusy = true
        state.idle.removeAll { $0.isBusy }
        guard let other, let others = other.blocks.first else { return .alone(first.bytes) }
        let count = min(first.bytes.count, others.bytes.count)
        return .beside(first.bytes.start(count), other, others.bytes.start(count))
      }
      switch step {
      case .over: return
      case .alone(let bytes):
        hasher.update(bytes)
        finish([hasher], bytes.count)
      case .beside(let bytes, let other, let others):
        hasher.update(bytes, beside: other, others)
        finish([hasher, other], bytes.count)
      }
    }
  }

  /// So many bytes of each one's first block are hashed. Whoever waits for that goes on once all that was read has been given back.
  private func finish(_ hashers: [PairableHasher], _ count: Int) {
    let read = state.withLock { _ in hashers.compactMap { $0.drop(count) } }
    for whenRead in read { whenRead() }
    state.change { state in
      for hasher in hashers {
        hasher.isBusy = false
        if !hasher.blocks.isEmpty { state.idle.append(hasher) }
      }
    }
  }
}

extension PairableHasher {
  /// - Returns: whom to tell that nobody reads the first block any more; nil while there is more of it.
  fileprivate func drop(_ count: Int) -> (@Sendable () -> Void)? {
    blocks[0].bytes = UnsafeRawBufferPointer(rebasing: blocks[0].bytes[count...])
    return blocks[0].bytes.isEmpty ? blocks.removeFirst().whenRead : nil
  }
}

extension UnsafeRawBufferPointer {
  fileprivate func start(_ count: Int) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(rebasing: self[..<count])
  }
}
