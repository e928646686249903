import Glibc
import LinuxShim
import TarnCore

/// Opens what lies beneath a directory's descriptor: never through a link, never across a mount (I5).
struct Beneath: Sendable {
  let root: Descriptor

  /// A path split up: everything but the leaf is resolved by openat2, the leaf by calls that follow no link.
  struct Place {
    /// The directory of the leaf; `nil` for the folder itself.
    let parent: RelativePath?
    let leaf: [CChar]

    /// - Throws: `other` for an invalid path of the folder: a `..`, a NUL, an empty segment, or Tarn's own name at any depth.
    init(_ path: RelativePath) throws(FolderFailure) {
      let bytes = path.bytes
      var start = 0
      while start <= bytes.count {
        var stop = start
        while stop < bytes.count, bytes[stop] != UInt8(ascii: "/") { stop += 1 }
        guard Self.isName(bytes[start..<stop]) else {
          throw FolderFailure(.other, "\(path.printable) is no path of the folder", path: path)
        }
        start = stop + 1
      }
      parent = path.parent
      leaf = cString(path.name)
    }

    private static func isName(_ segment: ArraySlice<UInt8>) -> Bool {
      let isDots = segment.count <= 2 && segment.allSatisfy { $0 == UInt8(ascii: ".") }
      return !isDots && !segment.contains(0) && !segment.elementsEqual(PathRule.reservedName)
    }
  }

  /// Opens a directory of the folder, or the folder itself for `nil`.
  ///
  /// - Throws: `missing`, `notDirectory`, `link` or `otherFileSystem` when it is not a directory of the folder.
  func directory(_ path: RelativePath?) throws(FolderFailure) -> Descriptor {
    guard let path else { return root }
    let number = root.openBeneath(cString(path.bytes), O_RDONLY | O_DIRECTORY)
    return Descriptor(try kernel("open the directory", path.bytes, number))
  }

  /// Opens the directory that holds a place.
  ///
  /// - Returns: `nil` when it is missing, not a directory, or a link.
  func parent(of place: Place) throws(FolderFailure) -> Descriptor? {
    do throws(FolderFailure) {
      return try directory(place.parent)
    } catch {
      switch error.code {
      case .missing, .notDirectory, .link: return nil
      default: throw error
      }
    }
  }

  func look(_ path: RelativePath) throws(FolderFailure) -> Present? {
    let place = try Place(path)
    do throws(FolderFailure) {
      guard let parent = try parent(of: place), let stat = try FileStat.at(parent, place.leaf) else {
        return nil
      }
      return stat.present(at: path)
    } catch {
      throw error.about(path)
    }
  }

  /// Opens a regular file for reading. Never waits for a FIFO, never touches a device.
  ///
  /// - Returns: `nil` when it is missing, or not a regular file.
  func file(_ path: RelativePath) throws(FolderFailure) -> Descriptor? {
    let place = try Place(path)
    do throws(FolderFailure) {
      guard let parent = try parent(of: place), try FileStat.at(parent, place.leaf)?.kind == .regular else {
        return nil
      }
      let number = parent.open(place.leaf, O_RDONLY | O_NONBLOCK | O_NOCTTY)
      if number == -ENOENT || number == -ELOOP || number == -ENXIO { return nil }
      let file = Descriptor(try kernel("open", path.bytes, number))
      return try FileStat.of(file, path.bytes).kind == .regular ? file : nil
    } catch {
      throw error.about(path)
    }
  }
}
