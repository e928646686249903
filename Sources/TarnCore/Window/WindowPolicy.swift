/// The choice of a window's files (RSS, Atom, JSON Feed), and their names.
package struct WindowPolicy: Sendable, Equatable {
  package var template = NameTemplate.standard
  /// True when new names hold no character that other systems refuse. Names that a feed gives itself are judged by
  /// `PassPolicy.pathRule`.
  package var namesArePortable = true
  /// The number of newest files to keep, including those that the feed has dropped; `nil` for all.
  package var keep: Int?
  /// The greatest age in seconds; `nil` for any age.
  package var maxAge: Int64?
  /// What to do about files that vanished or were edited.
  package var localChanges = PassPolicy.LocalChanges.keep

  package init() {}
}
