/// An event that a hook may report.
package enum HookEvent: String, Sendable, CaseIterable, Codable {
  /// A pass has begun its work.
  case started
  /// A pass has ended, well or not.
  case ended
  /// Passes fail from now on, or succeed only in part.
  case failing
  /// Deletions wait for approval.
  case held
  /// The mirror is in order again.
  case recovered

  /// The events where the settings name none: changes only.
  package static let changes: [HookEvent] = [.failing, .held, .recovered]
  /// The default events of a ping, whose receiver waits for a sign of life.
  package static let passes: [HookEvent] = [.started, .ended]
}

/// The condition of a mirror as hooks see it, taken from its last meaningful pass. The agent stores the raw values.
package enum MirrorCondition: String, Sendable, Codable {
  case good, failing, held

  /// Returns the event of a change of condition.
  ///
  /// - Parameter old: the earlier condition; `nil` where it is not known.
  /// - Returns: `nil` where nothing changed, and where a mirror is good from the beginning.
  package func event(after old: MirrorCondition?) -> HookEvent? {
    guard self != old else { return nil }
    switch self {
    case .good: return old == nil ? nil : .recovered
    case .failing: return .failing
    case .held: return .held
    }
  }
}

/// The document that a hook gets: the body of a webhook and of a ping, and the standard input of a command.
package struct HookDocument: Codable, Sendable, Equatable {
  package var schema = "tarn-hook/1"
  /// The ID of the document, the same in each attempt.
  package var id: String
  /// When the event happened (RFC 3339).
  package var time: String
  package var event: HookEvent
  package var mirror: String
  /// The feed without its query, which may hold a token.
  package var feed: String
  package var folder: String
  /// The condition of the mirror now and before; `nil` where it is not known.
  package var state: MirrorCondition?
  package var before: MirrorCondition?
  /// The pass: its number with the agent, and its UUID.
  package var run: UInt64
  package var rid: String
  /// How the pass ended; nil while it goes on.
  package var code: String?
  package var message: String?
  package var hint: String?
  /// The exit status of `tarn sync` after such a pass.
  package var exitStatus: Int32?
  /// True when the pass did its work as far as it could, false where something kept it from it.
  package var hasReport: Bool?
  package var counts: [String: Int]?
  package var bytes: [String: UInt64]?
  /// The machine's name.
  package var host: String
  /// The whole event in one line, for people.
  package var text: String

  package init(
    id: String, time: Timestamp, event: HookEvent, mirror: String, feed: String, folder: String, run: UInt64,
    rid: String, host: String
  ) {
    (self.id, self.time, self.event, self.mirror) = (id, time.rfc3339, event, mirror)
    (self.folder, self.run, self.rid, self.host) = (folder, run, rid, host)
    self.feed = Redaction.queries(feed)
    text = ""
  }

  /// Sets how the pass ended, without the queries of URLs.
  package mutating func setEnd(code: String, message: String, hint: String?) {
    self.code = code
    self.message = Redaction.queries(message)
    self.hint = hint.map(Redaction.queries)
  }

  /// Sets `text`, such as `iso: failing: the feed cannot be reached`, without the parts that are not known.
  package mutating func setText() {
    let word = event == .ended ? nil : event.rawValue
    text = ([mirror, word, event == .started ? "a pass begins" : message].compactMap { $0 })
      .joined(separator: ": ")
  }

  /// The environment variables of a command, as `NAME=value`.
  package var environment: [String] {
    let values: [(String, String?)] = [
      ("EVENT", event.rawValue), ("MIRROR", mirror), ("FEED", feed), ("FOLDER", folder),
      ("STATE", state?.rawValue), ("BEFORE", before?.rawValue), ("RUN", String(run)), ("RID", rid),
      ("CODE", code), ("MESSAGE", message), ("HINT", hint), ("EXIT_STATUS", exitStatus.map { String($0) }),
      ("TEXT", text), ("TIME", time), ("ID", id),
    ]
    return values.compactMap { name, value in value.map { "TARN_\(name)=\($0)" } }
  }

  /// The suffix of a ping's address (healthchecks.io): `/start`, nothing for a success, `/fail` where a pass was kept from its
  /// work, and the exit status where it did part of it. For a change without a pass: `/fail`, or nothing on recovery.
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
