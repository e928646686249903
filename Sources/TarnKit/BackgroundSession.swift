internal import TarnControl
internal import TarnCore

/// A handle of a background session: a named queue of downloads that the user's agent carries out, even after this program has
/// ended.
///
/// The session lives in the agent. All handles of all processes of the same user see the same session. Neither dropping a handle
/// nor the end of the program cancels anything. A handle is a value and holds no connection.
///
/// Every call asks the agent over its control socket, does not block the caller's thread, and throws `TarnError`.
public struct BackgroundSession: Sendable, Hashable {
  /// The name: 1 to 64 letters, digits, `-`, `_` and `.`, the first one a letter or digit.
  public let identifier: String
  /// The agent that the session lives in.
  public let agent: Agent

  init(_ identifier: String, _ agent: Agent) { (self.identifier, self.agent) = (identifier, agent) }

  // MARK: Opening

  /// The result of opening a session.
  public struct Opened: Sendable {
    public var session: BackgroundSession
    /// The settings that the agent has stored. A session that existed before keeps its settings.
    public var configuration: Configuration
    /// The names of the settings that were passed and that differ from those stored. `update(_:)` changes them.
    public var differing: [String]
  }

  /// Opens the session with this name, and makes it when there is none.
  ///
  /// - Parameters:
  ///   - identifier: the session's name; see `identifier`.
  ///   - configuration: the settings of a new session; `nil` for the standard ones.
  ///   - agent: the agent to ask; the user's agent by default.
  /// - Returns: the session, which is durable in the agent's record.
  /// - Throws: `TarnError.agentUnavailable` when no agent answers; `.refused` for an invalid name.
  public static func open(
    _ identifier: String, configuration: Configuration? = nil, agent: Agent = Agent()
  ) async throws(TarnError) -> Opened {
    let document = try await agent.ask { try $0.openSession(identifier, configuration?.stored) }
    return Opened(
      session: BackgroundSession(identifier, agent), configuration: Configuration(document.settings),
      differing: document.differs ?? [])
  }

  /// Returns all sessions of the agent.
  public static func all(agent: Agent = Agent()) async throws(TarnError) -> [BackgroundSession] {
    try await agent.ask { try $0.sessions() }.sessions.map { BackgroundSession($0.id, agent) }
  }

  /// The settings of a session.
  public struct Configuration: Sendable, Hashable {
    /// The transfers in progress at a time, 1 to 64. `nil` for four.
    public var maximumTransfers: Int?
    /// A program by its absolute path, and its arguments. The agent runs it when there are events that nobody reads, other than
    /// `response` and `waiting`. It runs it again, less and less often, until the events are acknowledged. The environment has
    /// `TARN_SESSION`, `TARN_EVENT` (the number of the first event that is not acknowledged), `TARN_REASON` (the code of the first
    /// one that wakes) and `TARN_SOCKET`.
    /// `nil` for none.
    public var wakeCommand: [String]?

    /// A program by its absolute path, and its arguments. The agent runs it once when all downloads are done. The environment has
    /// `TARN_SESSION`, `TARN_FINISHED` and `TARN_FAILED`. `nil` for none.
    public var hook: [String]?
    /// Whether the desktop shows a notice when all downloads are done (notify-send(1)).
    public var notifiesDesktop = false
    /// Whether a task whose request may have expired waits until somebody answers `needsRequest`. Otherwise it begins after 30
    /// seconds.
    public var holdsOldRequests = false
    /// The time limits of all tasks. `nil` for the standard ones.
    public var limits: TimeLimits?
    public var rules: [DownloadRule] = []
    /// The header fields of all requests. Each request sends them only to the origin of its URL. Those of a request take the place of
    /// these. The defaults are `User-Agent: tarn/VERSION`, `Accept: */*` and `Accept-Encoding: identity`; the first two give way to
    /// fields of the same name.
    public var headers: [String: String] = [:]
    /// Whether cookies are kept. They go back only to the host that set them, and last as long as the agent runs.
    public var keepsCookies = false
    public var hosts: [TrustedHost] = []
    /// The proxy: `http://host:port` or `socks5h://host:port`. `nil` for none. Environment variables are not considered.
    public var proxy: String?
    /// The session's quota. `nil` for the standard one.
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

  /// The settings that the agent has stored.
  public var configuration: Configuration {
    get async throws(TarnError) { Configuration(try await document().settings) }
  }

  /// Replaces the stored settings. The new ones take effect at once, also for queued tasks.
  public func update(_ configuration: Configuration) async throws(TarnError) {
    _ = try await agent.ask { try $0.openSession(identifier, configuration.stored, isUpdate: true) }
  }

  func document() async throws(TarnError) -> SessionDocument {
    try await agent.ask { try $0.session(identifier) }
  }

  // MARK: Tasks

  /// Adds a download, which begins when its turn comes.
  ///
  /// A task is identified by its URL, with the query, and its destination. When such a task exists already, it is returned. It is
  /// left as it is until it has ended. Then it is queued again with the new request; a finished file is fetched only if the server
  /// has another one.
  ///
  /// - Throws: `TarnError.refused` for an invalid request, or when the session is closed (`session-closed`).
  @discardableResult
  public func download(_ request: DownloadRequest) async throws(TarnError) -> DownloadTask {
    try await download([request])[0]
  }

  /// Adds downloads. Each batch of 1,000 is added as a whole or not at all, and is durable on return.
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

  /// Returns a handle of the task with this number. Does not check that the task exists.
  public func task(_ number: Int64) -> DownloadTask {
    DownloadTask(number: number, session: self, wasThere: true)
  }

  /// The state of all tasks. More than 10,000 are read in parts, each at an instant of its own.
  public struct Snapshot: Sendable {
    /// The number of the last event that all parts include. `events(after:)` continues from a snapshot without a gap and without
    /// duplicates.
    public var asOf: Int64
    /// The tasks, in the order in which they were added.
    public var tasks: [DownloadTask.Status]
    /// The parts in their order, each with the number of its last task, and of the last event that it includes.
    var parts: [(last: Int64, asOf: Int64)] = []

    /// Returns whether the snapshot shows what the event tells. A part may include events after `asOf`.
    public func includes(_ event: DownloadEvent) -> Bool {
      let part = event.task.flatMap { task in parts.first { task.number <= $0.last } }
      return event.number <= part?.asOf ?? asOf
    }
  }

  /// Returns the state of all tasks.
  public func snapshot() async throws(TarnError) -> Snapshot {
    var snapshot = Snapshot(asOf: 0, tasks: [])
    var after: Int64 = 0
    while true {
      let last = after
      let page = try await agent.ask { try $0.tasks(of: identifier, after: last) }
      if after == 0 { snapshot.asOf = page.asOf }
      snapshot.tasks += page.tasks.map { DownloadTask.Status($0, self) }
      guard let next = page.tasks.last?.task.number else { return snapshot }
      snapshot.parts.append((next, page.asOf))
      guard page.hasMore else { return snapshot }
      after = next
    }
  }

  // MARK: Orders

  /// Makes the session refuse new tasks. The session is removed when all its tasks have ended and all events are acknowledged.
  public func close() async throws(TarnError) { try await order(SessionOrder(.close)) }

  /// Cancels all tasks that have not ended, and removes their partial files.
  public func cancelAll() async throws(TarnError) { try await order(SessionOrder(.cancel)) }

  /// Stops all tasks until `resumeAll()`. Partial files stay.
  public func suspendAll() async throws(TarnError) { try await order(SessionOrder(.suspend)) }

  public func resumeAll() async throws(TarnError) { try await order(SessionOrder(.resume)) }

  /// Removes the session now. Finished files stay; partial files and events are deleted.
  public func forget() async throws(TarnError) { try await order(SessionOrder(.forget)) }

  /// Acknowledges the events up to this number: they are not delivered again, and the wake command is not run for them.
  public func acknowledge(_ number: Int64) async throws(TarnError) {
    var order = SessionOrder(.acknowledge)
    order.number = number
    try await self.order(order)
  }

  /// The number of the last event that was acknowledged.
  public var acknowledged: Int64 {
    get async throws(TarnError) { try await document().acknowledged }
  }

  func order(_ order: SessionOrder) async throws(TarnError) {
    _ = try await agent.ask { try $0.order(order, identifier) }
  }
}
