/// Which files of a window (RSS, Atom, JSON Feed) are wanted, and what they are called.
package struct WindowPolicy: Sendable, Equatable {
  package var template = NameTemplate.standard
  /// New names hold no character that other systems refuse. The names that a feed gives itself are judged by
  /// `PassPolicy.pathRule`.
  package var namesArePortable = true
  /// The newest so many, those included that the feed has dropped; nil for all.
  package var keep: Int?
  /// Seconds; nil for any age.
  package var maxAge: Int64?
  /// What is done about files that vanished or were edited.
  package var localChanges = PassPolicy.LocalChanges.keep

  package init() {}
}
