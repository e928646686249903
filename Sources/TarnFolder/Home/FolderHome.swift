import Glibc
import LinuxShim
package import TarnCore
import TarnRuntime

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

  /// Looks, and changes nothing.
  ///
  /// - Parameter state: `--state`, absolute; nil for what the marker says.
  package static func inspect(folder: String, state: String?) throws(FolderFailure) -> State {
    guard let stat = try FileStat.following(Array(folder.utf8)) else { return .missing }
    guard stat.kind == .directory else { return .notDirectory }
    let marker = folder + "/" + markerName
    guard let there = try FileStat.at(Descriptor.current(), cString(marker)) else {
      if let state, try FileStat.following(Array((state + "/" + ledgerName).utf8)) != nil {
        return .markerMissing("\(markerName) is gone, and \(Printable.escape(state)) knows a mirror")
      }
      return try isEmpty(folder) ? .empty : .foreign
    }
    switch there.kind {
    case .directory: return try inspectInner(folder, marker)
    case .regular: return try inspectPointer(folder, marker, state)
    default: return .markerMissing("\(markerName) is neither a directory nor a file")
    }
  }

  private static func inspectInner(_ folder: String, _ marker: String) throws(FolderFailure) -> State {
    if let id = try readID(marker) {
      return .mirror(FolderHome(folder: folder, stateDirectory: marker, id: id))
    }
    let hasLedger = try FileStat.following(Array((marker + "/" + ledgerName).utf8)) != nil
    // Made a moment before a crash: nothing is known of it yet.
    if !hasLedger { return try isEmpty(folder, but: markerName) ? .empty : .foreign }
    return .markerMissing("\(markerName)/\(idName) is gone or damaged")
  }

  private static func inspectPointer(
    _ folder: String, _ marker: String, _ state: String?
  ) throws(FolderFailure) -> State {
    let lines = (SmallFile.read(marker) ?? "").split(separator: "\n", maxSplits: 1).map(String.init)
    guard lines.count == 2, isID(lines[0]) else { return .markerMissing("\(markerName) is damaged") }
    let directory = lines[1].hasSuffix("\n") ? String(lines[1].dropLast()) : lines[1]
    if let state, state != directory {
      return .markerMissing(
        "its state is in \(Printable.escape(directory)), not in \(Printable.escape(state))")
    }
    guard try readID(directory) == lines[0] else {
      return .markerMissing("its state in \(Printable.escape(directory)) is gone, or that of another mirror")
    }
    return .mirror(FolderHome(folder: folder, stateDirectory: directory, id: lines[0]))
  }

  private static func readID(_ directory: String) throws(FolderFailure) -> String? {
    guard let text = SmallFile.read(directory + "/" + idName) else { return nil }
    let id = text.hasSuffix("\n") ? String(text.dropLast()) : text
    return isID(id) ? id : nil
  }

  private static func isID(_ text: String) -> Bool {
    text.utf8.count == 32 && text.utf8.allSatisfy { Digest.value(ofHexDigit: $0) != nil }
  }

  private static func isEmpty(_ folder: String, but name: String? = nil) throws(FolderFailure) -> Bool {
    let number = tarn_open_at(AT_FDCWD, cString(folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)
    let root = Descriptor(try kernel("open", Array(folder.utf8), number))
    let scan = FolderScan(beneath: Beneath(root: root))
    return try scan.next() == nil
  }
}
