import TarnCore

/// A setting as it was found in a file, a variable or a flag.
struct FoundSetting {
  var table: SettingsTable
  var setting: Setting
  var value: SettingValue
  var origin: SettingOrigin
  /// The place in a file; `nil` when the value comes from none.
  var place: SettingPlace?
  /// The order of reading; the higher rank wins.
  var rank: Int
}

/// Finds the settings of one document, and reports everything else in it.
struct DocumentWalk {
  let source: SettingsSource
  let rank: Int
  let values: ValueReading
  /// The most problems per file. A file with more is of another kind, and the rest of it is not read.
  static let mostProblems = 100
  private var isFull: Bool { problems.count >= Self.mostProblems }
  private(set) var found: [FoundSetting] = []
  private(set) var problems: [SettingsProblem] = []
  /// The place where each mirror is first named.
  private(set) var mirrors: [String: SettingPlace] = [:]
  /// The place where each hook is first named.
  private(set) var hooks: [String: SettingPlace] = [:]

  init(source: SettingsSource, rank: Int, values: ValueReading) {
    self.source = source
    self.rank = rank
    self.values = values
  }

  mutating func walk(_ root: SettingNode) {
    guard case .table(let members) = root.value else { return }
    for member in members where !isFull {
      switch member.key {
      case "agent": settings(member, in: .agent)
      case "limits": settings(member, in: .limits)
      case "hook", "mirror": named(member, of: member.key == "hook" ? .hook : .mirror)
      default: refuseTable(member)
      }
    }
  }

  private mutating func refuseTable(_ member: SettingNode.Member) {
    let name = Redaction.short(member.key)
    let near = Spelling.nearest(member.key, ["mirror", "hook", "limits", "agent"])
    // A table with a nearly correct name is taken for that table, even when a setting has the name.
    var isMisspelt = false
    if case .table = member.node.value { isMisspelt = near != nil }
    let homes = Setting.all.filter { $0.name == member.key }.map(\.scope.header)
    if !homes.isEmpty, !isMisspelt {
      add(
        .unknownSetting, member.keyPosition, "'\(name)' is outside of all tables",
        hint: "it belongs below \(homes.joined(separator: " or "))", showing: .key)
      return
    }
    var mirror = "NAME"
    if case .table(let members) = member.node.value, let first = members.first?.key,
      MirrorSettings.isName(first),
      Setting.find(first, in: .mirror) == nil
    {
      mirror = TOMLText.key(first)
    }
    add(
      .unknownTable, member.keyPosition, "there is no table '\(name)'",
      hint: near.map { "write [\(["mirror", "hook"].contains($0) ? "\($0).\(mirror)" : $0)]" }
        ?? "the tables are [agent], [limits], [hook.NAME] and [mirror.NAME]", showing: .key)
  }

  /// - Parameter scope: mirrors or hooks.
  private mutating func named(_ member: SettingNode.Member, of scope: Setting.Scope) {
    let kind = scope.rawValue
    guard case .table(let members) = member.node.value else {
      add(
        .wrongType, member.keyPosition,
        "'\(kind)' takes tables with names, and this is \(member.node.kindName)",
        hint: "write \(scope.header) above each \(kind)", showing: .key)
      return
    }
    for mirror in members where !isFull {
      let name = Redaction.short(mirror.key)
      guard case .table = mirror.node.value else {
        let isSetting = Setting.find(mirror.key, in: scope) != nil
        // `[[mirror.NAME]]` names the mirror; a text below [mirror] may be anything.
        var isName = false
        if case .array = mirror.node.value { isName = !isSetting && MirrorSettings.isName(mirror.key) }
        add(
          .wrongType, mirror.keyPosition,
          isSetting
            ? "'\(name)' stands below [\(kind)], which is no \(kind)'s name"
            : "the \(kind) '\(name)' takes a table, and this is \(mirror.node.kindName)",
          hint:
            "write [\(kind).\(isName ? TOMLText.key(mirror.key) : "NAME")] above the settings of the \(kind)",
          showing: .key)
        continue
      }
      guard MirrorSettings.isName(mirror.key) else {
        add(
          .badName, mirror.keyPosition, "'\(name)' cannot be a \(kind)'s name",
          hint: MirrorSettings.nameRule, showing: .key)
        continue
      }
      let place = SettingPlace(source: source, position: mirror.keyPosition)
      if scope == .hook {
        hooks[mirror.key] = hooks[mirror.key] ?? place
        settings(mirror, in: .hook(mirror.key))
      } else {
        mirrors[mirror.key] = mirrors[mirror.key] ?? place
        settings(mirror, in: .mirror(mirror.key))
      }
    }
  }

  private mutating func settings(_ member: SettingNode.Member, in table: SettingsTable) {
    guard case .table(let members) = member.node.value else {
      add(
        .wrongType, member.keyPosition,
        "'\(Redaction.short(member.key))' takes a table, and this is \(member.node.kindName)",
        hint: "write \(table.header) above its settings", showing: .key)
      return
    }
    for member in members where !isFull {
      guard let setting = Setting.find(member.key, in: table.scope) else {
        refuseSetting(member, in: table)
        continue
      }
      let place = SettingPlace(source: source, position: member.node.position)
      do throws(Refusal) {
        let value = try values.read(member.node, as: setting)
        found.append(
          FoundSetting(
            table: table, setting: setting, value: value, origin: place.origin, place: place, rank: rank))
        if let warning = values.warning(value, setting) {
          problems.append(
            place.problem(
              warning.code, severity: .warning, "'\(setting.name)' \(warning.message)", hint: warning.hint))
        }
      } catch {
        for refusal in [error] + error.others where !isFull {
          add(
            refusal.code, refusal.position ?? member.node.position, "'\(setting.name)' \(refusal.message)",
            hint: refusal.hint, showing: setting.kind.isSecret ? .nothing : .whole)
        }
      }
    }
  }

  private mutating func refuseSetting(_ member: SettingNode.Member, in table: SettingsTable) {
    let name = Redaction.short(member.key)
    let names = Setting.all(in: table.scope).map(\.name)
    let others = Setting.all.filter { $0.name == member.key }.map(\.scope.header)
    let hint: String
    if case .table = member.node.value, case .mirror(let mirror) = table, others.isEmpty {
      hint =
        "a mirror has no tables in it, and a name no dots: write \(TOMLText.mirror("\(Redaction.short(mirror))-\(name)"))"
    } else if !others.isEmpty {
      hint = "it belongs below \(others.joined(separator: " or "))"
    } else if let known = Self.otherWords[member.key.lowercased()], names.contains(known) {
      hint = "write '\(known)'"
    } else if let near = Spelling.nearest(member.key, names) {
      hint = "write '\(near)'"
    } else {
      hint = "\(table.header) takes \(names.joined(separator: ", "))"
    }
    add(
      .unknownSetting, member.keyPosition, "\(table.header) has no setting '\(name)'", hint: hint,
      showing: .key)
  }

  /// What other tools call a setting, and the name that it has in Tarn.
  private static let otherWords = [
    "url": "feed", "source": "feed", "src": "feed", "uri": "feed", "path": "folder", "dir": "folder",
    "directory": "folder", "target": "folder", "destination": "folder", "dest": "folder", "to": "folder",
    "interval": "every", "period": "every", "cron": "schedule", "calendar": "schedule",
    "oncalendar": "schedule", "when": "schedule", "bandwidth": "limit-rate", "bwlimit": "limit-rate",
    "speed": "limit-rate", "purge": "delete", "prune": "delete", "headers": "header-file",
    "header": "header-file", "ignore": "exclude", "filter": "include", "netrcfile": "netrc-file",
    "ca": "cacert", "jobs": "connections", "parallel": "connections", "concurrency": "passes",
    "retry": "retries", "user": "netrc-file", "username": "netrc-file", "password": "netrc-file",
    "login": "netrc-file", "cafile": "cacert", "ca-file": "cacert", "cert": "cacert", "age": "max-age",
    "max-connections": "connections", "log": "log-format", "retention": "keep-events",
  ]

  private mutating func add(
    _ code: SettingsProblem.Code, _ position: SettingPosition, _ message: String, hint: String?,
    showing extent: SettingsProblem.Excerpt.Extent = .whole
  ) {
    let place = SettingPlace(source: source, position: position)
    problems.append(place.problem(code, message, hint: hint, showing: extent))
  }
}

extension SettingPlace {
  func problem(
    _ code: SettingsProblem.Code, severity: SettingsProblem.Severity = .error, _ message: String,
    hint: String?, showing extent: SettingsProblem.Excerpt.Extent = .whole
  ) -> SettingsProblem {
    SettingsProblem(
      code: code, severity: severity, origin: origin,
      excerpt: SettingsProblem.Excerpt(
        line: source.line(position.line), column: position.column, showing: extent),
      message: message, hint: hint)
  }
}
