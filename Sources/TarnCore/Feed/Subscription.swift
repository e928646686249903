/// A feed that a list of feeds names.
package struct Subscription: Sendable, Equatable {
  /// The title in one line without markup; empty when the list gives none.
  package var title: [UInt8]
  /// The absolute URL (http or https), in ASCII.
  package var url: String

  package init(title: [UInt8], url: String) {
    self.title = title
    self.url = url
  }
}

/// The feeds of a list, each once and in the order of the list.
package struct SubscriptionList: Sendable, Equatable {
  package var feeds: [Subscription] = []
  /// The entries of the list that Tarn cannot follow.
  package var refused: [Refusal] = []
  /// Why only part of the list could be read; `nil` when it was read to its end.
  package var fault: String?

  package init() {}
}
