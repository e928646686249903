import TarnCore
import TarnRuntime

/// Receives one document: the network's thread fills it, and the pass drains it into a spool.
final class FeedReceiver: DownloadReceiver {
  private struct State {
    var head: ResponseHead?
    var chunks: [[UInt8]] = []
    var queued = 0
    var isPaused = false
    var outcome: DownloadOutcome?
  }
  /// The most bytes in memory. Beyond it the transfer pauses.
  private static let most = 1 << 20
  /// The bytes from which the drain is woken at once. Fewer bytes wait for the end of its turn, or of the document.
  private static let much = 128 << 10
  private let state = LockedCondition(State())
  private let progress: PassProgress?

  /// - Parameter progress: learns how many bytes have come; `nil` for documents other than the feed.
  init(progress: PassProgress? = nil) {
    self.progress = progress
  }

  /// The head of the response whose bytes come, or came.
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

  /// The longest time that a drain waits before it returns.
  static let turn = Duration.milliseconds(250)

  /// Moves bytes into `spool` as they come.
  ///
  /// - Parameters:
  ///   - stop: checked at each step.
  ///   - each: called with the bytes, in order.
  /// - Returns: the outcome; `nil` when the turn is over, or so many bytes came that others should have a turn. Then call it again.
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
