import Glibc
import TarnCore
import TarnEngine

/// The words of the command line as they were given. Swift's own list of them repairs what is not UTF-8, and a
/// repaired name leads to another directory.
enum RawArguments {
  /// Why the words cannot be taken; nil when they can.
  static func refusal() -> PassFailure? {
    for index in 1..<max(1, Int(CommandLine.argc)) {
      guard let word = CommandLine.unsafeArgv[index] else { break }
      if String(validatingCString: word) == nil {
        return refusal("argument \(index)", UnsafeRawBufferPointer(start: word, count: strlen(word)))
      }
    }
    return nil
  }

  static func refusal(_ what: String, _ bytes: UnsafeRawBufferPointer) -> PassFailure {
    PassFailure(
      .usage, code: "not-utf-8", "\(what) is not UTF-8: \(Printable.escape(Array(bytes)))",
      hint: "rename it with mv (names inside a mirror may be any bytes)")
  }
}
