package import TarnCore
package import TarnRuntime

/// Makes downloaders for several passes over few threads, under one budget. Any thread may call.
///
/// Clients without secrets share a thread and its connections. They are separated by authorities, by proxy, and by whether they may
/// reach private addresses, since a reused connection is not judged again. A client with secrets has a thread and connections of
/// its own. A thread ends with its last client.
package final class DownloaderPool: Sendable {
  /// What the clients of one thread have in common.
  private struct Domain: Hashable {
    let caFile: String?
    let proxy: String?
    let allowsPrivateAddresses: Bool
    let allowsAskedPrivateAddresses: Bool

    init(_ settings: NetworkSettings) {
      (caFile, proxy) = (settings.caFile, settings.proxy)
      allowsPrivateAddresses = settings.allowsPrivateAddresses
      allowsAskedPrivateAddresses = settings.allowsAskedPrivateAddresses
    }
  }

  private struct Shared {
    let thread: NetworkThread
    var users = 1
  }

  package let budget: TransferBudget
  private let clock: any Clock
  private let shared = Locked<[Domain: Shared]>([:])

  package init(budget: TransferBudget, clock: any Clock = SystemClock()) {
    self.budget = budget
    self.clock = clock
  }

  /// Makes a downloader for one pass. Its `shutDown()` gives back what it has.
  ///
  /// - Parameters:
  ///   - mirror: the mirror whose turns its exchanges take. A mirror keeps its turns from pass to pass.
  ///   - priority: the new priority; `nil` to keep the mirror's.
  ///   - readsFiles: true when its sources are `file:` URLs. They are read on a thread of its own, so that a hanging file system
  ///     holds up nobody else.
  ///   - cookies: the cookies that it begins with, and adds to where the settings keep cookies.
  /// - Throws: `.outOfMemory` or `.tooManyOpenFiles` when a thread or libcurl's handles cannot be made.
  package func downloader(
    mirror: String, settings: NetworkSettings, priority: TransferPriority? = nil, readsFiles: Bool = false,
    cookies: HostCookies = HostCookies()
  ) throws(DownloadFailure) -> CurlDownloader {
    if let priority { budget.setPriority(priority, mirror: mirror) }
    guard settings.isAnonymous, !readsFiles else {
      let thread = try makeThread()
      return CurlDownloader(on: thread, settings: settings, mirror: mirror, cookies: cookies) {
        thread.close()
      }
    }
    let domain = Domain(settings)
    let thread = try borrow(domain)
    return CurlDownloader(on: thread, settings: settings, mirror: mirror, cookies: cookies) {
      self.giveBack(domain)
    }
  }

  /// The number of threads that clients share now.
  var sharedThreads: Int { shared.withLock { $0.count } }

  private func makeThread() throws(DownloadFailure) -> NetworkThread {
    try NetworkThread(limits: budget.terms.limits, clock: clock, budget: budget)
  }

  private func borrow(_ domain: Domain) throws(DownloadFailure) -> NetworkThread {
    if let thread = join(domain, nil) { return thread }
    // The thread is made without the lock. When two are made at once, one is closed again.
    let thread = try makeThread()
    guard let other = join(domain, thread), other !== thread else { return thread }
    thread.close()
    return other
  }

  /// - Returns: the existing thread, or else the new one.
  private func join(_ domain: Domain, _ new: NetworkThread?) -> NetworkThread? {
    shared.withLock { shared in
      if let thread = shared[domain]?.thread {
        shared[domain]?.users += 1
        return thread
      }
      shared[domain] = new.map { Shared(thread: $0) }
      return new
    }
  }

  private func giveBack(_ domain: Domain) {
    let unused = shared.withLock { shared -> NetworkThread? in
      guard var entry = shared[domain] else { return nil }
      entry.users -= 1
      shared[domain] = entry.users > 0 ? entry : nil
      return entry.users > 0 ? nil : entry.thread
    }
    unused?.close()
  }
}
