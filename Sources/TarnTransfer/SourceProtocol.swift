import TarnCore

/// Delivers the bytes of the addresses of some schemes. An exchange is handed to the source of its address when the budget has let
/// it in. Network thread only.
///
/// To add a source, add a case of `URLScheme`, a class like `FileSource`, and its place in `TransferLoop`. Only the first three
/// methods and `step` are needed. The others have a default, for sources without rates and without a peer that can be silent.
///
/// The loop sleeps in one place, the poll of libcurl's multi handle, which the inbox wakes. A source that waits for descriptors of
/// its own gives them to that poll; one that returns true from `step` is called again at once.
protocol SourceProtocol: AnyObject {
  /// Begins to deliver the bytes.
  ///
  /// - Returns: the outcome of the exchange, if it ended at once.
  func open(_ exchange: Exchange) -> DownloadOutcome?

  /// Continues, because the receiver has room again.
  func resume(_ exchange: Exchange)

  /// Releases what it holds for an exchange that is over or given up.
  func close(_ exchange: Exchange)

  /// Delivers the available bytes without waiting for more.
  ///
  /// - Parameter ended: called with each exchange that has ended and is closed.
  /// - Returns: true when there is more to do at once.
  func step(_ ended: (Exchange, SourceEnd) -> Void) -> Bool

  /// Closes everything. Nothing may be opened afterwards.
  func close()

  /// Applies new limits for connections.
  func set(_ limits: PlaceLimits)

  // MARK: Rates

  /// Applies the low-speed limit to the open exchanges of a client, or of all.
  func applyLowSpeed(of client: Client?)

  /// Continues an exchange that the rates stopped. Where `Client.mayTake` is false, a source passes no bytes on, and puts the
  /// exchange into `Client.throttled`.
  func goOn(_ exchange: Exchange)

  // MARK: Silence

  /// Returns when an open exchange last received something; `nil` while it is paused here, and where it has no peer.
  func silentSince(_ exchange: Exchange) -> Instant?

  /// All open exchanges that have such a time.
  var silences: [Silence] { get }
}

/// An exchange and the time at which it last received something.
typealias Silence = (exchange: Exchange, since: Instant)

extension SourceProtocol {
  func close() {}
  func set(_ limits: PlaceLimits) {}
  func applyLowSpeed(of client: Client?) {}
  func goOn(_ exchange: Exchange) {}
  func silentSince(_ exchange: Exchange) -> Instant? { nil }
  var silences: [Silence] { [] }
}

/// How an exchange with a source ended.
enum SourceEnd {
  case outcome(DownloadOutcome)
  /// The bytes are at another URL.
  case redirect(SourceURL)
}

/// Reads files of this machine.
final class FileSource: SourceProtocol {
  private var running: [DownloadID: (exchange: Exchange, file: FileExchange)] = [:]
  private lazy var buffer = [UInt8](repeating: 0, count: CurlLimits.buffer)

  func open(_ exchange: Exchange) -> DownloadOutcome? {
    do {
      running[exchange.id] = (exchange, try FileExchange(exchange.url, exchange.request))
      return nil
    } catch {
      return .failed(error)
    }
  }

  func resume(_ exchange: Exchange) { running[exchange.id]?.file.clearFull() }

  func close(_ exchange: Exchange) { running[exchange.id] = nil }

  func step(_ ended: (Exchange, SourceEnd) -> Void) -> Bool {
    var isOver = false
    for (exchange, file) in running.values where !file.isFull {
      guard let outcome = file.step(exchange.receiver, &buffer) else {
        exchange.client.tookBytes(exchange)
        continue
      }
      close(exchange)
      ended(exchange, .outcome(outcome))
      isOver = true
    }
    return isOver || running.values.contains { !$0.file.isFull }
  }
}
