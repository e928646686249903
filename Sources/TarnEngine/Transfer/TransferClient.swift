import TarnCore
import TarnRuntime

/// A client of the engine: the folder, its ledger, and what all transfers of the client share.
struct TransferClient: Sendable {
  let folder: any TransferFolder
  let ledger: any TransferLedger
  let downloader: any Downloading
  let clock: any Clock
  let random: any RandomSource
  /// The id of this boot; empty when it cannot be read.
  let bootID: String
  /// Records what is written in the folder; `nil` when nobody watches it.
  var ownWrites: OwnWrites?
  let progress: PassProgress
  /// Ends all that the client has submitted.
  let stop: StopFlag
  /// The orders about single transfers; `nil` for none.
  var steering: PassSteering?
  /// The most jobs in memory that wait for the same reason: for a duplicate, for space, or for contents without a source.
  var mostHeldBack = 4096
  /// The most actions in memory whose paths were not as their plan saw them.
  var mostStale = 1 << 14
  /// True when files that are brought count as in place in the mirror.
  var countsEntries = true
  /// The region that all its plans are about.
  var region = Region.everything
  /// The promises on the file system that it writes to; `nil` for those that one engine's clients share.
  var promises: SpaceBudget.Promises?
  /// The parts of its requests that those of mirrors lack.
  var requestOptions = RequestOptions()
  /// The observer of responses; `nil` for none.
  var responses: (any ResponseObserver)?
  /// True when files are copied from existing ones with equal contents.
  var reusesContents = true
  /// True when a complete file that cannot get its name keeps its bytes as a partial file.
  var keepsFailed = false
  /// True when a source that fails each time at requests for the rest of a file is asked for all of it.
  var mayAskForTheWhole = true
  /// The repair that submits; `nil` for a pass.
  var repair: BringingRepair?

  var now: Timestamp { clock.time }

  func complete(_ request: inout DownloadRequest) {
    let options = requestOptions
    (request.headers, request.method, request.body) = (options.headers, options.method, options.body)
    request.idleTimeout = options.idleTimeout
    request.keepsFields = responses != nil
    // A request that gives way is sent again, so one with a method of its own must not give way.
    if options.method != nil { request.patience = .max >> 32 }
  }

  struct RequestOptions: Sendable {
    /// The header fields, which are sent only to the origin of each URL.
    var headers: [String] = []
    /// The method; see `DownloadRequest`.
    var method: String?
    var body: String?
    var idleTimeout: Int?
    /// The expected size; see `SingleDownload`.
    var expectedBytes: UInt64?
    /// The URL of the existing file; see `SingleDownload`.
    var knownURL: String?
  }
}

extension Pass {
  /// - Parameter repair: the repair that submits; `nil` for a pass.
  func client(_ folder: any FolderPort, of repair: BringingRepair? = nil) -> TransferClient {
    TransferClient(
      folder: folder, ledger: ports.ledger, downloader: ports.downloader, clock: ports.clock,
      random: ports.random, bootID: ports.bootID, ownWrites: ports.ownWrites, progress: progress, stop: stop,
      steering: request.steering, mostHeldBack: request.mostHeldBack, countsEntries: !request.choosesOthers,
      repair: repair)
  }
}
