import Foundation

/// The files of this repository, as they are on the disk.
enum Repository {
  /// The top level, found from the place of this file.
  static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  struct Source {
    /// Relative to the top level.
    var path: String
    var text: String
    var lines: [Substring] { text.split(separator: "\n", omittingEmptySubsequences: false) }
    /// `TarnCore` of `Sources/TarnCore/Plan/Planner.swift`.
    var target: String { path.split(separator: "/").dropFirst().first.map(String.init) ?? "" }
  }

  /// A Swift file, split for the rules.
  struct Code {
    var path: String
    var target: String
    var lines: [Substring]
    /// The same lines with comments and the contents of string literals blanked.
    var code: [Substring]

    init(_ source: Source) {
      (path, target, lines) = (source.path, source.target, source.lines)
      code = Rules.withoutComments(source.text).split(separator: "\n", omittingEmptySubsequences: false)
    }
  }

  /// The names of the top level that belong to the repository: what git lists, or, in an unpacked archive, what is
  /// there but for what a build leaves.
  static func topLevel() -> Set<String> {
    if let listing = try? Command.run("git", ["-C", root.path, "ls-files", "-z"]), listing.status == 0 {
      let names = listing.output.split(separator: "\0").compactMap {
        $0.split(separator: "/").first.map(String.init)
      }
      if !names.isEmpty { return Set(names) }
    }
    let names = (try? FileManager.default.contentsOfDirectory(atPath: root.path)) ?? []
    return Set(
      names.filter {
        !$0.hasPrefix(".build") && !$0.hasSuffix(".deb") && $0 != "Package.resolved" && $0 != ".git"
      })
  }

  /// Every file below a directory whose name ends so, sorted by path.
  static func sources(in directory: String, suffixes: [String] = [".swift"]) -> [Source] {
    let base = root.appendingPathComponent(directory)
    guard let walk = FileManager.default.enumerator(atPath: base.path) else { return [] }
    var found: [Source] = []
    for case let relative as String in walk
    where suffixes.contains(where: { relative.hasSuffix($0) }) && !relative.contains("__pycache__") {
      guard let text = try? String(contentsOf: base.appendingPathComponent(relative), encoding: .utf8) else {
        continue
      }
      found.append(Source(path: directory + "/" + relative, text: text))
    }
    return found.sorted { $0.path < $1.path }
  }

  /// Every file and directory below the directories of the top level, and the files of the top level.
  static func paths() -> Set<String> {
    var found: Set<String> = []
    for name in Rules.topLevel {
      found.insert(name)
      guard let walk = FileManager.default.enumerator(atPath: root.appendingPathComponent(name).path) else {
        continue
      }
      for case let relative as String in walk { found.insert(name + "/" + relative) }
    }
    return found
  }

  static func text(_ path: String) throws -> String {
    try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
  }
}

/// Runs a program to its end.
enum Command {
  struct Result {
    var status: Int32
    var output: String
    var errors: String
  }

  /// Both streams go to files, so that no pipe fills up.
  static func run(_ program: String, _ arguments: [String]) throws -> Result {
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent("tarn-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: directory) }
    let output = directory.appendingPathComponent("out")
    let errors = directory.appendingPathComponent("err")
    for file in [output, errors] { try Data().write(to: file) }
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = [program] + arguments
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = try FileHandle(forWritingTo: output)
    process.standardError = try FileHandle(forWritingTo: errors)
    try process.run()
    process.waitUntilExit()
    return Result(
      status: process.terminationStatus,
      output: String(decoding: try Data(contentsOf: output), as: UTF8.self),
      errors: String(decoding: try Data(contentsOf: errors), as: UTF8.self))
  }

  static func exists(_ program: String) -> Bool {
    (try? run("sh", ["-c", "command -v \(program)"]))?.status == 0
  }
}
