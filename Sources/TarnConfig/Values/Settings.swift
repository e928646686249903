package import TarnCore
package import TarnSchedule

/// All settings of an agent, valid and complete. Equal when the values are, wherever they were written.
package struct Settings: Sendable, Equatable {
  /// The mirrors, in byte order of their names.
  package var mirrors: [MirrorSettings] = []
  /// The hooks, in byte order of their names.
  package var hooks: [HookSettings] = []
  package var limits = LimitSettings()
  package var agent = AgentSettings()

  package init() {}

  package func mirror(_ name: String) -> MirrorSettings? { mirrors.first { $0.name == name } }
}

/// One mirror: a feed, a folder and a policy, under a name.
package struct MirrorSettings: Sendable, Equatable {
  /// When the agent begins a pass on its own.
  package enum Rhythm: Sendable, Equatable {
    /// Passes begin only on command.
    case command
    /// The seconds from one pass to the next.
    case every(Int64)
    /// A pass begins at the times of all these expressions of systemd.time(7).
    case calendar([String])
  }

  package var name: String
  /// An http, https or file URL without name and password, or an absolute path.
  package var feed: String
  /// The absolute path of the folder, without empty segments, `.` and `..`.
  package var folder: String
  /// The directory of the mirror's record; `nil` for `FOLDER/.tarn`.
  package var state: String?
  package var rhythm = Rhythm.command
  /// The rates for some times of the day; at other times `limit-rate` applies.
  package var rates: [RateTimetable.Row] = []
  /// True when the agent watches the folder.
  package var watches = true
  /// The seconds between two full scans of a watched folder.
  package var rescan: Int64 = 86_400
  package var adopts = false
  package var isDryRun = false
  /// The options of a pass, valid. Files of secrets are named by their paths; a secret proxy is not included.
  package var options = PassOptions()
  /// The place of each secret.
  package var secrets: [PassOptions.Name: SecretPlace] = [:]

  package init(name: String, feed: String, folder: String) {
    self.name = name
    self.feed = feed
    self.folder = folder
  }

  /// The rule of `isName`, for messages.
  package static let nameRule =
    "a name has up to 64 bytes, no blanks, none of / . : \\ and no - in front, and is not session"

  /// True for a valid name. Others would be taken for a path, a URL or a TARGET (`MIRROR:PATH`).
  package static func isName(_ name: String) -> Bool {
    !name.isEmpty && name != "session" && name.utf8.count <= 64 && name.utf8.first != UInt8(ascii: "-")
      && Printable.escape(name) == name
      && name.unicodeScalars.allSatisfy { !"/.:".unicodeScalars.contains($0) && !$0.properties.isWhitespace }
  }
}

/// Whom to notify of the events of mirrors, and how.
package struct HookSettings: Sendable, Equatable {
  package enum Way: Sendable, Equatable {
    /// A program and its arguments, run without a shell.
    case command([String])
    case webhook(HookAddress)
    /// A ping in the form of healthchecks.io.
    case ping(HookAddress)
  }

  package var name: String
  package var way: Way
  /// The mirrors whose events the hook receives; `nil` for all.
  package var mirrors: Set<String>?
  package var events: Set<HookEvent>
  /// The seconds that an attempt may take.
  package var timeout: Int64 = 30
  /// The attempts after the first.
  package var retries = 10
  /// The place of the key that signs the body of a webhook.
  package var secret: SecretPlace?
  /// The place of the `Name: value` lines for a webhook or a ping.
  package var headerFile: SecretPlace?

  package init(name: String, way: Way) {
    (self.name, self.way) = (name, way)
    if case .ping = way {
      events = Set(HookEvent.passes)
    } else {
      events = Set(HookEvent.changes)
    }
  }

  package func hears(_ event: HookEvent, of mirror: String) -> Bool {
    events.contains(event) && (mirrors?.contains(mirror) ?? true)
  }
}

/// The address of a webhook or a ping; the address itself may be secret.
package enum HookAddress: Sendable, Equatable {
  case url(String)
  case secret(SecretPlace)
}

/// The limits that all mirrors share.
package struct LimitSettings: Sendable, Equatable {
  /// The mirrors at work at once, at most.
  package var passes = 4
  /// The connections of all mirrors together, 1 to 256.
  package var connections = 32
  /// The connections of all mirrors to one host, 1 to 64.
  package var connectionsPerHost = 6
  /// The bytes per second of all mirrors together; `nil` for no limit.
  package var rate: UInt64?
  /// The rates for some times of the day; at other times `rate` applies.
  package var rates: [RateTimetable.Row] = []

  package init() {}
}

/// The settings of the agent itself.
package struct AgentSettings: Sendable, Equatable {
  package enum LogFormat: String, Sendable, CaseIterable {
    /// The journal's format when stderr leads to the journal, otherwise text.
    case auto
    case text, json, journal
  }

  /// Who may connect: only the owner, also the socket's group, or everyone. The owner and the group may
  /// control the agent; others see the status without paths and addresses.
  package enum StatusAccess: String, Sendable, CaseIterable {
    case owner, group, everyone
  }

  /// The absolute path of the control socket; `nil` when there is no runtime directory for it.
  package var socket: String?
  package var logFormat = LogFormat.auto
  /// The seconds that events are kept.
  package var keepEvents: Int64 = 14 * 86_400
  package var statusAccess = StatusAccess.everyone
  /// The absolute path of the file for the node exporter.
  package var metricsFile: String?
  /// The address of the metrics, which always needs a token.
  package var metricsListen: ListenAddress?
  package var metricsToken: SecretPlace?

  package init() {}
}
