import Foundation
import TarnFolder
import TarnRuntime

/// A probe that does what a test plans for single steps.
final class Faults: Sendable {
  private struct State {
    var counts: [FolderStep: Int] = [:]
    var errors: [FolderStep: [Int: Int32]] = [:]
    var always: [FolderStep: Int32] = [:]
    var actions: [FolderStep: @Sendable () -> Void] = [:]
  }

  private let state = Locked(State())

  /// The `number`th such step fails (1 is the first).
  func fail(_ step: FolderStep, _ number: Int = 1, _ errno: Int32 = EIO) {
    state.withLock { $0.errors[step, default: [:]][$0.counts[step, default: 0] + number] = errno }
  }

  func failAlways(_ step: FolderStep, _ errno: Int32 = EIO) {
    state.withLock { $0.always[step] = errno }
  }

  /// Done once, right before the next such step: what somebody else does at that moment.
  func before(_ step: FolderStep, _ action: @escaping @Sendable () -> Void) {
    state.withLock { $0.actions[step] = action }
  }

  func count(_ step: FolderStep) -> Int { state.withLock { $0.counts[step, default: 0] } }

  var probe: FolderProbe {
    { [self] step in
      let (action, errno) = state.withLock { state -> ((@Sendable () -> Void)?, Int32) in
        state.counts[step, default: 0] += 1
        let errno = state.errors[step]?[state.counts[step, default: 0]] ?? state.always[step] ?? 0
        return (state.actions.removeValue(forKey: step), errno)
      }
      action?()
      return errno
    }
  }
}

/// File systems of a test's own: where the machine lets it mount.
enum Mounts {
  static let areAllowed: Bool = {
    guard geteuid() == 0, let base = try? DiskWorld.makeBase() else { return false }
    defer { DiskWorld.removeBase(base) }
    guard mount(at: base, "size=1m") else { return false }
    unmount(base)
    return true
  }()

  static func mount(at path: String, _ options: String) -> Bool {
    (try? run("/bin/mount", ["-t", "tmpfs", "-o", options, "tmpfs", path])) == 0
  }

  static func bind(_ source: String, at path: String) -> Bool {
    (try? run("/bin/mount", ["--bind", source, path])) == 0
  }

  /// A file system that shares the blocks of copies (FICLONE), for the time of the call; nil where it cannot be made.
  static func withReflinks<Result>(_ body: (String) throws -> Result) throws -> Result? {
    try withImage("mkfs.xfs -q -m reflink=1", body)
  }

  /// A file system on a loop device, for the time of the call; nil where it cannot be made.
  ///
  /// - Parameter maker: the command that makes it of the image whose path follows.
  static func withImage<Result>(_ maker: String, _ body: (String) throws -> Result) throws -> Result? {
    let base = try DiskWorld.makeBase()
    defer { DiskWorld.removeBase(base) }
    let (image, place) = (base + "/image", base + "/mounted")
    mkdir(place, 0o755)
    let make = "truncate -s 400M \(image) && \(maker) \(image) && mount -o loop \(image) \(place)"
    guard areAllowed, try run("/bin/sh", ["-c", "PATH=$PATH:/sbin:/usr/sbin; \(make)"]) == 0 else {
      return nil
    }
    defer { unmount(place) }
    return try body(place)
  }

  static func unmount(_ path: String) {
    _ = try? run("/bin/umount", ["-l", path])
  }

  /// A tmpfs for the time of the call.
  static func withTemporary<Result>(_ options: String, _ body: (String) throws -> Result) throws -> Result {
    let base = try DiskWorld.makeBase()
    defer { DiskWorld.removeBase(base) }
    guard mount(at: base, options) else { throw POSIXError(.EPERM) }
    defer { unmount(base) }
    return try body(base)
  }
}

/// Runs a body with the rights of nobody, on this thread only, when it runs as root.
func asNobody<Result>(_ body: () throws -> Result) rethrows -> Result {
  // Not in Swift's Glibc module. Unlike seteuid it is about the calling thread alone.
  guard geteuid() == 0, let symbol = dlsym(nil, "setfsuid") else { return try body() }
  let setfsuid = unsafeBitCast(symbol, to: (@convention(c) (uid_t) -> Int32).self)
  _ = setfsuid(65534)
  defer { _ = setfsuid(0) }
  return try body()
}
