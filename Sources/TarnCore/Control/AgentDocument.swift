/// The document of `tarn status --json`, and the agent's answer to the same question.
package struct StatusAnswer: Codable, Sendable {
  package var schema = "tarn-status/1"
  /// The state of the agent. `nil` when no agent answered: then the mirrors are as their ledgers say.
  package var agent: AgentDocument?
  package var mirrors: [StatusDocument]

  package init(agent: AgentDocument? = nil, mirrors: [StatusDocument]) {
    self.agent = agent
    self.mirrors = mirrors
  }
}

/// The state of a running agent.
package struct AgentDocument: Codable, Sendable, Equatable {
  package var version: String
  package var process: Int32
  /// When the agent started (RFC 3339).
  package var started: String
  /// `running` or `stopping`.
  package var state = "running"
  /// The passes at work now, and the most that may be at work at once.
  package var passes = 0
  package var mostPasses = 0
  /// The transfers at work, and those that wait for a place.
  package var transfers = 0
  package var waiting = 0
  /// Bytes per second over all mirrors now, and the limit; `nil` for none.
  package var rate: UInt64 = 0
  package var rateLimit: UInt64?
  /// When the present settings were read (RFC 3339).
  package var settingsRead: String
  /// Why newer settings were rejected, one text per error. Empty when the last reload succeeded.
  package var rejected: [String] = []
  /// The command that reports the errors of rejected settings in full. `nil` from an agent that does not report it.
  package var settingsCheck: String?
  /// The settings that take effect only with a restart.
  package var needRestart: [String] = []
  /// The hosts that some mirrors leave alone for a while. A host that asked for it at some mirrors and failed at others is listed
  /// twice.
  package var restingHosts: [RestingHost] = []

  /// What the agent itself could not do the last time, and the wake commands that ran in vain. `nil` when all went well, and from an
  /// agent that does not report it.
  package var troubles: [Trouble]?

  /// The hooks and their state. `nil` where the settings name none, and from an agent that does not report them.
  package var hooks: [HookStatus]?

  package struct Trouble: Codable, Sendable, Equatable {
    /// The code of the log line about it, such as `metrics-file`; `wake-command` for a session.
    package var code: String
    package var message: String
    package var hint: String?

    package init(code: String, message: String, hint: String? = nil) {
      (self.code, self.message, self.hint) = (code, message, hint)
    }
  }

  package struct RestingHost: Codable, Sendable, Equatable {
    package var host: String
    /// When the rest ends (RFC 3339); the present time while one request tries whether the host is back.
    package var until: String
    /// True when the host asked for the rest itself, false when it failed again and again. `nil` from an agent that does not report
    /// it.
    package var asked: Bool?
    /// The time that the host asked for; later than `until` where that is more than the longest rest. `nil` where it did not ask.
    package var askedUntil: String?
    /// The mirrors that leave the host alone; for others it may answer. `nil` from an agent that does not report them.
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

/// The state of one hook of a running agent.
package struct HookStatus: Codable, Sendable, Equatable {
  package var name: String
  /// Either `good` or `failing`.
  package var state: String
  /// The number of attempts in a row that failed, the time of the first (RFC 3339), and the reason of the last.
  package var failures = 0
  package var since: String?
  package var message: String?
  /// The events that the hook has still to be told, and those that were dropped.
  package var waiting = 0
  package var dropped: UInt64 = 0

  package init(name: String, state: String) {
    self.name = name
    self.state = state
  }
}
