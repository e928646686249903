import Glibc
import TarnCore
import TarnEngine
import TarnRuntime

/// One agent per state directory, whatever its socket: a second one would replace the record of the first. A lock on
/// `agent.lock` there, which names its holder, held until the last reference or the process ends.
final class AgentLock: Sendable {
  private let descriptor: Int32

  /// - Parameter directory: the agent's state directory; made if need be.
  /// - Returns: nil where none can be made: nothing can be recorded there either, and saving tells that.
  /// - Throws: `locked` when another agent holds it.
  static func take(_ directory: String) throws(PassFailure) -> AgentLock? {
    TextFile.makeDirectories(directory)
    let path = directory + "/agent.lock"
    let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard descriptor >= 0 else { return nil }
    if flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
      let isHeld = errno == EWOULDBLOCK
      close(descriptor)
      guard isHeld else { return nil }
      let holder = TextFile.read(path, limit: 64).flatMap { Int32($0.prefix { $0.isNumber }) }
      throw PassFailure(
        .locked, code: "agent-runs",
        "\(Printable.escape(directory)): another agent keeps its record there"
          + (holder.map { " (process \($0))" } ?? ""),
        hint: "one agent per state directory: tarn status shows it")
    }
    let text = Array("\(getpid())\n".utf8)
    // On a full disk the lock is held without a name.
    if ftruncate(descriptor, 0) == 0 { _ = pwrite(descriptor, text, text.count, 0) }
    return AgentLock(descriptor)
  }

  private init(_ descriptor: Int32) {
    self.descriptor = descriptor
  }

  deinit { close(descriptor) }
}
