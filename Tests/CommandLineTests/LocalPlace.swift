import Foundation

/// A directory with a feed of local files, a home and a state of its own, where the program runs.
struct LocalPlace {
  let url: URL
  var path: String { url.path }
  /// By their texts.
  private static let digests = [
    "one\n": "2c8b08da5ce60398e1f19af0e5dccc744df274b826abe585eaba68c525434806",
    "three\n": "f6936912184481f5edd4c304ce27c5a1a827804fc7f329f43d273b8621870776",
    "two\n": "27dd8ed44a83ff94d557f9fd0412ed5a8cbca69ea04922d88c01184a07300a5a",
  ]

  init() throws {
    url = FileManager.default.temporaryDirectory.appendingPathComponent(
      "tarn-\(UUID().uuidString.lowercased())")
    for name in ["feed", "home", "state", "run"] {
      try FileManager.default.createDirectory(
        at: url.appendingPathComponent(name), withIntermediateDirectories: true)
    }
  }

  func end() { try? FileManager.default.removeItem(at: url) }

  func write(_ text: String, _ name: String) throws {
    try Data(text.utf8).write(to: url.appendingPathComponent(name))
  }

  func makeDirectory(_ name: String) throws {
    try FileManager.default.createDirectory(
      at: url.appendingPathComponent(name), withIntermediateDirectories: true)
  }

  /// - Parameter files: `one`, `two` and `three` are the texts that there are.
  func publish(_ files: [String: String], _ list: String = "feed/SHA256SUMS") throws {
    var lines: [String] = []
    for (name, text) in files.sorted(by: { $0.key < $1.key }) {
      try write(text, "feed/\(name)")
      lines.append("\(Self.digests[text] ?? "")  \(name)\n")
    }
    try write(lines.joined(), list)
  }

  func text(_ name: String) -> String? {
    try? String(contentsOf: url.appendingPathComponent(name), encoding: .utf8)
  }

  func exists(_ name: String) -> Bool {
    FileManager.default.fileExists(atPath: url.appendingPathComponent(name).path)
  }

  func move(_ name: String, to other: String) throws {
    try FileManager.default.moveItem(
      at: url.appendingPathComponent(name), to: url.appendingPathComponent(other))
  }

  func remove(_ name: String) throws {
    try FileManager.default.removeItem(at: url.appendingPathComponent(name))
  }

  func link(_ name: String, to target: String) throws {
    try FileManager.default.createSymbolicLink(
      atPath: url.appendingPathComponent(name).path, withDestinationPath: target)
  }

  /// The settings are those of `tarn.toml` here, without `--config`.
  func tarn(_ arguments: [String], from directory: String = "") throws -> TarnBinary.Result {
    try TarnBinary.run(
      arguments,
      environment: [
        "HOME": path + "/home", "STATE_DIRECTORY": path + "/state", "RUNTIME_DIRECTORY": path + "/run",
        "CONFIGURATION_DIRECTORY": path,
      ], in: url.appendingPathComponent(directory))
  }

  func tarn(_ arguments: String..., from directory: String = "") throws -> TarnBinary.Result {
    try tarn(arguments, from: directory)
  }
}
