internal import NIOCore
internal import TarnCore
internal import TarnRuntime

/// One connection, the socket's rights, and the stream that runs on it.
final class Connection: Sendable {
  let channel: any Channel
  let rights: ControlSocket.Rights
  /// The answer to every request; `nil` for a connection that is served.
  let refusal: ControlFailure?
  /// The user that the client runs as.
  let user: PeerUser
  /// Whether the client runs as the agent's own user.
  var isOwner: Bool { user == .owner }
  private struct Stream {
    var bell: Bell?
    var hasEnded = false
  }
  private let stream = Locked(Stream())

  init(
    _ channel: any Channel, rights: ControlSocket.Rights, refusal: ControlFailure?, user: PeerUser
  ) {
    self.channel = channel
    self.rights = rights
    self.refusal = refusal
    self.user = user
  }

  /// Refuses an order whose client has gone: the client was told that nobody answered, and relies on nothing. Must not run on the
  /// event loop.
  ///
  /// - Throws: when the client has closed the connection. A client that only ended its sending side still waits for the answer.
  func refuseAbandoned() throws(ControlFailure) {
    // The order and the end of the connection may have come together. The loop handles what has come before it runs this.
    try? channel.eventLoop.submit {}.wait()
    guard channel.isActive else {
      throw ControlFailure(.unavailable, code: "client-gone", "who asked went away")
    }
  }

  /// Sets the bell of the stream that runs here; `nil` when none does.
  func wakes(_ bell: Bell?) {
    let hasEnded = stream.withLock { stream in
      stream.bell = bell
      return stream.hasEnded
    }
    if hasEnded { bell?.end() }
  }

  /// Ends the stream, because the client sends nothing more or the server ends.
  func endStream() {
    let bell = stream.withLock { stream in
      stream.hasEnded = true
      return stream.bell
    }
    bell?.end()
  }
}

/// The open connections of one socket, which are counted and end together.
///
/// An idle client cannot hold a place. When all places are taken, a newcomer gets that of another connection: one that does not
/// read its answer, else the one that was silent longest without a whole request. Only when all connections wait for answers is the
/// newcomer turned away.
final class Connections: Sendable {
  enum Place { case regular, surplus }

  /// The connections beyond the limit that are still told that it is reached.
  private static let surplus = 16

  private struct Member {
    let channel: any Channel
    let place: Place
    /// The order of arrival or last answer; a greater number is later.
    var turn: Int
    var isAsking = false
    /// True while the client does not read what was written to it.
    var isStuck = false
    /// True when it is being closed and its place is given away.
    var isLeaving = false
  }

  private struct State {
    var members: [ObjectIdentifier: Member] = [:]
    var lastTurn = 0
    var served: [ObjectIdentifier: Connection] = [:]
    var streams = 0
    var isEnding = false

    /// Picks the connection to close: one that does not read its answer, else the one that was silent longest. `nil` when all of
    /// them wait for answers.
    mutating func takeSilent() -> (any Channel)? {
      let silent = members.filter {
        $0.value.place == .regular && ($0.value.isStuck || !$0.value.isAsking) && !$0.value.isLeaving
      }
      func order(_ member: Member) -> (Int, Int) { (member.isStuck ? 0 : 1, member.turn) }
      guard let longest = silent.min(by: { order($0.value) < order($1.value) }) else { return nil }
      members[longest.key]?.isLeaving = true
      return longest.value.channel
    }
  }

  private let limits: ControlLimits
  let most: Int
  private let state = LockedCondition(State())

  init(_ limits: ControlLimits, _ rights: ControlSocket.Rights) {
    self.limits = limits
    most = rights == .full ? limits.connections : limits.everyone
  }

  /// - Returns: the place; `nil` when there is none at all.
  func enter(_ channel: any Channel) -> Place? {
    let (place, silent) = state.withLock { state -> (Place?, (any Channel)?) in
      // Connections that are being closed are gone in a moment.
      guard !state.isEnding, state.members.count < most + 2 * Self.surplus else { return (nil, nil) }
      let isFull = state.members.values.count { $0.place == .regular && !$0.isLeaving } >= most
      let silent = isFull ? state.takeSilent() : nil
      guard silent != nil || state.members.values.count(where: { !$0.isLeaving }) < most + Self.surplus else {
        return (nil, nil)
      }
      let place: Place = isFull && silent == nil ? .surplus : .regular
      state.lastTurn += 1
      state.members[ObjectIdentifier(channel)] = Member(channel: channel, place: place, turn: state.lastTurn)
      return (place, silent)
    }
    silent?.close(promise: nil)
    return place
  }

  /// - Parameter isAsking: true while a whole request came whose answer has not ended.
  func note(_ channel: any Channel, isAsking: Bool) {
    state.withLock { state in
      state.lastTurn += 1
      state.members[ObjectIdentifier(channel)]?.turn = state.lastTurn
      state.members[ObjectIdentifier(channel)]?.isAsking = isAsking
    }
  }

  /// - Parameter isStuck: true while the client takes nothing of what was written to it.
  func note(_ channel: any Channel, isStuck: Bool) {
    state.withLock { $0.members[ObjectIdentifier(channel)]?.isStuck = isStuck }
  }

  func serve(_ connection: Connection) {
    state.withLock { $0.served[ObjectIdentifier(connection.channel)] = connection }
    connection.channel.closeFuture.whenComplete { _ in connection.endStream() }
  }

  /// Removes a connection whose task has ended, which is a little after its channel was closed.
  func leave(_ channel: any Channel) {
    state.change { state in
      state.members[ObjectIdentifier(channel)] = nil
      state.served[ObjectIdentifier(channel)] = nil
    }
  }

  /// - Returns: false when the limit of streams is reached, or the server ends.
  func enterStream() -> Bool {
    state.withLock { state in
      guard !state.isEnding, state.streams < limits.streams else { return false }
      state.streams += 1
      return true
    }
  }

  func leaveStream() { state.withLock { $0.streams -= 1 } }

  var isEnding: Bool { state.withLock { $0.isEnding } }

  /// Refuses new connections, ends streams, and closes each connection after its present answer.
  func end() {
    let (channels, served) = state.withLock { state in
      state.isEnding = true
      return (state.members.values.map(\.channel), Array(state.served.values))
    }
    for connection in served { connection.endStream() }
    for channel in channels { channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent()) }
  }

  /// Blocks until no connection is left. Must not run on an event loop.
  ///
  /// - Returns: false when some are left at the deadline.
  func areGone(by deadline: ContinuousClock.Instant) -> Bool {
    return state.wait(atMost: max(.zero, deadline - .now)) { $0.members.isEmpty ? true : nil } ?? false
  }

  /// Closes the connections that are left.
  func close() {
    for member in state.withLock({ Array($0.members.values) }) { member.channel.close(promise: nil) }
  }
}

/// Wakes a waiting stream. Rings are not counted: one wake stands for all that came before it.
final class Bell: Sendable {
  enum Wake { case events, beat, ended }

  private struct State {
    var hasEvents = false
    var hasBeat = false
    var hasEnded = false
    var sleeper: CheckedContinuation<Wake, Never>?

    /// Takes the reason to wake, if any. The end is never taken away.
    mutating func take() -> Wake? {
      if hasEnded { return .ended }
      defer { hasEvents = false; hasBeat = false }
      return hasEvents ? .events : hasBeat ? .beat : nil
    }
  }
  private let state = Locked(State())

  /// Reports that there may be new events.
  func ring() { wake { $0.hasEvents = true } }
  func beat() { wake { $0.hasBeat = true } }
  func end() { wake { $0.hasEnded = true } }

  var hasEnded: Bool { state.withLock { $0.hasEnded } }

  /// Waits for the next wake. Only one task may wait at a time.
  func wait() async -> Wake {
    await withCheckedContinuation { continuation in
      let wake = state.withLock { state in
        let wake = state.take()
        if wake == nil { state.sleeper = continuation }
        return wake
      }
      if let wake { continuation.resume(returning: wake) }
    }
  }

  private func wake(_ change: (inout State) -> Void) {
    let woken = state.withLock { state -> (CheckedContinuation<Wake, Never>, Wake)? in
      change(&state)
      guard let sleeper = state.sleeper, let wake = state.take() else { return nil }
      state.sleeper = nil
      return (sleeper, wake)
    }
    if let (sleeper, wake) = woken { sleeper.resume(returning: wake) }
  }
}
