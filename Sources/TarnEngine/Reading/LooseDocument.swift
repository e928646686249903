package import TarnCore
import TarnRuntime

/// A document that is no mirror's: fetched or read as a feed is, and handed to whoever knows what it is. Blocking.
package struct LooseDocument {
  private let reader: FeedReader

  package init(ports: PassPorts, observer: any PassObserver, stop: StopFlag) {
    reader = FeedReader(
      ports: ports, policy: PassPolicy(), observer: observer, stop: stop,
      progress: PassProgress(clock: ports.clock))
  }

  /// - Parameter body: gets the bytes, the URL after redirects and the Content-Type.
  /// - Throws: `PassFailure`: of getting it, or what `body` throws with its place.
  package func read<Value>(
    _ location: FeedLocation,
    body: (any ByteSource, _ url: String, _ contentType: String?) throws(FeedFailure) -> Value
  ) throws(PassFailure) -> Value {
    let document = try reader.open(location)
    do throws(FeedFailure) {
      return try body(SpoolSource(document.spool), document.url, document.contentType)
    } catch {
      throw PassFailure(error, feed: location.text)
    }
  }
}
