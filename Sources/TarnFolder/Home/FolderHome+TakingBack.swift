import Glibc
import LinuxShim
import TarnCore

extension FolderHome {
  /// What one call of `make` made, and nobody else.
  package struct CreatedParts: Sendable, Equatable {
    /// The folder, the state, and what had to be made above them. Outermost first.
    package var directories: [String] = []
    /// Of which something of Tarn's own was made; nil when all of it was there.
    private var home: FolderHome?
    /// Tarn's own: the marker, and what lies in the state. In the order in which it was made.
    private var parts: [String] = []

    package init() {}

    /// The mirror itself: its marker and its id.
    package var isMirror: Bool {
      home.map { hasID && parts.contains($0.folder + "/" + FolderHome.markerName) } ?? false
    }

    /// A new marker leads to a state that was there.
    package var isLinkedAnew: Bool {
      home.map { !hasID && parts.contains($0.folder + "/" + FolderHome.markerName) } ?? false
    }

    private var hasID: Bool {
      home.map { parts.contains($0.stateDirectory + "/" + FolderHome.idName) } ?? false
    }

    mutating func add(_ path: String, of home: FolderHome) {
      self.home = home
      parts.append(path)
    }

    /// Those that are empty go.
    package func removeDirectories() {
      for path in directories.reversed() { _ = tarn_remove_directory(AT_FDCWD, cString(path)) }
    }

    /// Removes all of it again, innermost first, unless somebody else uses the mirror by now.
    ///
    /// - Parameter isUsed: whether something was recorded in that state; asked with the lock held, where a ledger or
    ///   the like lies beside what was made. It goes as well then.
    package func takeBack(isUsed: (_ stateDirectory: String) -> Bool = { _ in true }) {
      defer { removeDirectories() }
      guard let home else { return }
      do {
        if hasID {
          try removeLocked(home, isUsed)
        } else if try FileStat.following(home.stateDirectory + "/" + FolderHome.idName) == nil {
          removeParts()
        }
      } catch {
        // What cannot be told may be in use. An empty mirror, if it is one, is taken as it is by the next sync.
      }
    }

    private func removeLocked(_ home: FolderHome, _ isUsed: (String) -> Bool) throws {
      let hadLock = try FileStat.following(home.lockPath) != nil
      let lock: FolderLock
      do {
        lock = try home.lock()
      } catch let failure as FolderFailure where !hadLock && failure.code != .missing {
        // Where none can be made nobody holds one.
        return removeParts()
      }
      defer { lock.release() }
      // Another first pass may have taken it back, and a third one made it anew.
      guard try FolderHome.readID(home.stateDirectory) == home.id, try home.isStateBare() else { return }
      guard try others(home).isEmpty || !isUsed(home.stateDirectory) else { return }
      // Once more, for a look may make files.
      let state = try Self.state(home)
      for name in try others(home) { try state.remove(name) }
      removeParts { try? state.remove(FolderHome.lockName) }
    }

    /// What lies in the state beside its parts, which are bare. No descriptor stays open: they may be scarce.
    private func others(_ home: FolderHome) throws -> [String] {
      let parts = FolderHome.ownDirectories + [FolderHome.idName, FolderHome.lockName]
      return try Self.state(home).list().map(\.name).filter { !parts.contains($0) }
    }

    private static func state(_ home: FolderHome) throws -> OwnDirectory {
      OwnDirectory(descriptor: try Descriptor.directory(at: home.stateDirectory), label: "state")
    }

    /// - Parameter last: done when the state is empty but for the lock.
    private func removeParts(_ last: () -> Void = {}) {
      for path in parts.reversed() {
        if path == home?.stateDirectory { last() }
        if tarn_unlink(AT_FDCWD, cString(path)) != 0 { _ = tarn_remove_directory(AT_FDCWD, cString(path)) }
      }
      if parts.first != home?.stateDirectory { last() }
    }
  }
}
