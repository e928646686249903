import Foundation
import TarnCore
import TarnCrypto
import TarnFolder
import TestSupport
import Testing

/// A directory of its own for one test, removed with it; `folder` in it is a mirror, the rest is outside.
final class DiskWorld: FolderWorld {
  let base: String
  let folder: String
  let home: FolderHome
  let disk: LocalFolder

  /// - Parameter probe: see `FolderHome.open`.
  init(
    state: Bool = false, on directory: String? = nil, probe: FolderProbe? = nil, renameFlags: Bool = true
  ) throws {
    base = try DiskWorld.makeBase(in: directory)
    folder = base + "/folder"
    home = try FolderHome.create(folder: folder, state: state ? base + "/state" : nil)
    disk = try home.open(probe: probe, renameFlags: renameFlags)
  }

  deinit {
    DiskWorld.removeBase(base)
  }

  static func makeBase(in directory: String? = nil) throws -> String {
    var template = Array(((directory ?? NSTemporaryDirectory()) + "/tarn-folder-XXXXXX").utf8CString)
    guard mkdtemp(&template) != nil, let real = realpath(template, nil) else { throw POSIXError(.EIO) }
    defer { free(real) }
    chmod(real, 0o755)
    return String(cString: real)
  }

  static func removeBase(_ base: String) {
    _ = try? run("/bin/chmod", ["-R", "u+rwx", base])
    // Not FileManager: it cannot remove a tree that is deeper than a path.
    _ = try? run("/bin/rm", ["-rf", base])
  }

  var port: any FolderPort { disk }
  let hashing: any Hashing = OpenSSLHashing()

  // MARK: Paths

  /// The NUL-terminated path of an object of the folder, for names that are no text too.
  func raw(_ path: RelativePath) -> [CChar] { Self.raw(folder, path.bytes) }

  static func raw(_ directory: String, _ name: [UInt8]) -> [CChar] {
    (Array(directory.utf8) + [UInt8(ascii: "/")] + name).map { CChar(bitPattern: $0) } + [0]
  }

  private func makeParents(_ path: RelativePath) {
    guard let parent = path.parent else { return }
    makeParents(parent)
    mkdir(raw(parent), 0o755)
  }

  // MARK: What other programs do

  func write(_ path: RelativePath, _ bytes: [UInt8]) {
    makeParents(path)
    unlink(raw(path))
    #expect(Self.store(raw(path), bytes, O_CREAT | O_EXCL))
  }

  func edit(_ path: RelativePath, _ bytes: [UInt8]) {
    #expect(Self.store(raw(path), bytes, O_TRUNC))
  }

  static func store(_ path: [CChar], _ bytes: [UInt8], _ flags: Int32) -> Bool {
    let file = open(path, O_WRONLY | O_CLOEXEC | flags, 0o644)
    guard file >= 0 else { return false }
    defer { close(file) }
    return bytes.withUnsafeBytes { Foundation.write(file, $0.baseAddress, $0.count) } == bytes.count
  }

  func makeDirectory(_ path: RelativePath) {
    makeParents(path)
    mkdir(raw(path), 0o755)
  }

  func makeLink(_ path: RelativePath) { makeLink(path, to: base) }

  func makeLink(_ path: RelativePath, to target: String) {
    makeParents(path)
    #expect(symlink(target, raw(path)) == 0)
  }

  /// Not even its owner may read it.
  func changeMode(_ path: RelativePath) { chmod(raw(path), 0) }

  func makeSpecial(_ path: RelativePath) {
    makeParents(path)
    #expect(mkfifo(raw(path), 0o644) == 0)
  }

  func delete(_ path: RelativePath) {
    if unlink(raw(path)) != 0 { rmdir(raw(path)) }
  }

  // MARK: Looking

  func contents(_ path: RelativePath) -> [UInt8]? { Self.load(raw(path)) }

  func trashContents(_ name: String) -> [UInt8]? {
    Self.load(Self.raw(home.stateDirectory + "/trash", Array(name.utf8)))
  }

  /// nil when no regular file stands there; a link is not followed.
  static func load(_ path: [CChar]) -> [UInt8]? {
    var status = stat()
    guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
    let file = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
    guard file >= 0 else { return nil }
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
    let count = bytes.withUnsafeMutableBytes { read(file, $0.baseAddress, $0.count) }
    return count == bytes.count ? bytes : nil
  }

  static func status(_ path: [CChar]) -> stat? {
    var status = stat()
    return lstat(path, &status) == 0 ? status : nil
  }
}

/// Runs a program and waits for it.
@discardableResult
func run(_ program: String, _ arguments: [String]) throws -> Int32 {
  let process = Process()
  process.executableURL = URL(fileURLWithPath: program)
  process.arguments = arguments
  process.standardError = FileHandle.nullDevice
  process.standardOutput = FileHandle.nullDevice
  try process.run()
  process.killWhenLate()
  process.waitUntilExit()
  return process.terminationStatus
}
