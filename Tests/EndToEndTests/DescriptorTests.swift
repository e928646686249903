import Foundation
import Testing

/// A ledger that cannot be opened for a lack of descriptors is neither damaged nor read-only.
@Suite(
  .serialized, .enabled(if: Tarn.obstacle == nil, "\(Tarn.obstacle ?? "")"),
  .enabled(if: Program.find("strace") != nil, "strace is not installed"))
struct DescriptorTests {
  private let place: TemporaryDirectory
  private var ledger: String { place.path + "/m/.tarn/ledger.sqlite" }

  init() throws {
    place = try TemporaryDirectory()
    try Feeds.publish(["a.txt": "a\n"], in: place)
  }

  private var environment: [String: String] { ["HOME": place.path + "/home"] }

  /// A command whose nth opening of a file of the ledger fails with EMFILE; with `1+` each does.
  private func run(_ command: [String], failing number: String, of file: String) throws -> Outcome {
    let strace = try #require(Program.find("strace"))
    let arguments = [
      "-f", "-o", place.path + "/trace", "-P", file, "-e", "trace=openat", "-e",
      "inject=openat:error=EMFILE:when=\(number)", Tarn.path,
    ]
    return try Program(
      strace, arguments + command, environment: Tarn.environment(environment), in: place.url
    ).wait()
  }

  /// The file alone is the truth where nobody can write beside it. A lack of descriptors does not say so.
  @Test(arguments: ["-wal", "-shm"]) func aReaderWithoutDescriptorsDoesNotGuess(file: String) throws {
    #expect(
      try Tarn.run(["sync", "-q", "./SHA256SUMS", "m"], environment: environment, in: place.url).status == 0)
    let outcome = try run(["status", "m"], failing: "1+", of: ledger + file)
    #expect(outcome.status == 74 && outcome.errors.contains("too many open files"), "\(outcome)")
  }

  @Test(arguments: ["", "-wal", "-shm"], 1...8) func aLackOfDescriptorsIsNamed(file: String, turn: Int) throws
  {
    let number = (turn + 1) / 2
    #expect(
      try Tarn.run(["sync", "-q", "./SHA256SUMS", "m"], environment: environment, in: place.url).status == 0)
    if turn % 2 == 0 { try leaveALog() }
    let outcome = try run(["sync", "./SHA256SUMS", "m"], failing: "\(number)", of: ledger + file)
    if outcome.status != 0 {
      #expect(outcome.status == 74 && outcome.errors.contains("too many open files"), "\(outcome)")
    }
    let names = try FileManager.default.contentsOfDirectory(atPath: place.path + "/m/.tarn")
    #expect(!names.contains { $0.contains("corrupt") }, "\(outcome)")
    let next = try Tarn.run(["sync", "m"], environment: environment, in: place.url)
    #expect(next.status == 0 && next.output.contains("nothing to do"), "\(next)")
  }

  /// The server is not to blame.
  @Test func aSocketThatIsNotGivenIsNamed() throws {
    let strace = try #require(Program.find("strace"))
    let arguments = [
      "-f", "-o", place.path + "/trace", "-e", "trace=socket", "-e", "inject=socket:error=EMFILE", Tarn.path,
      "sync", "http://127.0.0.1:9/SHA256SUMS", "m",
    ]
    let outcome = try Program(
      strace, arguments, environment: Tarn.environment(environment), in: place.url
    ).wait()
    #expect(outcome.status == 66 && outcome.errors.contains("too many open files"), "\(outcome)")
  }

  /// However few there are: no hang, no false alarm over the folder, and a first pass leaves nothing half made.
  @Test(arguments: 8...24) func fewDescriptorsAreNamed(limit: Int) throws {
    func sync(_ words: String...) throws -> Outcome {
      let script = "ulimit -n \(limit); exec \"$0\" sync \"$@\""
      return try Program(
        "/bin/sh", ["-c", script, Tarn.path] + words, environment: Tarn.environment(environment),
        in: place.url
      ).wait()
    }
    for words in [["./SHA256SUMS", "new"], ["m"]] {
      if words == ["m"] {
        #expect(
          try Tarn.run(["sync", "-q", "./SHA256SUMS", "m"], environment: environment, in: place.url).status
            == 0)
      }
      let outcome = try words.count == 2 ? sync(words[0], words[1]) : sync(words[0])
      if outcome.status != 0 {
        #expect([3, 66, 74].contains(outcome.status), "\(outcome)")
        #expect((outcome.errors + outcome.output).lowercased().contains("too many open files"), "\(outcome)")
      }
      if [66, 74].contains(outcome.status), words.count == 2 { #expect(!place.exists("new"), "\(outcome)") }
    }
  }

  /// As a crash leaves it.
  private func leaveALog() throws {
    let script = """
      import os, sqlite3, sys
      connection = sqlite3.connect(sys.argv[1])
      connection.execute("UPDATE state SET clean = 0")
      connection.commit()
      os._exit(0)
      """
    let python = try #require(Program.find("python3"))
    #expect(
      try Program(python, ["-c", script, ledger], environment: Tarn.environment()).wait().status
        == 0
    )
    #expect(FileManager.default.fileExists(atPath: ledger + "-wal"))
  }
}
