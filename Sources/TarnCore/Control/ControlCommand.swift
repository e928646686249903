/// A command to a running agent. Encoded as the body of a request.
package struct ControlCommand: Codable, Sendable, Equatable {
  /// What to do. The raw value is the word of the command line.
  package enum Verb: String, Codable, Sendable, CaseIterable {
    /// Begin a pass now, whatever else holds.
    case sync
    /// Start no pass and no new transfer until `resume`, also across restarts. What runs ends cleanly, and so does what was asked
    /// for before. A pass that is asked for later is done all the same.
    case pause, resume
    /// Try now what waits after a failure.
    case retry
    /// End the running pass or transfer now. The next pass comes as planned.
    case cancel
    case prioritize
    /// Carry out the held plan.
    case approve
  }

  /// The share of turns among mirrors and transfers.
  package enum Priority: String, Codable, Sendable, CaseIterable { case low, normal, high }

  package var verb: Verb
  package var target: ControlTarget
  /// The new priority; for `prioritize` only.
  package var priority: Priority?
  /// The plan to approve, for `approve` only. `nil` for the plan that is held.
  package var plan: String?
  /// What the caller expects of the mirror, for `sync` of a whole mirror only. `nil` where the mirror's name says all.
  package var expected: ControlExpectation?

  package init(_ verb: Verb, _ target: ControlTarget) {
    self.verb = verb
    self.target = target
  }
}

/// What the caller of a pass takes the mirror to be. Where the mirror is otherwise, no pass begins.
package struct ControlExpectation: Codable, Sendable, Equatable {
  /// The feed's text, with an absolute path for a local one. `nil` for whatever is followed.
  package var feed: String?
  /// The expected options as `PassOptions.encoded` writes them. `nil` for whatever holds.
  package var options: String?
  /// True when the folder is to be taken as it is.
  package var adopts: Bool?
  /// True when this pass is to create a missing folder anew.
  package var recreates: Bool?
  /// The state directory as an absolute path.
  package var state: String?

  package init() {}
}

/// The TARGET of a command: a mirror, or one path of it.
package struct ControlTarget: Codable, Sendable, Equatable {
  /// The mirror's configured name, or its folder as an absolute path.
  package var mirror: String
  /// The path below the folder; `nil` for the whole mirror.
  package var path: String?
  /// The path's bytes in Base64, set when `path` does not hold them exactly.
  package var pathBytes: String?

  package init(mirror: String, path: [UInt8]? = nil) {
    self.mirror = mirror
    guard let path else { return }
    let text = String(decoding: path, as: UTF8.self)
    self.path = text
    pathBytes = text.utf8.elementsEqual(path) ? nil : Base64.encode(path)
  }

  /// The path as it is on disk. `nil` for the whole mirror, empty for bytes that are not Base64.
  package var rawPath: [UInt8]? {
    pathBytes.map { Base64.decode(Array($0.utf8)) ?? [] } ?? path.map { Array($0.utf8) }
  }
}

/// The agent's answer to a command.
package struct ControlAnswer: Codable, Sendable, Equatable {
  package var schema = "tarn-control/1"
  /// What happens now, in one line for people.
  package var message: String
  /// True when nothing had to be changed.
  package var wasSo = false
  /// The number of the requested pass, to be followed in the status. `nil` where none was requested.
  package var run: UInt64?
  /// The agent's name for the mirror of the requested pass.
  package var mirror: String?
  /// The outcome of `approve`; `nil` for other commands.
  package var approval: ControlApproval?

  package init(_ message: String, wasSo: Bool = false, run: UInt64? = nil, mirror: String? = nil) {
    self.message = message
    self.wasSo = wasSo
    self.run = run
    self.mirror = mirror
  }

  package init(approval: ControlApproval, _ message: String) {
    self.message = message
    self.approval = approval
  }
}

/// The outcome of an approval.
package struct ControlApproval: Codable, Sendable, Equatable {
  package var plan: String
  package var deleted = 0
  /// Files of the plan that were not deleted: wanted again, edited, or gone already.
  package var spared = 0
  /// Files of the plan that are still held.
  package var left: Int
  package var failed = 0
  /// Messages for people about the first files that failed.
  package var problems: [String] = []
  /// True while a pass is at work. The plan is carried out when that pass has ended.
  package var isDeferred: Bool

  package init(plan: String, left: Int, isDeferred: Bool = false) {
    self.plan = plan
    self.left = left
    self.isDeferred = isDeferred
  }
}

/// The outcome of a reload.
package struct ReloadAnswer: Codable, Sendable, Equatable {
  package var schema = "tarn-reload/1"
  package var isTaken: Bool
  /// Why the settings were rejected, one text per error as `tarn config check` prints it.
  package var problems: [String] = []
  /// The names of mirrors that are new. The next two hold those removed and changed.
  package var added: [String] = []
  package var removed: [String] = []
  package var changed: [String] = []
  package var needRestart: [String] = []
  /// The folders of mirrors that the settings no longer name. `nil` from an agent that does not report them.
  @NullIfUnknown package var left: [String]?

  package init(isTaken: Bool) {
    self.isTaken = isTaken
  }
}

/// Why a question or a command was refused. Encoded as the body of an error.
package struct ControlFailure: Error, Codable, Sendable, Equatable {
  package enum Kind: String, Codable, Sendable, CaseIterable {
    /// The request makes no sense (400).
    case usage
    /// This peer must not ask that (403).
    case permission
    /// No such mirror, path or plan (404).
    case notFound
    /// It cannot be done in the present state (409).
    case conflict
    /// Too long or too many (413).
    case tooLarge
    /// The agent is ending, or too busy (503).
    case unavailable
    /// A defect in Tarn (500).
    case defect
    /// The change is in effect but cannot be stored (507).
    case storage
  }
  /// The code for too many connections: nothing was done, and trying again in a moment may help.
  package static let tooManyConnections = "too-many-connections"

  package var schema = "tarn-error/1"
  package var kind: Kind
  /// A stable code for programs.
  package var code: String
  /// What went wrong, and where.
  package var message: String
  /// How to fix it.
  package var hint: String?

  package init(_ kind: Kind, code: String, _ message: String, hint: String? = nil) {
    self.kind = kind
    self.code = code
    self.message = message
    self.hint = hint
  }

  /// Returns the same failure, with the number of the line of a batch that it is about.
  package func inLine(_ number: Int) -> ControlFailure {
    ControlFailure(kind, code: code, "line \(number): \(message)", hint: hint)
  }
}

/// A rate limit over all mirrors.
package struct ControlRate: Codable, Sendable, Equatable {
  /// Bytes per second; nil for no limit.
  package var bytesPerSecond: UInt64?

  package init(bytesPerSecond: UInt64?) {
    self.bytesPerSecond = bytesPerSecond
  }
}

extension ControlCommand {
  /// Why the parts of the command do not fit together; `nil` when they do.
  package var fault: ControlFailure? {
    if expected != nil, verb != .sync || target.rawPath != nil {
      return ControlFailure(
        .usage, code: "expectation-unexpected", "only sync of a whole mirror takes an expectation")
    }
    return partsFault
  }

  private var partsFault: ControlFailure? {
    switch (verb, priority, plan) {
    case (.prioritize, nil, _):
      let words = Priority.allCases.map(\.rawValue).joined(separator: ", ")
      return ControlFailure(
        .usage, code: "priority-missing", "prioritize wants a priority", hint: "one of: \(words)")
    case (let verb, .some, _) where verb != .prioritize:
      return ControlFailure(.usage, code: "priority-unexpected", "\(verb.rawValue) takes no priority")
    case (let verb, _, .some) where verb != .approve:
      return ControlFailure(.usage, code: "plan-unexpected", "\(verb.rawValue) takes no plan")
    default: return nil
    }
  }
}
