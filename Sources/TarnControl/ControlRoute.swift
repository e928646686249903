/// The routes of the control socket, for server and client. The path has the version of the protocol.
package enum ControlRoute: String, CaseIterable, Sendable {
  /// GET: `StatusAnswer`.
  case status = "/v1/status"
  /// GET: `EventPage`. `after` is a cursor or, when one mirror is asked for, the number of an event.
  case events = "/v1/events"
  /// GET: server-sent events, each an `EventDocument`. With neither `after` nor `Last-Event-ID`, from now on. Without a mirror's
  /// name it ends when the agent's set of mirrors changes. A client that reconnects continues where it was.
  case stream = "/v1/events/stream"
  /// POST a `ControlCommand`: `ControlAnswer`.
  case command = "/v1/command"
  /// POST: `ReloadAnswer`.
  case reload = "/v1/reload"
  /// PUT a `ControlRate`, or DELETE to return to that of the settings: `ControlAnswer`.
  case limit = "/v1/limit"
  /// GET: metrics as text for Prometheus, in the format that the header `Accept` asks for.
  case metrics = "/metrics"
  /// GET: `SessionList`.
  case sessions = "/v1/sessions"
  /// GET: `SessionDocument`. PUT with `SessionSettings`: opens the session, and makes it when there is none. With `update=1` the
  /// settings replace those that are stored.
  case session = "/v1/session"
  /// GET: `TaskPage`. POST lines of JSON, each a `TaskRequest`, 1,000 at most: `AddedTasks`. All are added or none.
  case tasks = "/v1/session/tasks"
  /// GET: `SessionEventPage` of the events after the number `after`.
  case sessionEvents = "/v1/session/events"
  /// GET: server-sent events, each a `SessionEvent` with its number as the id. They begin after `after` or `Last-Event-ID`; with
  /// neither, all that are not acknowledged.
  case sessionStream = "/v1/session/stream"
  /// GET: server-sent events of several sessions, each a `SessionNews`, without an id. Each `from` is `ID:NUMBER`: the session, and
  /// the number of the event to begin after, or 0 for all that are not acknowledged. A session that cannot be read is reported, and
  /// the others continue.
  case sessionsStream = "/v1/sessions/stream"
  /// POST a `SessionOrder`: `ControlAnswer`.
  case sessionOrder = "/v1/session/order"

  package var methods: [String] {
    switch self {
    case .status, .events, .metrics, .sessions, .sessionEvents: ["GET", "HEAD"]
    case .stream, .sessionStream, .sessionsStream: ["GET"]
    case .session: ["GET", "PUT"]
    case .tasks: ["GET", "POST"]
    case .command, .reload, .sessionOrder: ["POST"]
    case .limit: ["PUT", "DELETE"]
    }
  }

  /// The query parameters. `mirror` may occur more than once.
  package var parameters: [String] {
    switch self {
    case .status: ["mirror", "problems"]
    case .events: ["after", "limit", "mirror"]
    case .stream: ["after", "mirror"]
    case .command, .reload, .limit, .metrics, .sessions: []
    case .session: ["session", "update"]
    case .tasks: ["after", "limit", "session", "state"]
    case .sessionEvents: ["after", "limit", "session"]
    case .sessionStream: ["after", "session"]
    case .sessionsStream: ["from"]
    case .sessionOrder: ["session"]
    }
  }

  /// The parameters that may occur more than once.
  package static let lists = ["from", "mirror", "state"]

  package var isStream: Bool { self == .stream || self == .sessionStream || self == .sessionsStream }

  /// Whether the route is about the sessions of the agent's own user.
  package var isOfSessions: Bool {
    switch self {
    case .sessions, .session, .tasks, .sessionEvents, .sessionStream, .sessionsStream, .sessionOrder: true
    default: false
    }
  }

  /// The keys of the body's JSON object. Nested keys have the path before them, separated by dots. Empty when no body is accepted.
  package func keys(of method: String) -> [String] {
    switch (self, method) {
    case (.command, _):
      [
        "expected", "expected.adopts", "expected.feed", "expected.options", "expected.recreates",
        "expected.state", "plan", "priority", "target", "target.mirror", "target.path", "target.pathBytes",
        "verb",
      ]
    case (.limit, "PUT"): ["bytesPerSecond"]
    case (.session, "PUT"):
      [
        "cookies", "headers", "holdsOld", "hook", "hosts", "hosts.ca", "hosts.credential", "hosts.host",
        "hosts.pins", "notify", "proxy", "quota", "quota.bytes", "quota.kept", "quota.keptFor", "quota.tasks",
        "transfers", "wake",
      ] + Self.limitKeys + Self.ruleKeys
    case (.sessionOrder, _):
      ["existing", "headers", "keep", "number", "priority", "task", "to", "url", "verb"]
    case (.tasks, "POST"):
      [
        "body", "digest", "existing", "expectedBytes", "group", "headers", "ignoreCache", "key", "label",
        "makeDirectories", "method", "notBefore", "priority", "resuming", "resuming.etag", "resuming.file",
        "resuming.lastModified", "suspended", "to", "url", "userInfo",
      ] + Self.limitKeys + Self.ruleKeys
    default: []
    }
  }

  private static let limitKeys = ["limits", "limits.idle", "limits.stall", "limits.whole"]
  private static let ruleKeys =
    ["rules"] + ["leastBytes", "mostBytes", "status", "then", "to", "types"].map { "rules.\($0)" }

  /// The problems that an answer lists for each mirror by default.
  package static let usualProblems = 20
  package static let mostProblems = 10_000
  /// The events of a page by default.
  package static let usualEvents = 100
  package static let mostEvents = 1_000
  /// The most tasks of one batch, and of one page. Memory for a larger page would stay with the agent.
  package static let mostTasks = 1_000
  /// The most bytes of a batch.
  package static let mostTaskBytes = 16 << 20
  /// The `event:` name of a `ControlFailure` that ends a stream. No journal has such a code.
  package static let failureEvent = "tarn-error"
}
