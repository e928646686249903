import TarnCore
import TarnRuntime

/// A thread with one multi handle, and the clients whose exchanges run there. libcurl keeps connections by host, so clients of one
/// thread share them and must be allowed to (see `DownloaderPool`).
final class NetworkThread: Sendable {
  let inbox: Inbox
  let budget: TransferBudget
  private let thread: WorkerThread

  /// Starts the thread.
  ///
  /// - Parameter budget: the budget that lets exchanges in, perhaps shared with other threads.
  /// - Throws: `.outOfMemory` or `.tooManyOpenFiles` when the thread or libcurl's handles cannot be made.
  init(
    limits: PlaceLimits, clock: any Clock, budget: TransferBudget
  ) throws(DownloadFailure) {
    CurlDownloader.prepareProcess()
    let multi = try MultiHandle(limits)
    let inbox = Inbox(multi)
    (self.inbox, self.budget) = (inbox, budget)
    do throws(ThreadFailure) {
      thread = try WorkerThread.start(name: "tarn-network") {
        TransferLoop(limits, clock: clock, budget: budget, multi: multi, inbox: inbox).run()
      }
    } catch {
      throw DownloadFailure(.outOfMemory, "no thread for the network", isTransient: true)
    }
  }

  var isCurrent: Bool { thread.isCurrent }

  /// Ends the thread and everything that still runs. From a receiver's callback it only requests the end, since the thread cannot
  /// wait for itself.
  func close() {
    inbox.close()
    if !thread.isCurrent { thread.join() }
  }
}
