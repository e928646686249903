package import Glibc

/// Starts another program by posix_spawn(3), and waits for its end.
///
/// In the program no signal is blocked, and each has its default effect. It is in a process group of its own, so that a terminal's
/// Ctrl-C does not reach it.
package enum Subprocess {
  /// Why a program did not start.
  package struct Failure: Error {
    /// The path that was given.
    package let program: String
    /// The errno of posix_spawn(3).
    package let number: Int32

    package var reason: String { String(cString: strerror(number)) }
  }

  /// What stands behind a descriptor of the program.
  package enum Stream {
    case null
    /// The stream of this process with the same number.
    case inherited
    /// A descriptor of this process, which stays open here.
    case descriptor(Int32)
  }

  /// How a program ended.
  package enum End: Equatable, Sendable {
    case status(Int32)
    case signal(Int32)
    /// Somebody else waited for it.
    case unknown

    package var text: String {
      switch self {
      case .status(let status): "it ended with status \(status)"
      case .signal(let signal): "signal \(signal) ended it"
      case .unknown: "how it ended is not known"
      }
    }

    /// - Parameter status: as wait(2) has it.
    package init(waitStatus status: Int32) {
      let signal = status & 0x7F
      self = signal == 0 ? .status((status >> 8) & 0xFF) : .signal(signal)
    }
  }

  /// - Parameters:
  ///   - words: the program's path and its arguments.
  ///   - environment: `NAME=value`; the program has no other variable.
  ///   - held: a descriptor that the program has as its fourth one. `nil` for none.
  /// - Returns: the process, for which the caller has to wait.
  package static func start(
    _ words: [String], environment: [String], input: Stream = .null, output: Stream = .null,
    messages: Stream = .inherited, held: Int32? = nil
  ) throws(Failure) -> pid_t {
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    posix_spawnattr_setflags(
      &attributes, Int16(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP))
    var all = sigset_t()
    sigfillset(&all)
    posix_spawnattr_setsigdefault(&attributes, &all)
    // The thread that starts it may block signals, and a child would inherit that.
    var none = sigset_t()
    sigemptyset(&none)
    posix_spawnattr_setsigmask(&attributes, &none)
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    for (number, stream) in [(Int32(0), input), (1, output), (2, messages)] {
      switch stream {
      case .null:
        posix_spawn_file_actions_addopen(
          &actions, number, "/dev/null", number == 0 ? O_RDONLY : O_WRONLY, 0)
      case .inherited: break
      case .descriptor(let descriptor): posix_spawn_file_actions_adddup2(&actions, descriptor, number)
      }
    }
    if let held { posix_spawn_file_actions_adddup2(&actions, held, 3) }
    let arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
    let variables: [UnsafeMutablePointer<CChar>?] = environment.map { strdup($0) } + [nil]
    defer { for text in arguments + variables { free(text) } }
    var process: pid_t = 0
    let number = posix_spawn(&process, words[0], &actions, &attributes, arguments, variables)
    guard number == 0 else { throw Failure(program: words[0], number: number) }
    return process
  }

  /// Waits for the end, and leaves no zombie.
  package static func wait(for process: pid_t) -> End {
    var status: Int32 = 0
    while waitpid(process, &status, 0) < 0 {
      guard errno == EINTR else { return .unknown }
    }
    return End(waitStatus: status)
  }

  /// Those of the named variables that this process has, as `NAME=value`.
  package static func variables(_ names: [String]) -> [String] {
    names.compactMap { name in getenv(name).map { "\(name)=\(String(cString: $0))" } }
  }
}
