import Glibc
import TarnCore
import TarnEngine
import TarnRuntime

/// One agent per state directory, whatever its socket: a second one would replace the record of the first. A lock on
/// `agent.lock` there, which names its holder, held until the last reference or the process ends.
final class AgentLock: Sendable {
  private let descriptor: Int32

  /// - Parameters:
  ///   - directory: the agent's state directory; made if need be.
  ///   - warn: hears why there is no lock, with what to do.
  /// - Returns: nil where none can be had: a second agent would not be noticed.
  /// - Throws: `locked` when another agent holds it.
  static func acquire(_ directory: String, warn: (String) -> Void) throws(PassFailure) -> AgentLock? {
    TextFile.makeDirectories(directory)
    let path = directory + "/agent.lock"
    let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
    if descriptor < 0 || flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
      let error = errno
      if descriptor >= 0 { close(descriptor) }
      guard error == EWOULDBLOCK else {
        warn(warning(path, error))
        return nil
      }
      let holder = TextFile.read(path, limit: 64).flatMap { Int32($0.prefix { $0.isNumber }) }
      throw PassFailure(
        .locked, code: "agent-runs",
        "\(Printable.escape(directory)): another agent keeps its record there"
          + (holder.map { " (process \($0))" } ?? ""),
        hint: "end that one, or give this agent another state directory (\(Self.variables))")
    }
    let text = Array("\(getpid())\n".utf8)
    // On a full disk the lock is held without a name.
    if ftruncate(descriptor, 0) == 0 { _ = pwrite(descriptor, text, text.count, 0) }
    return AgentLock(descriptor)
  }

  private static func warning(_ path: String, _ error: Int32) -> String {
    let words = strerror(error).map { String(cString: $0).lowercased() } ?? "error \(error)"
    return
      "\(Printable.escape(path)) cannot be locked, so that a second agent would not be noticed: \(words); "
      + ([EACCES, EPERM, ELOOP, EISDIR].contains(error)
        ? "remove it, or give it and its directory to this user"
        : "make its directory writable, or give the agent another one (\(variables))")
  }

  /// What names the state directory: root's agent is the system's, and does not look at a user's directories.
  private static var variables: String {
    geteuid() == 0 ? "STATE_DIRECTORY" : "STATE_DIRECTORY, XDG_STATE_HOME"
  }

  private init(_ descriptor: Int32) {
    self.descriptor = descriptor
  }

  deinit { close(descriptor) }
}
