import TarnCore

extension Assembly {
  private static let ways = ["command", "webhook", "ping"]

  /// Returns one hook; `nil` when its table names no way to notify.
  mutating func hook(_ name: String) -> HookSettings? {
    let table = SettingsTable.hook(name)
    let found = Self.ways.compactMap { merged.effective($0, in: table) }
    guard let first = found.first, let way = self.way(of: first) else {
      if isWhole, let place = hooks[name] {
        problems.append(
          place.problem(
            .missing, "\(table.header) has none of command, webhook and ping",
            hint: "write for example command = [\"/usr/local/bin/tell\"]", showing: .whole))
      }
      return nil
    }
    for other in found.dropFirst() {
      refuse(
        other, .contradiction,
        "'\(other.setting.name)' cannot be combined with '\(first.setting.name)' (\(first.origin.text))",
        hint: "a hook has only one of them: write another hook for the other one")
    }
    refuseUnused(in: table, way)
    var hook = HookSettings(name: name, way: way)
    hook.mirrors = texts("mirrors", table).map { Set($0) }
    refuseUnknownMirrors(in: table)
    if let words = texts("events", table) { hook.events = Set(words.compactMap { HookEvent(rawValue: $0) }) }
    if let seconds = text("timeout", table).flatMap(Units.duration) { hook.timeout = seconds }
    if let retries = number("retries", table) { hook.retries = retries }
    hook.secret = secret("secret", table)
    hook.headerFile = secret("header-file", table)
    return hook
  }

  private func way(of found: FoundSetting) -> HookSettings.Way? {
    switch (found.setting.name, found.value) {
    case ("command", .texts(let words)): .command(words)
    case ("webhook", .text(let url)): .webhook(.url(url))
    case ("webhook", .secret(let place)): .webhook(.secret(place))
    case ("ping", .text(let url)): .ping(.url(url))
    case ("ping", .secret(let place)): .ping(.secret(place))
    default: nil
    }
  }

  /// Refuses a key that signs nothing and headers that are never sent.
  private mutating func refuseUnused(in table: SettingsTable, _ way: HookSettings.Way) {
    let useless: [String] =
      switch way {
      case .command: ["secret", "header-file"]
      case .webhook: []
      case .ping: ["secret"]
      }
    for name in useless {
      guard let found = merged.effective(name, in: table) else { continue }
      refuse(
        found, .contradiction, "'\(name)' has no effect here",
        hint: name == "secret" ? "it signs a webhook" : "it goes with a webhook or a ping")
    }
  }

  private mutating func refuseUnknownMirrors(in table: SettingsTable) {
    guard isWhole, let found = merged.effective("mirrors", in: table), case .texts(let names) = found.value
    else { return }
    for name in names where mirrors[name] == nil {
      let near = Spelling.nearest(name, mirrors.keys.sorted())
      refuse(
        found, .badValue, "'mirrors' names '\(Redaction.short(name))', and there is no such mirror",
        hint: near.map { "write \(TOMLText.quote($0))" }
          ?? "write the name that follows 'mirror.' in its table, or take it out")
    }
  }

  private func texts(_ name: String, _ table: SettingsTable) -> [String]? {
    if case .texts(let texts)? = merged.effective(name, in: table)?.value { texts } else { nil }
  }

  private func secret(_ name: String, _ table: SettingsTable) -> SecretPlace? {
    if case .secret(let place)? = merged.effective(name, in: table)?.value { place } else { nil }
  }
}
