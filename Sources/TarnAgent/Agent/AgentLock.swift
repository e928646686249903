import Glibc
import TarnCore
import TarnRuntime

/// One agent per state directory, whatever its socket: a second one would replace the record of the first. A lock on
/// `agent.lock` there, which names its holder, held until the last reference or the process ends.
enum AgentLock {
  /// - Parameters:
  ///   - directory: the agent's state directory; made if need be.
  ///   - warn: hears why there is no lock, with what to do.
  /// - Returns: nil where none can be had: a second agent would not be noticed.
  /// - Throws: `locked` when another agent holds it.
  static func acquire(_ directory: String, warn: (String) -> Void) throws(PassFailure) -> FileLock? {
    TextFile.makeDirectories(directory)
    let path = directory + "/agent.lock"
    do throws(FileLock.Refusal) {
      let lock = try FileLock(path)
      lock.write("\(getpid())\n")
      return lock
    } catch {
      guard error.isHeld else {
        warn(warning(path, error.number))
        return nil
      }
      let holder = TextFile.read(path, limit: 64).flatMap { Int32($0.prefix { $0.isNumber }) }
      throw PassFailure(
        .locked, code: "agent-runs",
        "\(Printable.escape(directory)): another agent keeps its record there"
          + (holder.map { " (process \($0))" } ?? ""),
        hint: "end that one, or give this agent another state directory (\(Self.variables))")
    }
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
}
