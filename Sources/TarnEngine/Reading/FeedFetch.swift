import TarnCore
import TarnRuntime

/// One document on its way: filled by the network's thread, drained by the pass into a spool.
final class FeedFetch: DownloadReceiver {
  private struct State {
    var head: ResponseHead?
    var chunks: [[UInt8]] = []
    var queued = 0
    var isPaused = false
    var outcome: DownloadOutcome?
  }
  /// Bytes kept in memory; more makes the transfer pause.
  private static let most = 1 << 20
  private let state = LockedCondition(State())

  func begin(_ head: ResponseHead) -> HeadVerdict {
    state.withLock { $0.head = head }
    return head.status == 200 ? .accept : .headOnly
  }

  func receive(_ bytes: UnsafeRawBufferPointer) -> ByteVerdict {
    state.change { state in
      guard state.queued < Self.most else {
        state.isPaused = true
        return .full
      }
      state.chunks.append(Array(bytes))
      state.queued += bytes.count
      return .taken
    }
  }

  func end(_ outcome: DownloadOutcome) {
    state.change { $0.outcome = outcome }
  }

  /// Blocks until the exchange has ended, moving its bytes into `spool`.
  ///
  /// - Parameter stop: looked at twice a second.
  func drain(
    into spool: SpoolFile, id: DownloadID, downloader: any Downloading, stop: StopFlag
  ) throws(SpoolFailure) -> DownloadOutcome {
    while true {
      if stop.isSet { downloader.cancel(id) }
      let step = state.wait(nanoseconds: 500_000_000) { state -> ([[UInt8]], Bool, DownloadOutcome?)? in
        guard !state.chunks.isEmpty || state.outcome != nil else { return nil }
        defer {
          state.chunks = []
          state.queued = 0
          state.isPaused = false
        }
        return (state.chunks, state.isPaused, state.outcome)
      }
      guard let (chunks, wasPaused, outcome) = step else { continue }
      for chunk in chunks {
        do throws(SpoolFailure) {
          try spool.append(chunk)
        } catch {
          downloader.cancel(id)
          throw error
        }
      }
      if let outcome { return outcome }
      if wasPaused { downloader.resume(id) }
    }
  }
}

/// A spool as the parser reads it.
struct SpoolSource: ByteSource {
  let spool: SpoolFile

  mutating func read(into buffer: UnsafeMutableRawBufferPointer) throws(FeedFailure) -> Int {
    do {
      return try spool.read(into: buffer)
    } catch {
      throw FeedFailure(code: "feed-not-readable", message: error.message)
    }
  }
}
