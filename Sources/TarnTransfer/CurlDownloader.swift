import CurlShim
import Glibc
package import TarnCore
package import TarnRuntime

/// Downloads over libcurl: one thread, one multi handle, and one set of credentials.
///
/// libcurl keeps connections by host, so mirrors with different credentials need a downloader each. A receiver
/// started after `shutDown()` hears `.cancelled` on the caller's thread, before `start` returns.
package final class CurlDownloader: Downloading {
  private let inbox: Inbox
  private let thread: WorkerThread

  /// Starts the thread.
  ///
  /// - Throws: `.outOfMemory` or `.tooManyOpenFiles` when the thread or libcurl's handles cannot be made.
  package init(settings: NetworkSettings, clock: any Clock = SystemClock()) throws(DownloadFailure) {
    Self.prepareProcess()
    let multi = try MultiHandle(settings)
    let inbox = Inbox(multi)
    self.inbox = inbox
    do throws(ThreadFailure) {
      thread = try WorkerThread.start(name: "tarn-network") {
        TransferLoop(settings, clock: clock, multi: multi, inbox: inbox).run()
      }
    } catch {
      throw DownloadFailure(.outOfMemory, "no thread for the network", isTransient: true)
    }
  }

  deinit {
    shutDown()
  }

  package func start(_ request: DownloadRequest, to receiver: any DownloadReceiver) -> DownloadID {
    let (id, isOpen) = inbox.start(request, receiver)
    if !isOpen { receiver.end(.failed(DownloadFailure(.cancelled, "cancelled", isTransient: false))) }
    return id
  }

  package func resume(_ id: DownloadID) {
    inbox.put(.resume(id))
  }

  package func cancel(_ id: DownloadID) {
    inbox.put(.cancel(id))
  }

  /// From a receiver's callback it only asks for the end: the thread cannot wait for itself.
  package func shutDown() {
    inbox.close()
    if !thread.isCurrent { thread.join() }
  }

  /// Makes libcurl ready and takes out of the environment what would steer it. Once per process, best before other
  /// threads start; later calls do nothing.
  package static func prepareProcess() {
    _ = prepared
  }

  /// SSLKEYLOGFILE would write session keys to a file; the rest would send traffic elsewhere.
  static let unwelcomeVariables = [
    "SSLKEYLOGFILE", "CURL_CA_BUNDLE", "http_proxy", "https_proxy", "HTTPS_PROXY", "ftp_proxy", "FTP_PROXY",
    "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY", "HTTP_PROXY",
  ]

  private static let prepared: Void = {
    for name in unwelcomeVariables { unsetenv(name) }
    curl_global_init(Int(CURL_GLOBAL_DEFAULT))
  }()
}

/// What other threads ask of the network thread.
final class Inbox: Sendable {
  enum Command: Sendable {
    case start(DownloadID, DownloadRequest, any DownloadReceiver)
    case resume(DownloadID)
    case cancel(DownloadID)
  }

  private struct State {
    var commands: [Command] = []
    var lastID: UInt64 = 0
    var isClosed = false
  }

  private let multi: MultiHandle
  private let state = Locked(State())

  init(_ multi: MultiHandle) {
    self.multi = multi
  }

  /// - Returns: false with the id when the inbox is closed.
  func start(_ request: DownloadRequest, _ receiver: any DownloadReceiver) -> (DownloadID, isOpen: Bool) {
    state.withLock { state in
      state.lastID += 1
      let id = DownloadID(value: state.lastID)
      return (id, append(.start(id, request, receiver), to: &state))
    }
  }

  func put(_ command: Command) {
    state.withLock { _ = append(command, to: &$0) }
  }

  func close() {
    state.withLock { state in
      guard !state.isClosed else { return }
      state.isClosed = true
      multi.wake()
    }
  }

  /// Network thread: empties the inbox.
  func take() -> (commands: [Command], isClosed: Bool) {
    state.withLock { state in
      defer { state.commands = [] }
      return (state.commands, state.isClosed)
    }
  }

  private func append(_ command: Command, to state: inout State) -> Bool {
    guard !state.isClosed else { return false }
    state.commands.append(command)
    // The thread takes all at once: who finds others waiting need not wake it again.
    if state.commands.count == 1 { multi.wake() }
    return true
  }
}
