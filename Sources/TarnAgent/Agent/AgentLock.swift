import Glibc
import TarnCore
import TarnRuntime

/// The lock that lets only one agent use a state directory: a second one would replace the record of the
/// first. It is a lock on `agent.lock`, which names its holder. The last reference, or the end of the
/// process, releases it.
enum AgentLock {
  /// - Parameters:
  ///   - directory: the agent's state directory, made when it is missing.
  ///   - warn: called with the reason why there is no lock, and what to do.
  /// - Returns: `nil` when no lock can be had; then a second agent would not be noticed.
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
    return
      "\(Printable.escape(path)) cannot be locked, so that a second agent would not be noticed: \(ErrorText.of(error)); "
      + ([EACCES, EPERM, ELOOP, EISDIR].contains(error)
        ? "remove it, or give it and its directory to this user"
        : "make its directory writable, or give the agent another one (\(variables))")
  }

  /// The variables that name the state directory. The agent of root is the system's, and ignores a user's
  /// directories.
  private static var variables: String {
    geteuid() == 0 ? "STATE_DIRECTORY" : "STATE_DIRECTORY, XDG_STATE_HOME"
  }
}
