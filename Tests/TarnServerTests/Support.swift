import Foundation
import TarnControl
import TarnCore
import TarnRuntime
import TarnServer
import TestSupport

/// An agent without mirrors: a journal, and a record of what was asked.
final class FakeAgent: AgentPort {
  struct State {
    var journal: [EventDocument] = []
    var asked: [String] = []
    /// Of the last command.
    var expected: ControlExpectation?
    var failure: ControlFailure?
    var status = StatusAnswer(mirrors: [])
    var wakes: [Int: @Sendable () -> Void] = [:]
    var subscriptions = 0
    /// Called after a page is made and before it is handed out.
    var betweenPages: (@Sendable (FakeAgent) -> Void)?
    var handedOut = 0
    /// Events that need no journal: so many of so many bytes.
    var endless: String?
    var folders = ["m": "/m"]
  }
  let state = Locked(State())
  let fakes = FakeSessions()
  var sessions: any SessionPort { fakes }
  /// Calls wait here, when it is there.
  let gate: Gate?
  /// Opens when a call waits at the gate.
  let arrived = Gate()
  /// How many calls have come to the gate.
  let arrivals = Locked(0)
  /// Opens when the last subscription ended.
  let unsubscribed = Gate()

  init(gate: Gate? = nil) { self.gate = gate }

  var asked: [String] { state.withLock { $0.asked } }
  var expected: ControlExpectation? { state.withLock { $0.expected } }
  var subscribers: Int { state.withLock { $0.wakes.count } }

  private func note(_ text: String) throws(ControlFailure) {
    arrivals.withLock { $0 += 1 }
    arrived.open()
    try? gate?.waitOrThrow()
    let failure = state.withLock { state in
      state.asked.append(text)
      return state.failure
    }
    if let failure { throw failure }
  }

  func fail(_ failure: ControlFailure?) { state.withLock { $0.failure = failure } }

  /// Appends to the journal and wakes who follows.
  func publish(_ count: Int = 1) {
    let wakes = state.withLock { state in
      for _ in 0..<count { state.journal.append(Self.event(state.journal.count + 1)) }
      return Array(state.wakes.values)
    }
    for wake in wakes { wake() }
  }

  static func event(_ number: Int, detail: String? = nil) -> EventDocument {
    var event = EventDocument(
      number: Int64(number), mirror: "m", time: "2026-01-01T00:00:00Z", code: "published",
      cursor: "c\(number)")
    event.path = "dir/f\(number)"
    event.detail = detail
    return event
  }

  func status(mirrors: [String], problemLimit: Int) throws(ControlFailure) -> StatusAnswer {
    try note("status \(mirrors) \(problemLimit)")
    return state.withLock { $0.status }
  }

  func metrics(withSessions: Bool) throws(ControlFailure) -> MetricsPage {
    try note("metrics \(withSessions)")
    var page = MetricsPage()
    page.set(.build, 1, "9.8")
    page.set(.repairs, 3, "m")
    return page
  }

  func events(after cursor: String?, mirrors: [String], limit: Int) throws(ControlFailure) -> EventPage {
    try note("events \(cursor ?? "-") \(mirrors) \(limit)")
    let number = cursor.flatMap { Int($0.dropFirst()) } ?? 0
    if let detail = state.withLock({ $0.endless }) {
      let events = (1...limit).map { Self.event(number + $0, detail: detail) }
      state.withLock { $0.handedOut += limit }
      return EventPage(events: events, cursor: "c\(number + limit)", hasMore: true)
    }
    let (page, hook) = state.withLock { state in
      let rest = state.journal.dropFirst(number)
      let events = Array(rest.prefix(limit))
      state.handedOut += events.count
      return (
        EventPage(events: events, cursor: events.last?.cursor ?? cursor ?? "c0", hasMore: rest.count > limit),
        state.betweenPages
      )
    }
    hook?(self)
    return page
  }

  func mirrorFolders() -> [String: String] { state.withLock { $0.folders } }

  func eventsEnd() throws(ControlFailure) -> String { state.withLock { "c\($0.journal.count)" } }

  func subscribe(_ wake: @escaping @Sendable () -> Void) -> AgentSubscription {
    let number = state.withLock { state in
      state.subscriptions += 1
      state.wakes[state.subscriptions] = wake
      return state.subscriptions
    }
    return AgentSubscription {
      let isLast = self.state.withLock { state in
        state.wakes[number] = nil
        return state.wakes.isEmpty
      }
      if isLast { self.unsubscribed.open() }
    }
  }

  func perform(_ command: ControlCommand) throws(ControlFailure) -> ControlAnswer {
    let more = [command.priority?.rawValue, command.plan].compactMap { $0 }
    state.withLock { $0.expected = command.expected }
    try note(
      ([command.verb.rawValue, command.target.mirror, command.target.path ?? "-"] + more).joined(
        separator: " "))
    return ControlAnswer("done", run: 7)
  }

  func reload() -> ReloadAnswer {
    try? note("reload")
    var answer = ReloadAnswer(isTaken: true)
    answer.added = ["new"]
    return answer
  }

  func limit(_ rate: ControlRate?) throws(ControlFailure) -> ControlAnswer {
    try note("limit \(rate.map { $0.bytesPerSecond.map(String.init) ?? "none" } ?? "settings")")
    return ControlAnswer("limited", wasSo: true)
  }
}

/// A server over a fake agent, in a directory of its own; stopped when it goes.
final class Stage: Sendable {
  let agent: FakeAgent
  let directory = ScratchDirectory()
  let server: ControlServer
  let path: String
  let everyone: String

  init(
    gate: Gate? = nil, mode: UInt32 = 0o660, group: ControlSocket.Group? = nil,
    metrics: MetricsListener? = nil,
    _ change: (inout ControlLimits) -> Void = { _ in }
  ) throws {
    agent = FakeAgent(gate: gate)
    path = directory.file("tarn.sock")
    everyone = directory.file("status.sock")
    var limits = ControlLimits()
    // The machine may be busy: only what a test is about is short. Longer than `RawClient` reads, so that a server that closes nothing in
    // time is seen.
    (limits.requesting, limits.idling) = (.seconds(600), .seconds(600))
    (limits.answering, limits.writing) = (.seconds(600), .seconds(600))
    change(&limits)
    server = ControlServer(
      agent: agent,
      sockets: [
        ControlSocket(path: path, mode: mode, group: group),
        ControlSocket(path: everyone, mode: 0o666, rights: .redactedStatus),
      ], metrics: metrics, version: "9.8", limits: limits)
    try server.start()
  }

  deinit { server.stop() }

  var client: ControlClient { Self.client(path) }

  static func client(
    _ path: String, _ change: (inout ControlClient.Limits) -> Void = { _ in }
  ) -> ControlClient {
    var limits = ControlClient.Limits()
    (limits.connecting, limits.telling) = (.seconds(120), .seconds(120))
    (limits.answering, limits.silence) = (.seconds(120), .seconds(120))
    change(&limits)
    return ControlClient(socketPath: path, limits: limits)
  }

  var raw: RawClient { RawClient(path) }
}

/// Runs on a thread, and hands back what came of it.
final class Aside<Value: Sendable>: Sendable {
  private let result = LockedCondition<Result<Value, any Error>?>(nil)
  private let thread: WorkerThread

  init(_ body: @escaping @Sendable () throws -> Value) throws {
    let result = result
    thread = try WorkerThread.start(name: "test-aside") {
      let value = Result { try body() }
      result.change { $0 = value }
    }
  }

  func value() throws -> Value {
    guard let result = result.wait(atMost: .seconds(300), for: { $0 }) else { throw ClosedGate() }
    return try result.get()
  }
}

enum Program {
  static let tools = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .appendingPathComponent("Tools")

  static func exists(_ name: String) -> Bool { (try? run(["sh", "-c", "command -v \(name)"]))?.status == 0 }

  /// Its standard output, at most as much as a pipe holds.
  static func run(_ arguments: [String]) throws -> (status: Int32, output: String) {
    let process = Process()
    let pipe = Pipe()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = arguments
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = pipe
    process.standardError = FileHandle.nullDevice
    try process.run()
    process.killWhenLate()
    let output = pipe.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return (process.terminationStatus, String(decoding: output, as: UTF8.self))
  }

  /// The status line and the body of `control_client.py`.
  static func foreign(_ arguments: [String]) throws -> (status: String, body: String) {
    let output = try run(["python3", tools.appendingPathComponent("control_client.py").path] + arguments)
      .output
    let lines = output.split(separator: "\n", maxSplits: 1, omittingEmptySubsequences: false)
    return (String(lines[0]), lines.count > 1 ? String(lines[1]) : "")
  }
}
