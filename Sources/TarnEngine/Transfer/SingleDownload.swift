package import TarnCore
package import TarnRuntime

/// A single file that a session downloads. Its plan has one action.
package struct SingleDownload: Sendable {
  /// The path that stands for it in its ledger and folder, which know the file's destination.
  package var path: RelativePath
  /// The absolute URL.
  package var url: String
  /// The digest of the wanted file; `nil` when it is not known.
  package var digest: Digest?
  /// The header fields as `Name: value` lines, which are sent only to the origin of the URL.
  package var headers: [String] = []
  /// The method; `nil` for GET.
  package var method: String?
  package var body: String?
  /// The seconds without a byte after which an attempt fails; `nil` for the network's setting.
  package var idleTimeout: Int?
  /// The size that an answer without a marked end must have. `nil` when it is not known; such an answer then needs a digest.
  package var expectedBytes: UInt64?
  /// The existing file, which is fetched again only if the server has another version; `nil` when there is none.
  package var known: Row?
  /// The URL that it came from, after redirects; `nil` when that is not known.
  package var knownURL: String?
  /// The number of attempts after the first.
  package var retries = 0
  /// True to ask for all of the file when its rest cannot be had.
  package var mayAskForTheWhole = true

  package init(_ path: RelativePath, url: String) { (self.path, self.url) = (path, url) }

  /// The end of a download.
  package enum Outcome: Sendable, Equatable {
    /// The file has its name and is durable, and the ledger has the row.
    case finished
    /// The existing file is still the server's version.
    case unchanged
    /// - Parameters:
    ///   - code: the code of a download failure, a status (`http-404`) or a failure of the folder.
    ///   - message: a description for a person.
    case failed(code: String, message: String)
    /// The download was cancelled; its partial file stays.
    case stopped
    /// The engine cannot continue, because its ledger or its threads are not available.
    case broken(PassFailure)
  }

  /// The ports that a download uses.
  package struct Ports: Sendable {
    package var folder: any TransferFolder
    package var ledger: any TransferLedger
    package var downloader: any Downloading
    package var clock: any Clock
    package var random: any RandomSource
    /// The id of this boot; empty when it cannot be read.
    package var bootID: String
    /// The progress of all downloads that share it.
    package var progress: PassProgress
    /// The device number of the folder's file system.
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

/// The decision about a response.
package enum ResponseVerdict: Sendable {
  /// The status decides.
  case usual
  /// The body is the file, whatever the status.
  case take
  /// The download ends here. Bytes that were fetched before stay.
  case end(FolderFailure)
}

/// Observes the responses of servers. It must not block.
package protocol ResponseObserver: AnyObject, Sendable {
  /// Called on the network's thread, before a byte of the file is written.
  func responded(_ path: RelativePath, _ head: ResponseHead) -> ResponseVerdict
  /// Called on a lane while a file grows whose size the server does not tell. `bytes` is the size that it is about to have.
  ///
  /// - Returns: the reason why it may not grow further; `nil` to continue.
  func grew(_ path: RelativePath, to bytes: UInt64) -> FolderFailure?
  /// Called on the network's thread.
  ///
  /// - Parameter body: the beginning of the body of a response that was no file, at most 64 KiB.
  func refused(_ path: RelativePath, body: [UInt8])
}

/// A download that the engine carries out. Thread-safe.
package final class RunningDownload: Sendable {
  private let stop: StopFlag

  init(_ stop: StopFlag) { self.stop = stop }

  /// Cancels the download. It ends soon, and its partial file stays.
  package func cancel() { stop.set() }
}

/// The action list of a single download.
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
  ///   - observer: observes the server's responses.
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
    client.requestOptions = TransferClient.RequestOptions(
      headers: download.headers, method: download.method, body: download.body,
      idleTimeout: download.idleTimeout, expectedBytes: download.expectedBytes,
      knownURL: download.knownURL)
    client.keepsFailed = true
    client.mayAskForTheWhole = download.mayAskForTheWhole
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
  /// Announces the number of files to download.
  package func expect(files: Int) {
    change { snapshot in
      snapshot.phase = .transferring
      (snapshot.filesTotal, snapshot.unknownSizes) = (files, files)
    }
  }
}
