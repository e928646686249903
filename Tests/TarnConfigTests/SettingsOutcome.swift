import TarnCore
import TarnSchedule

@testable import TarnConfig

/// One document as the only file of settings, and what no document may bring about.
struct SettingsOutcome {
  static let file = "/etc/tarn/tarn.toml"

  private struct OneFile: SettingsReading {
    var bytes: [UInt8]

    func read(_ path: String, limit: Int) throws(SettingsReadFailure) -> [UInt8] {
      guard path == SettingsOutcome.file else { throw .missing }
      return bytes
    }
    func names(in directory: String) throws(SettingsReadFailure) -> SettingsDirectory { throw .missing }
    func attributes(_ path: String) throws(SettingsReadFailure) -> SettingsFileAttributes {
      SettingsFileAttributes(
        isRegular: true, mode: path.utf8.count % 2 == 0 ? 0o600 : 0o644, isReadable: true)
    }
    func target(ofLink path: String) -> String? { path.utf8.count % 5 == 0 ? path : nil }
    func realPath(_ path: String) -> String? { path.utf8.count % 3 == 0 ? path : nil }
  }

  let loaded: LoadedSettings
  private let lines: [String]

  init(_ bytes: [UInt8]) {
    loaded = Self.load(bytes)
    lines = bytes.split(separator: 0x0A, omittingEmptySubsequences: false).map {
      String(decoding: $0, as: UTF8.self)
    }
  }

  private static func load(_ bytes: [UInt8]) -> LoadedSettings {
    let paths = SettingsPaths(environment: ["HOME": "/users/ann"], isRoot: true, workingDirectory: "/")
    return SettingsLoader(
      paths: paths, purpose: .check, reading: OneFile(bytes: bytes),
      now: Timestamp(nanoseconds: 1_795_262_400_000_000_000)
    ) { zone in
      if case .named(let name) = zone, name.utf8.count % 2 != 0 { nil } else { .utc }
    }.load()
  }

  /// Empty when all is well.
  var faults: [String] {
    var faults = loaded.problems.flatMap(faults(of:))
    let hasErrors = loaded.problems.contains { $0.severity == .error }
    if hasErrors == (loaded.settings != nil) { faults.append("settings in spite of errors, or neither") }
    let shown = SettingsText.show(loaded, standard: false)
    if !Self.isPrintable(shown) { faults.append("what is shown is not printable") }
    guard let settings = loaded.settings else { return faults }
    for mirror in settings.mirrors {
      if (try? mirror.options.policy()) == nil || (try? mirror.options.network()) == nil {
        faults.append("options that a pass refuses: \(mirror.options.values)")
      }
      if !mirror.folder.hasPrefix("/") || mirror.folder == "/" { faults.append("a folder: \(mirror.folder)") }
    }
    let again = Self.load(Array(shown.utf8))
    if again.settings != settings { faults.append("what is shown reads back as something else:\n\(shown)") }
    return faults
  }

  private func faults(of problem: SettingsProblem) -> [String] {
    var faults: [String] = []
    if !Self.isPrintable(problem.text) { faults.append("a problem is not printable: \(problem.code)") }
    guard case .file(Self.file, let position) = problem.origin else {
      return faults + ["a problem without a place: \(problem.code)"]
    }
    let line = lines.indices.contains(position.line - 1) ? lines[position.line - 1] : nil
    // One behind the end is the end.
    guard let line, (1...(line.unicodeScalars.count + 1)).contains(position.column) else {
      return faults + ["a place outside of the file: \(problem.text)"]
    }
    guard let excerpt = problem.excerpt else { return faults + ["no excerpt: \(problem.text)"] }
    let width = excerpt.text.unicodeScalars.count
    if excerpt.length < 1 || excerpt.offset + excerpt.length > max(width, excerpt.offset + 1)
      || excerpt.offset > width
    {
      faults.append("a caret outside of its line: \(excerpt)")
    }
    return faults
  }

  /// I14: line feeds only as ends of lines, which are ours.
  private static func isPrintable(_ text: String) -> Bool {
    text.unicodeScalars.allSatisfy { scalar in
      scalar == "\n" || scalar == "\\" || Printable.escape(String(scalar)) == String(scalar)
    }
  }
}
