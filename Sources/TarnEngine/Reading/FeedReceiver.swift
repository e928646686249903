import TarnCore
import TarnRuntime

/// One document on its way: filled by the network's thread, drained by the pass into a spool.
final class FeedReceiver: DownloadReceiver {
  private struct State {
    var head: ResponseHead?
    var chunks: [[UInt8]] = []
    var queued = 0
    var isPaused = false
    var outcome: DownloadOutcome?
  }
  /// Bytes kept in memory; more makes the transfer pause.
  private static let most = 1 << 20
  /// Bytes from which on they are moved at once; fewer at the end of a turn, or with the end.
  private static let much = 128 << 10
  private let state = LockedCondition(State())
  private let progress: PassProgress?

  /// - Parameter progress: is told how far it is; nil for what is not the feed itself.
  init(progress: PassProgress? = nil) {
    self.progress = progress
  }

  /// Of the response whose bytes come, or came.
  var head: ResponseHead? { state.withLock { $0.head } }

  func begin(_ head: ResponseHead) -> HeadVerdict {
    state.withLock { $0.head = head }
    guard head.isWholeFile else { return .headOnly }
    progress?.beginFeed(total: head.contentLength)
    return .accept
  }

  func receive(_ bytes: UnsafeRawBufferPointer) -> ByteVerdict {
    let (verdict, isMuch) = state.withLock { state -> (ByteVerdict, Bool) in
      guard state.queued < Self.most else {
        state.isPaused = true
        return (.full, true)
      }
      state.chunks.append(Array(bytes))
      state.queued += bytes.count
      return (.taken, state.queued >= Self.much)
    }
    if isMuch { state.change { _ in } }
    if verdict == .taken { progress?.receiveFeed(bytes: bytes.count) }
    return verdict
  }

  func end(_ outcome: DownloadOutcome) {
    progress?.endFeed()
    state.change { $0.outcome = outcome }
  }

  /// So long nothing else is looked at.
  static let turn = Duration.milliseconds(250)

  /// Moves what comes into `spool`, for as long as something comes.
  ///
  /// - Parameters:
  ///   - stop: looked at each time.
  ///   - each: called with the bytes, in their order.
  /// - Returns: nil when the turn is over, or so much came in it that others should have theirs: call it again.
  func drain(
    into spool: SpoolFile, id: DownloadID, downloader: any Downloading, stop: StopFlag,
    each: ([UInt8]) -> Void = { _ in }
  ) throws(SpoolFailure) -> DownloadOutcome? {
    // The condition waits in real time.
    let begun = Instant.now
    for _ in 0..<16 {
      if stop.isSet { downloader.cancel(id) }
      let step = state.wait(atMost: Self.turn - Instant.now.elapsed(since: begun)) {
        state -> ([[UInt8]], Bool, DownloadOutcome?)? in
        guard !state.chunks.isEmpty || state.outcome != nil else { return nil }
        defer {
          state.chunks = []
          state.queued = 0
          state.isPaused = false
        }
        return (state.chunks, state.isPaused, state.outcome)
      }
      guard let (chunks, wasPaused, outcome) = step else { return nil }
      for chunk in chunks {
        do throws(SpoolFailure) {
          try spool.append(chunk)
          each(chunk)
        } catch {
          downloader.cancel(id)
          throw error
        }
      }
      if let outcome { return outcome }
      if wasPaused { downloader.resume(id) }
    }
    return nil
  }
}
