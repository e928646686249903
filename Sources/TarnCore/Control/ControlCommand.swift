/// What steers a running agent. Encoded as the body of a request.
package struct ControlCommand: Codable, Sendable, Equatable {
  /// The raw value is the word of the command line.
  package enum Verb: String, Codable, Sendable, CaseIterable {
    /// A pass now, whatever else holds.
    case sync
    /// No pass, and no new transfer; what runs ends cleanly, and so does what was asked for before. Until `resume`, also across
    /// restarts; a pass that is asked for later comes all the same.
    case pause, resume
    /// What waits after a failure is tried now.
    case retry
    /// The running pass or transfer ends now; the next pass comes as planned.
    case cancel
    case prioritize
    /// The held plan goes ahead.
    case approve
  }

  /// Turns among mirrors and transfers.
  package enum Priority: String, Codable, Sendable, CaseIterable { case low, normal, high }

  package var verb: Verb
  package var target: ControlTarget
  /// Of `prioritize` only.
  package var priority: Priority?
  /// Of `approve` only; nil for the plan that is held.
  package var plan: String?
  /// Of `sync` of a whole mirror only; nil where the mirror's name says all.
  package var expected: ControlExpectation?

  package init(_ verb: Verb, _ target: ControlTarget) {
    self.verb = verb
    self.target = target
  }
}

/// What who asks for a pass takes the mirror to be. Where it is otherwise, no pass is begun.
package struct ControlExpectation: Codable, Sendable, Equatable {
  /// The feed's text, a local one's with an absolute path; nil for whatever is followed.
  package var feed: String?
  /// The options that are to hold, as `PassOptions.encoded` writes them; nil for whatever holds.
  package var options: String?
  /// The folder is to be taken as it is.
  package var adopts: Bool?
  /// A folder that is gone is to be made anew, by this pass.
  package var recreates: Bool?
  /// An absolute path.
  package var state: String?

  package init() {}
}

/// TARGET: a mirror, or one path of it.
package struct ControlTarget: Codable, Sendable, Equatable {
  /// A configured name, or a folder as an absolute path.
  package var mirror: String
  /// Below the folder; nil for the whole mirror.
  package var path: String?
  /// The path's bytes in Base64, when `path` is not them.
  package var pathBytes: String?

  package init(mirror: String, path: [UInt8]? = nil) {
    self.mirror = mirror
    guard let path else { return }
    let text = String(decoding: path, as: UTF8.self)
    self.path = text
    pathBytes = text.utf8.elementsEqual(path) ? nil : Base64.encode(path)
  }

  /// As it is on disk; nil for the whole mirror, empty for bytes that are no Base64.
  package var rawPath: [UInt8]? {
    pathBytes.map { Base64.decode(Array($0.utf8)) ?? [] } ?? path.map { Array($0.utf8) }
  }
}

/// What the agent made of a command.
package struct ControlAnswer: Codable, Sendable, Equatable {
  package var schema = "tarn-control/1"
  /// What happens now, for a person: one line.
  package var message: String
  /// Nothing had to be changed.
  package var wasSo = false
  /// The number of the pass that was asked for, to be followed in the status; nil where none was.
  package var run: UInt64?
  /// What the agent calls the mirror of that pass.
  package var mirror: String?
  /// Of `approve` only.
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

/// What came of an approval.
package struct ControlApproval: Codable, Sendable, Equatable {
  package var plan: String
  package var deleted = 0
  /// In the plan, and not deleted: wanted again, edited, or gone already.
  package var spared = 0
  /// Of the plan, and still held.
  package var left: Int
  package var failed = 0
  /// The first of those that failed, for a person.
  package var problems: [String] = []
  /// A pass is at work; the plan goes ahead when it has ended.
  package var isDeferred: Bool

  package init(plan: String, left: Int, isDeferred: Bool = false) {
    self.plan = plan
    self.left = left
    self.isDeferred = isDeferred
  }
}

/// What became of a reload.
package struct ReloadAnswer: Codable, Sendable, Equatable {
  package var schema = "tarn-reload/1"
  package var isTaken: Bool
  /// Why not, one text per error as `tarn config check` prints it.
  package var problems: [String] = []
  /// Names of mirrors.
  package var added: [String] = []
  package var removed: [String] = []
  package var changed: [String] = []
  package var needRestart: [String] = []
  /// Folders of mirrors that the settings name no more; nil from an agent that does not say.
  @NullIfUnknown package var left: [String]?

  package init(isTaken: Bool) {
    self.isTaken = isTaken
  }
}

/// Why a question or a command was not answered. Encoded as the body of an error.
package struct ControlFailure: Error, Codable, Sendable, Equatable {
  package enum Kind: String, Codable, Sendable, CaseIterable {
    /// The request makes no sense (400).
    case usage
    /// This peer may not ask that (403).
    case permission
    /// No such mirror, path or plan (404).
    case notFound
    /// It cannot be done as things are (409).
    case conflict
    /// Too long or too many (413).
    case tooLarge
    /// The agent is ending, or too busy (503).
    case unavailable
    /// A defect in Tarn (500).
    case defect
    /// It holds, and cannot be written down (507).
    case storage
  }
  /// Others are connected, as many as may be: nothing was done, and in a moment it may be.
  package static let tooManyConnections = "too-many-connections"

  package var schema = "tarn-error/1"
  package var kind: Kind
  /// Stable.
  package var code: String
  /// What and where.
  package var message: String
  /// How to mend it.
  package var hint: String?

  package init(_ kind: Kind, code: String, _ message: String, hint: String? = nil) {
    self.kind = kind
    self.code = code
    self.message = message
    self.hint = hint
  }
}

/// A limit over all mirrors.
package struct ControlRate: Codable, Sendable, Equatable {
  /// Bytes per second; nil for no limit.
  package var bytesPerSecond: UInt64?

  package init(bytesPerSecond: UInt64?) {
    self.bytesPerSecond = bytesPerSecond
  }
}

extension ControlCommand {
  /// Why the parts do not go together; nil when they do.
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
