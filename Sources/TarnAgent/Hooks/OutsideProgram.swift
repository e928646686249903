import Glibc
import TarnCore
import TarnRuntime

/// Programs that somebody else wrote: wake commands and hooks.
enum OutsideProgram {
  /// Why a program did not start, for a person.
  struct Failure: Error { let message: String }

  /// What a program may know of the agent's environment.
  static var environment: [String] {
    Subprocess.variables([
      "PATH", "HOME", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY", "LANG",
      "USER",
    ])
  }

  /// A program in the directories of PATH.
  static func find(_ name: String) -> String? {
    let path = getenv("PATH").map { String(cString: $0) } ?? "/usr/bin:/bin"
    return path.split(separator: ":").map { "\($0)/\(name)" }.first { access($0, X_OK) == 0 }
  }

  /// - Parameters:
  ///   - words: the program's path and its arguments.
  ///   - input: its standard input. `nil` for none.
  ///   - held: a descriptor that it has as its fourth one. `nil` for none.
  static func start(
    _ words: [String], _ environment: [String], input: Int32? = nil, held: Int32? = nil
  ) throws(Failure) -> pid_t {
    do throws(Subprocess.Failure) {
      return try Subprocess.start(
        words, environment: environment, input: input.map { .descriptor($0) } ?? .null, held: held)
    } catch {
      throw Failure(message: "\(Printable.escape(error.program)) cannot be run: \(error.reason)")
    }
  }
}
