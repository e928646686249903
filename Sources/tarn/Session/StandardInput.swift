import Glibc
import TarnCore
import TarnEngine

/// The first descriptors of the process, and feeds that are read from one.
enum StandardInput {
  /// Occupies closed standard descriptors. To be called before anything is opened. Otherwise the next file
  /// would get such a descriptor, and be read as standard input or receive output. Each is opened so that it
  /// can do neither.
  static func occupy() {
    for number in STDIN_FILENO...STDERR_FILENO where fcntl(number, F_GETFD) < 0 {
      _ = open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY)
    }
  }

  /// Makes the descriptor that a word names standard input. A shell gives such a word for `<(command)`, and
  /// it can be read once, like any pipe.
  ///
  /// - Returns: `-` for such a word; any other word unchanged.
  static func resolve(_ word: String) throws(PassFailure) -> String {
    guard let number = descriptor(word) else { return word }
    guard number == STDIN_FILENO || dup2(number, STDIN_FILENO) >= 0 else {
      throw PassFailure(
        .feedUnreachable, code: "feed-not-there",
        "cannot read the feed \(ShellWord.quote(word)): there is no such descriptor",
        hint: "give a file, or - for standard input: tarn sync - FOLDER < FILE")
    }
    return "-"
  }

  /// Returns the descriptor of `/dev/stdin`, `/dev/fd/N` or `/proc/self/fd/N`, also as a file URL.
  static func descriptor(_ word: String) -> Int32? {
    let path = word.hasPrefix("file://") ? word.dropFirst("file://".count) : word[...]
    if path == "/dev/stdin" { return STDIN_FILENO }
    for place in ["/dev/fd/", "/proc/self/fd/"] where path.hasPrefix(place) {
      return Int32(path.dropFirst(place.count)).flatMap { $0 < 0 ? nil : $0 }
    }
    return nil
  }
}
