package import TarnCore
package import TarnEngine
import TarnFeeds
import TarnLedger
package import TarnRuntime

extension Tarn {
  /// Returns the feeds that an OPML document names.
  ///
  /// - Parameter place: a file, a URL, or `-` for standard input.
  package func subscriptions(
    _ place: String, observer: any PassObserver, stop: StopFlag
  ) throws(PassFailure) -> SubscriptionList {
    // A bare word is a file here.
    let isBare = place != "-" && FeedText.scheme(of: place) == nil && !FeedText.isPath(place)
    let location = try location(of: isBare ? "./\(place)" : place)
    let ports = try makePorts(
      location, PassOptions(), SyncRequest(feed: nil, folder: "."), ledger: AbsentLedger(),
      scratch: temporaryDirectory, stage: nil, observer: observer)
    defer { ports.downloader.shutDown() }
    return try ports.read(location, observer: observer, stop: stop) {
      source, url, contentType throws(FeedFailure) in
      try OPML.read(source, url: url, contentType: contentType)
    }
  }
}
