package import TarnCore

/// A folder that does not exist: what a plan sees before the first pass.
package struct AbsentFolder: FolderReading {
  package init() {}

  private final class Nothing: SnapshotCursor {
    func next() -> Present? { nil }
  }

  package func scan(_ region: Region) -> any SnapshotCursor { Nothing() }
  package func look(_ path: RelativePath) -> Present? { nil }
  package func digest(
    of path: RelativePath, _ algorithm: DigestAlgorithm, watch: (Int) -> Bool
  ) -> (Digest, FileIdentity)? { nil }
}
