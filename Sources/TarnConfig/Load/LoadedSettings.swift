/// What came of reading all settings once.
package struct LoadedSettings: Sendable, Equatable {
  /// With so many problems there may be more: the rest of a file was not looked at.
  package static let mostProblems = DocumentWalk.mostProblems

  /// nil when there is any error among the problems.
  package var settings: Settings?
  /// All of them, file by file in the order of reading, by line in each.
  package var problems: [SettingsProblem] = []
  /// What was set, with standard values in between: by table and in the order of `Setting.all`.
  package var records: [SettingRecord] = []
  package var files: [SettingsFileState] = []
  /// Those of `conf.d` that are there.
  package var directories: [String] = []
  /// The mirrors whose tables were found, whatever is in them.
  var named: Set<String> = []

  /// Where the agent listens that runs with these settings: also when they have errors elsewhere, for then it runs with
  /// older ones.
  package var socket: String? {
    if let settings { return settings.agent.socket }
    return text("socket", in: .agent)
  }

  /// Where a mirror's folder and its record are.
  package struct Place: Sendable, Equatable {
    package var name: String
    package var folder: String
    package var state: String?
  }

  /// The mirrors by name: also when the settings have errors elsewhere, to look at what was recorded of them.
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

  /// The mirrors, where these are surely all; nil where what could not be read may name another one.
  package var allPlaces: [Place]? {
    let isHidden = problems.contains { $0.severity == .error && Self.hiding.contains($0.code) }
    guard !isHidden, problems.count < Self.mostProblems, named.isSubset(of: places.map(\.name)) else {
      return nil
    }
    return places
  }

  /// A record's text, where it needs no reading.
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
    /// No fault, unless `--config` names it.
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

  /// As it is written: `[mirror.podcasts]`.
  package var header: String {
    switch self {
    case .agent: "[agent]"
    case .limits: "[limits]"
    case .hook(let name): "[hook.\(SettingValue.key(name))]"
    case .mirror(let name): "[mirror.\(SettingValue.key(name))]"
    }
  }
}

/// The value of one setting, where it came from, and what it stands in front of.
package struct SettingRecord: Sendable, Equatable {
  package struct Shadowed: Sendable, Equatable {
    /// Another than the record's where `every` and `schedule` replace each other.
    package var name: String
    package var value: SettingValue
    package var origin: SettingOrigin
  }

  package var table: SettingsTable
  package var name: String
  /// As TOML; of secrets only the place.
  package var toml: String
  package var origin: SettingOrigin
  /// The latest first.
  package var shadowed: [Shadowed] = []
}
