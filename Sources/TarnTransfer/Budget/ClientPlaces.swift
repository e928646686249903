/// The limits of places, for one client or for all together.
package struct PlaceLimits: Sendable, Hashable {
  /// The most places in all, at least 1.
  package var total: Int
  /// The most places per host, at least 1.
  package var perHost: Int
  /// The number of each host's places for small files only. Two are always left for files of any size. Otherwise a feed without
  /// sizes would get its files one by one.
  package var keptForSmall: Int

  package init(total: Int, perHost: Int, keptForSmall: Int = 1) {
    self.total = max(1, total)
    self.perHost = max(1, perHost)
    self.keptForSmall = max(0, min(keptForSmall, perHost - 2))
  }
}

/// The kind of a request, by how much is to come.
enum TransferKind: CaseIterable {
  case large
  /// A small file, which may have a place that is kept for small ones.
  case small
  /// A file so small that over HTTP/2 it is a stream.
  case short
  /// Counts as large over HTTP/1. Over HTTP/2 it counts as short until more has come.
  case unknown

  var mayStream: Bool { self == .short || self == .unknown }
  var place: Hold { self == .large || self == .unknown ? .large : .small }
}

/// What a request holds while it runs: a place, or a share in the place of the streams.
enum Hold { case large, small, stream }

/// The places and streams that somebody has at a host.
struct Places {
  /// Requests with a place of their own.
  private var whole = 0
  private(set) var streams = 0

  var requests: Int { whole + streams }

  /// The places taken. All streams together take one.
  var taken: Int { whole + (streams > 0 ? 1 : 0) }

  /// - Parameter change: 1 for a request that begins, -1 for one that ends.
  /// - Returns: the change in the number of places taken.
  mutating func count(_ hold: Hold, _ change: Int) -> Int {
    let before = taken
    if hold == .stream { streams += change } else { whole += change }
    return taken - before
  }
}

/// A client of a budget with limits of its own beside those of all. A pass and a repair of one mirror are two clients.
final class ClientPlaces {
  let limits: PlaceLimits
  /// The places that the client has.
  fileprivate(set) var taken = 0
  private var hosts: [Route: ClientHost] = [:]

  /// - Parameter limits: the client's limits, which keep no places for small files; the limits of all clients do that.
  init(_ limits: PlaceLimits) { self.limits = limits }

  func host(_ route: Route) -> ClientHost {
    let host = hosts[route] ?? ClientHost(self)
    hosts[route] = host
    return host
  }

  /// Forgets the hosts where the client has no requests, with what was known of them.
  func forget() { hosts = hosts.filter { !$0.value.isIdle } }
}

/// What a client has at one host, within its own limits.
///
/// A place is a connection. Each request has one, but where a host speaks HTTP/2 short requests are streams. All streams at a host
/// share one place, also where there is only one, and `StreamLimit` says how many there may be. When streams need more connections
/// than that, libcurl opens them, up to its own limit for a host. That is the limit of all clients, so a client with a lower one gets
/// no more streams than fit its own connections.
final class ClientHost {
  let client: ClientPlaces
  /// The number of waiting requests.
  var waiting = 0
  private var has = Places()
  /// The stream limit; `nil` while the host is not known to speak HTTP/2.
  private var limit: StreamLimit?
  /// The connections that streams have opened while others left no room, and the first one.
  private var connections = 1

  init(_ client: ClientPlaces) { self.client = client }

  fileprivate var isIdle: Bool { waiting == 0 && has.requests == 0 }

  var streams: Int { has.streams }

  private var isOpen: Bool { client.taken < client.limits.total && has.taken < client.limits.perHost }

  /// The generation of a request that is let in now; see `meetTrouble`.
  var generation: Int { limit?.generation ?? 0 }

  /// Returns what a request of that kind would hold if it was let in now; `nil` where it may not be.
  func hold(_ kind: TransferKind) -> Hold? {
    guard kind.mayStream, let most = limit?.most else { return isOpen ? kind.place : nil }
    return has.streams < most && (has.streams > 0 || isOpen) ? .stream : nil
  }

  /// - Parameter change: 1 for a request that begins, -1 for one that ends.
  func count(_ hold: Hold, _ change: Int) { client.taken += has.count(hold, change) }

  /// Takes the news that the host has answered.
  ///
  /// - Parameters:
  ///   - isStream: true when the answer was one of the streams of a connection.
  ///   - isNew: true when a connection was opened for it.
  func note(isStream: Bool, isNew: Bool) {
    if isStream, limit != nil {
      limit?.answered(isNew: isNew, running: has.streams)
    } else {
      limit = isStream ? StreamLimit() : nil
    }
  }

  /// Takes the news that a stream has opened a connection. One beyond the client's own limit holds the streams at their number before.
  ///
  /// - Parameters:
  ///   - before: the number of streams that were running when it was let in. They did not leave room for it.
  ///   - shared: the limits of all clients, up to which libcurl opens connections.
  func noteConnection(after before: Int, shared: PlaceLimits) {
    // As many streams had room: it takes the place of a connection that the server ends after some requests.
    guard before >= limit?.fitting ?? 0 else { return }
    // Each of the others has at least one of these streams. One without any would have been used, or has ended.
    connections = min(connections, before) + 1
    guard client.limits.perHost < shared.perHost, shared.perHost != .max, connections > client.limits.perHost
    else { return }
    limit?.hold(at: max(before, fewestStreams))
  }

  private var fewestStreams: Int { min(client.limits.total, client.limits.perHost) }

  /// Takes the news that the host had trouble: it gets fewer streams.
  ///
  /// - Parameter generation: the generation of the request with the trouble.
  func meetTrouble(of generation: Int) {
    limit?.meetTrouble(of: generation, fewest: fewestStreams)
  }
}
