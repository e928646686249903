package import TarnCore
package import TarnSchedule

/// Reads all settings once per call: files, environment, flags. The later source wins.
package struct SettingsLoader: Sendable {
  package enum Purpose: Sendable {
    /// The agent runs with the settings: what cannot be examined is an error.
    case run
    /// The settings are only checked: what only the service can examine is a warning.
    case check
  }

  package var paths: SettingsPaths
  package var purpose: Purpose
  private let reading: any SettingsReading
  private let schedules: ScheduleCheck

  /// - Parameters:
  ///   - now: the time that schedules are judged at; those that are over by then get a warning.
  ///   - zone: the rules of a zone; `nil` when the time zone database does not have it.
  package init(
    paths: SettingsPaths, purpose: Purpose, reading: any SettingsReading, now: Timestamp,
    zone: @escaping @Sendable (CalendarSpec.Zone) -> TimeZoneRules?
  ) {
    self.paths = paths
    self.purpose = purpose
    self.reading = reading
    schedules = ScheduleCheck(now: now, rules: zone)
  }

  /// The bytes of a file, at most.
  package static let longestFile = TOMLDocument.longest

  /// Loads the settings. Blocks for as long as the disk does. Never fails: errors are among the problems.
  package func load() -> LoadedSettings {
    var loaded = LoadedSettings()
    let values = ValueReading(home: paths.home, schedules: schedules)
    var found: [FoundSetting] = []
    var (mirrors, hooks): ([String: SettingPlace], [String: SettingPlace]) = ([:], [:])
    for path in files(&loaded) {
      guard let source = document(path, &loaded) else { continue }
      var walk = DocumentWalk(source: source.source, rank: loaded.files.count, values: values)
      walk.walk(source.root)
      found += walk.found
      loaded.problems += walk.problems.sorted { $0.position < $1.position }
      mirrors.merge(walk.mirrors) { first, _ in first }
      hooks.merge(walk.hooks) { first, _ in first }
    }
    for (index, override) in paths.overrides.enumerated() {
      do throws(SettingsProblem) {
        found.append(try value(of: override, rank: loaded.files.count + 1 + index, values))
      } catch {
        loaded.problems.append(error)
      }
    }
    // A missing value may be in the part that could not be read.
    let isWhole = !loaded.problems.contains { $0.severity == .error }
    let merged = MergedSettings(found)
    var assembly = Assembly(
      merged: merged, mirrors: mirrors, hooks: hooks, isWhole: isWhole, paths: paths)
    let settings = assembly.settings()
    loaded.problems += assembly.problems
    loaded.problems += FolderCheck(merged: merged, home: paths.home, reading: reading)
      .problems()
    loaded.problems += SecretCheck(
      merged: merged, paths: paths, isRunning: purpose == .run, reading: reading
    ).problems()
    loaded.problems += FileCheck(
      merged: merged, paths: paths, isRunning: purpose == .run, reading: reading
    ).problems()
    loaded.records = merged.records(settings)
    loaded.named = Set(mirrors.keys)
    if !loaded.problems.contains(where: { $0.severity == .error }) { loaded.settings = settings }
    return loaded
  }

  private func value(
    of override: SettingOverride, rank: Int, _ values: ValueReading
  ) throws(SettingsProblem) -> FoundSetting {
    let table: SettingsTable = override.scope == .agent ? .agent : .limits
    guard [.agent, .limits].contains(override.scope),
      let setting = Setting.find(override.name, in: override.scope)
    else {
      throw SettingsProblem(
        code: .unknownSetting, origin: override.origin,
        message: "\(table.header) has no setting '\(Redaction.short(override.name))'", hint: nil)
    }
    do throws(Refusal) {
      return FoundSetting(
        table: table, setting: setting, value: try values.read(override.node, as: setting),
        origin: override.origin, place: nil, rank: rank)
    } catch {
      throw SettingsProblem(
        code: error.code, origin: override.origin, message: "'\(setting.name)' \(error.message)",
        hint: "give \(setting.kind.takes)")
    }
  }

  // MARK: - Files

  /// Returns the files to read, in order.
  private func files(_ loaded: inout LoadedSettings) -> [String] {
    if let file = paths.file { return [file] }
    var files: [String] = []
    for directory in paths.directories {
      files.append("\(directory)/tarn.toml")
      let more = "\(directory)/conf.d"
      do throws(SettingsReadFailure) {
        let found = try reading.names(in: more)
        loaded.directories.append(more)
        let names = found.names.filter { $0.hasSuffix(".toml") && !$0.hasPrefix(".") }
        files += names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }.map { "\(more)/\($0)" }
        for name in found.others where name.hasSuffix(".toml") {
          loaded.problems.append(
            Self.unreadable(
              "\(more)/\(name)", .fileNotReadable, "its name is not UTF-8", hint: "rename it with mv"))
        }
      } catch {
        if error == .missing {
          if let problem = deadLink(more) { loaded.problems.append(problem) }
          continue
        }
        loaded.problems.append(Self.unreadable(more, .fileNotReadable, error.text, hint: nil))
      }
    }
    return files
  }

  private func document(
    _ path: String, _ loaded: inout LoadedSettings
  ) -> (source: SettingsSource, root: SettingNode)? {
    let bytes: [UInt8]
    do throws(SettingsReadFailure) {
      bytes = try reading.read(path, limit: Self.longestFile)
    } catch {
      let isMissing = error == .missing
      if isMissing, let problem = deadLink(path) {
        loaded.files.append(SettingsFileState(path: path, state: .failed))
        loaded.problems.append(problem)
        return nil
      }
      loaded.files.append(SettingsFileState(path: path, state: isMissing ? .missing : .failed))
      // A file of conf.d that has just been removed counts as absent.
      if isMissing && paths.file == nil { return nil }
      loaded.problems.append(
        Self.unreadable(
          path, isMissing ? .fileMissing : error == .tooLong ? .fileTooLong : .fileNotReadable, error.text,
          hint: Self.hint(error, path)))
      return nil
    }
    let source = SettingsSource(path: path, bytes: bytes)
    do throws(TOMLDocument.Fault) {
      let root = try TOMLDocument.parse(bytes)
      loaded.files.append(SettingsFileState(path: path, state: .read))
      return (source, root)
    } catch {
      loaded.files.append(SettingsFileState(path: path, state: .failed))
      loaded.problems.append(SyntaxHint.problem(error, in: source))
      return nil
    }
  }

  /// Returns the problem of a dangling link, whose settings would be missing silently. `nil` when the path is
  /// no link.
  private func deadLink(_ path: String) -> SettingsProblem? {
    guard let target = reading.target(ofLink: path) else { return nil }
    return Self.unreadable(
      path, .fileMissing, "it is a link to \(target), which is not there",
      hint: "put back what it leads to, or remove the link")
  }

  private static func hint(_ failure: SettingsReadFailure, _ path: String) -> String? {
    switch failure {
    case .missing: "give a file that exists, or leave --config out"
    case .denied: "let the user that Tarn runs as read it: chmod, chown or setfacl"
    case .tooLong: "split it: files in conf.d are read as well"
    case .notRegular: "put a file there, or a link to one"
    case .other: nil
    }
  }

  private static func unreadable(
    _ path: String, _ code: SettingsProblem.Code, _ why: String, hint: String?
  ) -> SettingsProblem {
    SettingsProblem(
      code: code, origin: .file(path, SettingPosition(line: 1, column: 1)),
      message: "this file cannot be read: \(Printable.escape(why))", hint: hint)
  }
}

extension SettingsProblem {
  /// The position for sorting; a problem without a place comes first.
  var position: SettingPosition {
    if case .file(_, let position) = origin { return position }
    return SettingPosition(line: 0, column: 0)
  }
}
