/// The effects of new settings on an agent that runs with old ones.
package struct SettingsChanges: Sendable, Equatable {
  /// The names of mirrors, each in one list.
  package var added: [String] = []
  package var removed: [String] = []
  package var changed: [String] = []
  /// The mirrors that are not to be disturbed.
  package var untouched: [String] = []
  package var hooks = false
  package var limits = false
  package var agent = false
  /// The settings that only a restart applies, such as `agent.socket`: those that differ from the agent's
  /// first ones.
  package var needRestart: [String] = []

  package init() {}

  package var isEmpty: Bool {
    added.isEmpty && removed.isEmpty && changed.isEmpty && !hooks && !limits && !agent
  }
}

extension Settings {
  package func changes(from old: Settings) -> SettingsChanges {
    var changes = SettingsChanges()
    for mirror in mirrors {
      switch old.mirror(mirror.name) {
      case nil: changes.added.append(mirror.name)
      case .some(let before) where before.isSame(as: mirror): changes.untouched.append(mirror.name)
      default: changes.changed.append(mirror.name)
      }
    }
    changes.removed = old.mirrors.map(\.name).filter { mirror($0) == nil }
    changes.hooks = hooks != old.hooks
    changes.limits = limits != old.limits
    changes.agent = agent != old.agent
    return changes
  }
}

extension MirrorSettings {
  /// Compares bytes as well: `String` takes two spellings of a name for equal, the file system does not.
  fileprivate func isSame(as other: MirrorSettings) -> Bool {
    self == other && folder.utf8.elementsEqual(other.folder.utf8) && feed.utf8.elementsEqual(other.feed.utf8)
  }
}

/// The settings that an agent runs with. A reload takes either all of the new ones or none.
package struct RunningSettings: Sendable {
  package enum Reload: Sendable, Equatable {
    /// The old settings stay, for these reasons.
    case kept([SettingsProblem])
    case taken(SettingsChanges)
  }

  package private(set) var loaded: LoadedSettings
  /// The settings that the agent began with.
  private let first: AgentSettings

  /// - Returns: `nil` when there are errors among the problems.
  package init?(_ loaded: LoadedSettings) {
    guard let settings = loaded.settings else { return nil }
    self.loaded = loaded
    first = settings.agent
  }

  package var settings: Settings { loaded.settings ?? Settings() }

  package mutating func reload(_ fresh: LoadedSettings) -> Reload {
    let lost = fresh.lost(since: loaded)
    guard let new = fresh.settings, lost.isEmpty else { return .kept(fresh.problems + lost) }
    var changes = new.changes(from: settings)
    if new.agent.socket != first.socket { changes.needRestart.append("agent.socket") }
    if new.agent.statusAccess != first.statusAccess { changes.needRestart.append("agent.status-access") }
    if new.agent.metricsListen != first.metricsListen { changes.needRestart.append("agent.metrics-listen") }
    loaded = fresh
    return .taken(changes)
  }
}
