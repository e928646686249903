import Glibc
package import TarnCore
import TarnEngine
import TarnFolder
import TarnLedger
import TarnRuntime
import TarnTransfer

/// The questions of `tarn doctor` about a mirror.
extension Tarn {
  /// Asks a feed's server for the head of its answer, as a pass would, without a body.
  ///
  /// - Returns: the head, or the reason why there is none; `nil` for a feed that is on no server.
  package func probe(_ request: SyncRequest) throws(PassFailure) -> DownloadOutcome? {
    guard let feed = request.feed, case .remote(let url) = try location(of: feed) else { return nil }
    let ports = try makePorts(
      try location(of: feed), request.options, request, ledger: AbsentLedger(), scratch: temporaryDirectory,
      stage: nil, observer: SilentObserver())
    defer { ports.downloader.shutDown() }
    var download = DownloadRequest(url: url, limit: 64 << 10)
    download.encoding = .gzipAsked
    download.totalTimeout = Self.probeSeconds
    let receiver = HeadReceiver()
    _ = ports.downloader.start(download, to: receiver)
    return receiver.outcome(within: .seconds(Self.probeSeconds + 15))
  }

  private static let probeSeconds = 15

  /// Returns the path of a feed that is a local file; `nil` for any other.
  package func localFeed(_ feed: String) -> String? {
    guard case .local(let path) = try? location(of: feed) else { return nil }
    return String(decoding: path, as: UTF8.self)
  }

  /// Returns the directory of a mirror's record.
  ///
  /// - Throws: the reason why there is none.
  package func recordDirectory(folder: String, state: String?) throws(PassFailure) -> String {
    try home(folder: folder, state: state).stateDirectory
  }

  /// Reads all of a mirror's record, even while somebody works with it.
  ///
  /// - Throws: `inputOutput` when it is damaged or missing, `configuration` for a folder that is no mirror.
  package func checkRecord(folder: String, state: String?) throws(PassFailure) {
    let home = try home(folder: folder, state: state)
    do throws(LedgerFailure) {
      let ledger = try SQLiteLedger(directory: home.stateDirectory, mode: .readOnly)
      defer { ledger.close() }
      try ledger.requireWhole()
    } catch {
      // The next pass updates the record of an older Tarn.
      if error.code == .older { return }
      if error.code == .missing {
        throw PassFailure(.inputOutput, code: "ledger-missing", "its record is missing")
      }
      throw PassFailure(error)
    }
  }
}

/// Receives the head of an answer and keeps it.
private final class HeadReceiver: DownloadReceiver {
  private struct State {
    var head: ResponseHead?
    var outcome: DownloadOutcome?
  }
  private let state = LockedCondition(State())

  func begin(_ head: ResponseHead) -> HeadVerdict {
    state.withLock { $0.head = head }
    return .headOnly
  }

  func receive(_ bytes: UnsafeRawBufferPointer) -> ByteVerdict { .abort }

  func end(_ outcome: DownloadOutcome) {
    state.change { state in state.outcome = state.head.map { .complete($0) } ?? outcome }
  }

  func outcome(within limit: Duration) -> DownloadOutcome {
    state.wait(atMost: limit) { $0.outcome }
      ?? .failed(DownloadFailure(.timeout, "no answer in time", isTransient: true))
  }
}
