import TarnCore

/// The settings of all sources: the effective value of each, and the values that it overrides.
struct MergedSettings {
  struct Key: Hashable {
    var table: SettingsTable
    var name: String
  }

  /// The values of each setting in the order of reading; the last one is effective.
  private var values: [Key: [FoundSetting]]

  init(_ found: [FoundSetting]) {
    values = Dictionary(grouping: found) { Key(table: $0.table, name: $0.setting.name) }
    for table in Set(found.map(\.table)) { chooseRhythm(in: table) }
  }

  /// Lets the rhythm of a later file replace an earlier one, whether it is `every` or `schedule`.
  private mutating func chooseRhythm(in table: SettingsTable) {
    let every = Key(table: table, name: "every")
    let schedule = Key(table: table, name: "schedule")
    guard let one = values[every]?.last, let other = values[schedule]?.last, one.rank != other.rank else {
      return
    }
    let (kept, replaced) = one.rank > other.rank ? (every, schedule) : (schedule, every)
    let all = (values[kept] ?? []) + (values[replaced] ?? [])
    values[replaced] = nil
    values[kept] = all.enumerated().sorted { ($0.element.rank, $0.offset) < ($1.element.rank, $1.offset) }
      .map(\.element)
  }

  func effective(_ name: String, in table: SettingsTable) -> FoundSetting? {
    values[Key(table: table, name: name)]?.last
  }

  /// Every effective value, by table, in the order of `Setting.all`.
  func effective(in tables: [SettingsTable]) -> [FoundSetting] {
    tables.flatMap { table in
      Setting.all(in: table.scope).compactMap { effective($0.name, in: table) }
    }
  }

  /// The tables of mirrors, in byte order of their names.
  var mirrorTables: [SettingsTable] {
    Self.sorted(
      values.keys.compactMap { key -> String? in
        if case .mirror(let name) = key.table { name } else { nil }
      }
    ).map { .mirror($0) }
  }

  /// The tables of hooks, in byte order of their names.
  var hookTables: [SettingsTable] {
    Self.sorted(
      values.keys.compactMap { key -> String? in
        if case .hook(let name) = key.table { name } else { nil }
      }
    ).map { .hook($0) }
  }

  private static func sorted(_ names: [String]) -> [String] {
    Set(names).sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
  }

  func records(_ settings: Settings) -> [SettingRecord] {
    ([.agent, .limits] + hookTables + mirrorTables).flatMap { table in
      Setting.all(in: table.scope).compactMap { setting in record(setting, table, settings) }
    }
  }

  private func record(
    _ setting: Setting, _ table: SettingsTable, _ settings: Settings
  ) -> SettingRecord? {
    let all = values[Key(table: table, name: setting.name)] ?? []
    if let last = all.last {
      let shadowed = all.dropLast().reversed().map {
        SettingRecord.Shadowed(name: $0.setting.name, value: $0.value, origin: $0.origin)
      }
      return SettingRecord(
        table: table, name: setting.name, toml: last.value.toml, origin: last.origin, shadowed: shadowed)
    }
    let socket = setting.name == "socket" ? settings.agent.socket.map(TOMLText.quote) : nil
    guard let toml = setting.standard ?? socket else { return nil }
    return SettingRecord(table: table, name: setting.name, toml: toml, origin: .standard)
  }
}
