import Foundation
import TestSupport
import Testing

/// The built program, run as users run it: no terminal, a home of its own, 80 columns.
struct TarnBinary {
  struct Result {
    var status: Int32
    var output: String
    var messages: String
  }

  /// `TARN_BINARY`, or the one beside the test bundle.
  static let url: URL = {
    if let path = ProcessInfo.processInfo.environment["TARN_BINARY"] { return URL(fileURLWithPath: path) }
    let arguments = CommandLine.arguments
    let option = arguments.firstIndex(of: "--test-bundle-path").map { arguments[$0 + 1] }
    let bundle =
      option ?? (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? arguments[0]
    return URL(fileURLWithPath: bundle).deletingLastPathComponent().appendingPathComponent("tarn")
  }()

  /// - Parameters:
  ///   - environment: over a bare one.
  ///   - directory: where it runs; its home without one.
  static func run(
    _ arguments: [String], environment: [String: String] = [:], in directory: URL? = nil
  ) throws -> Result {
    let home = FileManager.default.temporaryDirectory.appendingPathComponent("tarn-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: home, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: home) }
    let process = Process()
    process.executableURL = url
    process.arguments = arguments
    process.currentDirectoryURL = directory ?? home
    var bare = ["HOME": home.path, "PATH": "/usr/bin:/bin", "TERM": "dumb", "LC_ALL": "C.UTF-8"]
    bare["TARN_GUARD_AWAY"] = ProcessInfo.processInfo.environment["TARN_GUARD_AWAY"]
    process.environment = bare.merging(environment) { $1 }
    // Files rather than pipes: nothing can fill up while the other is read.
    let output = home.appendingPathComponent(".output")
    let messages = home.appendingPathComponent(".messages")
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = try handle(output)
    process.standardError = try handle(messages)
    try process.run()
    process.killWhenLate()
    process.waitUntilExit()
    return Result(
      status: process.terminationStatus, output: try String(contentsOf: output, encoding: .utf8),
      messages: try String(contentsOf: messages, encoding: .utf8))
  }

  private static func handle(_ url: URL) throws -> FileHandle {
    try Data().write(to: url)
    return try FileHandle(forWritingTo: url)
  }
}

/// Texts that are compared as they are; `TARN_RECORD=1` writes them anew.
enum Golden {
  private static let folder = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent("Fixtures/golden")

  static func check(_ text: String, _ name: String, sourceLocation: SourceLocation = #_sourceLocation) throws
  {
    let url = folder.appendingPathComponent("\(name).txt")
    if ProcessInfo.processInfo.environment["TARN_RECORD"] == "1" {
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      try text.write(to: url, atomically: true, encoding: .utf8)
    }
    let golden = (try? String(contentsOf: url, encoding: .utf8)) ?? "(no such file)"
    #expect(text == golden, "other than Tests/Fixtures/golden/\(name).txt", sourceLocation: sourceLocation)
  }
}
