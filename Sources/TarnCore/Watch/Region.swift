/// A part of a folder that may differ from what is recorded.
package struct Region: Hashable, Sendable {
  package enum Extent: UInt8, Sendable, Comparable {
    /// The object at the path.
    case itself
    /// The object and its direct children.
    case children
    /// The object and everything below it.
    case tree

    package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
  }

  /// The path; `nil` for the folder itself, of which only the contents belong to the region.
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

  /// True when its path comes first in the order in which a directory precedes its contents.
  package func isAbove(_ other: Region) -> Bool {
    (path?.bytes ?? []).lexicographicallyPrecedes(other.path?.bytes ?? [])
  }

  /// True when this region contains all of another one.
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
