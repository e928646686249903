import Glibc
import TarnCore

/// The error when tarn-watch could not be started.
struct WatcherStartFailure: Error {
  let blindness: WatchBlindness
}

/// A running tarn-watch, with our ends of its pipes. Used by one thread.
final class WatcherChild {
  /// The paths where the program is looked for: beside this one, then in libexec.
  static var usualPlaces: [String] {
    var buffer = [UInt8](repeating: 0, count: 4096)
    let count = readlink("/proc/self/exe", &buffer, buffer.count)
    guard count > 0 else { return [] }
    let own = buffer.prefix(count)
    guard let slash = own.lastIndex(of: UInt8(ascii: "/")) else { return [] }
    let directory = String(decoding: own[..<slash], as: UTF8.self)
    return [directory + "/tarn-watch", directory + "/../libexec/tarn/tarn-watch"]
  }

  let pid: pid_t
  /// The program's standard output; does not block.
  let output: Int32
  private let input: Int32
  private var unsent: [UInt8] = []
  private var reader = WatchRecordReader()

  /// - Parameter places: paths; the first executable one is started.
  init(places: [String]) throws(WatcherStartFailure) {
    guard let program = places.first(where: { access($0, X_OK) == 0 }) else {
      let list = places.map { Printable.escape($0) }.joined(separator: ", ")
      throw WatcherStartFailure(
        blindness: .init(.watcherMissing, "the program tarn-watch was not found; looked for \(list)"))
    }
    guard let (input, itsInput) = Self.pair() else { throw Self.failure(program, errno) }
    guard let (output, itsOutput) = Self.pair() else {
      let number = errno
      Glibc.close(input)
      Glibc.close(itsInput)
      throw Self.failure(program, number)
    }
    let (number, pid) = Self.spawn(program, input: itsInput, output: itsOutput)
    Glibc.close(itsInput)
    Glibc.close(itsOutput)
    guard number == 0 else {
      Glibc.close(input)
      Glibc.close(output)
      throw Self.failure(program, number)
    }
    self.pid = pid
    self.input = input
    self.output = output
  }

  /// Makes a pipe, close-on-exec from the start, whose ends do not block. It is a pair of sockets, since Glibc's Swift module lacks
  /// pipe2.
  static func pair() -> (Int32, Int32)? {
    var ends: [Int32] = [-1, -1]
    let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
    return socketpair(AF_UNIX, kind, 0, &ends) == 0 ? (ends[0], ends[1]) : nil
  }

  private static func failure(_ program: String, _ number: Int32) -> WatcherStartFailure {
    let reason = String(cString: strerror(number))
    return WatcherStartFailure(
      blindness: .init(.watcherDied, "cannot start \(Printable.escape(program)): \(reason)"))
  }

  private static func spawn(_ program: String, input: Int32, output: Int32) -> (number: Int32, pid: pid_t) {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, input, 0)
    posix_spawn_file_actions_adddup2(&actions, output, 1)
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    // This thread blocks signals, and a child inherits that.
    var none = sigset_t()
    sigemptyset(&none)
    posix_spawnattr_setsigmask(&attributes, &none)
    // It gets a process group of its own: a terminal's ^C is for the agent, which ends it in order.
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP))
    let words = [strdup(program), nil]
    // It needs nothing of the environment, which may contain secrets.
    let variables: [UnsafeMutablePointer<CChar>?] = [
      getenv("LD_LIBRARY_PATH").flatMap { strdup("LD_LIBRARY_PATH=" + String(cString: $0)) }, nil,
    ]
    defer { for text in words + variables { free(text) } }
    var pid: pid_t = 0
    let number = posix_spawn(&pid, program, &actions, &attributes, words, variables)
    return (number, pid)
  }

  /// The program's standard input while something waits to be written there, otherwise -1.
  var wantsToSend: Int32 { unsent.isEmpty ? -1 : input }

  func send(_ command: WatchCommand) {
    unsent += command.bytes
    flush()
  }

  /// Writes what the pipe accepts. A missing reader shows at the other pipe.
  func flush() {
    while !unsent.isEmpty {
      let count = write(input, unsent, unsent.count)
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { return }
      unsent.removeFirst(count)
    }
  }

  enum Received {
    case records([WatchRecord])
    case nonsense
    case end
  }

  /// Returns what has come since the last call; never blocks.
  func receive() -> Received {
    var buffer = [UInt8](repeating: 0, count: 64 << 10)
    let count = read(output, &buffer, buffer.count)
    if count == 0 { return .end }
    if count < 0 { return errno == EAGAIN || errno == EINTR ? .records([]) : .end }
    guard
      let records = buffer.withUnsafeBytes({ reader.read(UnsafeRawBufferPointer(rebasing: $0.prefix(count))) }
      )
    else { return .nonsense }
    return .records(records)
  }

  /// Ends the program if it is still running, and leaves no zombie. Must be the last call.
  ///
  /// - Parameter isKill: true to kill it at once; otherwise its input is closed, which ends it.
  /// - Returns: how it ended, for people.
  func end(isKill: Bool) -> String {
    Glibc.close(input)
    Glibc.close(output)
    if isKill { kill(pid, SIGKILL) }
    var status: Int32 = 0
    while waitpid(pid, &status, 0) == -1 {
      if errno != EINTR { return "ended" }
    }
    let signal = status & 0x7F
    return signal == 0 ? "ended with status \((status >> 8) & 0xFF)" : "was killed by signal \(signal)"
  }
}
