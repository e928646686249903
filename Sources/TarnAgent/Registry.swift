import Glibc
import TarnCore

/// The folders that this user's Tarn has made mirrors of: for `tarn status` without arguments, and to tell a
/// mirror whose file system is not mounted from a folder that is new. A list of hints: when it is lost, nothing
/// is lost but that.
struct Registry {
  struct Mirror: Equatable {
    var folder: String
    /// The id of its marker.
    var id: String
    /// Of the file system that it was on (f_fsid of statvfs(3)); empty when that is not known.
    var fileSystem: String

    /// By bytes: `String` holds two spellings of one name for equal, the file system does not.
    func isAt(_ folder: String) -> Bool { self.folder.utf8.elementsEqual(folder.utf8) }

    static func == (left: Mirror, right: Mirror) -> Bool {
      left.isAt(right.folder) && left.id == right.id && left.fileSystem == right.fileSystem
    }
  }

  /// The file; one line per mirror: id, file system, folder with `\n` and `\\` escaped, parted by tabs.
  let path: String

  /// `$STATE_DIRECTORY` under systemd, else `$XDG_STATE_HOME/tarn`, else `~/.local/state/tarn`.
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
    // By scalars: as characters, a line feed after "\r" would not be found.
    return text.unicodeScalars.split(separator: "\n").compactMap { line in
      let parts = Substring(line).split(separator: "\t", maxSplits: 2, omittingEmptySubsequences: false)
      guard parts.count == 3 else { return nil }
      return Mirror(
        folder: EscapedLine.unescape(parts[2].unicodeScalars), id: String(parts[0]),
        fileSystem: String(parts[1]))
    }
  }

  /// Remembers a mirror; a failure is of no account.
  func add(_ mirror: Mirror) {
    let known = mirrors()
    guard !known.contains(mirror) else { return }
    write(known.filter { !$0.isAt(mirror.folder) && $0.id != mirror.id } + [mirror])
  }

  func remove(folder: String) {
    let known = mirrors()
    let left = known.filter { !$0.isAt(folder) }
    if left.count != known.count { write(left) }
  }

  private func write(_ mirrors: [Mirror]) {
    let text = mirrors.map { "\($0.id)\t\($0.fileSystem)\t\(EscapedLine.escape($0.folder))\n" }.joined()
    TextFile.write(text, to: path)
  }

  static func isReadOnly(_ path: String) -> Bool {
    var status = statvfs()
    return statvfs(path, &status) == 0 && status.f_flag & UInt(ST_RDONLY) != 0
  }

  /// Which file system a path is on, as text that outlives reboots where the file system has an id.
  static func fileSystem(of folder: String) -> String {
    var status = statvfs()
    guard statvfs(folder, &status) == 0 else { return "" }
    return String(UInt64(status.f_fsid), radix: 16)
  }
}
