import TarnCore
import TarnSchedule

@testable import TarnConfig

/// Files that are only in memory.
struct FakeFiles: SettingsReading {
  var files: [String: [UInt8]] = [:]
  var failures: [String: SettingsReadFailure] = [:]
  var modes: [String: SettingsFileAttributes] = [:]
  /// Where links lead; what is not here and no file's directory does not exist.
  var links: [String: String] = [:]
  /// Links to what does not exist, and where they lead.
  var deadLinks: [String: String] = [:]
  var otherNames: [String] = []
  /// That are there, whatever lies in them.
  var directories: Set<String> = []

  init(_ texts: [String: String] = [:]) { files = texts.mapValues { Array($0.utf8) } }

  func read(_ path: String, limit: Int) throws(SettingsReadFailure) -> [UInt8] {
    if let failure = failures[path] { throw failure }
    guard let bytes = files[path] else { throw .missing }
    guard bytes.count <= limit else { throw .tooLong }
    return bytes
  }

  func names(in directory: String) throws(SettingsReadFailure) -> SettingsDirectory {
    if let failure = failures[directory] { throw failure }
    let names = (Array(files.keys) + deadLinks.keys).filter { $0.hasPrefix(directory + "/") }.map {
      String($0.dropFirst(directory.count + 1))
    }
    guard !names.isEmpty || !otherNames.isEmpty || directories.contains(directory) else { throw .missing }
    return SettingsDirectory(names: names, others: otherNames)
  }

  func attributes(_ path: String) throws(SettingsReadFailure) -> SettingsFileAttributes {
    if let failure = failures[path] { throw failure }
    guard let known = modes[path] else { throw .missing }
    return known
  }

  func target(ofLink path: String) -> String? { deadLinks[path] }

  func realPath(_ path: String) -> String? { links[path] }
}

enum Sample {
  static let main = "/etc/tarn/tarn.toml"

  /// 2026-11-21T12:00:00Z.
  static let now = Timestamp(nanoseconds: 1_795_262_400_000_000_000)

  static func paths(
    _ environment: [String: String] = [:], isRoot: Bool = true, config: String? = nil, socket: String? = nil,
    flags: [SettingOverride] = []
  ) -> SettingsPaths {
    SettingsPaths(
      environment: ["HOME": "/users/ann"].merging(environment) { $1 }, isRoot: isRoot, config: config,
      socket: socket, flags: flags, workingDirectory: "/here")
  }

  static func load(
    _ files: FakeFiles, _ paths: SettingsPaths = paths(), purpose: SettingsLoader.Purpose = .run
  ) -> LoadedSettings {
    SettingsLoader(paths: paths, purpose: purpose, reading: files, now: now) { zone in
      switch zone {
      case .utc, .local: .utc
      case .named("Europe/Berlin"): TimeZoneRules(posix: "CET-1CEST,M3.5.0,M10.5.0/3")
      case .named: nil
      }
    }.load()
  }

  static func load(_ text: String, purpose: SettingsLoader.Purpose = .run) -> LoadedSettings {
    load(FakeFiles([main: text]), purpose: purpose)
  }

  /// The files of secrets that examples name.
  static let secrets = ["cookies.txt", "netrc", "ping-url", "hook-key"].map { "/etc/tarn/secret/\($0)" }

  /// A hook of the mirror `iso` with this line of that setting, and what the line needs.
  static func hook(_ line: String, of setting: String) -> String {
    let way =
      switch setting {
      case "command", "webhook", "ping": ""
      default: "webhook = \"https://example.org/hook\"\n"
      }
    return "[mirror.iso]\nfeed = \"/f\"\nfolder = \"/srv/iso\"\n[hook.h]\n\(way)\(line)\n"
  }

  /// A mirror with these lines beside its feed and its folder.
  static func mirror(_ lines: String) -> String {
    "[mirror.a]\nfeed = \"https://example.org/SHA256SUMS\"\nfolder = \"/srv/a\"\n\(lines)\n"
  }
}
