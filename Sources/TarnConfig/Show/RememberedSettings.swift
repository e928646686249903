package import TarnCore

/// The options that a mirror made by hand remembers, as settings. Pasted into `tarn.toml` they give the same
/// mirror.
package enum RememberedSettings {
  /// - Parameters:
  ///   - folder: an absolute path; its last component becomes the mirror's name where it is a valid one.
  ///   - options: the options, without passwords.
  package static func records(
    feed: String?, folder: String, state: String?, options: PassOptions
  ) -> [SettingRecord] {
    let last = folder.split(separator: "/").last.map(String.init) ?? ""
    let table = SettingsTable.mirror(MirrorSettings.isName(last) ? last : "mirror")
    var records = [("feed", feed), ("folder", folder), ("state", state)].compactMap { name, text in
      text.map {
        SettingRecord(table: table, name: name, toml: SettingValue.text($0).toml, origin: .remembered)
      }
    }
    for name in PassOptions.Name.allCases {
      let setting = name.setting
      if let texts = options.values[name] {
        let value = SettingValue(texts, of: setting)
        records.append(SettingRecord(table: table, name: setting.name, toml: value.toml, origin: .remembered))
      } else if let standard = setting.standard {
        records.append(SettingRecord(table: table, name: setting.name, toml: standard, origin: .standard))
      }
    }
    return records
  }
}

extension SettingValue {
  /// - Parameter texts: the values in the form of `PassOptions`.
  fileprivate init(_ texts: [String], of setting: Setting) {
    let last = texts.last ?? ""
    switch setting.kind {
    case .boolean: self = .boolean(last == "true")
    case .number: self = Int64(last).map { .number($0) } ?? .text(last)
    case .patterns: self = .texts(texts)
    case .secretFile: self = .secret(.file(last))
    default: self = .text(last)
    }
  }
}
