import CurlShim
import Glibc
package import TarnCore
package import TarnRuntime

/// Downloads over libcurl for one client: a pass, with its own limits, rate and receivers. The thread and the multi handle are its
/// own as well, or those of a `DownloaderPool`.
///
/// A receiver started after `shutDown()` gets `.cancelled` on the caller's thread, before `start` returns.
package final class CurlDownloader: Downloading {
  private let thread: NetworkThread
  private let client: ClientID
  private let mirror: String
  private let proxy: String?
  private let left = Gate()
  /// Called when the client has left; `nil` when the thread is its own.
  private let giveBack: (@Sendable () -> Void)?

  /// Starts a thread for this client alone.
  ///
  /// - Throws: `.outOfMemory` or `.tooManyOpenFiles` when the thread or libcurl's handles cannot be made.
  package init(settings: NetworkSettings, clock: any Clock = SystemClock()) throws(DownloadFailure) {
    let limits = PlaceLimits(total: settings.connections, perHost: settings.connectionsPerHost)
    thread = try NetworkThread(limits: limits, clock: clock, budget: TransferBudget(nil, clock: clock))
    (mirror, proxy) = ("", settings.proxy)
    client = thread.inbox.join(settings, mirror: mirror, HostCookies())
    giveBack = nil
  }

  init(
    on thread: NetworkThread, settings: NetworkSettings, mirror: String, cookies: HostCookies,
    giveBack: @escaping @Sendable () -> Void
  ) {
    self.thread = thread
    self.giveBack = giveBack
    (self.mirror, proxy) = (mirror, settings.proxy)
    client = thread.inbox.join(settings, mirror: mirror, cookies)
  }

  deinit {
    shutDown()
  }

  package func start(_ request: DownloadRequest, to receiver: any DownloadReceiver) -> DownloadID {
    let (id, isOpen) = thread.inbox.start(client, request, receiver)
    if !isOpen { receiver.end(.failed(DownloadFailure(.cancelled, "cancelled", isTransient: false))) }
    return id
  }

  package func resume(_ id: DownloadID) {
    thread.inbox.put(.resume(id))
  }

  package func cancel(_ id: DownloadID) {
    thread.inbox.put(.cancel(id))
  }

  package func prioritize(_ id: DownloadID) {
    thread.inbox.put(.prioritize(id))
  }

  package func rest(of url: String) -> Int64? {
    guard let origin = try? SourceURL(url).origin else { return nil }
    return thread.budget.change { $0.rest(at: Route(origin: origin, proxy: proxy), mirror: mirror) }
  }

  /// Sets the rate of this client, also for running exchanges. Any thread.
  ///
  /// - Parameter bytesPerSecond: the rate; `nil` for no limit.
  package func setRate(_ bytesPerSecond: UInt64?) {
    thread.inbox.put(.setRate(client, bytesPerSecond))
  }

  /// Ends this client's exchanges and no others. From a receiver's callback it only requests the end, since the thread cannot wait
  /// for itself.
  package func shutDown() {
    let isFirst = thread.inbox.leave(client, left)
    if !thread.isCurrent { left.wait() }
    if let giveBack {
      if isFirst { giveBack() }
    } else {
      thread.close()
    }
  }

  /// Initialises libcurl and removes the environment variables that would steer it. Call it once per process, best before other
  /// threads start; later calls do nothing.
  package static func prepareProcess() {
    _ = prepared
  }

  /// The removed variables. SSLKEYLOGFILE would write session keys to a file; the others would send traffic elsewhere.
  static let unwelcomeVariables = [
    "SSLKEYLOGFILE", "CURL_CA_BUNDLE", "http_proxy", "https_proxy", "HTTPS_PROXY", "ftp_proxy", "FTP_PROXY",
    "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY", "HTTP_PROXY",
  ]

  private static let prepared: Void = {
    for name in unwelcomeVariables { unsetenv(name) }
    curl_global_init(Int(CURL_GLOBAL_DEFAULT))
  }()
}
