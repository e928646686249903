/// The formats that are windows, by the names that `FeedEnd.format` has for them.
package enum WindowFormat: String, Sendable, CaseIterable {
  case rss = "RSS"
  case rdf = "RSS 1.0"
  case atom = "Atom"
  case json = "JSON Feed"
}

extension LedgerPort {
  /// Returns whether the mirror follows a window, by the last feed that a pass accepted. The names of an earlier window's files stay
  /// in the ledger, so a name does not tell.
  package func followsWindow() throws(LedgerFailure) -> Bool {
    guard let format = try fact(.format) else { return false }
    return WindowFormat(rawValue: format) != nil
  }
}
