package import TarnCore

/// What comes on a stream of several sessions.
package struct SessionNews: Codable, Sendable, Equatable {
  package var session: String
  package var event: SessionEvent?
  /// Why nothing more comes of this session, in place of an event.
  package var failure: ControlFailure?

  package init(_ session: String, _ event: SessionEvent) { (self.session, self.event) = (session, event) }
  package init(_ session: String, _ failure: ControlFailure) {
    (self.session, self.failure) = (session, failure)
  }
}

/// From where on a session is read.
package struct SessionPlace: Sendable, Equatable {
  package var session: String
  /// Behind the event with this number; 0 for all that are not acknowledged, the greatest there is for none.
  package var number: Int64

  package init(_ session: String, after number: Int64) { (self.session, self.number) = (session, number) }

  /// - Parameter text: `ID:NUMBER`.
  package init?(_ text: String) {
    guard let colon = text.lastIndex(of: ":"), let number = Int64(text[text.index(after: colon)...]),
      number >= 0
    else { return nil }
    self.init(String(text[..<colon]), after: number)
  }

  package var text: String { "\(session):\(number)" }
}
