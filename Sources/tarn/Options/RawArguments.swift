import Glibc
import TarnCore
import TarnEngine

/// The words of the command line as they were given. Swift's own list repairs words that are not UTF-8, and a
/// repaired name leads to another directory.
enum RawArguments {
  /// The commands that take names inside a mirror, which may be any bytes.
  private static let takers: Set = ["explain", "pause", "resume", "retry", "cancel", "prioritize"]

  /// The reason why the words are refused; `nil` when they are not. Words that are no mirror's name are
  /// checked later, by `refuseOtherBytes`.
  static func refusal() -> PassFailure? {
    let takesNames = CommandLine.arguments.dropFirst().first.map(takers.contains) ?? false
    var (before, areOptionsOver) = ("", false)
    for index in 1..<max(1, Int(CommandLine.argc)) {
      guard let word = CommandLine.unsafeArgv[index] else { break }
      let isText = String(validatingCString: word) != nil
      // A word that is neither an option nor its value.
      let mayBeName = areOptionsOver || word[0] != 0x2D && !before.hasPrefix("-")
      guard isText || takesNames && mayBeName else {
        return refusal("argument \(index)", UnsafeRawBufferPointer(start: word, count: strlen(word)))
      }
      before = String(cString: word)
      areOptionsOver = areOptionsOver || before == "--"
    }
    return nil
  }

  /// - Throws: `usage` for bytes that are not UTF-8, where a mirror or a folder is expected.
  static func refuseOtherBytes(_ what: String, _ bytes: some Sequence<UInt8>) throws(PassFailure) {
    let bytes = Array(bytes)
    if String(validating: bytes, as: UTF8.self) == nil { throw bytes.withUnsafeBytes { refusal(what, $0) } }
  }

  /// Returns the bytes of a word that has this text in Swift's list, repaired or not.
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
