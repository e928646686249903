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

  package var methods: [String] {
    switch self {
    case .status, .events: ["GET", "HEAD"]
    case .stream: ["GET"]
    case .command, .reload: ["POST"]
    case .limit: ["PUT", "DELETE"]
    }
  }

  /// Query parameters. `mirror` may come more than once.
  package var parameters: [String] {
    switch self {
    case .status: ["mirror", "problems"]
    case .events: ["after", "limit", "mirror"]
    case .stream: ["after", "mirror"]
    case .command, .reload, .limit: []
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
    default: []
    }
  }

  /// Problems of each mirror in an answer, unless asked for.
  package static let usualProblems = 20
  package static let mostProblems = 10_000
  /// Events of a page, unless asked for.
  package static let usualEvents = 100
  package static let mostEvents = 1_000
  /// The `event:` of a stream that ends with a `ControlFailure`; journals have no such code.
  package static let failureEvent = "tarn-error"
}
