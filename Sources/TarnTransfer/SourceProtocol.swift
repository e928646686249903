import TarnCore

/// Brings the bytes of the addresses of some schemes. Every exchange is handed to the source of its address once the budget has let it
/// in. Network thread only.
///
/// To add a source: a case of `URLScheme`, a class like `FileSource`, and its place in `TransferLoop.sources`.
protocol SourceProtocol: AnyObject {
  /// Of the addresses that it opens.
  var schemes: Set<URLScheme> { get }

  /// Begins to bring the bytes.
  ///
  /// - Returns: how the exchange ended, where it did so at once.
  func open(_ exchange: Exchange) -> DownloadOutcome?

  /// The receiver has room again.
  func resume(_ exchange: Exchange)

  /// Lets go of whatever it holds for an exchange that is over, or that is given up.
  func close(_ exchange: Exchange)

  /// Hands over the bytes that are there, and never waits for more.
  ///
  /// - Parameter ended: gets each exchange that has ended, which is closed by then.
  /// - Returns: whether there is more to do at once.
  func step(_ ended: (Exchange, SourceEnd) -> Void) -> Bool
}

/// How a source ended with an exchange.
enum SourceEnd {
  case outcome(DownloadOutcome)
  /// The bytes are elsewhere.
  case redirect(SourceURL)
}

/// Files of this machine.
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
