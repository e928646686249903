/// The table of what the control socket takes; server and client read it. The version of the protocol is in the path.
package enum ControlRoute: String, CaseIterable, Sendable {
  /// GET: `StatusAnswer`.
  case status = "/v1/status"
  /// GET: `EventPage`. `after` is a cursor or, where one mirror is asked, the number of an event.
  case events = "/v1/events"
  /// GET: server-sent events, each an `EventDocument`. With neither `after` nor `Last-Event-ID`, from now on.
  /// Where no mirror is named it ends when the agent's mirrors are others: who comes again goes on where it was.
  case stream = "/v1/events/stream"
  /// POST a `ControlCommand`: `ControlAnswer`.
  case command = "/v1/command"
  /// POST: `ReloadAnswer`.
  case reload = "/v1/reload"
  /// PUT a `ControlRate`, or DELETE for what the settings say: `ControlAnswer`.
  case limit = "/v1/limit"
  /// GET: metrics as text for Prometheus, in the format that the header `Accept` asks for.
  case metrics = "/metrics"
  /// GET: `SessionList`.
  case sessions = "/v1/sessions"
  /// GET: `SessionDocument`. PUT with `SessionSettings`: opens it, makes it if need be; with `update=1` they take the place of those that
  /// are stored.
  case session = "/v1/session"
  /// GET: `TaskPage`. POST lines of JSON, each a `TaskRequest`, 1,000 at most: `AddedTasks`; all are added or none.
  case tasks = "/v1/session/tasks"
  /// GET: `SessionEventPage`, behind the event with the number `after`.
  case sessionEvents = "/v1/session/events"
  /// GET: server-sent events, each a `SessionEvent`, whose number is the id. Behind `after` or `Last-Event-ID`; with neither, all that are
  /// not acknowledged.
  case sessionStream = "/v1/session/stream"
  /// GET: server-sent events of several sessions, each a `SessionNews`, and without an id. Each `from` is `ID:NUMBER`: behind that event of
  /// that session, 0 for all that are not acknowledged. What cannot be read (any more) is told, and the others go on.
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

  /// Query parameters. `mirror` may come more than once.
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

  /// Those that may come more than once.
  package static let lists = ["from", "mirror", "state"]

  package var isStream: Bool { self == .stream || self == .sessionStream || self == .sessionsStream }

  /// It is about the sessions of the agent's own user.
  package var isOfSessions: Bool {
    switch self {
    case .sessions, .session, .tasks, .sessionEvents, .sessionStream, .sessionsStream, .sessionOrder: true
    default: false
    }
  }

  /// Keys of the body's JSON object, those of objects in it behind a dot; empty when no body is taken.
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

  /// Problems of each mirror in an answer, unless asked for.
  package static let usualProblems = 20
  package static let mostProblems = 10_000
  /// Events of a page, unless asked for.
  package static let usualEvents = 100
  package static let mostEvents = 1_000
  /// Tasks of one batch, and of a page.
  package static let mostTasks = 1_000
  /// Tasks of one page: most sessions are told whole, as they are at one instant.
  package static let mostListed = 10_000
  /// Bytes of a batch.
  package static let mostTaskBytes = 16 << 20
  /// The `event:` of a stream that ends with a `ControlFailure`; journals have no such code.
  package static let failureEvent = "tarn-error"
}
