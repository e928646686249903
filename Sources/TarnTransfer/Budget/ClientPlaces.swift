/// Places that there are: of a client, or of all together.
package struct PlaceLimits: Sendable, Hashable {
  /// Places in all, at least 1.
  package var total: Int
  /// Places per host, at least 1.
  package var perHost: Int
  /// Of each host's places, so many take small files only. Two are always left to files of any size, or a feed that says
  /// no sizes would have them one by one.
  package var keptForSmall: Int

  package init(total: Int, perHost: Int, keptForSmall: Int = 1) {
    self.total = max(1, total)
    self.perHost = max(1, perHost)
    self.keptForSmall = max(0, min(keptForSmall, perHost - 2))
  }
}

/// What is asked for, by how much is to come.
enum TransferKind: CaseIterable {
  case large
  /// May have a place that is kept for small ones.
  case small
  /// Small, and so short that over HTTP/2 it is a stream.
  case short
  /// Counts as large over HTTP/1, and as short over HTTP/2 until more has come.
  case unknown

  var mayStream: Bool { self == .short || self == .unknown }
  var place: Hold { self == .large || self == .unknown ? .large : .small }
}

/// What a request has from when it is let in until it is over: a place, or one of those that share one.
enum Hold { case large, small, stream }

/// What somebody has at a host.
struct Places {
  /// Requests with a place each.
  private var whole = 0
  private(set) var streams = 0

  var requests: Int { whole + streams }

  /// The first stream brings a place, and the last one takes it along.
  var taken: Int { whole + (streams > 0 ? 1 : 0) }

  /// - Parameter change: 1 for a request that begins, -1 for one that ends.
  /// - Returns: by how many places there are more.
  mutating func count(_ hold: Hold, _ change: Int) -> Int {
    let before = taken
    if hold == .stream { streams += change } else { whole += change }
    return taken - before
  }
}

/// A client of a budget, which has limits of its own beside those of all. A pass and a repair of one mirror are two.
final class ClientPlaces {
  let limits: PlaceLimits
  /// Places that it has.
  fileprivate(set) var taken = 0
  private var hosts: [Route: ClientHost] = [:]

  /// - Parameter limits: it keeps none for small files: where those of all do, no more large ones come.
  init(_ limits: PlaceLimits) { self.limits = limits }

  func host(_ route: Route) -> ClientHost {
    let host = hosts[route] ?? ClientHost(self)
    hosts[route] = host
    return host
  }

  /// Forgets where nobody is, with what was known of it.
  func forget() { hosts = hosts.filter { !$0.value.isIdle } }
}

/// What a client has at one host, of what its own limits let it have.
///
/// A place is a connection. Each request has one, but where a host speaks HTTP/2 short ones are streams: all of these at a host share
/// one place, and `StreamLimit` says how many there may be. Where streams need more connections than that, libcurl opens them, up to
/// its own limit for a host.
final class ClientHost {
  let client: ClientPlaces
  /// Requests.
  var waiting = 0
  private var has = Places()
  /// nil where it is not known to speak HTTP/2, and has had no trouble.
  private var limit: StreamLimit?

  init(_ client: ClientPlaces) { self.client = client }

  fileprivate var isIdle: Bool { waiting == 0 && has.requests == 0 }

  private var isOpen: Bool { client.taken < client.limits.total && has.taken < client.limits.perHost }

  /// It had trouble: with no more streams than places each request may as well have its own.
  private var isTroubled: Bool { limit.map { $0.most <= client.limits.perHost } ?? false }

  /// 0 where there are none.
  private var streamLimit: Int {
    // With one place, in all or at a host, who wants one thing at a time gets that.
    guard client.limits.total > 1, client.limits.perHost > 1, let limit, !isTroubled else { return 0 }
    return limit.most
  }

  /// What one of that kind would have if it was let in now; nil where it may not be.
  func hold(_ kind: TransferKind) -> Hold? {
    guard kind.mayStream, streamLimit > 0 else { return isOpen ? kind.place : nil }
    return has.streams < streamLimit && (has.streams > 0 || isOpen) ? .stream : nil
  }

  /// - Parameter change: 1 for a request that begins, -1 for one that ends.
  func count(_ hold: Hold, _ change: Int) {
    client.taken += has.count(hold, change)
    if hold == .stream, change < 0 { limit?.ended() }
  }

  /// It has answered.
  ///
  /// - Parameters:
  ///   - isStream: the answer was one of the streams of a connection.
  ///   - isNew: a connection was opened for it.
  func note(isStream: Bool, isNew: Bool) {
    guard !isTroubled else { return }
    if isStream, limit != nil {
      limit?.answered(isNew: isNew, running: has.streams)
    } else {
      limit = isStream ? StreamLimit() : nil
    }
  }

  /// It had trouble with what it was asked. Whatever it speaks: where it was too much, no more is asked at once than there are places.
  func meet(_ trouble: StreamLimit.Trouble) {
    if limit == nil, trouble == .overload { limit = StreamLimit() }
    limit?.meet(trouble, running: has.streams)
  }

  /// Where nobody is any more, what it speaks is known for the next ones that come, and trouble is forgotten.
  func rest() {
    guard isIdle else { return }
    limit?.rested()
    if isTroubled { limit = nil }
  }
}
