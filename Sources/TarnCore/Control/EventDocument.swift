/// One event of a mirror's journal in the form that programs read.
package struct EventDocument: Codable, Sendable, Equatable {
  /// The number of the event in this mirror's journal; it only grows.
  package var number: Int64
  package var mirror: String
  /// When the event happened (RFC 3339).
  package var time: String
  /// A stable code: `fetched`, `deleted`, `pass-failed` ... (tarn-status(5)). `events-dropped` says that the events up to this
  /// number are gone.
  package var code: String
  /// The path, safe to print. `nil` where none applies.
  package var path: String?
  /// The path's bytes in Base64, set when `path` does not hold them exactly.
  package var pathBytes: String?
  package var bytes: UInt64?
  package var detail: String?
  /// The position behind this event: opaque, and valid across restarts of the agent.
  package var cursor: String

  package init(number: Int64, mirror: String, time: String, code: String, cursor: String) {
    self.number = number
    self.mirror = mirror
    self.time = time
    self.code = code
    self.cursor = cursor
  }
}

/// A page of events, in the order to be read.
package struct EventPage: Codable, Sendable, Equatable {
  package var schema = "tarn-events/1"
  package var events: [EventDocument]
  /// The position to go on from: that of the last event, or the one of the request when there is no event.
  package var cursor: String
  /// True when there may be more events already.
  package var hasMore: Bool
  /// The mirrors whose journals cannot be read; the events are those of the others. `nil` where there are none, and from an agent
  /// that does not report them.
  package var unread: [Unread]?

  /// A mirror whose journal cannot be read, and the reason.
  package struct Unread: Codable, Sendable, Equatable {
    package var mirror: String
    package var code: String
    package var message: String
    package var hint: String?
    /// The exit status of a command about this mirror alone.
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
