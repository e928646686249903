internal import TarnControl
internal import TarnCore

/// A handle of a background session: a named queue of downloads that the user's agent carries out, whatever becomes of this program.
///
/// The session lives in the agent. Any number of handles, in any process of the same user, see the same session; dropping a handle
/// cancels nothing, and neither does the end of the program. A handle is a value: it holds no connection.
///
/// Every call asks the agent over its control socket, without blocking the caller's thread. It throws `TarnError`.
public struct BackgroundSession: Sendable, Hashable {
  /// The name: 1 to 64 letters, digits, `-`, `_` and `.`, the first one a letter or digit.
  public let identifier: String
  /// Where the session lives.
  public let agent: Agent

  init(_ identifier: String, _ agent: Agent) { (self.identifier, self.agent) = (identifier, agent) }

  // MARK: Opening

  /// What opening a session gave.
  public struct Opened: Sendable {
    public var session: BackgroundSession
    /// As the agent has stored it. A session that was there keeps what it had.
    public var configuration: Configuration
    /// Names of the settings that were handed over and that differ from those stored; `update(_:)` changes these.
    public var differing: [String]
  }

  /// Opens the session with this name, and makes it if there is none.
  ///
  /// - Parameters:
  ///   - identifier: see `identifier`.
  ///   - configuration: of a new session; nil for the standard one.
  ///   - agent: the user's agent, unless said otherwise.
  /// - Returns: the session, durable in the agent's record.
  /// - Throws: `TarnError.agentUnavailable` where no agent answers; `.refused` for a name that is none.
  public static func open(
    _ identifier: String, configuration: Configuration? = nil, agent: Agent = Agent()
  ) async throws(TarnError) -> Opened {
    let document = try await agent.ask { try $0.openSession(identifier, configuration?.stored) }
    return Opened(
      session: BackgroundSession(identifier, agent), configuration: Configuration(document.settings),
      differing: document.differs ?? [])
  }

  /// All sessions of the user's agent.
  public static func all(agent: Agent = Agent()) async throws(TarnError) -> [BackgroundSession] {
    try await agent.ask { try $0.sessions() }.sessions.map { BackgroundSession($0.id, agent) }
  }

  /// How a session is set.
  public struct Configuration: Sendable, Hashable {
    /// Transfers in progress at a time, 1 to 64; nil for four.
    public var maximumTransfers: Int?
    /// A program by its absolute path, and its arguments. The agent runs it when something has ended that nobody reads; again, ever less
    /// often, until the event is acknowledged. Its environment has `TARN_SESSION`, `TARN_EVENT` (the first number that is not
    /// acknowledged), `TARN_REASON` and `TARN_SOCKET`. nil for none.
    public var wakeCommand: [String]?

    /// A program by its absolute path, and its arguments, run once when all downloads are done. Its environment has `TARN_SESSION`,
    /// `TARN_FINISHED` and `TARN_FAILED`. nil for none.
    public var hook: [String]?
    /// The desktop is told when all downloads are done (notify-send(1)).
    public var notifiesDesktop = false
    /// A task whose request may be good no more waits until it is answered; else it begins 30 seconds after `needsRequest`.
    public var holdsOldRequests = false
    /// nil for the standard ones.
    public var limits: TimeLimits?
    public var rules: [DownloadRule] = []
    /// Header lines of all requests; they go to the origin of each URL only.
    public var headers: [String: String] = [:]
    /// What servers set is sent back to them, to the host that set it only, for as long as the agent runs.
    public var keepsCookies = false
    public var hosts: [TrustedHost] = []
    /// `http://host:port` or `socks5h://host:port`; nil for none. Variables of the environment name none.
    public var proxy: String?
    /// nil for the standard one.
    public var quota: Quota?

    public init(maximumTransfers: Int? = nil, wakeCommand: [String]? = nil) {
      (self.maximumTransfers, self.wakeCommand) = (maximumTransfers, wakeCommand)
    }

    init(_ stored: SessionSettings) {
      (maximumTransfers, wakeCommand, hook) = (stored.transfers, stored.wake, stored.hook)
      (notifiesDesktop, holdsOldRequests) = (stored.notify == true, stored.holdsOld == true)
      limits = stored.limits.map { TimeLimits($0) }
      rules = (stored.rules ?? []).map { DownloadRule($0) }
      headers = HeaderFields.fields(of: stored.headers ?? [])
      keepsCookies = stored.cookies == true
      hosts = (stored.hosts ?? []).map { TrustedHost($0) }
      proxy = stored.proxy
      quota = stored.quota.map { Quota($0) }
    }

    var stored: SessionSettings {
      var settings = SessionSettings()
      (settings.transfers, settings.wake, settings.hook) = (maximumTransfers, wakeCommand, hook)
      settings.notify = notifiesDesktop ? true : nil
      settings.holdsOld = holdsOldRequests ? true : nil
      settings.limits = limits?.stored
      settings.rules = rules.isEmpty ? nil : rules.map(\.stored)
      settings.headers = HeaderFields.lines(of: headers)
      settings.cookies = keepsCookies ? true : nil
      settings.hosts = hosts.isEmpty ? nil : hosts.map(\.stored)
      settings.proxy = proxy
      settings.quota = quota?.stored
      return settings
    }
  }

  /// As the agent has stored it.
  public var configuration: Configuration {
    get async throws(TarnError) { Configuration(try await document().settings) }
  }

  /// Stores another configuration; it holds at once, also for what is queued.
  public func update(_ configuration: Configuration) async throws(TarnError) {
    _ = try await agent.ask { try $0.openSession(identifier, configuration.stored, isUpdate: true) }
  }

  func document() async throws(TarnError) -> SessionDocument {
    try await agent.ask { try $0.session(identifier) }
  }

  // MARK: Tasks

  /// Adds a download, which begins as soon as it has its turn.
  ///
  /// A task is known by its URL, with the query, and its destination. Where there is one already it is given back: while it is queued or
  /// running as it is, and queued anew when it has ended.
  ///
  /// - Throws: `TarnError.refused` for a request that is none, or a session that is closed (`session-closed`).
  @discardableResult
  public func download(_ request: DownloadRequest) async throws(TarnError) -> DownloadTask {
    try await download([request])[0]
  }

  /// Adds downloads. Each batch of 1,000 is added whole or not at all, and durable on return.
  ///
  /// - Returns: the tasks, in the order of the requests.
  public func download(_ requests: [DownloadRequest]) async throws(TarnError) -> [DownloadTask] {
    var tasks: [DownloadTask] = []
    for start in stride(from: 0, to: requests.count, by: ControlRoute.mostTasks) {
      let batch = requests[start..<min(requests.count, start + ControlRoute.mostTasks)].map(\.stored)
      let added = try await agent.ask { try $0.add(batch, to: identifier) }
      tasks += added.tasks.map { DownloadTask(number: $0.number, session: self, wasThere: $0.wasThere) }
    }
    return tasks
  }

  /// A handle of a task by its number, whether it is there or not.
  public func task(_ number: Int64) -> DownloadTask {
    DownloadTask(number: number, session: self, wasThere: true)
  }

  /// The whole truth at an instant.
  public struct Snapshot: Sendable {
    /// Events with higher numbers came later: `events(after:)` goes on without gap and without anything twice.
    public var asOf: Int64
    /// In the order in which they were added.
    public var tasks: [DownloadTask.Status]
  }

  /// How all tasks are. Beyond 10,000 tasks it is read in parts: an event behind its number may be one that a later part has already.
  public func snapshot() async throws(TarnError) -> Snapshot {
    var snapshot = Snapshot(asOf: 0, tasks: [])
    var after: Int64 = 0
    while true {
      let last = after
      let page = try await agent.ask { try $0.tasks(of: identifier, after: last) }
      if after == 0 { snapshot.asOf = page.asOf }
      snapshot.tasks += page.tasks.map { DownloadTask.Status($0, self) }
      guard page.hasMore, let next = page.tasks.last?.task.number else { return snapshot }
      after = next
    }
  }

  // MARK: Orders

  /// Takes no more tasks. When those that are there have ended and all events are acknowledged, the session is gone.
  public func close() async throws(TarnError) { try await order(SessionOrder(.close)) }

  /// Ends all tasks that have not ended; their partial files go.
  public func cancelAll() async throws(TarnError) { try await order(SessionOrder(.cancel)) }

  /// Lets nothing run until `resumeAll()`; partial files stay.
  public func suspendAll() async throws(TarnError) { try await order(SessionOrder(.suspend)) }

  public func resumeAll() async throws(TarnError) { try await order(SessionOrder(.resume)) }

  /// Ends the session now. Finished files stay, partial files and events go.
  public func forget() async throws(TarnError) { try await order(SessionOrder(.forget)) }

  /// Says that the events up to a number were received: they are not delivered again, and nothing is woken for them.
  public func acknowledge(_ number: Int64) async throws(TarnError) {
    var order = SessionOrder(.acknowledge)
    order.number = number
    try await self.order(order)
  }

  /// Events up to this number were acknowledged.
  public var acknowledged: Int64 {
    get async throws(TarnError) { try await document().acknowledged }
  }

  func order(_ order: SessionOrder) async throws(TarnError) {
    _ = try await agent.ask { try $0.order(order, identifier) }
  }
}
