import Foundation
import TarnRuntime
import TestSupport

/// The scripted server of Tests/Tools as a child process; ends with this one. One for all suites.
final class ScriptedServer: Sendable {
  struct Logged: Decodable {
    var connection: Int
    var port: Int
    var path: String
    var headers: [String: String]
  }

  static let isAvailable = run("python3", ["--version"]) && run("openssl", ["version"])
  static let shared = Result { try ScriptedServer() }

  let plainPort: Int
  let otherPort: Int
  let tlsPort: Int
  /// The self-signed certificate, which is its own authority.
  let certificate: String
  let key: String
  let folder: URL
  private let log: URL
  // Held so that the server's standard input stays open.
  private let input: Pipe

  private init() throws {
    folder = FileManager.default.temporaryDirectory.appending(path: "scripted-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    certificate = folder.appending(path: "cert.pem").path
    key = folder.appending(path: "key.pem").path
    log = folder.appending(path: "log.jsonl")
    _ = Self.run(
      "openssl",
      [
        "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1", "-addext",
        "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate,
      ])
    let script = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().appending(path: "Tools/ScriptedServer/scripted_server.py")
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = [
      "python3", script.path, "--log", log.path, "--cert", certificate, "--key", key,
    ]
    input = Pipe()
    let output = Pipe()
    process.standardInput = input
    process.standardOutput = output
    try process.run()
    var line = Data()
    while !line.contains(0x0A) {
      let more = output.fileHandleForReading.availableData
      if more.isEmpty { throw CocoaError(.fileReadUnknown) }
      line += more
    }
    let words = String(decoding: line, as: UTF8.self).split(whereSeparator: \.isWhitespace)
    guard words.count == 4, words[0] == "ready", let plain = Int(words[1]), let other = Int(words[2]),
      let tls = Int(words[3])
    else { throw CocoaError(.fileReadUnknown) }
    (plainPort, otherPort, tlsPort) = (plain, other, tls)
  }

  var plain: String { "http://127.0.0.1:\(plainPort)" }
  var other: String { "http://127.0.0.1:\(otherPort)" }
  var tls: String { "https://127.0.0.1:\(tlsPort)" }

  /// The requests for paths that end with `name`, in the order they came.
  func requests(_ name: String) -> [Logged] {
    guard let text = try? String(contentsOf: log, encoding: .utf8) else { return [] }
    return text.split(separator: "\n").filter { $0.contains("\"event\": \"request\"") }.compactMap {
      try? JSONDecoder().decode(Logged.self, from: Data($0.utf8))
    }.filter { $0.path.hasSuffix(name) }
  }

  private static func run(_ name: String, _ arguments: [String]) -> Bool {
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = [name] + arguments
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    guard (try? process.run()) != nil else { return false }
    process.killWhenLate()
    process.waitUntilExit()
    return process.terminationStatus == 0
  }
}
