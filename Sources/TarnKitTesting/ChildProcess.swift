internal import Glibc
internal import NIOConcurrencyHelpers

/// A child process of this process.
final class ChildProcess: Sendable {
  private let child = NIOLockedValueBox<pid_t>(0)

  /// The process identifier. `nil` when the child does not run.
  var number: Int32? {
    child.withLockedValue { child in
      var status: Int32 = 0
      if child > 0, waitpid(child, &status, WNOHANG) != 0 { child = 0 }
      return child > 0 ? child : nil
    }
  }

  /// - Parameter output: the file to which standard output and standard error are appended.
  func start(
    _ words: [String], environment: [String: String], output: String
  ) throws(TestKitError) {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT | O_APPEND, 0o644)
    posix_spawn_file_actions_adddup2(&actions, 1, 2)
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    // Tests may run on threads that block signals, and a child would inherit the mask.
    var none = sigset_t()
    sigemptyset(&none)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP))
    let arguments = words.map { strdup($0) } + [nil]
    let variables = environment.map { strdup("\($0)=\($1)") } + [nil]
    defer { for text in arguments + variables { free(text) } }
    var made: pid_t = 0
    let fault = posix_spawn(&made, words[0], &actions, &attributes, arguments, variables)
    guard fault == 0 else {
      throw TestKitError("\(words[0]) cannot be run: \(String(cString: strerror(fault)))")
    }
    child.withLockedValue { $0 = made }
  }

  /// Sends the signal and waits until the child has ended.
  func end(_ signal: Int32) {
    child.withLockedValue { child in
      guard child > 0 else { return }
      kill(child, signal)
      var status: Int32 = 0
      while waitpid(child, &status, 0) < 0, errno == EINTR {}
      child = 0
    }
  }
}
