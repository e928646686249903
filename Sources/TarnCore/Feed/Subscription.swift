/// A feed that a list of feeds names.
package struct Subscription: Sendable, Equatable {
  /// One line without markup; empty when the list gives none.
  package var title: [UInt8]
  /// Absolute, http or https, in ASCII.
  package var url: String

  package init(title: [UInt8], url: String) {
    self.title = title
    self.url = url
  }
}

/// What a list of feeds says, each feed once and in its order.
package struct SubscriptionList: Sendable, Equatable {
  package var feeds: [Subscription] = []
  /// What it names and Tarn cannot follow.
  package var refused: [Refusal] = []
  /// Why only part of it could be read; nil when it was read to its end.
  package var fault: String?

  package init() {}
}
