import TarnCore
import TarnRuntime

/// The downloaders of a session. Settings that concern them add a new one; an older one ends with its last transfer. Callable on
/// any thread.
final class SessionDownloaders: Sendable {
  /// The newest last.
  private let all: Locked<[(number: Int, downloader: any Downloading)]>

  init(_ first: any Downloading) { all = Locked([(0, first)]) }

  /// The downloader of tasks that begin now.
  var newest: (number: Int, downloader: any Downloading) { all.withLock { $0[$0.count - 1] } }

  func add(_ downloader: any Downloading) {
    all.withLock { $0.append(($0[$0.count - 1].number + 1, downloader)) }
  }

  /// Shuts down the older ones that no task at work uses.
  func endUnused(_ used: Set<Int>) {
    let unused = all.withLock { all in
      let newest = all[all.count - 1].number
      let unused = all.filter { $0.number != newest && !used.contains($0.number) }
      all.removeAll { downloader in unused.contains { $0.number == downloader.number } }
      return unused
    }
    for (_, downloader) in unused { downloader.shutDown() }
  }

  func shutDown() {
    for (_, downloader) in all.withLock({ $0 }) { downloader.shutDown() }
  }
}
