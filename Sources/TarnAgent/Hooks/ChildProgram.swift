import Glibc
import TarnCore

/// Starts programs of others: wake commands and hooks. Each has its own process group, so that a signal to
/// the agent's group does not end it.
enum ChildProgram {
  /// The reason why a program did not start, as text for a person.
  struct Failure: Error { let message: String }

  /// The part of the agent's environment that programs get.
  static var environment: [String] {
    let names = [
      "PATH", "HOME", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY", "LANG",
      "USER",
    ]
    return names.compactMap { name in getenv(name).map { "\(name)=\(String(cString: $0))" } }
  }

  /// Returns the path of a program in the directories of PATH.
  static func find(_ name: String) -> String? {
    let path = getenv("PATH").map { String(cString: $0) } ?? "/usr/bin:/bin"
    return path.split(separator: ":").map { "\($0)/\(name)" }.first { access($0, X_OK) == 0 }
  }

  /// - Parameters:
  ///   - words: the program's path and its arguments.
  ///   - input: the descriptor for its standard input; `nil` for none.
  ///   - held: a descriptor that it gets as its descriptor 3; `nil` for none.
  static func start(
    _ words: [String], _ environment: [String], input: Int32? = nil, held: Int32? = nil
  ) throws(Failure) -> pid_t {
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    posix_spawnattr_setflags(
      &attributes, Int16(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP))
    var all = sigset_t()
    sigfillset(&all)
    posix_spawnattr_setsigdefault(&attributes, &all)
    var none = sigset_t()
    sigemptyset(&none)
    posix_spawnattr_setsigmask(&attributes, &none)
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    if let input {
      posix_spawn_file_actions_adddup2(&actions, input, 0)
    } else {
      posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    }
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)
    if let held { posix_spawn_file_actions_adddup2(&actions, held, 3) }
    let arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
    let variables: [UnsafeMutablePointer<CChar>?] = environment.map { strdup($0) } + [nil]
    defer { for text in arguments + variables { free(text) } }
    var process: pid_t = 0
    let number = posix_spawn(&process, words[0], &actions, &attributes, arguments, variables)
    guard number == 0 else {
      throw Failure(
        message: "\(Printable.escape(words[0])) cannot be run: \(String(cString: strerror(number)))")
    }
    return process
  }

  /// The end of a program.
  enum End: Equatable {
    case status(Int32)
    case signal(Int32)
    /// The end is unknown.
    case unknown

    var text: String {
      switch self {
      case .status(let status): "it ended with status \(status)"
      case .signal(let signal): "signal \(signal) ended it"
      case .unknown: "it was lost sight of"
      }
    }
  }

  /// Waits for the end of a program, and leaves no zombie.
  static func wait(for process: pid_t) -> End {
    var status: Int32 = 0
    while waitpid(process, &status, 0) < 0 {
      guard errno == EINTR else { return .unknown }
    }
    let signal = status & 0x7F
    return signal == 0 ? .status((status >> 8) & 0xFF) : .signal(signal)
  }
}
