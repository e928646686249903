/// One event of a mirror's journal, as programs see it.
package struct EventDocument: Codable, Sendable, Equatable {
  /// Of this mirror's journal; only grows.
  package var number: Int64
  package var mirror: String
  /// RFC 3339.
  package var time: String
  /// Stable: `fetched`, `deleted`, `pass-failed` ... (tarn-status(5)); `events-dropped` says that the numbers up to this one are gone.
  package var code: String
  /// Safe to print; nil where none applies.
  package var path: String?
  /// The path's bytes in base64, when `path` is not them.
  package var pathBytes: String?
  package var bytes: UInt64?
  package var detail: String?
  /// Where to go on after this event: opaque, and valid across restarts of the agent.
  package var cursor: String

  package init(number: Int64, mirror: String, time: String, code: String, cursor: String) {
    self.number = number
    self.mirror = mirror
    self.time = time
    self.code = code
    self.cursor = cursor
  }
}

/// Some events, in the order to be read.
package struct EventPage: Codable, Sendable, Equatable {
  package var schema = "tarn-events/1"
  package var events: [EventDocument]
  /// Where to go on; that of the last event, or the one that was asked with when there is none.
  package var cursor: String
  /// There may be more already.
  package var hasMore: Bool
  /// Mirrors whose journals cannot be read: the events are those of the others. nil where there is none, and from an agent that does
  /// not say.
  package var unread: [Unread]?

  /// A mirror, and why its journal cannot be read.
  package struct Unread: Codable, Sendable, Equatable {
    package var mirror: String
    package var code: String
    package var message: String
    package var hint: String?
    /// What a command about this mirror alone ends with.
    package var exitStatus: Int32

    package init(_ mirror: String, _ failure: PassFailure) {
      self.mirror = mirror
      (code, message, hint) = (failure.code, failure.message, failure.hint)
      exitStatus = failure.kind.exitStatus
    }

    package var failure: PassFailure {
      PassFailure(PassFailure.Kind(rawValue: exitStatus) ?? .inputOutput, code: code, message, hint: hint)
    }
  }

  package init(events: [EventDocument], cursor: String, hasMore: Bool) {
    self.events = events
    self.cursor = cursor
    self.hasMore = hasMore
  }
}
