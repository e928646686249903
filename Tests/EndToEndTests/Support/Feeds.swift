import Foundation

/// Feeds as the tests publish them.
enum Feeds {
  /// Digests by another program than Tarn: coreutils.
  static func sha256(_ file: URL) throws -> String {
    guard let program = Program.find("sha256sum") else { throw Program.TimedOut(description: "no sha256sum") }
    let outcome = try Program(program, ["--binary", "--", file.path]).wait()
    // A name with a backslash makes coreutils begin the line with one.
    return String(outcome.output.drop(while: { $0 == "\\" }).prefix(64))
  }

  /// Writes the files and a SHA256SUMS over exactly these.
  static func publish(_ files: [String: String], in directory: TemporaryDirectory) throws {
    var lines: [String] = []
    for (path, contents) in files.sorted(by: { $0.key < $1.key }) {
      let file = try directory.write(contents, to: path)
      lines.append("\(try sha256(file))  \(path)\n")
    }
    try directory.write(lines.joined(), to: "SHA256SUMS")
  }

  /// Names and contents of a small tree: with blanks, in directories, one of them empty.
  static func sample(_ count: Int = 12, salt: String = "") -> [String: String] {
    var files = ["empty.txt": "", "sub/dir/with space & more.txt": "spaces\(salt)\n"]
    for number in 0..<count {
      files["many/file \(number).txt"] = String(
        repeating: "line \(number) \(salt)\n", count: number * 100 + 1)
    }
    return files
  }
}
