import Foundation
import TarnCore
import TarnCrypto
import TarnEngine
import TarnFolder
import TarnLedger
import TarnRuntime
import TestSupport
import Testing

@testable import TarnAgent

/// A random source that is asked for a back-off in the middle of recording a failure.
final class RandomHook: RandomSource {
  /// Called once, at the next number.
  let action = Locked<(@Sendable () -> Void)?>(nil)

  func next() -> UInt64 {
    let action = action.withLock { action in
      defer { action = nil }
      return action
    }
    action?()
    return 1 << 63
  }
}

/// A session, driven by hand as its loop does.
final class SessionBench {
  let path: String
  let clock = ManualClock(now: 1_700_000_000_000_000_000)
  let asked = Locked<[DownloadRequest]>([])
  let answers = Locked<[String: FakeAnswer]>([:])
  let random = RandomHook()
  private let messages = LockedCondition<[SessionLoop.Message]>([])
  private(set) var ledger: SessionLedger
  private(set) var session: DownloadSession
  private(set) var downloader: FakeDownloader

  init() throws {
    path =
      FileManager.default.temporaryDirectory.appendingPathComponent("tarn-session-\(UUID().uuidString)")
      .path
    for name in ["ledger", "out", "other"] {
      try FileManager.default.createDirectory(atPath: "\(path)/\(name)", withIntermediateDirectories: true)
    }
    (ledger, session, downloader) = try Self.open(path, clock, random, messages, asked, answers)
  }

  deinit {
    session.close()
    try? FileManager.default.removeItem(atPath: path)
  }

  private static func open(
    _ path: String, _ clock: ManualClock, _ random: RandomHook,
    _ messages: LockedCondition<[SessionLoop.Message]>,
    _ asked: Locked<[DownloadRequest]>, _ answers: Locked<[String: FakeAnswer]>
  ) throws -> (SessionLedger, DownloadSession, FakeDownloader) {
    let ledger = try SessionLedger(directory: "\(path)/ledger", clock: clock)
    let downloader = try FakeDownloader { request in
      asked.withLock { $0.append(request) }
      return answers.withLock { $0[request.url] } ?? FakeAnswer(etag: "\"1\"", body: Array("hello".utf8))
    }
    let session = try DownloadSession(
      id: "s", ledger: ledger,
      folder: SessionFolder(id: "s", names: FinalNames(), hashing: OpenSSLHashing()),
      downloader: downloader, progress: PassProgress(clock: clock), clock: clock, random: random,
      post: { message in messages.change { $0.append(message) } })
    return (ledger, session, downloader)
  }

  /// Another process opens the session.
  func reopen() throws {
    session.close()
    messages.withLock { $0 = [] }
    (ledger, session, downloader) = try Self.open(path, clock, random, messages, asked, answers)
  }

  func answer(_ name: String, _ answer: FakeAnswer) { answers.withLock { $0["http://h/\(name)"] = answer } }

  @discardableResult
  func add(_ name: String, _ change: (inout TaskRequest) -> Void = { _ in }) throws -> Int64 {
    var request = TaskRequest(url: "http://h/\(name)", to: "\(path)/out/\(name)")
    change(&request)
    try request.validate()
    return try session.add([request])[0].task.number
  }

  /// Begins what may begin, and hears of it, until the condition holds.
  func run(
    until what: String, _ condition: () throws -> Bool, at place: SourceLocation = #_sourceLocation
  ) throws {
    let deadline = Instant.now + .seconds(120)
    while true {
      _ = try session.advance()
      if try condition() { return }
      guard Instant.now < deadline else {
        Issue.record("not within a minute: \(what); \(try states())", sourceLocation: place)
        return
      }
      let heard = messages.wait(atMost: .milliseconds(200)) { messages -> [SessionLoop.Message]? in
        guard !messages.isEmpty else { return nil }
        defer { messages = [] }
        return messages
      }
      for message in heard ?? [] {
        switch message {
        case .brought(let session, let beginning): try session.start(beginning)
        case .responded(let session, let task): try session.noteResponse(task)
        case .ended(let session, let task, let outcome): try session.ended(task, outcome)
        default: break
        }
      }
    }
  }

  func states() throws -> [TaskState] { try ledger.tasks(limit: 99).map(\.state) }
  func codes() throws -> [SessionEvent.Code] { try ledger.events(after: 0, limit: 999).map(\.code) }
  func state(_ task: Int64) throws -> TaskState? { try ledger.task(task)?.state }
  func text(_ name: String) -> String? { try? String(contentsOfFile: "\(path)/\(name)", encoding: .utf8) }
  var files: [String] {
    (try? FileManager.default.contentsOfDirectory(atPath: path + "/out").sorted()) ?? []
  }

  func finish(_ task: Int64) throws {
    try run(until: "task \(task) has ended") {
      try state(task)?.isEnd == true && !session.isAtWork(task)
    }
  }

  /// Suspends a task once so many bytes are in partial files.
  func suspend(_ task: Int64, atBytes bytes: UInt64) throws {
    try run(until: "most of it is there") { try session.partialFiles.total().bytes >= bytes }
    #expect(try session.give(.wish(.suspend), task))
    try run(until: "it is suspended") { try state(task) == .suspended && !session.isAtWork(task) }
  }

  /// A task that has failed with 1.5 MB in its partial file.
  func beginLarge(_ name: String) throws -> Int64 {
    let broken = DownloadFailure(.tls, "no trust", isTransient: false)
    answer(
      name, FakeAnswer(etag: "\"1\"", body: Array(repeating: 7, count: 2 << 20), failure: (1_500_000, broken))
    )
    let task = try add(name)
    try finish(task)
    #expect(files.contains(".tarn-s-\(task).part"))
    return task
  }

  /// A task whose transfer stands still after 1.5 MB.
  func beginPaused(
    _ name: String, _ change: (inout TaskRequest) -> Void = { _ in }
  ) throws -> (task: Int64, gate: AnswerGate) {
    let gate = AnswerGate()
    var answer = FakeAnswer(etag: "\"1\"", body: Array(repeating: 7, count: 2 << 20))
    answer.pause = (1_500_000, gate)
    self.answer(name, answer)
    let task = try add(name, change)
    try run(until: "\(name) stands still") {
      try ledger.events(after: 0, limit: 99).contains { $0.task == task && $0.code == .response }
        && ledger.task(task).flatMap { session.partialFiles.kept(of: $0) } ?? 0 >= 1_000_000
    }
    return (task, gate)
  }

  func fileExists(_ name: String) -> Bool { FileManager.default.fileExists(atPath: "\(path)/\(name)") }
}
