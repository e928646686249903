import Glibc
import LinuxShim
package import TarnCore
import TarnCrypto

/// Reads the files of a folder.
struct FolderReader: Sendable {
  let beneath: Beneath
  let hashing: any Hashing

  func digest(
    of path: RelativePath, _ algorithm: DigestAlgorithm, watch: (Int) -> Bool
  ) throws(FolderFailure) -> (Digest, FileIdentity)? {
    guard let file = try beneath.file(path) else { return nil }
    let before = try FileStat.of(file, path.bytes).identity
    let hasher = hashing.hasher(algorithm)
    do throws(FolderFailure) {
      try readAll(file, path.bytes) { bytes throws(FolderFailure) in
        hasher.update(bytes)
        guard watch(bytes.count) else { throw FolderFailure(.stopped, "ended on request") }
      }
    } catch {
      throw error.about(path)
    }
    guard try FileStat.of(file, path.bytes).identity == before else { return nil }
    return (hasher.finish(), before)
  }
}

/// Reads a file to its end, or up to `limit` bytes, in parts of at most 1 MiB.
///
/// - Returns: the number of bytes read.
@discardableResult
func readAll(
  _ file: Descriptor, _ object: some Sequence<UInt8>, limit: UInt64 = .max,
  _ body: (UnsafeRawBufferPointer) throws(FolderFailure) -> Void
) throws(FolderFailure) -> UInt64 {
  guard limit > 0 else { return 0 }
  _ = file.use(tarn_advise_sequential)
  let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4096)
  defer { buffer.deallocate() }
  var offset: UInt64 = 0
  while offset < limit {
    let room = Int(min(UInt64(buffer.count), limit - offset))
    let count = try kernel("read", object, file.use { tarn_read_at($0, buffer.baseAddress, room, offset) })
    if count == 0 { break }
    try body(UnsafeRawBufferPointer(rebasing: buffer[..<Int(count)]))
    offset += UInt64(count)
  }
  return offset
}

/// Returns at most so many first bytes of a file; `nil` where they cannot be read.
func readOpening(_ file: Descriptor, most: Int) -> [UInt8]? {
  var bytes = [UInt8](repeating: 0, count: most)
  let count = bytes.withUnsafeMutableBytes { buffer in
    file.use { tarn_read_at($0, buffer.baseAddress, buffer.count, 0) }
  }
  return count < 0 ? nil : Array(bytes.prefix(Int(count)))
}

/// A folder that is not a mirror yet, read for a plan.
package struct ForeignFolder: FolderReading {
  private let reader: FolderReader

  /// - Parameter folder: the path, in which links are followed here, once.
  package init(folder: String, hashing: any Hashing = OpenSSLHashing()) throws(FolderFailure) {
    reader = FolderReader(beneath: Beneath(root: try Descriptor.directory(at: folder)), hashing: hashing)
  }

  package func scan(_ region: Region) -> any SnapshotCursor { ScanAhead(FolderScan(reader.beneath, region)) }

  package func look(_ path: RelativePath) throws(FolderFailure) -> Present? { try reader.beneath.look(path) }

  package func digest(
    of path: RelativePath, _ algorithm: DigestAlgorithm, watch: (Int) -> Bool
  ) throws(FolderFailure) -> (Digest, FileIdentity)? {
    try reader.digest(of: path, algorithm, watch: watch)
  }
}
