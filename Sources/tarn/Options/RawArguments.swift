import Glibc
import TarnCore
import TarnEngine

/// The words of the command line as they were given. Swift's own list of them repairs what is not UTF-8, and a
/// repaired name leads to another directory.
enum RawArguments {
  /// Why the words cannot be taken; nil when they can.
  static func refusal() -> PassFailure? {
    let count = Int(CommandLine.argc)
    // The last word of `explain` is a name inside a mirror, which may be any bytes.
    let takesName = CommandLine.arguments.dropFirst().first == "explain"
    for index in 1..<max(1, takesName ? count - 1 : count) {
      guard let word = CommandLine.unsafeArgv[index] else { break }
      if String(validatingCString: word) == nil {
        return refusal("argument \(index)", UnsafeRawBufferPointer(start: word, count: strlen(word)))
      }
    }
    return nil
  }

  /// The bytes of a word that Swift's list has as this text, repaired or not.
  static func bytes(of text: String) -> [UInt8] {
    for index in (1..<max(1, Int(CommandLine.argc))).reversed() {
      guard let word = CommandLine.unsafeArgv[index], String(cString: word).utf8.elementsEqual(text.utf8)
      else {
        continue
      }
      return Array(UnsafeRawBufferPointer(start: word, count: strlen(word)))
    }
    return Array(text.utf8)
  }

  static func refusal(_ what: String, _ bytes: UnsafeRawBufferPointer) -> PassFailure {
    PassFailure(
      .usage, code: "not-utf-8", "\(what) is not UTF-8: \(Printable.escape(Array(bytes)))",
      hint: "rename it with mv (names inside a mirror may be any bytes)")
  }
}
