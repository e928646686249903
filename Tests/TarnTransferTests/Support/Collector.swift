import TarnCore
import TarnRuntime

/// A receiver that keeps all it hears, and answers as told.
final class Collector: DownloadReceiver {
  struct Heard {
    var heads: [ResponseHead] = []
    var bytes: [UInt8] = []
    var outcomes: [DownloadOutcome] = []
    /// How often `.full` was answered.
    var pauses = 0
    /// Calls in the wrong order.
    var offences: [String] = []
  }

  /// How long anything is waited for. The machine may be busy.
  static let patience = Duration.seconds(120)

  let heard = LockedCondition(Heard())
  /// The downloader, so that it lives as long as the test looks at what it brought.
  let owner = Locked<(any Downloading)?>(nil)
  private let verdict: HeadVerdict
  private let onBytes: @Sendable (Heard) -> ByteVerdict
  private let onEnd: @Sendable () -> Void

  /// - Parameter onBytes: called under the lock with what was heard before these bytes.
  init(
    _ verdict: HeadVerdict = .accept,
    onBytes: @escaping @Sendable (Heard) -> ByteVerdict = { _ in .taken },
    onEnd: @escaping @Sendable () -> Void = {}
  ) {
    self.verdict = verdict
    self.onBytes = onBytes
    self.onEnd = onEnd
  }

  func begin(_ head: ResponseHead) -> HeadVerdict {
    heard.change { heard in
      if !heard.heads.isEmpty || !heard.outcomes.isEmpty { heard.offences.append("begin came late") }
      heard.heads.append(head)
    }
    return verdict
  }

  func receive(_ bytes: UnsafeRawBufferPointer) -> ByteVerdict {
    heard.change { heard in
      if heard.heads.isEmpty { heard.offences.append("bytes before begin") }
      if !heard.outcomes.isEmpty { heard.offences.append("bytes after the end") }
      let verdict = onBytes(heard)
      switch verdict {
      case .taken: heard.bytes += bytes
      case .full: heard.pauses += 1
      case .abort: break
      }
      return verdict
    }
  }

  func end(_ outcome: DownloadOutcome) {
    onEnd()
    heard.change { heard in
      if !heard.outcomes.isEmpty { heard.offences.append("end came twice") }
      heard.outcomes.append(outcome)
    }
  }

  /// Blocks until the end, but not for ever.
  func outcome() -> DownloadOutcome? {
    heard.wait(atMost: Self.patience) { $0.outcomes.first }
  }

  /// Blocks until `.full` was answered `count` times, but not for ever.
  func paused(_ count: Int) -> Bool {
    heard.wait(atMost: Self.patience) { $0.pauses >= count ? true : nil } ?? false
  }

  /// Blocks until the head came, but not for ever.
  func head() -> ResponseHead? {
    heard.wait(atMost: Self.patience) { $0.heads.first }
  }

  var bytes: [UInt8] { heard.withLock { $0.bytes } }
  var offences: [String] { heard.withLock { $0.offences } }
}

extension DownloadOutcome {
  var head: ResponseHead? {
    if case .complete(let head) = self { head } else { nil }
  }
  var failure: DownloadFailure? {
    if case .failed(let failure) = self { failure } else { nil }
  }
}
