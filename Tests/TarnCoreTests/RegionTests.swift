import TarnCore
import Testing

@Suite struct RegionTests {
  private static let paths = ["a", "a-b", "a/b", "a/b/c", "a/b/c/d", "a/d", "b"].map { path($0) }
  private static let regions = ([nil] + paths).flatMap { top in
    [Region.Extent.itself, .children, .tree].map { Region(top, $0) }
  }

  /// A region lies in another one when each path of the one is of the other: over paths deep enough to tell.
  @Test func aRegionLiesInAnotherOneIfAllItsPathsDo() {
    let paths =
      Self.paths
      + Self.paths.flatMap { top in
        ["x", "x/y", "x/y/z"].map { RelativePath(trusted: top.bytes + Array("/\($0)".utf8)) }
      }
    for outer in Self.regions {
      for inner in Self.regions where inner.path != nil || inner.extent != .itself {
        let isWhole = paths.filter { inner.contains($0) }.allSatisfy { outer.contains($0) }
        #expect(outer.contains(inner) == isWhole, "\(outer) \(inner)")
      }
    }
  }

  @Test func everythingHasEverything() {
    #expect(Self.paths.allSatisfy { Region.everything.contains($0) })
    #expect(Self.regions.allSatisfy { Region.everything.contains($0) })
  }
}
