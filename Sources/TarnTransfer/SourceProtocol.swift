import TarnCore

/// Delivers the bytes of the addresses of some schemes. An exchange is handed to the source of its address when the budget has let
/// it in. Network thread only.
///
/// To add a source, add a case of `URLScheme`, a class like `FileSource`, and its place in `TransferLoop.sources`.
protocol SourceProtocol: AnyObject {
  /// The schemes of the addresses that it opens.
  var schemes: Set<URLScheme> { get }

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
}

/// How an exchange with a source ended.
enum SourceEnd {
  case outcome(DownloadOutcome)
  /// The bytes are at another URL.
  case redirect(SourceURL)
}

/// Reads files of this machine.
final class FileSource: SourceProtocol {
  let schemes: Set<URLScheme> = [.file]
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
