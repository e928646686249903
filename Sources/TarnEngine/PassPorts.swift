package import TarnCore
package import TarnRuntime

/// The ports through which a pass reaches the outside.
package struct PassPorts: Sendable {
  package var ledger: any LedgerPort
  package var stage: any StagePort
  package var parser: any FeedParsing
  package var downloader: any Downloading
  package var hashing: any Hashing
  package var clock: any Clock
  package var random: any RandomSource
  /// The id of this boot; empty when it cannot be read.
  package var bootID: String
  /// The directory where a feed's body is kept while it is read.
  package var spoolDirectory: String
  /// The catalog that keeps the manifest for repairs; `nil` when nobody watches the folder.
  package var catalog: (any CatalogPort)?
  /// The engine that carries out plans, shared by all who work in the folder.
  package var engine: TransferEngine
  /// Records what is written in the folder; `nil` when nobody watches it.
  package var ownWrites: OwnWrites?

  package init(
    ledger: any LedgerPort, stage: any StagePort, parser: any FeedParsing, downloader: any Downloading,
    hashing: any Hashing, clock: any Clock, random: any RandomSource, bootID: String, spoolDirectory: String,
    engine: TransferEngine
  ) {
    (self.ledger, self.stage, self.engine) = (ledger, stage, engine)
    (self.parser, self.downloader, self.hashing) = (parser, downloader, hashing)
    (self.clock, self.random) = (clock, random)
    (self.bootID, self.spoolDirectory) = (bootID, spoolDirectory)
  }

  var now: Timestamp { clock.time }
}
