import Foundation
import TestSupport

/// The flooding servers of Tests/Tools as a child process, which ends with this object.
final class FloodServer {
  private let process = Process()
  // Its end ends the server. A signal would not: the threads of tests block those, and a child inherits that.
  private let input = Pipe()
  private let ports: [String: Int]

  init(_ kinds: [String], certificate: String, key: String) throws {
    let script = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().appending(path: "Tools/flood_server.py")
    let output = Pipe()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = ["python3", script.path, certificate, key] + kinds
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
    ports = Dictionary(uniqueKeysWithValues: zip(kinds, words.dropFirst().compactMap { Int($0) }))
  }

  deinit {
    try? input.fileHandleForWriting.close()
    process.killWhenLate()
    process.waitUntilExit()
  }

  func url(_ kind: String) -> String { "https://127.0.0.1:\(ports[kind] ?? 0)/f" }
}
