internal import TarnControl
internal import TarnCore

/// A background session is a named queue of downloads that the user's agent carries out, even after this program has ended. This
/// value is a handle of one.
///
/// The session lives in the agent. All handles of all processes of the same user see the same session. Neither dropping a handle
/// nor the end of the program cancels anything. A handle is a value and holds no connection.
///
/// Every call asks the agent over its control socket, does not block the caller's thread, and throws `TarnError`.
public struct BackgroundSession: Sendable, Hashable {
  /// This name identifies the session in its agent. It consists of 1 to 64 letters, digits, `-`, `_` and `.`, and begins with a
  /// letter or digit.
  public let identifier: String
  /// The session lives in this agent, which every call asks.
  public let agent: Agent

  init(_ identifier: String, _ agent: Agent) { (self.identifier, self.agent) = (identifier, agent) }

  // MARK: Opening

  /// Opening a session gives this result.
  public struct Opened: Sendable {
    /// This handle leads to the session that was opened or made.
    public var session: BackgroundSession
    /// The agent has stored these settings. A session that existed before keeps its settings.
    public var configuration: Configuration
    /// These settings were passed, and differ from those stored. The array has their names, and `update(_:)` changes them.
    public var differing: [String]
  }

  /// Opens the session with this name, and makes it when there is none.
  ///
  /// - Parameters:
  ///   - identifier: the session's name; see `identifier`.
  ///   - configuration: the settings of a new session; `nil` for the standard ones.
  ///   - agent: the agent to ask; the user's agent by default.
  /// - Returns: the session, which is durable in the agent's record.
  /// - Throws: `TarnError.agentUnavailable` when no agent answers; `.refused` for an invalid name or setting.
  public static func open(
    _ identifier: String, configuration: Configuration? = nil, agent: Agent = Agent()
  ) async throws(TarnError) -> Opened {
    let document = try await agent.ask { try $0.openSession(identifier, configuration?.stored) }
    return Opened(
      session: BackgroundSession(identifier, agent), configuration: Configuration(document.settings),
      differing: document.differs ?? [])
  }

  /// Returns handles of all sessions of the agent, no matter which program opened them.
  ///
  /// - Parameter agent: the agent to ask; the user's agent by default.
  /// - Throws: `TarnError.agentUnavailable` when no agent answers; `.refused` when it belongs to another user
  ///   (`sessions-of-another-user`).
  public static func all(agent: Agent = Agent()) async throws(TarnError) -> [BackgroundSession] {
    try await agent.ask { try $0.sessions() }.sessions.map { BackgroundSession($0.id, agent) }
  }

  /// These settings hold for all tasks of a session. The agent stores and checks them when the session is made or updated.
  public struct Configuration: Sendable, Hashable {
    /// This many transfers may run at a time, 1 to 64. `nil` means four.
    public var maximumTransfers: Int?
    /// The agent runs this command when there are events that nobody reads, other than `response` and `waiting`. The first element
    /// is the absolute path of a program, and its arguments follow. The agent runs it again, less and less often, until the events
    /// are acknowledged. `nil` means that no command is run.
    ///
    /// The environment has `TARN_SESSION`, `TARN_EVENT` (the number of the first event that is not acknowledged), `TARN_REASON` (the
    /// code of the first one that wakes) and `TARN_SOCKET`.
    public var wakeCommand: [String]?

    /// The agent runs this command once when all downloads are done, whatever its exit status is. The first element is the absolute
    /// path of a program, and its arguments follow. The environment has `TARN_SESSION`, `TARN_SOCKET`, `TARN_FINISHED` and
    /// `TARN_FAILED`. `nil` means that no command is run.
    public var hook: [String]?
    /// This says whether the desktop shows a notice when all downloads are done (notify-send(1)).
    public var notifiesDesktop = false
    /// This says whether a task whose request may have expired waits until somebody answers `needsRequest`. Otherwise it begins
    /// after 30 seconds.
    public var holdsOldRequests = false
    /// These time limits hold for all tasks. `nil` means the default limits.
    public var limits: TimeLimits?
    /// These rules decide about the responses to all requests. The agent tries them in order, after the rules of the request.
    public var rules: [DownloadRule] = []
    /// All requests send these header fields, each only to the origin of its URL. Fields of a request take the place of these. The
    /// defaults are `User-Agent: tarn/VERSION`, `Accept: */*` and `Accept-Encoding: identity`. The first two give way to fields of
    /// the same name.
    public var headers: [String: String] = [:]
    /// This says whether cookies are kept. They go back only to the host that set them, and last as long as the agent runs.
    public var keepsCookies = false
    /// These hosts have certificates, keys or credentials of their own. All other hosts are trusted as the system trusts them.
    public var hosts: [TrustedHost] = []
    /// All requests go through this proxy, `http://host:port` or `socks5h://host:port`. `nil` means no proxy. Environment variables
    /// such as `http_proxy` are not read.
    public var proxy: String?
    /// This quota limits what the session may hold. `nil` means the default quota.
    public var quota: Quota?

    /// Makes settings that keep all other defaults.
    ///
    /// - Parameters:
    ///   - maximumTransfers: how many transfers may run at a time; see `maximumTransfers`.
    ///   - wakeCommand: a program and its arguments; see `wakeCommand`.
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

  /// The agent has stored these settings. Reading them asks the agent.
  ///
  /// - Throws: `TarnError.refused` when there is no such session (`no-such-session`).
  public var configuration: Configuration {
    get async throws(TarnError) { Configuration(try await document().settings) }
  }

  /// Replaces all stored settings. The new ones are durable on return, and apply to all that begins after that, also to queued
  /// tasks.
  ///
  /// - Throws: `TarnError.refused` for an invalid setting.
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
  /// The task is durable on return.
  ///
  /// - Throws: `TarnError.refused` for an invalid request, or when the session is closed (`session-closed`).
  @discardableResult
  public func download(_ request: DownloadRequest) async throws(TarnError) -> DownloadTask {
    try await download([request])[0]
  }

  /// Adds downloads. Each batch of 1,000 is added as a whole or not at all, and is durable on return.
  ///
  /// - Returns: the tasks, in the order of the requests.
  /// - Throws: `TarnError.refused` as for one request. Batches before the refused one stay added.
  public func download(_ requests: [DownloadRequest]) async throws(TarnError) -> [DownloadTask] {
    var tasks: [DownloadTask] = []
    for start in stride(from: 0, to: requests.count, by: ControlRoute.mostTasks) {
      let batch = requests[start..<min(requests.count, start + ControlRoute.mostTasks)].map(\.stored)
      let added = try await agent.ask { try $0.add(batch, to: identifier) }
      tasks += added.tasks.map { DownloadTask(number: $0.number, session: self, wasThere: $0.wasThere) }
    }
    return tasks
  }

  /// Returns a handle of the task with this number. It does not ask the agent whether the task exists.
  public func task(_ number: Int64) -> DownloadTask {
    DownloadTask(number: number, session: self, wasThere: true)
  }

  /// A snapshot holds the state of all tasks. More than 1,000 tasks are read in parts, each at an instant of its own.
  public struct Snapshot: Sendable {
    /// All parts include the events up to this number. `events(after:)` continues from a snapshot without a gap and without
    /// duplicates.
    public var asOf: Int64
    /// These are the tasks of the session, in the order in which they were added.
    public var tasks: [DownloadTask.Status]
    /// The parts in their order, each with the number of its last task, and of the last event that it includes.
    var parts: [(last: Int64, asOf: Int64)] = []

    /// Returns whether the snapshot shows what the event tells. A part may include events after `asOf`.
    public func includes(_ event: DownloadEvent) -> Bool {
      let part = event.task.flatMap { task in parts.first { task.number <= $0.last } }
      return event.number <= part?.asOf ?? asOf
    }
  }

  /// Returns the state of all tasks. It asks the agent once for each 1,000 of them.
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

  /// Cancels all tasks that have not ended, and removes their partial files. Finished files stay.
  public func cancelAll() async throws(TarnError) { try await order(SessionOrder(.cancel)) }

  /// Stops all tasks until `resumeAll()`, also after a restart of the agent. Partial files stay.
  public func suspendAll() async throws(TarnError) { try await order(SessionOrder(.suspend)) }

  /// Queues all suspended tasks. Each continues from its partial file if the server still has the same version.
  public func resumeAll() async throws(TarnError) { try await order(SessionOrder(.resume)) }

  /// Removes the session now. Finished files stay; partial files and events are deleted.
  public func forget() async throws(TarnError) { try await order(SessionOrder(.forget)) }

  /// Acknowledges the events up to this number. They are deleted, are not delivered again, and the wake command is not run for them.
  /// Acknowledge an event after its work is done, not before.
  ///
  /// - Throws: `TarnError.refused` (`no-such-event`) for a number that the session has not reached, since it was forgotten and made
  ///   anew. Nothing is acknowledged then.
  public func acknowledge(_ number: Int64) async throws(TarnError) {
    var order = SessionOrder(.acknowledge)
    order.number = number
    try await self.order(order)
  }

  /// All events up to this number were acknowledged. It is 0 when none was. Reading it asks the agent.
  public var acknowledged: Int64 {
    get async throws(TarnError) { try await document().acknowledged }
  }

  func order(_ order: SessionOrder) async throws(TarnError) {
    _ = try await agent.ask { try $0.order(order, identifier) }
  }
}
