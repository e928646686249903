package import TarnCore

/// A message on a stream of several sessions: an event or a failure.
package struct SessionNews: Codable, Sendable, Equatable {
  package var session: String
  package var event: SessionEvent?
  /// The reason why no more events of this session come, in place of an event.
  package var failure: ControlFailure?
  /// The number up to which earlier events do not come because somebody has acknowledged them, in place of an event.
  package var passed: Int64?

  package init(_ session: String, _ event: SessionEvent) { (self.session, self.event) = (session, event) }
  package init(_ session: String, _ failure: ControlFailure) {
    (self.session, self.failure) = (session, failure)
  }
  package init(_ session: String, passed: Int64) { (self.session, self.passed) = (session, passed) }
}

/// The place in a session from which it is read.
package struct SessionPlace: Sendable, Equatable {
  package var session: String
  /// The number of the event to begin after. 0 for all that are not acknowledged, the greatest number for none.
  package var number: Int64

  package init(_ session: String, after number: Int64) { (self.session, self.number) = (session, number) }

  /// Parses a place.
  ///
  /// - Parameter text: `ID:NUMBER`.
  package init?(_ text: String) {
    guard let colon = text.lastIndex(of: ":"), let number = Int64(text[text.index(after: colon)...]),
      number >= 0
    else { return nil }
    self.init(String(text[..<colon]), after: number)
  }

  package var text: String { "\(session):\(number)" }
}
