/// What a hook may be told of.
package enum HookEvent: String, Sendable, CaseIterable, Codable {
  /// A pass has begun its work.
  case started
  /// A pass has ended, well or not.
  case ended
  /// Passes fail from now on, or bring only a part.
  case failing
  /// Deletions wait for approval.
  case held
  /// All is well again.
  case recovered

  /// What holds where the settings name none: changes only.
  package static let changes: [HookEvent] = [.failing, .held, .recovered]
  /// The same of a ping, whose receiver waits for a sign of life.
  package static let passes: [HookEvent] = [.started, .ended]
}

/// How a mirror is, as hooks see it: that of its last pass that says something of it. The raw values are kept by the agent.
package enum MirrorCondition: String, Sendable, Codable {
  case good, failing, held

  /// What there is to tell of a change.
  ///
  /// - Parameter old: nil where nothing is known.
  /// - Returns: nil where nothing changed, and where a mirror is well from the beginning.
  package func event(after old: MirrorCondition?) -> HookEvent? {
    guard self != old else { return nil }
    switch self {
    case .good: return old == nil ? nil : .recovered
    case .failing: return .failing
    case .held: return .held
    }
  }
}

/// What a hook gets: the body of a webhook and of a ping, and the standard input of a command.
package struct HookDocument: Codable, Sendable, Equatable {
  package var schema = "tarn-hook/1"
  /// The same in each attempt.
  package var id: String
  /// When it happened (RFC 3339).
  package var time: String
  package var event: HookEvent
  package var mirror: String
  package var feed: String
  package var folder: String
  /// How the mirror is now, and was before; nil where nothing is known.
  package var state: MirrorCondition?
  package var before: MirrorCondition?
  /// Of the pass: its number with the agent, and its UUID.
  package var run: UInt64
  package var rid: String
  /// How the pass ended; nil while it goes on.
  package var code: String?
  package var message: String?
  package var hint: String?
  /// What `tarn sync` ends with after such a pass.
  package var exitStatus: Int32?
  /// The pass did its work, as far as it could; false where it was kept from it.
  package var hasReport: Bool?
  package var counts: [String: Int]?
  package var bytes: [String: UInt64]?
  /// The machine's name.
  package var host: String
  /// All of it in one line, for people.
  package var text: String

  package init(
    id: String, time: Timestamp, event: HookEvent, mirror: String, feed: String, folder: String, run: UInt64,
    rid: String, host: String
  ) {
    (self.id, self.time, self.event, self.mirror) = (id, time.rfc3339, event, mirror)
    (self.feed, self.folder, self.run, self.rid, self.host) = (feed, folder, run, rid, host)
    text = ""
  }

  /// `iso: failing: the feed cannot be reached`, without what is not known.
  package mutating func setText() {
    let word = event == .ended ? nil : event.rawValue
    text = ([mirror, word, event == .started ? "a pass begins" : message].compactMap { $0 })
      .joined(separator: ": ")
  }

  /// The variables of a command, `NAME=value`.
  package var environment: [String] {
    let values: [(String, String?)] = [
      ("EVENT", event.rawValue), ("MIRROR", mirror), ("FEED", feed), ("FOLDER", folder),
      ("STATE", state?.rawValue), ("BEFORE", before?.rawValue), ("RUN", String(run)), ("RID", rid),
      ("CODE", code), ("MESSAGE", message), ("HINT", hint), ("EXIT_STATUS", exitStatus.map { String($0) }),
      ("TEXT", text), ("TIME", time), ("ID", id),
    ]
    return values.compactMap { name, value in value.map { "TARN_\(name)=\($0)" } }
  }

  /// What is appended to a ping's address (healthchecks.io): `/start`, nothing for a success, `/fail` where a pass was kept from
  /// its work, and its exit status where it did a part of it. Of changes without a pass: `/fail`, or nothing once all is well.
  package var pingSuffix: String {
    switch event {
    case .started: return "/start"
    case .recovered: return ""
    case .ended, .failing, .held:
      guard let exitStatus, exitStatus != 0 else { return event == .ended ? "" : "/fail" }
      return hasReport == true ? "/\(exitStatus & 255)" : "/fail"
    }
  }
}
