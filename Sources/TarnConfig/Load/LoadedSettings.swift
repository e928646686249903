import TarnCore

/// The result of reading all settings once.
package struct LoadedSettings: Sendable, Equatable {
  /// The most problems of one file. At that number there may be more, for the rest of the file was not read.
  package static let mostProblems = DocumentWalk.mostProblems

  /// The settings; `nil` when there is an error among the problems.
  package var settings: Settings?
  /// All problems, in the order in which the files were read, then by line.
  package var problems: [SettingsProblem] = []
  /// The values that were set and the standard values, by table, in the order of `Setting.all`.
  package var records: [SettingRecord] = []
  package var files: [SettingsFileState] = []
  /// The directories `conf.d` that exist.
  package var directories: [String] = []
  /// The mirrors whose tables were found, even those with errors in them.
  var named: Set<String> = []

  /// The control socket of the agent that runs with these settings. It is known even when other settings have
  /// errors: such an agent runs with older ones.
  package var socket: String? {
    if let settings { return settings.agent.socket }
    return text("socket", in: .agent)
  }

  /// The folder and the record of a mirror.
  package struct Place: Sendable, Equatable {
    package var name: String
    package var folder: String
    package var state: String?
  }

  /// The mirrors by name. They are known even when other settings have errors, so that their records can be
  /// read.
  package var places: [Place] {
    if let settings {
      return settings.mirrors.map { Place(name: $0.name, folder: $0.folder, state: $0.state) }
    }
    return records.compactMap { record in
      guard case .mirror(let name) = record.table, record.name == "folder",
        let folder = text("folder", in: record.table)
      else { return nil }
      return Place(name: name, folder: folder, state: text("state", in: record.table))
    }
  }

  /// Errors that may hide a mirror, or the folder of one.
  private static let hiding: Set<SettingsProblem.Code> = [
    .fileMissing, .fileNotReadable, .fileTooLong, .syntax, .unknownTable, .wrongType, .badName,
  ]

  /// The mirrors when the list is certainly complete; `nil` when an unreadable part may name another one.
  package var allPlaces: [Place]? {
    let isHidden = problems.contains { $0.severity == .error && Self.hiding.contains($0.code) }
    guard !isHidden, problems.count < Self.mostProblems, named.isSubset(of: places.map(\.name)) else {
      return nil
    }
    return places
  }

  /// True when a mirror of settings with errors may have that name: they name it, or an unreadable part may.
  package func mayName(_ word: String) -> Bool {
    guard settings == nil, !word.contains(where: { "/.:".contains($0) }) else { return false }
    return named.contains(word) || allPlaces == nil
  }

  /// The value of a record that is a plain string without escapes; `nil` for others.
  private func text(_ name: String, in table: SettingsTable) -> String? {
    let record = records.first { $0.table == table && $0.name == name }
    guard let text = record?.toml, text.hasPrefix("\""), text.hasSuffix("\""), text.utf8.count >= 2,
      !text.contains("\\")
    else { return nil }
    return String(text.dropFirst().dropLast())
  }
}

/// A file that was read or looked for.
package struct SettingsFileState: Sendable, Equatable {
  package enum State: Sendable, Equatable {
    case read
    /// The file does not exist, which is an error only when `--config` names it.
    case missing
    case failed
  }

  package var path: String
  package var state: State
}

/// The table that a setting stands in.
package enum SettingsTable: Sendable, Hashable {
  case agent
  case limits
  case hook(String)
  case mirror(String)

  package var scope: Setting.Scope {
    switch self {
    case .agent: .agent
    case .limits: .limits
    case .hook: .hook
    case .mirror: .mirror
    }
  }

  /// The header as written in TOML: `[mirror.podcasts]`.
  package var header: String {
    switch self {
    case .agent: "[agent]"
    case .limits: "[limits]"
    case .hook(let name): TOMLText.hook(name)
    case .mirror(let name): TOMLText.mirror(name)
    }
  }
}

/// The value of one setting, its origin, and the values that it overrides.
package struct SettingRecord: Sendable, Equatable {
  package struct Shadowed: Sendable, Equatable {
    /// The name of the setting. It differs from the record's when `every` and `schedule` replace each other.
    package var name: String
    package var value: SettingValue
    package var origin: SettingOrigin
  }

  package var table: SettingsTable
  package var name: String
  /// The value as TOML; for a secret, only the place where it lies.
  package var toml: String
  package var origin: SettingOrigin
  /// The overridden values, the latest first.
  package var shadowed: [Shadowed] = []
}
