import TarnCore

/// The output of `tarn config show` and `tarn config paths`. Safe to print; without secrets.
package enum SettingsText {
  /// Returns TOML that gives the same settings again, each value with its origin.
  ///
  /// - Parameter standard: true to show settings that nobody set as well.
  package static func show(_ loaded: LoadedSettings, standard: Bool = true) -> String {
    show(loaded.records, standard: standard)
  }

  /// Returns the same text for some of the settings.
  package static func show(_ records: [SettingRecord], standard: Bool = true) -> String {
    var text = ""
    var table: SettingsTable?
    for record in records where standard || record.origin != .standard {
      if record.table != table {
        if standard, let table { text += unset(in: table, records) }
        text += (table == nil ? "" : "\n") + record.table.header + "\n"
        table = record.table
      }
      text += "\(record.name) = \(record.toml)  # \(origins(record))\n"
    }
    if standard, let table { text += unset(in: table, records) }
    return text
  }

  /// Comments on the settings that are not set and have no standard value.
  private static func unset(in table: SettingsTable, _ records: [SettingRecord]) -> String {
    guard case .mirror = table else { return "" }
    let names = Set(records.filter { $0.table == table }.map(\.name))
    return Setting.all(in: .mirror).compactMap { setting in
      guard !names.contains(setting.name), let unset = setting.unset else { return nil }
      return "# \(setting.name) is not set: \(unset)  # standard\n"
    }.joined()
  }

  private static func origins(_ record: SettingRecord) -> String {
    let shadowed = record.shadowed.map {
      let name = $0.name == record.name ? "" : "\($0.name) = "
      return "instead of \(name)\(Printable.escape($0.value.toml)) from \($0.origin.text)"
    }
    return ([record.origin.text] + shadowed).joined(separator: ", ")
  }

  /// Returns one line for each file and directory: its purpose and its path.
  package static func paths(_ paths: SettingsPaths, _ loaded: LoadedSettings) -> String {
    var rows: [(String, String)] = loaded.files.map { file in
      let note =
        switch file.state {
        case .read: ""
        case .missing: " (not there)"
        case .failed: " (not taken)"
        }
      return ("settings", file.path + note)
    }
    if paths.file == nil { rows += paths.directories.map { ("settings", "\($0)/conf.d/*.toml") } }
    let socket = loaded.records.first { $0.table == .agent && $0.name == "socket" }
    rows += [
      ("socket", socket.map { "\($0.toml) (\($0.origin.text))" } ?? "none: there is no runtime directory"),
      ("state", paths.state ?? "none: $HOME is not set"),
      ("credentials", paths.credentials ?? "none: $CREDENTIALS_DIRECTORY is not set"),
    ]
    return rows.map { row in
      row.0 + String(repeating: " ", count: 12 - row.0.utf8.count) + Printable.escape(row.1) + "\n"
    }.joined()
  }
}
