import Foundation

/// The built binary.
enum Tarn {
  /// `$TARN_BINARY`, else the `tarn` that was built beside the bundle of these tests.
  static let path: String = {
    if let path = ProcessInfo.processInfo.environment["TARN_BINARY"], !path.isEmpty { return path }
    let bundle =
      (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"))
      ?? CommandLine.arguments[0]
    return URL(fileURLWithPath: bundle).deletingLastPathComponent().appendingPathComponent("tarn").path
  }()

  /// Why the tests of the binary cannot run; nil when they can.
  static let obstacle: String? = {
    guard FileManager.default.isExecutableFile(atPath: path) else { return "there is no binary at \(path)" }
    guard let help = try? run(["sync", "--help"]), help.status == 0, help.output.contains("sync") else {
      return "this tarn has no sync command"
    }
    return nil
  }()

  /// The same, for tests that need a server too.
  static let obstacleWithServer: String? = obstacle ?? (Nginx.path == nil ? "nginx is not installed" : nil)
  static let obstacleWithTools: String? =
    obstacleWithServer ?? (Program.find("python3") == nil ? "python3 is not installed" : nil)

  /// A copy of the binary, made by a program of its own: a descriptor that this process writes by would go to whatever it
  /// starts meanwhile, and as long as one is open the copy cannot be run (ETXTBSY).
  static func copy(to path: String) throws {
    let cp = try Program(Program.find("cp") ?? "/bin/cp", ["-p", Self.path, path])
    guard try cp.wait().status == 0 else { throw CocoaError(.fileWriteUnknown) }
  }

  /// A home of its own: no configuration of whoever runs the tests plays a part.
  static func environment(_ more: [String: String] = [:]) -> [String: String] {
    var values = ["PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "LC_ALL": "C.UTF-8", "TERM": "dumb"]
    // guards.py takes a guard away by it.
    values["TARN_GUARD_AWAY"] = ProcessInfo.processInfo.environment["TARN_GUARD_AWAY"]
    values.merge(more) { $1 }
    return values
  }

  static func start(
    _ arguments: [String], environment more: [String: String] = [:], in directory: URL? = nil,
    terminal: String? = nil
  ) throws -> Program {
    try Program(path, arguments, environment: environment(more), in: directory, terminal: terminal)
  }

  static func run(
    _ arguments: [String], environment more: [String: String] = [:], in directory: URL? = nil,
    limit: TimeInterval = patience
  ) throws -> Outcome {
    try start(arguments, environment: more, in: directory).wait(limit: limit)
  }

  /// `tarn sync FEED FOLDER OPTIONS`.
  static func sync(_ feed: String, _ folder: String, _ options: String..., limit: TimeInterval = patience)
    throws
    -> Outcome
  {
    try run(["sync", feed, folder, "--no-input"] + options, limit: limit)
  }
}

/// Documents of `--json`: one document, or JSON Lines.
enum JSON {
  struct Malformed: Error, CustomStringConvertible {
    var description: String
  }

  static func documents(_ text: String) throws -> [[String: Any]] {
    if let whole = try? JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any] {
      return [whole]
    }
    return try text.split(separator: "\n").map { line in
      guard let object = try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any] else {
        throw Malformed(description: "no JSON object: \(line.prefix(200))")
      }
      return object
    }
  }
}
