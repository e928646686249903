/// A part of a folder that may not be as recorded.
package struct Region: Hashable, Sendable {
  package enum Extent: UInt8, Sendable, Comparable {
    /// What stands at the path.
    case itself
    /// And what stands in the directory there, not what lies below that.
    case children
    /// And all that lies below.
    case tree

    package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
  }

  /// nil for the folder itself, which is no part of the region: only what lies in it is.
  package var path: RelativePath?
  package var extent: Extent

  package init(_ path: RelativePath?, _ extent: Extent) {
    self.path = path
    self.extent = extent
  }

  /// The whole folder.
  package static let everything = Region(nil, .tree)

  package func contains(_ other: RelativePath) -> Bool {
    guard let path else { return extent == .tree || (extent == .children && other.parent == nil) }
    if other == path { return true }
    switch extent {
    case .itself: return false
    case .children: return other.parent == path
    case .tree: return path.isAncestor(of: other)
    }
  }

  /// Whether its path comes first, in the order in which a directory's comes before those of what lies in it.
  package func isAbove(_ other: Region) -> Bool {
    (path?.bytes ?? []).lexicographicallyPrecedes(other.path?.bytes ?? [])
  }

  /// Whether all of another region lies in this one.
  package func contains(_ other: Region) -> Bool {
    if self == .everything { return true }
    guard let inner = other.path else { return path == nil && other.extent <= extent }
    switch other.extent {
    case .itself: return contains(inner)
    case .children: return inner == path ? extent >= .children : extent == .tree && contains(inner)
    case .tree: return extent == .tree && contains(inner)
    }
  }
}
