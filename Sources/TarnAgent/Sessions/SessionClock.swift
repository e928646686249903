import TarnCore
import TarnLedger
import TarnRuntime

/// The age of a session, which its ledger keeps from one agent to the next. Callable on any thread.
final class SessionClock: Sendable {
  private let ledger: SessionLedger
  private let clock: any Clock
  /// The id of this boot; empty when it cannot be read.
  let bootID = BootID.read()
  /// The age, and by how many seconds the wall clock was set back since `takeSetBack`.
  private let state: Locked<(age: SessionAge, setBack: Int64)>

  /// The seconds without any contact after which a session ends.
  private static let life: Int64 = 90 * 86_400
  /// A contact is recorded once in so many seconds.
  private static let contactEvery: Int64 = 3600

  init(_ ledger: SessionLedger, _ clock: any Clock) throws(LedgerFailure) {
    (self.ledger, self.clock) = (ledger, clock)
    let known = try ledger.fact(.age).flatMap { JSONText.value(SessionAge.self, from: $0) }
    state = Locked((known ?? SessionAge(wall: clock.time, boot: bootID, uptime: clock.boottime()), 0))
  }

  /// The age now, in seconds.
  var seconds: Int64 { current().seconds }

  /// The age now without what a wall clock that runs ahead may have added.
  var proven: Int64 { current().proven }

  private func current() -> SessionAge {
    state.withLock { state in
      state.setBack += state.age.advance(wall: clock.time, boot: bootID, uptime: clock.boottime())
      return state.age
    }
  }

  /// Returns by how many seconds the wall clock was set back since the last call.
  func takeSetBack() -> Int64 {
    _ = current()
    return state.withLock { state in
      defer { state.setBack = 0 }
      return state.setBack
    }
  }

  func save() throws(LedgerFailure) { try ledger.set(.age, JSONText.line(current())) }

  /// Records a contact with the session.
  func touch() throws(LedgerFailure) {
    let age = seconds
    guard age - (try contact() ?? -Self.contactEvery) >= Self.contactEvery else { return }
    try ledger.set(.contact, String(age))
  }

  /// True when nobody has asked for the session in 90 days.
  func isAbandoned() throws(LedgerFailure) -> Bool {
    guard let contact = try contact() else { return false }
    return seconds - contact >= Self.life
  }

  private func contact() throws(LedgerFailure) -> Int64? { try ledger.fact(.contact).flatMap { Int64($0) } }
}
