import Glibc
import TarnCore
import TarnRuntime

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
    defer {
      Glibc.close(itsInput)
      Glibc.close(itsOutput)
    }
    do throws(Subprocess.Failure) {
      // It needs nothing of the environment, and secrets may be there.
      pid = try Subprocess.start(
        [program], environment: Subprocess.variables(["LD_LIBRARY_PATH"]), input: .descriptor(itsInput),
        output: .descriptor(itsOutput))
    } catch {
      Glibc.close(input)
      Glibc.close(output)
      throw Self.failure(program, error.number)
    }
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

  /// Its standard input, while something waits to be written there; else -1.
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
    switch Subprocess.wait(for: pid) {
    case .status(let status): return "ended with status \(status)"
    case .signal(let signal): return "was killed by signal \(signal)"
    case .unknown: return "ended"
    }
  }
}
