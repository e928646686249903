import TarnCore
import TarnRuntime

/// For whom the engine carries plans out: the folder, its ledger, and what all transfers of one client share.
struct TransferClient: Sendable {
  let folder: any TransferFolder
  let ledger: any TransferLedger
  let downloader: any Downloading
  let clock: any Clock
  let random: any RandomSource
  /// Of this boot; empty when it cannot be read.
  let bootID: String
  /// Learns what is written in the folder; nil when nobody watches it.
  var ownWrites: OwnWrites?
  let progress: PassProgress
  /// Ends what it submitted.
  let stop: StopFlag
  /// Orders about single transfers; nil for none.
  var steering: PassSteering?
  /// Entries in memory that wait for a duplicate's bytes, and as many whose sources all failed.
  var mostHeldBack = 4096
  /// Actions in memory whose paths were not as their plan saw them.
  var mostStale = 1 << 14
  /// What is brought counts among what the mirror has in place.
  var countsEntries = true
  /// All that its plans are about.
  var region = Region.everything
  /// Of the file system that it writes to; nil for what all of one engine share.
  var promises: SpaceBudget.Promises?
  /// What its requests have that those of mirrors do not.
  var asking = Asking()
  /// Hears what servers answer.
  var responses: (any ResponseObserver)?
  /// What equals another file is copied from it.
  var reusesContents = true
  /// What is whole, and cannot get its name, keeps its bytes as a partial file.
  var keepsFailed = false

  var now: Timestamp { clock.time }

  func complete(_ request: inout DownloadRequest) {
    (request.headers, request.method, request.body) = (asking.headers, asking.method, asking.body)
    request.idleTimeout = asking.idleTimeout
    request.keepsFields = responses != nil
    // Who gives way is asked again.
    if asking.method != nil { request.patience = .max >> 32 }
  }

  struct Asking: Sendable {
    /// Header lines, for the origin of each URL only.
    var headers: [String] = []
    /// See `DownloadRequest`.
    var method: String?
    var body: String?
    var idleTimeout: Int?
    /// See `SingleDownload`.
    var expectedBytes: UInt64?
  }
}

extension Pass {
  func client(_ folder: any FolderPort) -> TransferClient {
    TransferClient(
      folder: folder, ledger: ports.ledger, downloader: ports.downloader, clock: ports.clock,
      random: ports.random, bootID: ports.bootID, ownWrites: ports.ownWrites, progress: progress, stop: stop,
      steering: request.steering, mostHeldBack: request.mostHeldBack, countsEntries: !request.choosesOthers)
  }
}
