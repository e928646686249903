package import TarnCore
package import TarnSchedule

/// All settings of an agent, valid and complete. Equal when they ask for the same, wherever that is written.
package struct Settings: Sendable, Equatable {
  /// By name, in the order of its bytes.
  package var mirrors: [MirrorSettings] = []
  /// By name, in the order of its bytes.
  package var hooks: [HookSettings] = []
  package var limits = LimitSettings()
  package var agent = AgentSettings()

  package init() {}

  package func mirror(_ name: String) -> MirrorSettings? { mirrors.first { $0.name == name } }
}

/// One mirror: a feed, a folder and a policy, under a name.
package struct MirrorSettings: Sendable, Equatable {
  /// When the agent begins a pass by itself.
  package enum Rhythm: Sendable, Equatable {
    /// Never: only by command.
    case command
    /// Seconds from one pass to the next.
    case every(Int64)
    /// Expressions of systemd.time(7), each of them.
    case calendar([String])
  }

  package var name: String
  /// An http, https or file URL without name and password, or an absolute path.
  package var feed: String
  /// Absolute, without empty segments, `.` and `..`.
  package var folder: String
  /// Where the mirror's record is; nil for `FOLDER/.tarn`.
  package var state: String?
  package var rhythm = Rhythm.command
  /// A rate at some times of the day; at others `limit-rate` holds.
  package var rates: [RateTimetable.Row] = []
  /// The agent watches the folder.
  package var watches = true
  /// Seconds between two looks at all of a folder that is watched.
  package var rescan: Int64 = 86_400
  package var adopts = false
  package var isDryRun = false
  /// Valid. Files of secrets are named by their paths; a proxy that is a secret is not among these.
  package var options = PassOptions()
  /// Where each secret lies.
  package var secrets: [PassOptions.Name: SecretPlace] = [:]

  package init(name: String, feed: String, folder: String) {
    self.name = name
    self.feed = feed
    self.folder = folder
  }

  /// What `isName` takes, for people.
  static let nameRule =
    "a name has up to 64 bytes, no blanks, none of / . : and no - in front, and is not session"

  /// What a name must not have: it would be taken for a path, a URL or a TARGET (`MIRROR:PATH`).
  package static func isName(_ name: String) -> Bool {
    !name.isEmpty && name != "session" && name.utf8.count <= 64 && name.utf8.first != UInt8(ascii: "-")
      && Printable.escape(name) == name
      && name.unicodeScalars.allSatisfy { !"/.:".unicodeScalars.contains($0) && !$0.properties.isWhitespace }
  }
}

/// Whom to tell of what happens to mirrors, and how.
package struct HookSettings: Sendable, Equatable {
  package enum Way: Sendable, Equatable {
    /// A program and its arguments; no shell.
    case command([String])
    case webhook(HookAddress)
    /// As healthchecks.io takes them.
    case ping(HookAddress)
  }

  package var name: String
  package var way: Way
  /// Those whose events it hears; nil for all.
  package var mirrors: Set<String>?
  package var events: Set<HookEvent>
  /// Seconds that an attempt may take.
  package var timeout: Int64 = 30
  /// Attempts after the first.
  package var retries = 10
  /// Signs the body of a webhook.
  package var secret: SecretPlace?
  /// `Name: value` lines for a webhook or a ping.
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

/// Where a webhook or a ping goes; the address itself may be the secret.
package enum HookAddress: Sendable, Equatable {
  case url(String)
  case secret(SecretPlace)
}

/// What all mirrors share.
package struct LimitSettings: Sendable, Equatable {
  /// Mirrors at work at once.
  package var passes = 4
  /// Connections of all mirrors together, 1 to 256.
  package var connections = 32
  /// Connections of all mirrors to one host, 1 to 64.
  package var connectionsPerHost = 6
  /// Bytes per second of all mirrors together; nil for no limit.
  package var rate: UInt64?
  /// A rate at some times of the day; at others `rate` holds.
  package var rates: [RateTimetable.Row] = []

  package init() {}
}

/// The agent's own affairs.
package struct AgentSettings: Sendable, Equatable {
  package enum LogFormat: String, Sendable, CaseIterable {
    /// The journal's where stderr leads there, text elsewhere.
    case auto
    case text, json, journal
  }

  /// Who may connect: the owner alone, the socket's group as well (both may steer), or everyone, who is told the status
  /// without paths and addresses.
  package enum StatusAccess: String, Sendable, CaseIterable {
    case owner, group, everyone
  }

  /// The control socket, absolute; nil when there is no runtime directory to put it in.
  package var socket: String?
  package var logFormat = LogFormat.auto
  /// How many seconds events are kept.
  package var keepEvents: Int64 = 14 * 86_400
  package var statusAccess = StatusAccess.everyone
  /// For the node exporter; absolute.
  package var metricsFile: String?
  /// Never without a token.
  package var metricsListen: ListenAddress?
  package var metricsToken: SecretPlace?

  package init() {}
}
