/// `tarn status --json`, and what the agent answers to the same question.
package struct StatusAnswer: Codable, Sendable {
  package var schema = "tarn-status/1"
  /// nil when no agent answered: then the mirrors are as their ledgers say.
  package var agent: AgentDocument?
  package var mirrors: [StatusDocument]

  package init(agent: AgentDocument? = nil, mirrors: [StatusDocument]) {
    self.agent = agent
    self.mirrors = mirrors
  }
}

/// How a running agent is.
package struct AgentDocument: Codable, Sendable, Equatable {
  package var version: String
  package var process: Int32
  /// RFC 3339.
  package var started: String
  /// `running` or `stopping`.
  package var state = "running"
  /// Passes at work now, and how many may be.
  package var passes = 0
  package var mostPasses = 0
  /// Transfers at work, and those that wait for a place.
  package var transfers = 0
  package var waiting = 0
  /// Bytes per second over all mirrors now, and the limit; nil for none.
  package var rate: UInt64 = 0
  package var rateLimit: UInt64?
  /// When the settings that hold were read (RFC 3339).
  package var settingsRead: String
  /// Why newer settings were not taken, one text per error; empty when the last reload was.
  package var rejected: [String] = []
  /// The command that tells of them with all there is to say; nil from an agent that does not say.
  package var settingsCheck: String?
  /// Settings that only a restart takes up.
  package var needRestart: [String] = []
  /// Hosts that some mirrors leave alone for a while, and until when (RFC 3339): a host that asked some of them, and failed others,
  /// is named twice.
  package var restingHosts: [RestingHost] = []

  /// Whom it tells of what happens; nil where the settings name nobody, and from an agent that does not say.
  package var hooks: [HookStatus]?

  package struct RestingHost: Codable, Sendable, Equatable {
    package var host: String
    /// Now, while one request tries whether it is back.
    package var until: String
    /// It asked for that itself; false where it failed again and again. nil from an agent that does not say.
    package var asked: Bool?
    /// Until when it asked for it; later than `until` where that is more than any host is left alone for. nil where it did not.
    package var askedUntil: String?
    /// Those that leave it alone; for others it may answer. nil from an agent that does not say.
    package var mirrors: [String]?

    package init(host: String, until: String) {
      self.host = host
      self.until = until
    }
  }

  package init(version: String, process: Int32, started: String, settingsRead: String) {
    self.version = version
    self.process = process
    self.started = started
    self.settingsRead = settingsRead
  }
}

/// How a hook of a running agent is.
package struct HookStatus: Codable, Sendable, Equatable {
  package var name: String
  /// `good` or `failing`.
  package var state: String
  /// Attempts in a row that failed, since when (RFC 3339), and why the last one did.
  package var failures = 0
  package var since: String?
  package var message: String?
  /// Events that it is still to be told, and those that it will never be.
  package var waiting = 0
  package var dropped: UInt64 = 0

  package init(name: String, state: String) {
    self.name = name
    self.state = state
  }
}
