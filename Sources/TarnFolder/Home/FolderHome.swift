import Glibc
import LinuxShim
package import TarnCore

/// Where a mirror keeps what is its own: `FOLDER/.tarn/` with the id (the marker), the ledger, `partial/`,
/// `trash/` and the lock; or, with `--state DIR`, that directory, and a small file `FOLDER/.tarn` that names it.
package struct FolderHome: Sendable, Equatable {
  /// Absolute, as given.
  package let folder: String
  /// Absolute; on the folder's file system.
  package let stateDirectory: String
  /// 32 hexadecimal digits.
  package let id: String

  /// What a folder is.
  package enum State: Sendable, Equatable {
    case missing
    case empty
    /// Not empty, and no mirror.
    case foreign
    case mirror(FolderHome)
    /// It was a mirror, and its marker is gone or another one; why, for a person.
    case markerMissing(String)
    case notDirectory
  }

  static let markerName = ".tarn"
  static let idName = "id"
  static let ledgerName = "ledger.sqlite"
  static let lockName = "lock"
  static let ownDirectories = ["partial", "trash"]

  /// Whether a directory is the record of some mirror: what lies in it belongs to that one.
  package static func isRecord(_ path: String) -> Bool {
    func kind(_ name: String) -> Present.Kind? { (try? FileStat.following("\(path)/\(name)"))?.kind }
    return kind(idName) == .regular && ownDirectories.allSatisfy { kind($0) == .directory }
  }

  var isInner: Bool { stateDirectory == folder + "/" + Self.markerName }

  /// Looks, and changes nothing.
  ///
  /// - Parameters:
  ///   - folder: absolute. A link at its end is followed.
  ///   - state: `--state`, absolute; nil for what the marker says.
  /// - Throws: `exists` when `state` is another directory than the one that the mirror has.
  package static func inspect(folder: String, state: String?) throws(FolderFailure) -> State {
    do throws(FolderFailure) {
      guard let stat = try FileStat.following(folder) else {
        return try missingMarker("the folder is gone", state) ?? .missing
      }
      if stat.kind != .directory { return .notDirectory }
    } catch {
      if error.code == .notDirectory { return .notDirectory }
      throw error
    }
    let root = try Descriptor.directory(at: folder)
    guard let marker = try FileStat.at(root, cString(markerName)) else {
      if let missing = try missingMarker("\(markerName) is gone", state) { return missing }
      return try isEmpty(root) ? .empty : .foreign
    }
    switch marker.kind {
    case .directory: return try inspectInner(folder, root, state)
    case .regular: return try inspectPointer(folder, state)
    default: return .markerMissing("\(markerName) is neither a directory nor a file")
    }
  }

  /// What is left of a mirror whose marker is gone: for `tarn forget`.
  ///
  /// - Parameter state: `--state`, absolute; nil for the one in the folder.
  /// - Returns: nil when nothing is; the id is empty when it cannot be read.
  package static func remains(folder: String, state: String?) throws(FolderFailure) -> FolderHome? {
    let directory = state ?? folder + "/" + markerName
    let id = try readID(directory)
    if id == nil, try !knowsMirror(directory) { return nil }
    return FolderHome(folder: folder, stateDirectory: directory, id: id ?? "")
  }

  /// A folder whose marker is a directory: its state is in there.
  package static func hasOwnDirectory(_ folder: String) -> Bool {
    (try? Descriptor.directory(at: folder + "/" + markerName)) != nil
  }

  /// - Returns: nil when `state` knows no mirror either.
  private static func missingMarker(_ reason: String, _ state: String?) throws(FolderFailure) -> State? {
    guard let state, try knowsMirror(state) else { return nil }
    return .markerMissing("\(reason), and \(Printable.escape(state)) knows a mirror")
  }

  private static func inspectInner(
    _ folder: String, _ root: Descriptor, _ state: String?
  ) throws(FolderFailure) -> State {
    let directory = folder + "/" + markerName
    if let state, try !isSame(state, directory) {
      throw FolderFailure(
        .exists,
        "the mirror in \(Printable.escape(folder)) keeps its state in \(markerName)")
    }
    if let id = try readID(directory) {
      return .mirror(FolderHome(folder: folder, stateDirectory: directory, id: id))
    }
    if try knowsMirror(directory) { return .markerMissing("\(markerName)/\(idName) is gone or damaged") }
    // Made a moment before a crash: nothing is known of it yet.
    return try isEmpty(root) ? .empty : .foreign
  }

  private static func inspectPointer(_ folder: String, _ state: String?) throws(FolderFailure) -> State {
    guard let (id, directory) = try readPointer(folder + "/" + markerName) else {
      return .markerMissing("\(markerName) is damaged")
    }
    if let state, try !isSame(state, directory) {
      throw FolderFailure(
        .exists,
        "the mirror in \(Printable.escape(folder)) keeps its state in \(Printable.escape(directory))"
      )
    }
    guard try readID(directory) == id else {
      return .markerMissing("its state in \(Printable.escape(directory)) is gone, or that of another mirror")
    }
    return .mirror(FolderHome(folder: folder, stateDirectory: directory, id: id))
  }

  // MARK: Parts

  /// The contents of `FOLDER/.tarn` when the state is elsewhere: the id, then the directory.
  static func pointer(id: String, directory: String) -> String { "\(id)\n\(directory)\n" }

  static func readPointer(_ path: String) throws(FolderFailure) -> (id: String, directory: String)? {
    let lines = (try SmallFile.read(path) ?? "").split(separator: "\n", maxSplits: 1).map(String.init)
    guard lines.count == 2, isID(lines[0]), lines[1].hasPrefix("/"), lines[1].hasSuffix("\n") else {
      return nil
    }
    return (lines[0], String(lines[1].dropLast()))
  }

  static func readID(_ directory: String) throws(FolderFailure) -> String? {
    guard let text = try SmallFile.read(directory + "/" + idName), text.hasSuffix("\n") else { return nil }
    let id = String(text.dropLast())
    return isID(id) ? id : nil
  }

  private static func isID(_ text: String) -> Bool {
    text.utf8.count == 32 && text.utf8.allSatisfy { Digest.value(ofHexDigit: $0) != nil }
  }

  private static func knowsMirror(_ directory: String) throws(FolderFailure) -> Bool {
    do throws(FolderFailure) {
      return try FileStat.following(directory + "/" + ledgerName) != nil
    } catch {
      if error.code == .notDirectory { return false }
      throw error
    }
  }

  /// The same object, by whatever names; or the same name of nothing.
  private static func isSame(_ first: String, _ second: String) throws(FolderFailure) -> Bool {
    guard let left = try FileStat.following(first), let right = try FileStat.following(second) else {
      return first == second
    }
    return left.isSameObject(as: right)
  }

  /// Tarn's own name does not count.
  static func isEmpty(_ root: Descriptor) throws(FolderFailure) -> Bool {
    try FolderScan(Beneath(root: root), .everything).next() == nil
  }
}
