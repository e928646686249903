internal import NIOCore
internal import TarnCore
internal import TarnRuntime

/// One connection: where it came in, and what its requests may.
final class Connection: Sendable {
  let channel: any Channel
  let rights: ControlSocket.Rights
  /// The answer to whatever it asks; nil for one that is served.
  let refusal: ControlFailure?
  private struct Stream {
    var bell: Bell?
    var hasEnded = false
  }
  private let stream = Locked(Stream())

  init(_ channel: any Channel, rights: ControlSocket.Rights, refusal: ControlFailure?) {
    self.channel = channel
    self.rights = rights
    self.refusal = refusal
  }

  /// What wakes the stream that runs here; nil when none does.
  func wakes(_ bell: Bell?) {
    let hasEnded = stream.withLock { stream in
      stream.bell = bell
      return stream.hasEnded
    }
    if hasEnded { bell?.end() }
  }

  /// The client will send nothing more, or the server ends: a stream has no reader or no writer then.
  func endStream() {
    let bell = stream.withLock { stream in
      stream.hasEnded = true
      return stream.bell
    }
    bell?.end()
  }
}

/// The open connections of one socket: counted, and ended together.
final class Connections: Sendable {
  enum Place { case regular, surplus }

  /// Beyond the limit so many are still told that it is reached.
  private static let surplus = 16

  private struct State {
    var channels: [ObjectIdentifier: any Channel] = [:]
    var served: [ObjectIdentifier: Connection] = [:]
    var streams = 0
    var isEnding = false
  }

  private let limits: ControlLimits
  let most: Int
  private let state = LockedCondition(State())

  init(_ limits: ControlLimits, _ rights: ControlSocket.Rights) {
    self.limits = limits
    most = rights == .full ? limits.connections : limits.everyone
  }

  /// - Returns: nil when there is no place at all.
  func enter(_ channel: any Channel) -> Place? {
    state.withLock { state in
      let count = state.channels.count
      guard !state.isEnding, count < most + Self.surplus else { return nil }
      state.channels[ObjectIdentifier(channel)] = channel
      return count < most ? .regular : .surplus
    }
  }

  func serve(_ connection: Connection) {
    state.withLock { $0.served[ObjectIdentifier(connection.channel)] = connection }
    connection.channel.closeFuture.whenComplete { _ in connection.endStream() }
  }

  /// When nothing works for the channel any more: its task does a little after it was closed.
  func leave(_ channel: any Channel) {
    state.change { state in
      state.channels[ObjectIdentifier(channel)] = nil
      state.served[ObjectIdentifier(channel)] = nil
    }
  }

  /// - Returns: false when there are as many streams as may be, or the server ends.
  func enterStream() -> Bool {
    state.withLock { state in
      guard !state.isEnding, state.streams < limits.streams else { return false }
      state.streams += 1
      return true
    }
  }

  func leaveStream() { state.withLock { $0.streams -= 1 } }

  var isEnding: Bool { state.withLock { $0.isEnding } }

  /// Takes no more, ends streams, and lets answers at work be the last.
  func end() {
    let (channels, served) = state.withLock { state in
      state.isEnding = true
      return (Array(state.channels.values), Array(state.served.values))
    }
    for connection in served { connection.endStream() }
    for channel in channels { channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent()) }
  }

  /// Blocks until none is left. Not on an event loop.
  ///
  /// - Returns: false when some are left at the deadline.
  func areGone(by deadline: ContinuousClock.Instant) -> Bool {
    let time = TimeAmount(max(.zero, deadline - .now))
    return state.wait(nanoseconds: UInt64(time.nanoseconds)) { $0.channels.isEmpty ? true : nil } ?? false
  }

  /// Closes what is left.
  func close() {
    for channel in state.withLock({ Array($0.channels.values) }) { channel.close(promise: nil) }
  }
}

/// Wakes a stream that waits. Rings are not counted: one wake answers all that came before it.
final class Bell: Sendable {
  enum Wake { case events, beat, ended }

  private struct State {
    var hasEvents = false
    var hasBeat = false
    var hasEnded = false
    var sleeper: CheckedContinuation<Wake, Never>?

    /// What there is to wake for, taken away; an end stays.
    mutating func take() -> Wake? {
      if hasEnded { return .ended }
      defer { hasEvents = false; hasBeat = false }
      return hasEvents ? .events : hasBeat ? .beat : nil
    }
  }
  private let state = Locked(State())

  /// There may be new events.
  func ring() { wake { $0.hasEvents = true } }
  func beat() { wake { $0.hasBeat = true } }
  func end() { wake { $0.hasEnded = true } }

  var hasEnded: Bool { state.withLock { $0.hasEnded } }

  /// One task at a time.
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
