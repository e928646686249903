package import TarnCore
package import TarnRuntime

/// One file that a session downloads: a plan of one action.
package struct SingleDownload: Sendable {
  /// What stands for it in its ledger and folder, which know where the file goes.
  package var path: RelativePath
  /// Absolute.
  package var url: String
  /// Of the file that is wanted; nil where nobody gave one.
  package var digest: Digest?
  /// `Name: value` lines, which go to the origin of the URL only.
  package var headers: [String] = []
  /// nil for GET.
  package var method: String?
  package var body: String?
  /// Seconds without a byte; nil for what the network's settings say.
  package var idleTimeout: Int?
  /// What an answer has to have whose end nothing marks; nil where nobody knows, and no such answer is taken without a digest.
  package var expectedBytes: UInt64?
  /// What stands there already, and is fetched again only if the server has another version; nil for nothing.
  package var known: Row?
  /// Attempts after the first.
  package var retries = 0

  package init(_ path: RelativePath, url: String) { (self.path, self.url) = (path, url) }

  /// How it ended.
  package enum Outcome: Sendable, Equatable {
    /// Under its name, and durable: the ledger has the row.
    case finished
    /// What stands there is the server's version still.
    case unchanged
    /// - Parameters:
    ///   - code: of a download, a status (`http-404`) or a failure of the folder.
    ///   - message: for a person.
    case failed(code: String, message: String)
    /// It was cancelled; its partial file stays.
    case stopped
    /// The engine cannot go on: its ledger or its threads cannot be had.
    case broken(PassFailure)
  }

  /// What it is carried out with.
  package struct Ports: Sendable {
    package var folder: any TransferFolder
    package var ledger: any TransferLedger
    package var downloader: any Downloading
    package var clock: any Clock
    package var random: any RandomSource
    /// Of this boot; empty when it cannot be read.
    package var bootID: String
    /// Of all downloads that share it.
    package var progress: PassProgress
    /// Of the folder's file system.
    package var device: UInt64
    package var promises: SpacePromises

    package init(
      folder: any TransferFolder, ledger: any TransferLedger, downloader: any Downloading,
      clock: any Clock, random: any RandomSource, bootID: String, progress: PassProgress, device: UInt64,
      promises: SpacePromises
    ) {
      (self.device, self.promises) = (device, promises)
      (self.folder, self.ledger, self.downloader) = (folder, ledger, downloader)
      (self.clock, self.random, self.bootID, self.progress) = (clock, random, bootID, progress)
    }
  }
}

/// What becomes of an answer.
package enum ResponseVerdict: Sendable {
  /// What its status says.
  case usual
  /// Its body is the file, whatever its status.
  case take
  /// It ends here; what was fetched before stays.
  case end(FolderFailure)
}

/// Hears what servers answer. It must not block.
package protocol ResponseObserver: AnyObject, Sendable {
  /// On the network's thread, before a byte of the file is written.
  func responded(_ path: RelativePath, _ head: ResponseHead) -> ResponseVerdict
  /// A file whose size the server does not tell has so many bytes by now. On a lane, every few MiB.
  ///
  /// - Returns: why it may have no more; nil for go on.
  func grew(_ path: RelativePath, to bytes: UInt64) -> FolderFailure?
  /// On the network's thread.
  ///
  /// - Parameter body: the beginning of the body of an answer that was no file: 64 KiB at most.
  func refused(_ path: RelativePath, body: [UInt8])
}

/// A download that was handed to the engine. Any thread.
package final class RunningDownload: Sendable {
  private let stop: StopFlag

  init(_ stop: StopFlag) { self.stop = stop }

  /// It ends soon, and keeps its partial file.
  package func cancel() { stop.set() }
}

/// What is to be done for a single download.
private final class OneAction: ActionList {
  private final class Cursor: ActionCursor {
    private var action: Action?

    init(_ action: Action) { self.action = action }

    func next() -> Action? { action.take() }
  }

  private let action: Action

  init(_ action: Action) { self.action = action }

  func actions() -> any ActionCursor { Cursor(action) }
}

extension TransferEngine {
  /// Begins a download.
  ///
  /// - Parameters:
  ///   - observer: hears of the server's answers.
  ///   - ended: called once, on the engine's thread or on this one; it must not block.
  package func start(
    _ download: SingleDownload, with ports: SingleDownload.Ports, observer: any ResponseObserver,
    ended: @escaping @Sendable (SingleDownload.Outcome) -> Void
  ) -> RunningDownload {
    let stop = StopFlag()
    let running = RunningDownload(stop)
    var client = TransferClient(
      folder: ports.folder, ledger: ports.ledger, downloader: ports.downloader, clock: ports.clock,
      random: ports.random, bootID: ports.bootID, progress: ports.progress, stop: stop)
    client.countsEntries = false
    client.promises = ports.promises.of(device: ports.device)
    client.region = Region(download.path, .itself)
    client.asking = TransferClient.Asking(
      headers: download.headers, method: download.method, body: download.body,
      idleTimeout: download.idleTimeout, expectedBytes: download.expectedBytes)
    client.keepsFailed = true
    client.reusesContents = false
    client.responses = observer
    var entry = Entry(path: download.path)
    entry.sources = [Source(url: download.url)]
    entry.digests = download.digest.map { [$0] } ?? []
    var policy = PassPolicy()
    (policy.retries, policy.reserve) = (download.retries, .share(percent: 1))
    let action = Action(
      download.known == nil ? .fetch : .revalidate, path: download.path, entry: entry,
      present: download.known?.identity, row: download.known)
    let plan = Plan(OneAction(action), policy: policy, deletions: .none, started: ports.clock.time)
    do {
      try submit(plan, for: client, observer: SilentObserver()) { transfers, result in
        ended(Self.outcome(of: transfers, result, stop))
      }
    } catch {
      ended(.broken(PassFailure(translating: error)))
    }
    return running
  }

  private static func outcome(
    of transfers: Transfers, _ result: Result<Void, PassFailure>, _ stop: StopFlag
  ) -> SingleDownload.Outcome {
    if case .failure(let failure) = result { return .broken(failure) }
    if let problem = transfers.account.problems.first {
      return .failed(code: problem.code, message: problem.message)
    }
    if transfers.account.counts.fetched + transfers.account.counts.updated > 0 { return .finished }
    if transfers.account.counts.revalidated > 0 { return .unchanged }
    if stop.isSet { return .stopped }
    return .failed(code: FolderFailure.Code.exists.rawValue, message: "something stands in its place")
  }
}

extension PassProgress {
  /// So many files are to be downloaded.
  package func expect(files: Int) {
    change { snapshot in
      snapshot.phase = .transferring
      (snapshot.filesTotal, snapshot.unknownSizes) = (files, files)
    }
  }
}
