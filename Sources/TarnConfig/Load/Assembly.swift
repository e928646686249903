import TarnCore
import TarnSchedule

/// Makes `Settings` of the effective values, and finds problems that only several values together show.
struct Assembly {
  let merged: MergedSettings
  /// The place where each mirror is first named.
  let mirrors: [String: SettingPlace]
  /// The place where each hook is first named.
  let hooks: [String: SettingPlace]
  /// True when every file could be read.
  let isWhole: Bool
  let paths: SettingsPaths
  var problems: [SettingsProblem] = []

  init(
    merged: MergedSettings, mirrors: [String: SettingPlace], hooks: [String: SettingPlace], isWhole: Bool,
    paths: SettingsPaths
  ) {
    (self.merged, self.mirrors, self.hooks) = (merged, mirrors, hooks)
    (self.isWhole, self.paths) = (isWhole, paths)
  }

  mutating func settings() -> Settings {
    var settings = Settings()
    settings.limits = limits()
    settings.agent = agent()
    let names = mirrors.keys.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    settings.mirrors = names.compactMap { mirror($0) }
    settings.hooks = hooks.keys.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }.compactMap { hook($0) }
    return settings
  }

  private func limits() -> LimitSettings {
    var limits = LimitSettings()
    if let passes = number("passes", .limits) { limits.passes = passes }
    if let connections = number("connections", .limits) { limits.connections = connections }
    if let connections = number("connections-per-host", .limits) { limits.connectionsPerHost = connections }
    limits.rate = text("limit-rate", .limits).flatMap { Units.rate($0) ?? nil }
    limits.rates = rates(.limits)
    return limits
  }

  private mutating func agent() -> AgentSettings {
    var agent = AgentSettings()
    agent.socket = text("socket", .agent) ?? paths.socket
    // sockaddr_un has room for 108 bytes, with the NUL.
    if let socket = merged.effective("socket", in: .agent), (agent.socket?.utf8.count ?? 0) > 107 {
      refuse(
        socket, .outOfRange, "'socket' is longer than the 107 bytes that a socket's path may have",
        hint: "choose a shorter path, such as /run/tarn/tarn.sock")
    }
    if let format = text("log-format", .agent).flatMap({ AgentSettings.LogFormat(rawValue: $0) }) {
      agent.logFormat = format
    }
    if let access = text("status-access", .agent).flatMap({ AgentSettings.StatusAccess(rawValue: $0) }) {
      agent.statusAccess = access
    }
    if let seconds = text("keep-events", .agent).flatMap(Units.duration) { agent.keepEvents = seconds }
    readMetrics(&agent)
    return agent
  }

  private mutating func readMetrics(_ agent: inout AgentSettings) {
    agent.metricsFile = text("metrics-file", .agent)
    if let file = merged.effective("metrics-file", in: .agent), agent.metricsFile?.hasSuffix(".prom") == false
    {
      refuse(
        file, .badValue, "'metrics-file' takes a name that ends in .prom: the node exporter reads no other",
        hint: "write for example metrics-file = \"/var/lib/prometheus/node-exporter/tarn.prom\"")
    }
    if case .secret(let place)? = merged.effective("metrics-token", in: .agent)?.value {
      agent.metricsToken = place
    }
    agent.metricsListen = text("metrics-listen", .agent).flatMap(ListenAddress.init)
    if let listen = merged.effective("metrics-listen", in: .agent), agent.metricsToken == nil, isWhole {
      refuse(
        listen, .missing,
        "'metrics-listen' needs 'metrics-token': without it, anyone who connects could read the metrics",
        hint: "write metrics-token = { file = \"/path\" } or { credential = \"name\" }")
    }
  }

  private mutating func mirror(_ name: String) -> MirrorSettings? {
    let table = SettingsTable.mirror(name)
    let feed = text("feed", table)
    let folder = text("folder", table)
    if isWhole, problems.count < DocumentWalk.mostProblems, let place = mirrors[name] {
      for (setting, value) in [("feed", feed), ("folder", folder)] where value == nil {
        let example = Setting.find(setting, in: .mirror)?.example ?? ""
        problems.append(
          place.problem(
            .missing, "\(table.header) has no \(setting)", hint: "write \(setting) = \(example)",
            showing: .whole))
      }
    }
    guard let feed, let folder else { return nil }
    var mirror = MirrorSettings(name: name, feed: feed, folder: folder)
    mirror.state = text("state", table)
    mirror.rhythm = rhythm(table)
    mirror.rates = rates(table)
    if merged.effective("watch", in: table) != nil { mirror.watches = isOn("watch", table) }
    if let seconds = text("rescan", table).flatMap(Units.duration) { mirror.rescan = seconds }
    mirror.adopts = isOn("adopt", table)
    mirror.isDryRun = isOn("dry-run", table)
    for option in PassOptions.Name.allCases {
      guard let found = merged.effective(option.rawValue, in: table) else { continue }
      if case .secret(let place) = found.value {
        mirror.secrets[option] = place
        if option != .proxy {
          mirror.options.values[option] = place.path(credentials: paths.credentials).map { [$0] }
        }
      } else {
        mirror.options.values[option] = found.value.optionTexts
      }
    }
    return mirror
  }

  private mutating func rhythm(_ table: SettingsTable) -> MirrorSettings.Rhythm {
    let every = merged.effective("every", in: table)
    let schedule = merged.effective("schedule", in: table)
    if let every, let schedule {
      refuse(
        schedule, .contradiction, "'schedule' cannot be combined with 'every' (\(every.origin.text))",
        hint: "a mirror has only one of the two: remove the other")
    }
    if case .texts(let expressions)? = schedule?.value { return .calendar(expressions) }
    if case .text(let span)? = every?.value, let seconds = Units.duration(span) { return .every(seconds) }
    return .command
  }

  mutating func refuse(
    _ found: FoundSetting, _ code: SettingsProblem.Code, _ message: String, hint: String
  ) {
    problems.append(found.problem(code, message, hint: hint))
  }

  func text(_ name: String, _ table: SettingsTable) -> String? {
    if case .text(let text)? = merged.effective(name, in: table)?.value { text } else { nil }
  }

  func number(_ name: String, _ table: SettingsTable) -> Int? {
    if case .number(let number)? = merged.effective(name, in: table)?.value { Int(number) } else { nil }
  }

  private func isOn(_ name: String, _ table: SettingsTable) -> Bool {
    merged.effective(name, in: table)?.value == .boolean(true)
  }

  private func rates(_ table: SettingsTable) -> [RateTimetable.Row] {
    if case .rates(let rates)? = merged.effective("rate", in: table)?.value { rates.map(\.row) } else { [] }
  }
}

extension FoundSetting {
  func problem(
    _ code: SettingsProblem.Code, severity: SettingsProblem.Severity = .error, _ message: String,
    hint: String?
  ) -> SettingsProblem {
    place?.problem(code, severity: severity, message, hint: hint)
      ?? SettingsProblem(code: code, severity: severity, origin: origin, message: message, hint: hint)
  }
}
