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
}

/// What a request has from when it is let in until it is over.
enum Hold: Equatable {
  case place(isLarge: Bool)
  /// One of those that share a place.
  case stream

  var isLarge: Bool { self == .place(isLarge: true) }
}

/// A client of a budget, which has limits of its own beside those of all. A pass and a repair of one mirror are two.
final class ClientPlaces<Host: Hashable> {
  /// Hosts that are remembered although nobody is there.
  private static var mostIdle: Int { 1024 }

  let limits: PlaceLimits
  private var hosts: [Host: ClientHost<Host>] = [:]
  /// Places that it has.
  fileprivate(set) var taken = 0
  /// Those of its requests that run as streams.
  fileprivate(set) var streams = 0
  /// Its requests that wait, and the urgent ones of these.
  var waiting = 0
  var urgent = 0

  init(_ limits: PlaceLimits) { self.limits = limits }

  func host(_ host: Host) -> ClientHost<Host> {
    if let known = hosts[host] { return known }
    let new = ClientHost(self)
    hosts[host] = new
    return new
  }

  /// Nobody is there: what it speaks is known for the next ones that come, trouble is forgotten.
  func rest(_ own: ClientHost<Host>, at host: Host) {
    if !own.rest() || hosts.count >= Self.mostIdle { hosts[host] = nil }
  }

  /// Somebody waits, and may perhaps be let in.
  var isHopeful: Bool { waiting > 0 && (taken < limits.total || streams > 0) }

  /// Those that wait only for its own limits.
  var held: Int {
    var (held, left) = (waiting, limits.total - taken)
    for own in hosts.values where own.waiting > 0 {
      let streams = min(own.waiting, own.freeStreams)
      let places = max(0, min(own.waiting - streams, limits.perHost - own.places, left))
      left -= places
      held -= streams + places
    }
    return held
  }
}

/// What a client has at one host, of what its own limits let it have.
///
/// A place is a connection. Each request has one, but where a host speaks HTTP/2 short ones are streams: all of these at a host share
/// one place, and `StreamLimit` says how many there may be. Where streams need more connections than that, libcurl opens them, up to
/// its own limit for a host.
final class ClientHost<Host: Hashable> {
  private enum Speech {
    case unknown
    case streams(StreamLimit)
    /// Whatever it speaks, it had trouble: no more at once than connections.
    case connections
  }

  let client: ClientPlaces<Host>
  /// Requests.
  var waiting = 0
  private var whole = 0
  private var wholeLarge = 0
  private var streams = 0
  private var speaks = Speech.unknown

  init(_ client: ClientPlaces<Host>) { self.client = client }

  var places: Int { whole + (streams > 0 ? 1 : 0) }

  /// Nobody is there.
  var isIdle: Bool { waiting == 0 && whole == 0 && streams == 0 }

  private var isOpen: Bool { client.taken < client.limits.total && places < client.limits.perHost }

  /// 0 where there are none.
  private var streamLimit: Int {
    let limits = client.limits
    // With one place, in all or at a host, who wants one thing at a time gets that; with no more streams than places each may as well
    // have its own.
    guard limits.total > 1, limits.perHost > 1, case .streams(let limit) = speaks, limit.most > limits.perHost
    else { return 0 }
    return limit.most
  }

  var freeStreams: Int { streams > 0 || isOpen ? max(0, streamLimit - streams) : 0 }

  /// What one of that kind would have if it was let in now; nil where it may not be.
  func hold(_ kind: TransferKind) -> Hold? {
    let limit = streamLimit
    if limit > 0, kind == .short || kind == .unknown {
      return (streams > 0 ? streams < limit : isOpen) ? .stream : nil
    }
    let isLarge = kind == .large || kind == .unknown
    guard isOpen, !isLarge || wholeLarge < client.limits.perHost - client.limits.keptForSmall else {
      return nil
    }
    return .place(isLarge: isLarge)
  }

  func begin(_ hold: Hold) {
    let before = places
    switch hold {
    case .stream:
      streams += 1
      client.streams += 1
    case .place(let isLarge):
      whole += 1
      if isLarge { wholeLarge += 1 }
    }
    client.taken += places - before
  }

  func end(_ hold: Hold) {
    let before = places
    switch hold {
    case .stream:
      streams -= 1
      client.streams -= 1
      change { $0.ended() }
    case .place(let isLarge):
      whole -= 1
      if isLarge { wholeLarge -= 1 }
    }
    client.taken += places - before
  }

  /// It has answered.
  ///
  /// - Parameters:
  ///   - isStream: the answer was one of the streams of a connection.
  ///   - isNew: a connection was opened for it.
  func note(isStream: Bool, isNew: Bool) {
    switch speaks {
    case .unknown: if isStream { speaks = .streams(StreamLimit()) }
    case .streams:
      if isStream { change { $0.answered(isNew: isNew, running: streams) } } else { speaks = .unknown }
    case .connections: break
    }
  }

  /// It had trouble with what it was asked.
  func meet(_ trouble: StreamLimit.Trouble) {
    switch speaks {
    case .unknown: if trouble == .overload { speaks = .connections }
    case .streams:
      change { $0.meet(trouble, running: streams) }
      if streamLimit == 0 { speaks = .connections }
    case .connections: break
    }
  }

  /// - Returns: whether anything is known of it that is worth to be kept.
  fileprivate func rest() -> Bool {
    guard case .streams = speaks else { return false }
    change { $0.rested() }
    return true
  }

  private func change(_ body: (inout StreamLimit) -> Void) {
    guard case .streams(var limit) = speaks else { return }
    body(&limit)
    speaks = .streams(limit)
  }
}
