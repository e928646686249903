import Glibc
import TarnCore
import TarnRuntime

/// The folders that this user's Tarn has made mirrors of. It serves `tarn status` without arguments, and
/// tells a mirror whose file system is not mounted from a new folder. It is a list of hints: nothing else is
/// lost with it.
struct Registry {
  struct Mirror: Equatable {
    var folder: String
    /// The id of the mirror's marker.
    var id: String
    /// The id of the file system that it was on (f_fsid of statvfs(3)); empty when unknown.
    var fileSystem: String

    /// Compares bytes: `String` takes two spellings of a name for equal, the file system does not.
    func isAt(_ folder: String) -> Bool { self.folder.utf8.elementsEqual(folder.utf8) }

    static func == (left: Mirror, right: Mirror) -> Bool {
      left.isAt(right.folder) && left.id == right.id && left.fileSystem == right.fileSystem
    }
  }

  /// The path of the file. Each mirror has a line: id, file system, folder with `\n` and `\\` escaped,
  /// separated by tabs.
  let path: String

  /// Uses `$STATE_DIRECTORY` under systemd, else `$XDG_STATE_HOME/tarn`, else `~/.local/state/tarn`.
  init?(environment: [String: String]) {
    if let directory = environment["STATE_DIRECTORY"], !directory.isEmpty {
      path = directory.prefix { $0 != ":" } + "/mirrors"
    } else if let state = environment["XDG_STATE_HOME"], state.hasPrefix("/") {
      path = state + "/tarn/mirrors"
    } else if let home = environment["HOME"], home.hasPrefix("/"), TextFile.isDirectory(home) {
      path = home + "/.local/state/tarn/mirrors"
    } else {
      return nil
    }
  }

  func mirrors() -> [Mirror] {
    guard let text = TextFile.read(path, limit: 4 << 20) else { return [] }
    // Scalars, not characters: a line feed after "\r" would not be found.
    return text.unicodeScalars.split(separator: "\n").compactMap { line in
      let parts = Substring(line).split(separator: "\t", maxSplits: 2, omittingEmptySubsequences: false)
      guard parts.count == 3 else { return nil }
      return Mirror(
        folder: EscapedLine.unescape(parts[2].unicodeScalars), id: String(parts[0]),
        fileSystem: String(parts[1]))
    }
  }

  /// Remembers a mirror. Callable on any thread, in any process.
  ///
  /// - Parameter keeps: true for an earlier folder of the same mirror that stays in the list.
  /// - Returns: false when the list cannot be written.
  @discardableResult func add(_ mirror: Mirror, keeps: (String) -> Bool) -> Bool {
    func added(to known: [Mirror]) -> [Mirror] {
      let left = known.filter {
        $0 == mirror || !$0.isAt(mirror.folder) && ($0.id != mirror.id || keeps($0.folder))
      }
      return left.contains(mirror) ? left : left + [mirror]
    }
    // Usually it is there already; then no lock is needed.
    let known = mirrors()
    return added(to: known) == known || edit(added)
  }

  /// Removes a folder. Callable on any thread, in any process.
  func remove(folder: String) {
    guard mirrors().contains(where: { $0.isAt(folder) }) else { return }
    _ = edit { known in known.filter { !$0.isAt(folder) } }
  }

  /// Reads, changes and writes the list, one at a time over all processes. Otherwise concurrent passes would
  /// overwrite each other's lines.
  private func edit(_ change: ([Mirror]) -> [Mirror]) -> Bool {
    withExtendedLifetime(lock()) {
      let known = mirrors()
      let changed = change(known)
      return changed == known || write(changed)
    }
  }

  /// Takes the lock of a file beside the list, once for each edit.
  ///
  /// - Returns: `nil` when it cannot be had. The list is written nevertheless, for it holds only hints. A
  ///   process that is stopped during an edit delays others for some seconds only.
  private func lock() -> FileLock? {
    guard let slash = path.lastIndex(of: "/") else { return nil }
    TextFile.makeDirectories(String(path[..<slash]))
    return try? FileLock(path + ".lock", attempts: 250)
  }

  private func write(_ mirrors: [Mirror]) -> Bool {
    let text = mirrors.map { "\($0.id)\t\($0.fileSystem)\t\(EscapedLine.escape($0.folder))\n" }.joined()
    return TextFile.replace(path, with: text, mark: String(getpid()), isDurable: false) == nil
  }
}
